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
	store     vault.Store
	limits    vault.Limits
	answer    int // bytes
	queue     int // bytes
	pending   int
	rate      component.Rate
	meter     component.Meter
	inline    int // bytes
	verify    time.Duration
	log       *slog.Logger
	secret    string // "": the host's
	backoff   link.Backoff
	connect   time.Duration // bounds one try; 0: link's default
	alive     link.KeepAlive
	write     time.Duration // bounds one write
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	chunk     int // bytes
	window    int // chunks
	downloads int // of an account
	overall   int // downloads of all
	ack       time.Duration
	unread    int           // bytes of bulk that the host may not have confirmed; 0: lane's default
	confirm   time.Duration // how long the host may take for that
	pingTo    string        // who confirms for it; "": the host itself
}

// running is a service on a host.
type running struct {
	front  *component.Service
	writer *lane.Writer
	link   *link.Link
	engine *pep.Engine
	stop   func()
}

// never is longer than any test: what it bounds, only tests of that bound meet,
// on a busy machine too.
const never = time.Hour

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
			Subscriptions: 4, Affiliations: 4, Resources: 3, Capabilities: 16, ForeignPayloads: true,
		},
		answer: 400_000, queue: 1 << 20, pending: 64, inline: 8000, verify: never,
		rate:  component.Rate{PerSecond: 1_000_000, Burst: 1_000_000}, // only tests of the rate should meet it
		chunk: 32768, window: 4, downloads: 4, overall: 64, ack: never, confirm: never,
		// A host that is stalled, or slow, stays so for as long as the machine needs.
		write: never, alive: link.KeepAlive{Idle: never, Answer: never},
		dial:    new(net.Dialer).DialContext, // link's own gives up what the host's kernel does not take
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
	r := new(running)
	r.writer = lane.New(lane.Options{
		QueueBytes: s.queue, WriteTimeout: s.write, Logger: s.log,
		Confirm:    func(done func(error)) []byte { return r.link.Ping(0, done) },
		HostWindow: s.unread, ConfirmTimeout: s.confirm,
		Heard: func() time.Time { return r.link.Heard() },
	})
	r.engine = pep.New(pep.Options{
		Store: s.store, Limits: s.limits, Domains: []string{host.Domain()}, AnswerBytes: s.answer, InlineBytes: s.inline,
		StanzaBytes: s.answer + 50_000, ChunkBytes: s.chunk, Window: s.window, BatchRecords: 1024,
	})
	r.front = component.New(component.Options{
		JID: host.Component(), Domains: []string{host.Domain()}, Name: "Vaults", Version: "1.2.3",
		Contact: "xmpp:operator@localhost", Admins: []vault.Account{"bob@localhost"},
		Engine: r.engine,
		Writer: r.writer, Wire: wire.Limits{RecordBytes: s.limits.RecordBytes, Foreign: s.limits.ForeignPayloads},
		MaxStanza: s.answer + 50_000, MaxPending: s.pending, Rate: s.rate, Meter: s.meter,
		Request: func(ctx context.Context, kind, to string, payload []byte, within time.Duration) (link.Stanza, error) {
			return r.link.Request(ctx, kind, to, payload, within)
		},
		Expect: func(to string, within time.Duration, done func(link.Stanza, error)) (string, func()) {
			return r.link.Expect(to, within, done)
		},
		Ping:          func(within time.Duration, done func(error)) []byte { return r.link.Ping(within, done) },
		Downloads:     component.Downloads{OfAccount: s.downloads, Overall: s.overall, AckTimeout: s.ack},
		VerifyTimeout: s.verify, Logger: s.log,
	})
	var err error
	r.link, err = link.New(link.Options{
		Server: host.Addr(), JID: host.Component(), Secret: link.Secret(s.secret),
		Serve: r.writer.Serve, Send: r.writer.Small, Logger: s.log, Dial: s.dial,
		Backoff: s.backoff, ConnectTimeout: s.connect, KeepAlive: s.alive, PingTo: s.pingTo,
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
			serve(t, host, func(s *setup) { s.limits.Resources = 8 })
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
