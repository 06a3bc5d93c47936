package c2s

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"mellium.im/sasl"
	"mellium.im/xmpp"
	"mellium.im/xmpp/jid"
)

// dialTimeout bounds Dial if the context does not.
const dialTimeout = 30 * time.Second

const (
	nsTLS  = "urn:ietf:params:xml:ns:xmpp-tls"
	nsBind = "urn:ietf:params:xml:ns:xmpp-bind"
)

var (
	// ErrUnreachable says that nobody answers where the server should be.
	ErrUnreachable = errors.New("server can't be reached")
	// ErrCertificate says that the server has no certificate that is good for
	// the account's domain.
	ErrCertificate = errors.New("server has the wrong certificate")
	// ErrPassword says that the server refused the password.
	ErrPassword = errors.New("server refused the account or its password")
	// ErrImpostor says that the server doesn't know the password that it should
	// know (SCRAM, RFC 5802 §3).
	ErrImpostor = errors.New("server could not prove that it knows the password")
)

// Options say where and as whom to connect.
type Options struct {
	Server   string // host:port
	JID      string // the account, spelled as it is to be sent
	Resource string // wanted; "" leaves the choice to the server
	Password string
	// TLS may be nil: then the system's roots decide. ServerName defaults to
	// the account's domain.
	TLS       *tls.Config
	DirectTLS bool // TLS from the first byte (XEP-0368) instead of STARTTLS
	// Handle gets every stanza that answers no IQ of ours, in the order of the
	// stream, and reports whether it has dealt with it: a get or set that it
	// has not is answered service-unavailable. It runs on the connection's
	// only reader, so it must not wait for an IQ or call Close. It may be
	// called before Dial has returned.
	Handle func(Stanza) bool
	Logger *slog.Logger // nil: silent
}

