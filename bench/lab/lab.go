// Package lab puts a benchmark together: a server, the service behind it, the
// watched processes, the results file, and the workload that is run on all of
// it.
package lab

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"pepvault/bench/fleet"
	"pepvault/bench/report"
	"pepvault/bench/runner"
	"pepvault/bench/servers"
	"pepvault/bench/watch"
)

// ErrUsage says that what was asked for does not go together.
var ErrUsage = errors.New("these options do not go together")

// The kinds of hosts.
const (
	Prosody  = "prosody"
	Ejabberd = "ejabberd"
	Embedded = "embedded"
	Existing = "existing" // one that runs already
)

// Names of targets.
const (
	component = "component"
	pep       = "pep"
	echo      = "echo"
	service   = "service" // no target, but the name of its process
)

// How a Prosody is configured.
const (
	Default = "default" // with the network's settings that docs/operations.md asks for
	Tuned   = "tuned"   // a Prosody also with garbage collected in small steps, and its database written ahead
	Shipped = "shipped" // as it comes
)

// Options say what to run, and where.
type Options struct {
	Work report.Workload
	Host string // a kind
	// Collector is how the host is configured: Default, Tuned or Shipped.
	Collector string
	// Targets are "component", "component:JID" or "pep", in the order of a
	// round.
	Targets []string
	Echo    bool // one more target: a component that answers at once

	// Server is the existing one.
	Server Server

	// ProsodyFragment and EjabberdFragment attach a component, ProsodyGlobal
	// belongs into Prosody's global part, EjabberdControl to ejabberd's start
	// script (package configs).
	ProsodyFragment, ProsodyGlobal, EjabberdFragment, EjabberdControl string
	// StartEcho runs the component of the target "echo" as a process of its
	// own and returns when it is attached.
	StartEcho func(ctx context.Context, e Echo) (Child, error)

	// Bounds are what a soak is held to.
	Bounds report.Bounds

	Timeout time.Duration  // of an operation
	PIDs    map[string]int // processes to watch beside those that are started
	Out     string         // results file; "" = none
	Program string         // name and version, for the file
	Command []string       // as typed, for the file
	Say     func(format string, args ...any)

	wrap    servers.Wrap // of host and service; nil: none
	program string       // of the service; "" = it is looked for
}

// Server is an existing server.
type Server struct {
	Addr, Domain, UserPrefix, Password string
	TLS                                *tls.Config
}

// Echo says how a component that answers at once attaches, and what it answers.
type Echo struct {
	JID, Server, Secret string
	Work                report.Workload
}

// Child is a process that was started for the run.
type Child interface {
	PID() int
	Stop()
}

