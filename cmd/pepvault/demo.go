package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"pepvault/configs"
)

// demoTimeout bounds the demo; it takes seconds.
const demoTimeout = 50 * time.Second

const (
	demoDomain  = "localhost"
	demoService = "vault.localhost"
	demoAccount = "alice@localhost"
)

type demoCmd struct {
	Host string `enum:",prosody,embedded" default:"" placeholder:"prosody|embedded" help:"The host to attach to; by default a Prosody if one is installed, else the embedded one."`
}

// Run shows the main job on one machine: two devices of one account share a
// vault. It fails unless all of it was right.
func (c *demoCmd) Run(ctx context.Context, p *process) (err error) {
	ctx, release := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer release()
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "pepvault-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	host, err := startDemoHost(ctx, c.Host, dir, rand.Text())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.stop()) }()
	story := &story{out: p.stdout, began: time.Now()}
	story.say("host: %s", host.name)

	stop, err := startDemoService(ctx, p, host, dir, story)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	laptop, err := host.connect(ctx, "laptop")
	if err != nil {
		return err
	}
	defer laptop.close()
	phone, err := host.connect(ctx, "phone")
	if err != nil {
		return err
	}
	defer phone.close()
	story.say("two devices of %s are online: laptop and phone", demoAccount)
	return story.tell(ctx, laptop, phone)
}

// startDemoService runs the service on a fresh store in dir, attached to the
// host. stop ends it as SIGTERM would.
func startDemoService(ctx context.Context, p *process, host *demoHost, dir string, story *story) (stop func() error, err error) {
	file := filepath.Join(dir, "pepvault.toml")
	text := fmt.Sprintf("[component]\njid = %q\nserver = %q\nsecret = %q\n[http]\nlisten = \"\"\n[log]\nlevel = \"warn\"\n",
		demoService, host.component, host.secret)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	noEnv := func(string) string { return "" }
	config, err := configs.Load(file, noEnv)
	if err != nil {
		return nil, err
	}
	attached := make(chan struct{}, 1)
	s, err := newService(ctx, config, slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: config.Log.Level})), func(up bool) {
		if up {
			attached <- struct{}{}
		}
	})
	if err != nil {
		return nil, err
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- s.run(serving) }()
	stop = func() error {
		end()
		return <-ended
	}
	select {
	case <-attached:
		story.say("%s is attached, its store is fresh: %s", demoService, filepath.Base(config.Store.Path))
		return stop, nil
	case <-ctx.Done():
		_, reason := s.link.State()
		return nil, errors.Join(fmt.Errorf("not attached: %s", reason), stop())
	}
}

// story prints what happens, with the time since the beginning.
type story struct {
	out   io.Writer
	began time.Time
}

func (s *story) say(format string, args ...any) {
	fmt.Fprintf(s.out, "%6d ms  %s\n", time.Since(s.began).Milliseconds(), fmt.Sprintf(format, args...))
}
