package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"pepvault/bench/fleet"
	"pepvault/bench/report"
	"pepvault/bench/servers"
	"pepvault/component/loopback"
	"pepvault/pep/wire"
	"pepvault/vault/device/c2s"
)

const (
	domain     = "localhost"
	userPrefix = "u"
	echoJID    = "echo.localhost"
)

// hosted is all that was started for a run.
type hosted struct {
	host       fleet.Host
	targets    []fleet.Target
	userPrefix string
	pids       map[string]int    // watched, by name
	stores     map[string]string // database, by target
	server     *servers.Server   // nil: none was started
	service    *servers.Service  // nil: none was started
	stops      []func()          // in the order of starting
	// killed is what the kernel did for want of memory; only a soak asks.
	killed func() report.Killed
}

func (h *hosted) stop() {
	for i := len(h.stops) - 1; i >= 0; i-- {
		h.stops[i]()
	}
	h.stops = nil
}

// attached is where components of a host attach.
type attached func(jid string) string

// start starts the host, and the components behind it.
func (o *Options) start(ctx context.Context, dir string) (h *hosted, err error) {
	h = &hosted{userPrefix: userPrefix, pids: make(map[string]int), stores: make(map[string]string)}
	for name, pid := range o.PIDs {
		h.pids[name] = pid
	}
	defer func() {
		if err != nil {
			h.stop()
		}
	}()
	if o.Host == Existing {
		return h, o.useExisting(h)
	}
	if h.targets, err = o.targets(domain); err != nil {
		return h, err
	}
	secret := rand.Text()
	where, err := o.startHost(ctx, h, dir, secret)
	if err != nil {
		return h, err
	}
	for _, t := range h.targets {
		switch {
		case t.Echo:
			err = o.startEcho(ctx, h, Echo{JID: t.JID, Server: where(t.JID), Secret: secret, Work: o.Work})
		case !t.PEP():
			err = o.startService(ctx, h, dir, servers.ServiceOptions{JID: t.JID, Server: where(t.JID), Secret: secret})
		}
		if err != nil {
			return h, err
		}
	}
	return h, nil
}

// targets reads the names of the targets.
func (o *Options) targets(domain string) (all []fleet.Target, err error) {
	for _, name := range o.Targets {
		kind, jid, named := strings.Cut(name, ":")
		switch {
		case name == pep:
			all = append(all, fleet.Target{Name: pep})
		case kind == component && (!named || jid != "" && !strings.ContainsAny(jid, "/@ '\"<>&")):
			if !named {
				jid = "vault." + domain
			}
			all = append(all, fleet.Target{Name: component, JID: jid})
		default:
			return nil, fmt.Errorf("%w: target %q is none of component, component:JID and pep", ErrUsage, name)
		}
	}
	if o.Echo {
		all = append(all, fleet.Target{Name: echo, JID: echoJID, Echo: true})
	}
	return all, nil
}

func (o *Options) startHost(ctx context.Context, h *hosted, dir, secret string) (attached, error) {
	if o.Host == Embedded {
		return o.startEmbedded(h, secret)
	}
	own, err := folder(dir, o.Host)
	if err != nil {
		return nil, err
	}
	password := rand.Text()
	settings := servers.Options{Dir: own, Domain: domain, MaxItems: o.maxItems(), RollbackJournal: o.Collector != Tuned, Wrap: o.wrap}
	for _, t := range h.targets {
		if !t.PEP() {
			settings.Components = append(settings.Components, servers.Component{JID: t.JID, Secret: secret})
		}
	}
	for n := range o.Work.Users + 1 { // one for the probe of a storm
		settings.Users = append(settings.Users, servers.User{Name: fleet.UserName(userPrefix, n), Password: password})
	}
	start := servers.StartEjabberd
	settings.Fragment = o.EjabberdFragment
	if o.Host == Prosody {
		start, settings.Fragment = servers.StartProsody, o.ProsodyFragment
	}
	switch {
	case o.Collector == Shipped:
	case o.Host == Ejabberd:
		settings.Control = o.EjabberdControl
	default:
		settings.Global = o.ProsodyGlobal
		if o.Collector == Tuned {
			settings.Global += "gc = { mode = \"incremental\", threshold = 200 }\n"
		}
	}
	server, err := start(ctx, settings)
	if err != nil {
		return nil, err
	}
	h.server = server
	h.stops = append(h.stops, server.Stop)
	h.pids[o.Host], h.stores[pep] = server.PID(), server.Data
	h.host = fleet.Server{Addr: server.Addr, Name: domain, Password: password, TLS: server.TLS()}
	return server.Component, nil
}