// Run carries out the workload and returns its verdict. The error is that of
// runner.Run, or says why there could be no run; then there is no verdict.
func Run(ctx context.Context, o Options) (verdict report.Verdict, err error) {
	if err := o.check(); err != nil {
		return report.Verdict{}, err
	}
	dir, err := os.MkdirTemp("", "pepvault-bench-")
	if err != nil {
		return report.Verdict{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	h, about, err := o.begin(ctx, dir)
	if err != nil {
		return report.Verdict{}, err
	}
	defer h.stop()
	env := report.Environment{
		Program: o.Program, Command: o.Command, Machine: report.ThisPlatform(), Host: about, Work: o.Work,
	}
	env.Machine.Storage = watch.FileSystem(dir)
	for _, t := range h.targets {
		env.Targets = append(env.Targets, t.Name)
	}
	recorder, err := report.Create(o.Out, env)
	if err != nil {
		return report.Verdict{}, err
	}
	failure := o.measure(ctx, dir, h, recorder)
	if o.Host == Existing && errors.Is(failure, runner.ErrConnect) {
		failure = fmt.Errorf("%w (the server needs the accounts %s to %s, all with the password that was given)",
			failure, fleet.UserName(h.userPrefix, 0), fleet.UserName(h.userPrefix, o.Work.Users))
	}
	verdict, err = recorder.Finish(failure)
	return verdict, errors.Join(failure, err)
}

// begin starts what is measured, and asks who it is.
func (o *Options) begin(ctx context.Context, dir string) (*hosted, report.Host, error) {
	if o.Work.Name == runner.Capacity {
		if err := o.raiseFiles(); err != nil {
			return nil, report.Host{}, err
		}
		own, err := folder(dir, "preview")
		if err != nil {
			return nil, report.Host{}, err
		}
		return o.preview(ctx, own)
	}
	if o.Work.Name == runner.Soak {
		return o.beginSoak(ctx, dir)
	}
	h, err := o.start(ctx, dir)
	if err != nil {
		return nil, report.Host{}, err
	}
	return h, h.about(ctx, *o), nil
}

// measure runs the workload with everything watched.
func (o *Options) measure(ctx context.Context, dir string, h *hosted, recorder *report.Recorder) error {
	watcher := watch.New(recorder)
	for name, pid := range h.pids {
		if err := watcher.Add(name, pid, true); err != nil {
			return err
		}
	}
	watching, end := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	watchers.Go(func() { watcher.Run(watching) })
	defer watchers.Wait()
	defer end()
	running, done := h.untilKilled(ctx)
	defer done()
	err := runner.Run(running, runner.Options{
		Work: o.Work, Host: h.host, Targets: h.targets, UserPrefix: h.userPrefix,
		Timeout: o.Timeout, Recorder: recorder, Say: o.Say, Look: watcher.Look,
		CleanUp: o.Host == Existing,
		Between: func(ctx context.Context, round int) {
			m := watch.Machine(ctx, dir)
			m.At, m.Round = recorder.Since(), round
			recorder.Machine(m)
			o.lookAtDisk(ctx, dir, recorder)
		},
		Open:  o.sites(dir, watcher),
		Usage: watcher.Now,
		Size:  func(target string) (data, log int64) { return watch.DatabaseBytes(h.stores[target]) },
		Restart: func(ctx context.Context, _ string) error {
			if err := h.service.Restart(ctx); err != nil {
				return err
			}
			h.pids[service] = h.service.PID()
			return watcher.Add(service, h.pids[service], true)
		},
		Stored: func(target string, round int) {
			if path := h.stores[target]; path != "" {
				data, log := watch.DatabaseBytes(path)
				recorder.Storage(report.Storage{
					At: recorder.Since(), Target: target, Round: round,
					Bytes: data, Log: log, Records: int64(o.Work.Users) * int64(o.Work.Records),
				})
			}
		},
	})
	if o.Work.Name != runner.Soak {
		return err
	}
	return o.hold(err, h, recorder)
}

// check finds out what can't be before anything is started.
func (o *Options) check() error {
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	if err := runner.ShapeOf(o.Work).Check(); err != nil {
		return err
	}
	if !slices.Contains(runner.Names, o.Work.Name) {
		return fmt.Errorf("no workload is called %q", o.Work.Name)
	}
	if o.Host == Embedded && slices.Contains(o.Targets, pep) {
		return fmt.Errorf("%w: the embedded host has no PEP of its own", ErrUsage)
	}
	if o.Work.Name == runner.Restart && (o.Host == Existing || o.Echo || slices.Contains(o.Targets, pep)) {
		return fmt.Errorf("%w: only a service that the run has started can restart", ErrUsage)
	}
	if o.Work.Name == runner.Capacity {
		if err := o.checkCapacity(); err != nil {
			return err
		}
	}
	if o.Echo && (o.Work.Name == runner.Soak || o.Work.Name == runner.Disk) {
		return fmt.Errorf("%w: a component that answers at once neither stores nor notifies: no --echo with %s", ErrUsage, o.Work.Name)
	}
	if o.Host == Existing && o.Work.Name == runner.Disk {
		return fmt.Errorf("%w: only what the run has started can be watched as it writes", ErrUsage)
	}
	if o.Host == Existing && o.Echo {
		return fmt.Errorf("%w: an existing server does not know the component of --echo", ErrUsage)
	}
	if len(o.Targets) == 0 {
		return fmt.Errorf("%w: no target", ErrUsage)
	}
	seen := make(map[string]bool) // figures go by these names
	for _, t := range o.Targets {
		kind, _, _ := strings.Cut(t, ":")
		if seen[kind] {
			return fmt.Errorf("%w: target %s stands there twice", ErrUsage, kind)
		}
		seen[kind] = true
	}
	return nil
}

// folder makes one in dir.
func folder(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	return path, os.Mkdir(path, 0o700)
}
