// Package limit keeps a server and all that it starts within an amount of CPU and
// memory, by a control group of its own, and tells what the group used. It is for
// Linux, with control groups of either version; elsewhere there is ErrUnavailable.
package limit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrUnavailable says that limits can't be set here, and why.
var ErrUnavailable = errors.New("limits can't be set here")

const (
	// period is what a share of CPU is given for; who has used it up waits for the
	// next one. It is the default of the kernel and of those who rent servers out.
	period = 100 * time.Millisecond
	// removeTimeout bounds the end of what is left in a group.
	removeTimeout = 10 * time.Second
	removeEvery   = 20 * time.Millisecond

	prefix = "pepvault-bench-" // of a group's name; its owner follows
)

// Limits are for all processes of a group together.
type Limits struct {
	CPUs   float64 // of the time of one core, at least 0.01; 0: no limit
	Memory int64   // bytes, with the kernel's own for it, without swap; 0: no limit
}

// Group is a control group that the calling process is not in. Its methods may be
// called by any goroutine.
type Group struct {
	version int
	folders map[string]string // by controller; with version 2 all are one
	made    []string          // each once
}

// New makes a group below the one that this process is in, so that it is within
// that one's limits, too. With version 2 it lies beside, where that one may have
// none below. Groups there that were left behind by a process that was killed are
// closed. The error is ErrUnavailable.
func New(l Limits) (*Group, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	own, err2 := os.ReadFile("/proc/self/cgroup")
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return newGroup(string(mounts), string(own), l)
}

func newGroup(mounts, own string, l Limits) (*Group, error) {
	parents, version := parentsOf(hierarchies(mounts, own))
	if parents["cpu"] == "" || parents["memory"] == "" {
		return nil, fmt.Errorf("%w: the control groups cpu and memory can't be reached", ErrUnavailable)
	}
	owner := ownerOf("/proc", os.Getpid())
	g := &Group{version: version, folders: make(map[string]string)}
	shared := make(map[string]string) // by parent: several controllers may have one hierarchy
	for controller, parent := range parents {
		if shared[parent] == "" {
			sweep(parent, "/proc")
			folder, err := os.MkdirTemp(parent, prefix+owner+"-*")
			if err != nil {
				return nil, errors.Join(fmt.Errorf("%w: %w (as root it works)", ErrUnavailable, err), g.Close())
			}
			shared[parent] = folder
			g.made = append(g.made, folder)
		}
		g.folders[controller] = shared[parent]
	}
	if err := g.limit(l); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrUnavailable, err), g.Close())
	}
	return g, nil
}

// limit sets all limits of a new group. It gets its share before others do: what
// is measured is that share, and who has too little beside it can tell.
func (g *Group) limit(l Limits) error {
	weight := [...]string{1: "262144", 2: "10000"}[g.version]
	if err := g.write("cpu", [...]string{1: "cpu.shares", 2: "cpu.weight"}[g.version], weight); err != nil {
		return err
	}
	if err := g.LimitCPU(l.CPUs); err != nil {
		return err
	}
	return g.LimitMemory(l.Memory)
}

// LimitMemory sets another limit of memory, 0 for none. One below what is in use
// may be refused.
func (g *Group) LimitMemory(bytes int64) error {
	amount, none := strconv.FormatInt(bytes, 10), bytes == 0
	switch {
	case g.version == 2 && none:
		return g.write("memory", "memory.max", "max")
	case g.version == 2:
		return errors.Join(g.write("memory", "memory.max", amount), g.writeIfThere("memory", "memory.swap.max", "0"))
	case none: // memory is never above memory with swap
		return errors.Join(g.writeIfThere("memory", "memory.memsw.limit_in_bytes", "-1"), g.write("memory", "memory.limit_in_bytes", "-1"))
	}
	return errors.Join(g.write("memory", "memory.limit_in_bytes", amount), g.writeIfThere("memory", "memory.memsw.limit_in_bytes", amount))
}

