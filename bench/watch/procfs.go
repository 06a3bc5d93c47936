package watch

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pepvault/bench/report"
)

// tick is the unit of CPU times in /proc: USER_HZ, which is 100 wherever Go's
// Linux runs.
const tick = 10 * time.Millisecond

// errFormat says that a file of /proc isn't what proc(5) describes.
var errFormat = errors.New("not as proc(5) describes it")

// procfs is the folder /proc, or one that looks like it.
type procfs string

func (p procfs) file(pid int, name string) string {
	return filepath.Join(string(p), strconv.Itoa(pid), name)
}

// usable reports whether there is a Linux behind it.
func (p procfs) usable() bool {
	_, err := os.Stat(filepath.Join(string(p), "stat"))
	return err == nil
}

// member reads a process for the first time.
func (p procfs) member(pid int) (*member, error) {
	text, err := os.ReadFile(p.file(pid, "stat"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no process %d", pid)
	}
	if err != nil {
		return nil, err
	}
	s, err := parseStat(text)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	m := &member{start: s.start, turns: make(map[int]turns)}
	if !p.read(pid, m) {
		return nil, fmt.Errorf("process %d has ended", pid)
	}
	return m, nil
}

// read brings a member up to date; it is false if the process has ended. What
// can't be read stays as it was.
func (p procfs) read(pid int, m *member) bool {
	text, err := os.ReadFile(p.file(pid, "stat"))
	if err != nil {
		return false
	}
	s, err := parseStat(text)
	if err != nil || s.start != m.start {
		return false
	}
	m.user, m.system, m.zombie = s.user, s.system, s.zombie
	m.resident = 0 // a zombie has none
	if text, err := os.ReadFile(p.file(pid, "status")); err == nil {
		m.resident = field(text, "VmRSS:") << 10
		m.peak = max(m.peak, field(text, "VmHWM:")<<10)
	}
	text, err = os.ReadFile(p.file(pid, "io"))
	switch {
	case err == nil:
		m.read, m.written = max(m.read, field(text, "read_bytes:")), max(m.written, field(text, "write_bytes:"))
	case errors.Is(err, fs.ErrPermission):
		m.refused = m.refused || !s.zombie // which has nothing to tell
	}
	p.countTurns(pid, m)
	return true
}

// countTurns adds up the threads: the file of the process has only those of
// its first one. What an ended thread had stays counted.
func (p procfs) countTurns(pid int, m *member) {
	threads, err := os.ReadDir(p.file(pid, "task"))
	if err != nil {
		return
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.file(pid, "task"), thread.Name(), "status"))
		if err != nil {
			continue // it has ended
		}
		before := m.turns[id]
		now := turns{yielded: field(text, "voluntary_ctxt_switches:"), forced: field(text, "nonvoluntary_ctxt_switches:")}
		if now.yielded < before.yielded { // another thread with that number
			before = turns{}
		}
		m.yielded += now.yielded - before.yielded
		m.forced += max(now.forced-before.forced, 0)
		m.turns[id] = now
	}
}

// parents maps each process to its parent.
func (p procfs) parents() map[int]int {
	entries, err := os.ReadDir(string(p))
	if err != nil {
		return nil
	}
	all := make(map[int]int, len(entries))
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(p.file(pid, "stat"))
		if err != nil {
			continue
		}
		if s, err := parseStat(text); err == nil {
			all[pid] = s.parent
		}
	}
	return all
}

// noise reads what the machine does as a whole; At and Others are the caller's.
func (p procfs) noise() (report.Noise, error) {
	text, err := os.ReadFile(filepath.Join(string(p), "stat"))
	if err != nil {
		return report.Noise{}, err
	}
	return parseNoise(text)
}

// stat is what is needed of /proc/PID/stat.
type stat struct {
	parent       int
	user, system time.Duration
	start        int64
	zombie       bool
}

// parseStat reads past the name, which may hold anything, also brackets and
// spaces.
func parseStat(text []byte) (stat, error) {
	end := bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[end+1:]))
	const state, parent, user, system, start = 0, 1, 11, 12, 19 // counted from the one behind the name
	if end < 0 || len(fields) <= start {
		return stat{}, fmt.Errorf("stat: %w", errFormat)
	}
	var s stat
	var bad error
	number := func(i int) int64 {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil || n < 0 {
			bad = fmt.Errorf("stat, field %d: %w", i+3, errFormat)
		}
		return n
	}
	s.parent = int(number(parent))
	s.user, s.system = time.Duration(number(user))*tick, time.Duration(number(system))*tick
	s.start = number(start)
	s.zombie = fields[state] == "Z" || fields[state] == "X"
	return s, bad
}

// parseNoise reads /proc/stat. Guests' time is part of user time already.
func parseNoise(text []byte) (report.Noise, error) {
	var n report.Noise
	found := false
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) >= 2 && fields[0] == "procs_running":
			n.Runnable, _ = strconv.Atoi(fields[1]) // 0 if it isn't one
		case len(fields) >= 9 && fields[0] == "cpu":
			var ticks [9]int64
			for i := 1; i < len(ticks); i++ {
				value, err := strconv.ParseInt(fields[i], 10, 64)
				if err != nil {
					return report.Noise{}, fmt.Errorf("stat of the machine: %w", errFormat)
				}
				ticks[i] = value
			}
			const user, nice, system, irq, softirq, stolen = 1, 2, 3, 6, 7, 8
			n.Busy = time.Duration(ticks[user]+ticks[nice]+ticks[system]+ticks[irq]+ticks[softirq]) * tick
			n.Stolen = time.Duration(ticks[stolen]) * tick
			found = true
		}
	}
	if !found {
		return report.Noise{}, fmt.Errorf("stat of the machine: no line of all processors: %w", errFormat)
	}
	return n, nil
}

// field is the number behind a name that stands at the beginning of a line, or
// 0.
func field(text []byte, name string) int64 {
	for line := range bytes.Lines(text) {
		rest, found := bytes.CutPrefix(line, []byte(name))
		if !found {
			continue
		}
		words := bytes.Fields(rest)
		if len(words) == 0 {
			return 0
		}
		n, err := strconv.ParseInt(string(words[0]), 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return 0
}
