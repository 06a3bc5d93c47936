package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"mellium.im/xmpp/jid"
)

// Options say where the host is and how to treat it. Server, JID, Secret,
// Serve and Send are required; every other zero value stands for the default
// that its comment names.
type Options struct {
	// Server is the host's component port, "host:port".
	Server string
	// JID is the component's domain, as the host has it configured.
	JID string
	// Secret is shared with the host.
	Secret Secret
	// TLS, if not nil, wraps the connection from its first byte (direct TLS).
	// An empty ServerName is taken from Server.
	TLS *tls.Config
	// PingTo is who answers pings for the host: a domain that the host itself
	// serves. Default: the parent domain of JID.
	PingTo string

	// Serve writes the stream: it is called once for each connection, right
	// after the handshake, on a goroutine that link waits for. It must return
	// when ctx ends or conn fails. An error ends the connection; nil says that
	// it has ended the stream on purpose (`</stream:stream>` is written), and
	// Run returns nil. lane.Writer.Serve fits.
	Serve func(ctx context.Context, conn net.Conn) error
	// Send queues one whole stanza without blocking and tells whether it was
	// taken. lane.Writer.Small fits.
	Send func(stanza []byte) bool

	// Logger gets one line for each change of state. Default: discards.
	Logger *slog.Logger
	// Limits bound what one stanza may cost. Default: 2 MiB, 128 levels.
	Limits Limits
	// KeepAlive notices a line that is dead without saying so.
	KeepAlive KeepAlive
	// Backoff spaces the tries to connect.
	Backoff Backoff
	// ConnectTimeout bounds dialling, TLS and handshake together. Default 5 s.
	ConnectTimeout time.Duration
	// Dial replaces the TCP dialler in tests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// KeepAlive: when nothing was received for Idle, a XEP-0199 ping goes out;
// when still nothing comes for Answer, the link is half-open and is given up.
type KeepAlive struct {
	Idle   time.Duration // default 30 s
	Answer time.Duration // default 10 s
}

// Backoff spaces tries: the first comes at a random moment within First after
// the loss, later ones in pauses that double, each shortened at random by up to
// a half, never longer than Max. A connection that lasted for Max starts over.
type Backoff struct {
	First time.Duration // default 500 ms
	Max   time.Duration // default 5 s
}

// Secret is a shared secret that prints as "[hidden]", however it is printed
// or logged.
type Secret []byte

const hidden = "[hidden]"

// Format hides the secret from fmt, whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// LogValue hides the secret from log/slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the secret from encoders.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// complete checks o and fills in the defaults.
func (o Options) complete() (Options, jid.JID, error) {
	var faults []error
	addr, err := domain(o.JID)
	if err != nil {
		faults = append(faults, fmt.Errorf("jid %q: %w", o.JID, err))
	}
	host, _, err := net.SplitHostPort(o.Server)
	if err != nil {
		faults = append(faults, fmt.Errorf("server %q is not host:port", o.Server))
	}
	if len(o.Secret) == 0 {
		faults = append(faults, errors.New("no secret"))
	}
	if o.Serve == nil || o.Send == nil {
		faults = append(faults, errors.New("no writer"))
	}
	if err := errors.Join(faults...); err != nil {
		return o, addr, fmt.Errorf("link: %w", err)
	}
	o.JID = addr.String()
	if o.PingTo == "" {
		o.PingTo = parent(o.JID)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.TLS != nil && o.TLS.ServerName == "" {
		o.TLS = o.TLS.Clone()
		o.TLS.ServerName = host
	}
	if o.Dial == nil {
		o.Dial = dialTCP
	}
	o.Limits = o.Limits.complete()
	orDefault(&o.KeepAlive.Idle, 30*time.Second)
	orDefault(&o.KeepAlive.Answer, 10*time.Second)
	orDefault(&o.Backoff.First, 500*time.Millisecond)
	orDefault(&o.Backoff.Max, 5*time.Second)
	orDefault(&o.ConnectTimeout, 5*time.Second)
	return o, addr, nil
}

// parent is the domain above d, or d itself where there is none.
func parent(d string) string {
	if _, rest, ok := strings.Cut(d, "."); ok && rest != "" {
		return rest
	}
	return d
}

func orDefault[T comparable](v *T, fallback T) {
	var zero T
	if *v == zero {
		*v = fallback
	}
}