// LimitCPU sets another limit of CPU, 0 for none; it holds from the next period
// of a tenth of a second.
func (g *Group) LimitCPU(cpus float64) error {
	each := strconv.FormatInt(period.Microseconds(), 10)
	quota := strconv.FormatInt(int64(cpus*float64(period.Microseconds())), 10)
	if g.version == 2 {
		if cpus == 0 {
			quota = "max"
		}
		return g.write("cpu", "cpu.max", quota+" "+each)
	}
	if cpus == 0 {
		quota = "-1"
	}
	return errors.Join(g.write("cpu", "cpu.cfs_period_us", each), g.write("cpu", "cpu.cfs_quota_us", quota))
}

func (g *Group) write(controller, name, text string) error {
	return os.WriteFile(filepath.Join(g.folders[controller], name), []byte(text), 0o644)
}

func (g *Group) writeIfThere(controller, name, text string) error {
	if _, err := os.Stat(filepath.Join(g.folders[controller], name)); err != nil {
		return nil // a kernel without swap
	}
	return g.write(controller, name, text)
}

// join goes into the groups first and becomes the program then, so that the
// program is in them from its first byte, under the same process id.
const join = `n=$1; shift
while [ "$n" -gt 0 ]; do
	echo $$ >"$1" || exit 125
	shift; n=$((n - 1))
done
exec "$@"`

// Wrap turns a command into one that runs it in the group, under the process id
// that it is started with.
func (g *Group) Wrap(path string, args []string) (string, []string) {
	wrapped := []string{"-c", join, "pepvault-limit", strconv.Itoa(len(g.made))}
	for _, folder := range g.made {
		wrapped = append(wrapped, filepath.Join(folder, "cgroup.procs"))
	}
	return "/bin/sh", append(append(wrapped, path), args...)
}

// Close ends what still runs in the group and removes it. It can be called again.
func (g *Group) Close() error {
	var failures []error
	for _, folder := range g.made {
		failures = append(failures, remove(folder))
	}
	g.made = nil
	return errors.Join(failures...)
}

func remove(folder string) error {
	for began := time.Now(); ; time.Sleep(removeEvery) {
		if err := killAll(folder); err != nil {
			return err
		}
		err := os.Remove(folder)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if time.Since(began) > removeTimeout {
			return fmt.Errorf("control group: %w", err)
		}
	}
}

// killAll kills all processes of a group.
func killAll(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil || pid <= 0 {
			return fmt.Errorf("control group: %q is no process", field)
		}
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // it may have ended
		}
	}
	return nil
}

// parentsOf finds where a group can be made, by controller. Version 1 is taken if
// it has both controllers: one controller has one version.
func parentsOf(one map[string]string, two string, mount string) (parents map[string]string, version int) {
	if one["cpu"] != "" && one["memory"] != "" {
		return one, 1
	}
	if two == "" {
		return nil, 2
	}
	// Only a group without processes gives its controllers to those below it, and
	// the root of all; the own one is most often neither.
	_ = os.WriteFile(filepath.Join(two, "cgroup.subtree_control"), []byte("+cpu +memory"), 0o644)
	for folder := two; ; folder = filepath.Dir(folder) {
		text, err := os.ReadFile(filepath.Join(folder, "cgroup.subtree_control"))
		given := strings.Fields(string(text))
		if err == nil && hasBoth(given) {
			return map[string]string{"cpu": folder, "memory": folder}, 2
		}
		if folder == mount || len(folder) <= len(mount) {
			return nil, 2
		}
	}
}

func hasBoth(controllers []string) bool {
	return slices.ContainsFunc(controllers, func(c string) bool { return strings.TrimPrefix(c, "+") == "cpu" }) &&
		slices.ContainsFunc(controllers, func(c string) bool { return strings.TrimPrefix(c, "+") == "memory" })
}
