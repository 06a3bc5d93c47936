package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"pepvault/bench/fleet"
	"pepvault/bench/lab"
	results "pepvault/bench/report"
	"pepvault/bench/runner"
	"pepvault/bench/servers"
	"pepvault/bench/workload"
	"pepvault/configs"
)

// shortOverload brings more than a target can have under way, but no more than
// it can answer in some seconds.
const shortOverload = 250 * time.Millisecond

// soakMemory is what host and service of a soak have together.
const soakMemory = 1 << 30

type runCmd struct {
	Workload string `arg:"" enum:"mix,max,overload,storm,restart,soak,disk,capacity" help:"mix: 8 % whole vaults, 20 % saves, 72 % reads of one record, at --rate. max: the same as fast as it goes. overload: the same at 3,000 a second. storm: all devices reconnect at once, beside one that reads. restart: the service restarts, and tells all devices where their vaults stand. soak: 50 idle devices hear of 10 saves a second, in 1 GiB, within bounds that fail the run. disk: bytes written by lone saves, under load and in a day of the users. capacity: how many people a server of a --size keeps fast."`

	Host   string `enum:",prosody,ejabberd,embedded" default:"" placeholder:"prosody|ejabberd|embedded" help:"The server, which is started for the run; by default a Prosody if one is installed, else the embedded one."`
	HostGC string `name:"host-gc" enum:"default,tuned,shipped" default:"default" help:"The server with the network's settings that docs/operations.md asks for (default), a Prosody also with garbage in small steps and a write-ahead log (tuned), or without any of them (shipped)."`

	Server      string `placeholder:"HOST:PORT" help:"A server that runs already."`
	Domain      string `help:"Its domain."`
	UserPrefix  string `placeholder:"P" help:"Its accounts P0, P1, … are used: one more than --users for a storm. Their vault urn:pepvault:bench:0 must not exist."`
	Password    string `env:"PEPVAULT_BENCH_PASSWORD" placeholder:"W" help:"The password of all of them; better given in the environment."`
	CA          string `name:"ca" xor:"trust" placeholder:"FILE" help:"Its certificate authority, if it is none of the system's."`
	InsecureTLS bool   `name:"insecure-tls" xor:"trust" help:"Take any certificate."`

	Target []string `placeholder:"component[:JID]|pep" help:"What is measured: the service at JID (default vault.DOMAIN), or the server's own PEP. Given twice, both are, in turns. Default: component."`
	Echo   bool     `help:"Measure a component that answers at once beside them: the server's own ceiling."`
	Rounds int      `help:"How often each target has its turn; default 1, or 3 with several targets."`

	Rate        float64       `help:"Operations a second; default 100, of overload 3000, of a soak 10 saves."`
	Outstanding *int          `placeholder:"N" help:"Operations under way at most, 0 for no bound; default: mix 0, max and disk 32, overload 512."`
	Duration    time.Duration `help:"Of the measured part of a round; default 60s, of overload 10s, of the load of a disk run 10s."`
	Users       int           `help:"Accounts; default 100, of a soak 2."`
	Devices     int           `help:"Devices of each; default 3, of a soak 25 and one that saves."`
	Records     int           `help:"Records of each; default 256."`
	Size        []string      `placeholder:"CPUS:MEMORY" help:"Servers of capacity, host and service together: 0.5:512m,1:1g,2:2g by default; none = without limits. A soak is in 1 GiB. --users is the most people then (6400)."`
	Only        string        `enum:",read,save,download" default:"" placeholder:"read|save|download" help:"The load of mix, max or overload is of this kind alone: what one costs."`
	Missed      *int          `placeholder:"N" help:"Saves to each vault while the devices of a storm are away; default 2."`
	Download    string        `enum:",plain,paged,pushed,sync" default:"" placeholder:"plain|paged|pushed|sync" help:"How whole vaults are loaded: plain, paged, pushed, sync (PEP: plain, or paged where it can); default plain, of disk sync."`
	Lone        *int          `placeholder:"N" help:"Saves of a disk run that have the disk to themselves; default 10."`
	MaxDelivery time.Duration `default:"1s" placeholder:"D" help:"A soak fails if 1 % of the events take longer (1s)."`
	MaxMemory   int           `default:"100" placeholder:"MIB" help:"A soak fails if the service has more memory than that, in MiB (100)."`
	Seed        uint64        `default:"1" help:"Another one gives other work."`
	Timeout     time.Duration `help:"After which an operation counts as failed; default 60s, of overload 15m, of capacity 30s; of a storm or restart half a second more for each device."`
	Short       bool          `help:"Everything small: it takes less than half a minute."`

	Out string         `placeholder:"FILE.jsonl" help:"Keep environment, raw samples and verdict; the file must not exist."`
	PID map[string]int `name:"pid" placeholder:"NAME=PID" help:"Watch one more process."`
}

