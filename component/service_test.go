package component_test

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pepvault/component"
	"pepvault/component/hosttest"
	"pepvault/component/lane"
	"pepvault/component/link"
	"pepvault/component/loopback"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/store"
	"pepvault/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setup is what a test may change about a service.
type setup struct {
	store   vault.Store
	limits  vault.Limits
	answer  int // bytes
	queue   int // bytes
	pending int
	inline  int // bytes
	verify  time.Duration
	log     *slog.Logger
	secret  string // "": the host's
	backoff link.Backoff
	connect time.Duration // bounds one try; 0: link's default
	alive   link.KeepAlive
	write   time.Duration // bounds one write; 0: lane's default
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// running is a service on a host.
type running struct {
	front  *component.Service
	writer *lane.Writer
	link   *link.Link
	engine *pep.Engine
	stop   func()
}

// serve attaches a service to the host.
func serve(t testing.TB, host *hosttest.Host, change func(*setup)) *running {
	t.Helper()
	r := start(t, host.Host, change)
	host.AwaitAttached()
	return r
}

// start runs a service that will attach to the host.
func start(t testing.TB, host *loopback.Host, change func(*setup)) *running {
	t.Helper()
	s := setup{
		limits: vault.Limits{
			Records: 4, RecordBytes: 2000, Vaults: 4, AccountBytes: 1 << 20, TombstonesFactor: 4,
			Subscriptions: 4, Resources: 3, ForeignPayloads: true,
		},
		answer: 400_000, queue: 1 << 20, pending: 64, inline: 8000, verify: 30 * time.Second,
		backoff: link.Backoff{First: 10 * time.Millisecond, Max: 50 * time.Millisecond},
		log:     slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&s)
	}
	if s.store == nil {
		s.store = openStore(t, filepath.Join(t.TempDir(), "vault.db"))
	}
	if s.secret == "" {
		s.secret = host.Secret()
	}
	r := &running{writer: lane.New(lane.Options{QueueBytes: s.queue, WriteTimeout: s.write, Logger: s.log})}
	r.engine = pep.New(pep.Options{Store: s.store, Limits: s.limits, AnswerBytes: s.answer, InlineBytes: s.inline})
	r.front = component.New(component.Options{
		JID: host.Component(), Domains: []string{host.Domain()}, Name: "Vaults", Version: "1.2.3",
		Engine: r.engine,
		Writer: r.writer, Wire: wire.Limits{RecordBytes: s.limits.RecordBytes, Foreign: s.limits.ForeignPayloads},
		MaxStanza: s.answer + 50_000, MaxPending: s.pending,
		Request: func(ctx context.Context, kind, to string, payload []byte) (link.Stanza, error) {
			return r.link.Request(ctx, kind, to, payload)
		},
		VerifyTimeout: s.verify, Logger: s.log,
	})
	var err error
	r.link, err = link.New(link.Options{
		Server: host.Addr(), JID: host.Component(), Secret: link.Secret(s.secret),
		Serve: r.writer.Serve, Send: r.writer.Small, Logger: s.log, Dial: s.dial,
		Backoff: s.backoff, ConnectTimeout: s.connect, KeepAlive: s.alive,
	}, r.front)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.link.Run(ctx) // the host's transcript says more
	}()
	r.stop = func() { cancel(); <-ended }
	t.Cleanup(func() {
		r.stop()
		if err := r.front.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return r
}

func openStore(t testing.TB, path string) vault.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Driver: "sqlite", Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestScripts runs each script of testdata against a service of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.script")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".script"), func(t *testing.T) {
			t.Parallel()
			host := hosttest.New(t)
			serve(t, host, nil)
			same := host.SameConnection()
			hosttest.Script(t, host.Network(), file)
			same()
		})
	}
}

func TestServiceHasItsConfiguredName(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	serve(t, host, nil)
	answer := host.Device("alice/phone").Asks("get", `<query xmlns='http://jabber.org/protocol/disco#info'/>`)
	if !strings.Contains(string(answer.Raw), "Vaults") {
		t.Errorf("the service's name is not in %s", answer.Raw)
	}
}