// maxItems is 0 where the servers' own default is enough.
func (o *Options) maxItems() int {
	if o.Work.Records <= 256 {
		return 0
	}
	return o.Work.Records
}

func (o *Options) startEmbedded(h *hosted, secret string) (attached, error) {
	if len(h.targets) > 1 {
		return nil, fmt.Errorf("%w: the embedded host takes one component", ErrUsage)
	}
	host, err := loopback.Start(loopback.Options{Domain: domain, Component: h.targets[0].JID, Secret: secret, Fast: true})
	if err != nil {
		return nil, err
	}
	h.stops = append(h.stops, func() { _ = host.Close() }) // nobody is left to care
	h.host = fleet.Embedded{Host: host}
	return func(string) string { return host.Addr() }, nil
}

func (o *Options) startService(ctx context.Context, h *hosted, dir string, s servers.ServiceOptions) error {
	var err error
	if s.Dir, err = folder(dir, "service"); err != nil {
		return err
	}
	s.Wrap, s.Program = o.wrap, o.program
	records := max(o.Work.Records, 256)
	s.More = "[limits]\nmax_records = " + strconv.Itoa(records) + "\nmax_batch_records = " + strconv.Itoa(max(records, 1024)) +
		"\nmax_resources = " + strconv.Itoa(max(o.Work.Devices, 32)) + "\nmax_downloads = " + strconv.Itoa(max(o.Work.Devices, 4)) + "\n"
	started, err := servers.StartService(ctx, s)
	if err != nil {
		return err
	}
	h.service = started
	h.stops = append(h.stops, started.Stop)
	h.pids[service], h.stores[component] = started.PID(), started.Store
	return nil
}

func (o *Options) startEcho(ctx context.Context, h *hosted, e Echo) error {
	child, err := o.StartEcho(ctx, e)
	if err != nil {
		return fmt.Errorf("echo: %w", err)
	}
	h.stops = append(h.stops, child.Stop)
	h.pids[echo] = child.PID()
	return nil
}

func (o *Options) useExisting(h *hosted) (err error) {
	s := o.Server
	if s.Addr == "" || s.Domain == "" || s.UserPrefix == "" || s.Password == "" {
		return fmt.Errorf("%w: an existing server needs its address, domain, user prefix and password", ErrUsage)
	}
	h.host = fleet.Server{Addr: s.Addr, Name: s.Domain, Password: s.Password, TLS: s.TLS}
	h.userPrefix = s.UserPrefix
	h.targets, err = o.targets(s.Domain)
	return err
}

// about asks the host and the service who they are.
func (h *hosted) about(ctx context.Context, o Options) report.Host {
	about := report.Host{Name: o.Host, Settings: map[string]string{}, Versions: map[string]string{}}
	if o.Host == Prosody {
		about.Settings["gc"], about.Settings["journal"], about.Settings["network"] = "default", "rollback", "default"
		if o.Collector == Tuned {
			about.Settings["gc"], about.Settings["journal"] = "incremental, threshold 200", "WAL"
		}
		if o.Collector != Shipped {
			about.Settings["network"] = settingsOf(o.ProsodyGlobal)
		}
	}
	if o.Host == Ejabberd {
		about.Settings["network"] = "default"
		if o.Collector != Shipped {
			about.Settings["network"] = settingsOf(o.EjabberdControl)
		}
	}
	conn, err := h.host.Connect(ctx, fleet.UserName(h.userPrefix, 0), "about", func(c2s.Stanza) bool { return false })
	if err != nil {
		return about // the run will say it
	}
	defer conn.Close()
	if o.Host != Embedded { // it answers no questions
		if name, err := askVersion(ctx, conn, h.host.Domain()); err == nil {
			about.Version = name
		}
	}
	for _, t := range h.targets {
		if t.PEP() || t.Echo {
			continue
		}
		if name, err := askVersion(ctx, conn, t.JID); err == nil {
			about.Versions["service"] = name
		}
	}
	return about
}

var errNoVersion = errors.New("no version")

// askVersion asks by XEP-0092.
func askVersion(ctx context.Context, conn fleet.Conn, jid string) (string, error) {
	kind, payload := wire.Ask(wire.Version{})
	answer, err := conn.IQ(ctx, kind, jid, payload)
	if err != nil {
		return "", err
	}
	reply, err := wire.DecodeReply(answer.Raw, wire.Version{})
	if err != nil {
		return "", err
	}
	if v, ok := reply.(wire.VersionInfo); ok {
		return strings.TrimSpace(v.Name + " " + v.Version), nil
	}
	return "", errNoVersion
}

// settingsOf is what a part of a configuration, in Lua or of a shell, sets, on
// one line.
func settingsOf(text string) string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return strings.Join(all, "; ")
}