// Run carries out the workload.
func (c *runCmd) Run(ctx context.Context, p *process) error {
	options, err := c.options(p)
	if err != nil {
		return err
	}
	began := time.Now()
	options.Say = func(format string, args ...any) {
		fmt.Fprintf(p.stderr, "%7.1f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	verdict, err := lab.Run(ctx, options)
	if verdict.Workload != "" {
		if !verdict.OK {
			fmt.Fprintln(p.stderr, "FAILED")
		}
		fmt.Fprintln(p.stdout, verdict.Line())
	}
	return err
}

func (c *runCmd) options(p *process) (lab.Options, error) {
	switch {
	case c.Host != "" && c.Server != "":
		return lab.Options{}, fmt.Errorf("%w: --host starts a server, --server is one that runs", lab.ErrUsage)
	case c.Rate > 0 && (c.Workload == runner.Max || c.Workload == runner.Disk || c.Workload == runner.Capacity || endsByItself(c.Workload)):
		return lab.Options{}, fmt.Errorf("%w: %s has no --rate", lab.ErrUsage, c.Workload)
	case endsByItself(c.Workload) && (c.Duration > 0 || c.Outstanding != nil):
		return lab.Options{}, fmt.Errorf("%w: %s has neither --duration nor --outstanding", lab.ErrUsage, c.Workload)
	case c.Workload != runner.Storm && c.Missed != nil:
		return lab.Options{}, fmt.Errorf("%w: only a storm has --missed", lab.ErrUsage)
	case c.Workload != runner.Capacity && c.Workload != runner.Soak && len(c.Size) > 0:
		return lab.Options{}, fmt.Errorf("%w: only capacity and soak have --size", lab.ErrUsage)
	case c.Workload == runner.Capacity && c.Rounds > 1:
		return lab.Options{}, fmt.Errorf("%w: capacity has one round", lab.ErrUsage)
	case c.Workload != runner.Disk && c.Lone != nil:
		return lab.Options{}, fmt.Errorf("%w: only a disk run has --lone", lab.ErrUsage)
	case c.Only != "" && c.Workload != runner.Mix && c.Workload != runner.Max && c.Workload != runner.Overload:
		return lab.Options{}, fmt.Errorf("%w: %s has no --only", lab.ErrUsage, c.Workload)
	case c.Rate < 0 || c.Lone != nil && *c.Lone < 0 || c.MaxDelivery < 0 || c.MaxMemory < 0 || c.Missed != nil && *c.Missed < 0 || c.Duration < 0 || c.Rounds < 0 || c.Timeout < 0 || c.Outstanding != nil && *c.Outstanding < 0:
		return lab.Options{}, fmt.Errorf("%w: a number below 0", lab.ErrUsage)
	}
	o := lab.Options{
		Work: c.work(), Bounds: results.Bounds{Delivery: c.MaxDelivery, Memory: int64(c.MaxMemory) << 20}, Host: c.Host, Collector: c.HostGC, Targets: c.Target, Echo: c.Echo,
		ProsodyFragment: configs.ProsodyFragment, ProsodyGlobal: configs.ProsodyGlobal, EjabberdFragment: configs.EjabberdFragment, EjabberdControl: configs.EjabberdControl,
		StartEcho: startEcho, Timeout: c.Timeout, PIDs: c.PID, Out: c.Out, Program: program(),
		Command: results.Command(append([]string{"pepvault-bench"}, p.args...), "--password"),
	}
	var err error
	if o.Work.Sizes, err = c.sizes(); err != nil {
		return lab.Options{}, fmt.Errorf("%w: --size: %w", lab.ErrUsage, err)
	}
	if len(o.Targets) == 0 {
		o.Targets = []string{"component"}
	}
	if o.Timeout == 0 {
		o.Timeout = time.Minute
		switch c.Workload {
		case runner.Storm, runner.Restart:
			// All have to be ready in it: a slow host takes half a second for each.
			o.Timeout += time.Duration(o.Work.Users*o.Work.Devices) * time.Second / 2
		case runner.Overload:
			o.Timeout = 15 * time.Minute
		case runner.Capacity:
			o.Timeout = 30 * time.Second
		}
	}
	switch {
	case c.Server != "":
		trust, err := c.trust()
		if err != nil {
			return lab.Options{}, err
		}
		o.Host = lab.Existing
		o.Server = lab.Server{Addr: c.Server, Domain: c.Domain, UserPrefix: c.UserPrefix, Password: c.Password, TLS: trust}
	case o.Host == "" && servers.ProsodyAvailable("") == nil:
		o.Host = lab.Prosody
	case o.Host == "":
		o.Host = lab.Embedded
	}
	return o, nil
}

// sizes are the servers of a run of capacity, or the one of a soak.
func (c *runCmd) sizes() (all []results.Size, err error) {
	texts := c.Size
	switch {
	case c.Workload == runner.Soak && len(texts) == 0:
		return []results.Size{{Memory: soakMemory}}, nil
	case c.Workload == runner.Soak && len(texts) > 1:
		return nil, errors.New("a soak has one")
	case c.Workload != runner.Capacity && c.Workload != runner.Soak:
	case len(texts) == 0 && c.Short:
		texts = []string{"0.5:512m"}
	case len(texts) == 0:
		texts = []string{"0.5:512m", "1:1g", "2:2g"}
	}
	for _, text := range texts {
		size, err := results.ParseSize(text)
		if err != nil {
			return nil, err
		}
		if slices.Contains(all, size) {
			return nil, fmt.Errorf("%s stands there twice", text)
		}
		all = append(all, size)
	}
	return all, nil
}

// endsByItself tells whether a workload is over when all devices are ready.
func endsByItself(workload string) bool {
	return workload == runner.Storm || workload == runner.Restart
}

// work is the workload with its defaults filled in.
func (c *runCmd) work() results.Workload {
	w := results.Workload{
		Name: c.Workload, Users: 100, Devices: 3, Records: 256, RecordBytes: workload.RecordBytes,
		Duration: time.Minute, WarmUp: 5 * time.Second, Download: c.Download, Seed: c.Seed, Rounds: 1,
		Only: results.Kind(c.Only),
	}
	if len(c.Target) > 1 || c.Echo {
		w.Rounds = 3
	}
	if w.Download == "" {
		w.Download = string(fleet.Plain)
	}
	switch c.Workload {
	case runner.Mix:
		w.Rate = 100
	case runner.Max:
		w.Outstanding = 32
	case runner.Overload:
		w.Rate, w.Outstanding, w.Duration, w.WarmUp = 3000, 512, 10*time.Second, 0
	case runner.Storm:
		w.Duration, w.WarmUp, w.Missed = 0, time.Second, 2
	case runner.Restart:
		w.Duration, w.WarmUp = 0, time.Second
	case runner.Soak:
		w.Users, w.Devices, w.Rate = 2, 25, 10
	case runner.Capacity:
		w.Users, w.Devices, w.Records, w.Rate, w.Rounds = 6400, 2, 32, workload.PeopleRate, 1
		if c.Download == "" {
			w.Download = string(fleet.Sync)
		}
	case runner.Disk:
		w.Outstanding, w.Duration, w.WarmUp, w.Lone, w.Rounds = 32, 10*time.Second, 0, 10, min(w.Rounds, 2)
		if c.Download == "" { // what devices do that come ten times a day
			w.Download = string(fleet.Sync)
		}
	}
	if c.Short {
		w.Users, w.Records, w.Rounds = min(w.Users, 8), 32, min(w.Rounds, 2)
		w.Duration, w.WarmUp = min(w.Duration, 2*time.Second), min(w.WarmUp, 500*time.Millisecond)
		if c.Workload == runner.Overload {
			w.Duration = shortOverload
		}
		if c.Workload == runner.Disk {
			w.Users, w.Lone, w.Rounds = 4, 2, 1
		}
		if c.Workload == runner.Capacity { // each does in a second what else takes a minute
			w.Rate *= 60
		}
	}
	return c.asked(w)
}

// asked puts in what the command line says.
func (c *runCmd) asked(w results.Workload) results.Workload {
	for _, flag := range []struct {
		given int
		to    *int
	}{{c.Users, &w.Users}, {c.Devices, &w.Devices}, {c.Records, &w.Records}, {c.Rounds, &w.Rounds}} {
		if flag.given != 0 {
			*flag.to = flag.given
		}
	}
	if c.Rate > 0 {
		w.Rate = c.Rate
	}
	if c.Lone != nil {
		w.Lone = *c.Lone
	}
	if c.Missed != nil {
		w.Missed = *c.Missed
	}
	if c.Outstanding != nil {
		w.Outstanding = *c.Outstanding
	}
	if c.Duration > 0 {
		w.Duration = c.Duration
	}
	return w
}

// trust says whose certificates are taken.
func (c *runCmd) trust() (*tls.Config, error) {
	config := &tls.Config{ServerName: c.Domain, MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.InsecureTLS}
	if c.CA == "" {
		return config, nil
	}
	text, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return nil, errors.New("--ca: the file holds no certificate in PEM")
	}
	return config, nil
}
