package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"pepvault/bench/fleet"
	"pepvault/bench/limit"
	"pepvault/bench/report"
	"pepvault/bench/runner"
	"pepvault/bench/servers"
	"pepvault/bench/watch"
)

// spareFiles is how many files a server and the bench have open beside their
// connections.
const spareFiles = 1000

// checkCapacity finds out what can't be before anything is started.
func (o *Options) checkCapacity() error {
	if o.Host == Existing || o.Host == Embedded || o.Echo {
		return fmt.Errorf("%w: the limits of a server's size hold only for a Prosody or an ejabberd and a service that the run starts", ErrUsage)
	}
	if len(o.Work.Sizes) == 0 {
		return fmt.Errorf("%w: capacity needs the size of a server", ErrUsage)
	}
	for _, size := range o.Work.Sizes {
		if !size.Limited() {
			continue
		}
		group, err := limit.New(limit.Limits{CPUs: size.CPUs, Memory: size.Memory})
		if err != nil {
			return fmt.Errorf("%w (--size %s measures without limits)", err, report.NoLimits)
		}
		return group.Close()
	}
	return nil
}

// raiseFiles lets this process, and those that it starts, have all the connections
// that the most people need.
func (o *Options) raiseFiles() error {
	need := uint64(o.Work.Users)*uint64(o.Work.Devices) + spareFiles
	var have syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &have); err != nil {
		return err
	}
	want := syscall.Rlimit{Cur: max(have.Cur, need), Max: max(have.Max, need)}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &want); err != nil {
		return fmt.Errorf("%d people with %d devices need %d open files, and only %d are allowed (ulimit -n): %w", o.Work.Users, o.Work.Devices, need, have.Max, err)
	}
	return nil
}

// preview starts a host of each target once, for the sake of their names and
// versions: those that are measured come later.
func (o *Options) preview(ctx context.Context, dir string) (*hosted, report.Host, error) {
	one := *o
	one.Work.Users = 1
	h, err := one.start(ctx, dir)
	if err != nil {
		return nil, report.Host{}, err
	}
	defer h.stop()
	about := h.about(ctx, one)
	h.pids = nil
	return h, about, nil
}

// sites starts servers of any size, each in a folder of its own.
func (o *Options) sites(dir string, watcher *watch.Watcher) func(context.Context, fleet.Target, report.Size) (*runner.Site, error) {
	count := 0
	return func(ctx context.Context, target fleet.Target, size report.Size) (*runner.Site, error) {
		count++
		own, err := folder(dir, "site-"+strconv.Itoa(count))
		if err != nil {
			return nil, err
		}
		site, err := o.site(ctx, own, target, size, watcher)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(own))
		}
		return site, nil
	}
}

func (o *Options) site(ctx context.Context, dir string, target fleet.Target, size report.Size, watcher *watch.Watcher) (_ *runner.Site, err error) {
	one := *o
	one.PIDs = nil
	one.Targets = []string{pep}
	if !target.PEP() {
		one.Targets = []string{component + ":" + target.JID}
		if one.program == "" {
			if one.program, err = servers.FindService(ctx, filepath.Dir(dir)); err != nil {
				return nil, err
			}
			o.program = one.program
		}
	}
	var group *limit.Group
	if size.Limited() {
		if group, err = limit.New(limit.Limits{CPUs: size.CPUs, Memory: size.Memory}); err != nil {
			return nil, err
		}
		one.wrap = group.Wrap
	}
	end := func(h *hosted) error {
		if h != nil {
			h.stop()
		}
		if group != nil {
			err = errors.Join(err, group.Close())
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
	h, err := one.start(ctx, dir)
	if err != nil {
		return nil, end(nil)
	}
	if err = watchAll(watcher, h); err != nil {
		return nil, end(h)
	}
	site := &runner.Site{
		Host: h.host, OneByOne: o.Host == Ejabberd,
		Restart: func(ctx context.Context) error {
			if err := h.restart(ctx, o.Host); err != nil {
				return err
			}
			return watchAll(watcher, h)
		},
		Close: func() {
			if err := end(h); err != nil {
				o.Say("%s, %s: %v", target.Name, size, err)
			}
		},
	}
	if group != nil {
		site.Usage = group.Usage
		site.Lift = func(cpu, memory bool) error {
			now := size
			if cpu {
				now.CPUs = 0
			}
			if memory {
				now.Memory = 0
			}
			return errors.Join(group.LimitCPU(now.CPUs), group.LimitMemory(now.Memory))
		}
	}
	return site, nil
}

func watchAll(watcher *watch.Watcher, h *hosted) error {
	for name, pid := range h.pids {
		if err := watcher.Add(name, pid, true); err != nil {
			return err
		}
	}
	return nil
}

// restart begins host and service anew on their data.
func (h *hosted) restart(ctx context.Context, host string) error {
	if h.service != nil {
		h.service.Stop()
	}
	if err := h.server.Restart(ctx); err != nil {
		return err
	}
	h.pids[host] = h.server.PID()
	if h.service == nil {
		return nil
	}
	if err := h.service.Restart(ctx); err != nil {
		return err
	}
	h.pids[service] = h.service.PID()
	return nil
}
