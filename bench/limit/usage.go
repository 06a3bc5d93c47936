package limit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is what the processes of a group have had. All but Memory only grows.
type Usage struct {
	CPU time.Duration // user and system; 0 with version 1, if there is no controller cpuacct
	// Periods is in how many tenths of a second anything wanted to run while there
	// was a limit; in Throttled ones of them it had to wait for the next.
	Periods, Throttled int64
	// Memory is bytes now, without files that the kernel may drop: of the
	// processes, and of the kernel for them.
	Memory int64
	Kills  int64 // processes that the kernel has ended for want of memory
}

// Usage reads the group's counters.
func (g *Group) Usage() (Usage, error) {
	var u Usage
	stat, err := g.table("cpu", "cpu.stat")
	memory, err2 := g.table("memory", "memory.stat")
	if err := errors.Join(err, err2); err != nil {
		return u, err
	}
	u.Periods, u.Throttled = stat["nr_periods"], stat["nr_throttled"]
	files, current, events := "", "memory.current", "memory.events"
	if g.version == 1 {
		files, current, events = "total_", "memory.usage_in_bytes", "memory.oom_control"
		if g.folders["cpuacct"] != "" {
			used, err := g.number("cpuacct", "cpuacct.usage")
			if err != nil {
				return u, err
			}
			u.CPU = time.Duration(used)
		}
	} else {
		u.CPU = time.Duration(stat["usage_usec"]) * time.Microsecond
	}
	if u.Memory, err = g.number("memory", current); err != nil {
		return u, err
	}
	u.Memory = max(u.Memory-memory[files+"inactive_file"]-memory[files+"active_file"], 0)
	told, err := g.table("memory", events)
	u.Kills = told["oom_kill"]
	return u, err
}

// number reads a file that holds one.
func (g *Group) number(controller, name string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(g.folders[controller], name))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// table reads a file with a name and a number in each line; other lines are
// passed over.
func (g *Group) table(controller, name string) (map[string]int64, error) {
	text, err := os.ReadFile(filepath.Join(g.folders[controller], name))
	if err != nil {
		return nil, err
	}
	return tableOf(text), nil
}
