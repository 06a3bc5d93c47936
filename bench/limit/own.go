package limit

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Throttle counts what a limit of CPU did to a group since it was made.
type Throttle struct {
	Periods   int64 // in which anything of the group wanted to run
	Throttled int64 // those of them in which it had to wait for the next
}

// Own reads what limits of CPU did to the groups that this process is in now, by
// their folders: its own and all above it that it is shown. Where there is none, or
// no Linux, it is empty.
func Own() map[string]Throttle {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	own, err2 := os.ReadFile("/proc/self/cgroup")
	if err != nil || err2 != nil {
		return nil
	}
	return throttles(string(mounts), string(own))
}

func throttles(mounts, own string) map[string]Throttle {
	one, two, _ := hierarchies(mounts, own)
	all := make(map[string]Throttle)
	for _, folder := range []string{one["cpu"], two} {
		for folder != "" {
			text, err := os.ReadFile(filepath.Join(folder, "cpu.stat"))
			if err != nil { // above the mount, or without that controller
				break
			}
			counted := tableOf(text) // without a limit all is 0
			all[folder] = Throttle{Periods: counted["nr_periods"], Throttled: counted["nr_throttled"]}
			folder = filepath.Dir(folder)
		}
	}
	return all
}

// tableOf reads a name and a number in each line; other lines are passed over.
func tableOf(text []byte) map[string]int64 {
	all := make(map[string]int64)
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			all[key] = n
		}
	}
	return all
}
