package limit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ownerOf names a process for the groups that it makes: by the namespace in which
// its number holds, the number, and when it began, as numbers are used again. It is
// "" if there is no such process.
func ownerOf(proc string, pid int) string {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	// Its name may hold anything, also brackets.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const start = 19 // starttime of proc(5), counted from the one behind the name
	if err != nil || len(fields) <= start {
		return ""
	}
	return fmt.Sprintf("%s-%d-%s", namespace(proc), pid, fields[start])
}

// namespace is the number of the namespace of process ids that we are in.
func namespace(proc string) string {
	text, err := os.Readlink(filepath.Join(proc, "self/ns/pid"))
	if err != nil {
		return "0"
	}
	return strings.Trim(text, "pid:[]")
}

// sweep closes the groups below a folder that a process of our namespace has made
// which is there no more: nobody else will. What can't be closed stays.
func sweep(parent, proc string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // then no group can be made there either
	}
	for _, entry := range entries {
		owner, ours := strings.CutPrefix(entry.Name(), prefix+namespace(proc)+"-")
		parts := strings.Split(owner, "-")
		if !ours || len(parts) != 3 {
			continue
		}
		pid, err := strconv.Atoi(parts[0])
		if err != nil || ownerOf(proc, pid) == fmt.Sprintf("%s-%s-%s", namespace(proc), parts[0], parts[1]) {
			continue
		}
		_ = remove(filepath.Join(parent, entry.Name()))
	}
}