// Dial connects, secures, authenticates and binds. The context bounds only
// that. The password travels by SCRAM where the server knows it, by PLAIN
// otherwise, and never outside TLS. No presence is sent. The error may be
// [ErrUnreachable], [ErrCertificate], [ErrPassword] or [ErrImpostor].
func Dial(ctx context.Context, options Options) (*Conn, error) {
	local, domain, found := strings.Cut(options.JID, "@")
	if !found || local == "" || domain == "" || strings.ContainsAny(domain, "/@ '\"<>&") {
		return nil, fmt.Errorf("connect: %q is no account", options.JID)
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()

	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", options.Server)
	if err != nil {
		return nil, fmt.Errorf("connect: %w: %w", ErrUnreachable, err)
	}
	// mellium's own use of the context leaves reads hanging, so the deadline is
	// set here; a context that is cancelled earlier closes the socket.
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	deadline, _ := ctx.Deadline()
	c, err := negotiate(ctx, raw, deadline, options, local, domain)
	if err == nil && !stop() {
		c.Cut()
		err = ctx.Err()
	}
	if err != nil {
		_ = raw.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil {
			<-ctx.Done() // the socket's deadline is the context's
			err = errors.Join(ctx.Err(), err)
		} else if isLost(err) {
			err = fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		return nil, fmt.Errorf("connect %s as %s: %w", options.Server, options.JID, err)
	}
	return c, nil
}

// isLost reports whether the connection ended before the server had said what it
// thinks of this side, as that of a server does that just stops or starts.
func isLost(err error) bool {
	var network *net.OpError
	var broken *xml.SyntaxError
	switch {
	case errors.Is(err, ErrCertificate), errors.Is(err, ErrPassword), errors.Is(err, ErrImpostor):
		return false
	case errors.As(err, &broken):
		return strings.Contains(broken.Msg, "unexpected EOF") // the decoder's word for it
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrEnded) || errors.As(err, &network)
}

func negotiate(ctx context.Context, raw net.Conn, deadline time.Time, options Options, local, domain string) (*Conn, error) {
	if err := raw.SetDeadline(deadline); err != nil {
		return nil, err
	}
	session, err := authenticate(ctx, raw, options, local, domain)
	if err != nil {
		return nil, err
	}
	conn, secure := session.Conn().(*bufferedConn)
	if !secure {
		return nil, errors.New("server offers no encryption")
	}
	if err := raw.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	c := &Conn{
		conn:    conn,
		bare:    options.JID,
		handle:  options.Handle,
		logger:  options.Logger,
		pending: make(map[string]request),
		done:    make(chan struct{}),
	}
	go c.read() // ends when the socket is closed; Close and Cut wait for it
	full, err := c.bind(ctx, options.Resource)
	if err != nil {
		c.Cut()
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.full = full
	return c, nil
}

// authenticate has mellium negotiate up to the stream in which a resource can
// be bound. Binding is ours: mellium would refuse JIDs that servers accept.
func authenticate(ctx context.Context, raw net.Conn, options Options, local, domain string) (*xmpp.Session, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if options.TLS != nil {
		config = options.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = domain
	}
	who := &login{user: local, password: options.Password}
	features := []xmpp.StreamFeature{
		buffered(xmpp.StartTLS(config), raw),
		xmpp.SASL("", "", who.by(sasl.ScramSha256), who.by(sasl.ScramSha1), who.by(sasl.Plain)),
		{Name: xml.Name{Space: nsBind, Local: "bind"}, Necessary: xmpp.Authn, Parse: skipFeature},
	}
	rw, state := io.ReadWriter(raw), xmpp.SessionState(0)
	if options.DirectTLS {
		secure := tls.Client(raw, config)
		if err := handshake(ctx, secure); err != nil {
			return nil, err
		}
		rw, state = newBufferedConn(secure, raw), xmpp.Secure
	}
	// Who we are is said to SASL alone, as it is spelled: PRECIS refuses names
	// that servers have, and mellium takes a server's other spelling for fraud.
	session, err := xmpp.NewSession(context.Background(), jid.NewUnsafe("", domain, "").JID, jid.JID{}, rw, state,
		xmpp.NewNegotiator(func(*xmpp.Session, *xmpp.StreamConfig) xmpp.StreamConfig {
			return xmpp.StreamConfig{Features: features}
		}))
	if err != nil {
		return nil, who.judge(err)
	}
	if session.State()&xmpp.Authn == 0 {
		return nil, errors.New("server offers no way to authenticate")
	}
	return session, nil
}

// handshake speaks TLS before anybody reads, so that its failure comes as it is.
func handshake(ctx context.Context, secure *tls.Conn) error {
	err := secure.HandshakeContext(ctx)
	var bad *tls.CertificateVerificationError
	if errors.As(err, &bad) {
		return fmt.Errorf("%w: %w", ErrCertificate, bad.Err)
	}
	return err
}

// login is one try to authenticate.
type login struct {
	user, password string
	began          bool
	doubted        error // why the server is not what it says
}

// by is a mechanism with credentials of its own. It does without channel
// binding, which servers offer in kinds that TLS 1.3 does not have.
func (l *login) by(m sasl.Mechanism) sasl.Mechanism {
	credentials := sasl.Credentials(func() (username, pass, identity []byte) {
		return []byte(l.user), []byte(l.password), nil
	})
	return sasl.Mechanism{
		Name: m.Name,
		Start: func(*sasl.Negotiator) (bool, []byte, any, error) {
			l.began = true
			client := sasl.NewClient(m, credentials)
			more, response, err := client.Step(nil)
			return more, response, client, err
		},
		Next: func(_ *sasl.Negotiator, challenge []byte, client any) (bool, []byte, any, error) {
			more, response, err := client.(*sasl.Negotiator).Step(challenge)
			if err != nil {
				l.doubted = err
			}
			return more, response, client, err
		},
	}
}

// judge says what a failure behind the first word of a login means. The library
// keeps its type of a refusal to itself.
func (l *login) judge(err error) error {
	var network net.Error
	var broken *xml.SyntaxError // the decoder's word for an end in the middle
	switch {
	case l.doubted != nil:
		return fmt.Errorf("%w: %w", ErrImpostor, l.doubted)
	case !l.began, errors.As(err, &network), errors.As(err, &broken), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		strings.Contains(err.Error(), "temporary-auth-failure"):
		return err
	}
	return fmt.Errorf("%w: %w", ErrPassword, err)
}

// skipFeature makes a feature known, so that negotiation ends in its stream.
func skipFeature(_ context.Context, d *xml.Decoder, _ *xml.StartElement) (bool, any, error) {
	return false, nil, d.Skip()
}

// buffered has a StartTLS feature go on with our reader, from which no decoder
// takes more than it needs.
func buffered(start xmpp.StreamFeature, raw net.Conn) xmpp.StreamFeature {
	plain := start.Negotiate
	start.Negotiate = func(ctx context.Context, s *xmpp.Session, data any) (xmpp.SessionState, io.ReadWriter, error) {
		state, rw, err := plain(ctx, s, data)
		secure, isTLS := rw.(*tls.Conn)
		if err != nil || !isTLS {
			return state, rw, err
		}
		if err := handshake(ctx, secure); err != nil {
			return state, nil, err
		}
		return state, newBufferedConn(secure, raw), nil
	}
	return start
}

// bind asks for a resource and returns the full JID that the server gives.
func (c *Conn) bind(ctx context.Context, resource string) (string, error) {
	payload := "<bind xmlns='" + nsBind + "'/>"
	if resource != "" {
		payload = "<bind xmlns='" + nsBind + "'><resource>" + escape(resource) + "</resource></bind>"
	}
	answer, err := c.IQ(ctx, "set", "", []byte(payload))
	if err != nil {
		return "", fmt.Errorf("bind: %w", err)
	}
	var result struct {
		JID string `xml:"urn:ietf:params:xml:ns:xmpp-bind bind>jid"`
	}
	if err := xml.Unmarshal(answer.Raw, &result); err != nil {
		return "", fmt.Errorf("bind: %w", err)
	}
	if answer.Type != "result" || result.JID == "" {
		return "", fmt.Errorf("bind: server refused resource %q: %s", resource, answer.Raw)
	}
	return result.JID, nil
}

// bufferedConn is a TLS connection with the byte-wise reader that keeps
// decoders from buffering for themselves.
type bufferedConn struct {
	*tls.Conn
	reader *bufio.Reader
	raw    net.Conn // below TLS
}

func newBufferedConn(secure *tls.Conn, raw net.Conn) *bufferedConn {
	return &bufferedConn{Conn: secure, reader: bufio.NewReader(secure), raw: raw}
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.reader.Read(p) }
func (c *bufferedConn) ReadByte() (byte, error)    { return c.reader.ReadByte() }
