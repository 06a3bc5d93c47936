package link

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"mellium.im/xmpp/component"
	"mellium.im/xmpp/jid"
)

// userTimeout is how long the host's kernel may leave sent bytes
// unacknowledged.
const userTimeout = 30 * time.Second

func dialTCP(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
	conn, err := d.DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok {
		setUserTimeout(tcp, userTimeout)
	}
	return conn, err
}

// connection is one attached stream.
type connection struct {
	net.Conn
	line   *line
	in     *bufio.Reader // reads line; nothing else does
	stream Stream
	spaces map[string]string
}

// open dials, wraps and shakes hands, within Options.ConnectTimeout.
func (l *Link) open(ctx context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.opts.ConnectTimeout, errTimeout)
	defer cancel()
	conn, err := l.opts.Dial(ctx, "tcp", l.opts.Server)
	if err != nil {
		return nil, &unreachable{err}
	}
	// Neither TLS nor mellium looks at ctx while it reads: closing wakes them.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	c, err := l.handshake(ctx, conn)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return c, nil
}

// errTimeout: the host took the connection, but did not finish the handshake.
var errTimeout = errors.New("the host does not finish the handshake")

// unreachable wraps what the dialler said.
type unreachable struct{ error }

func (e *unreachable) Unwrap() error { return e.error }

func (l *Link) handshake(ctx context.Context, conn net.Conn) (*connection, error) {
	if l.opts.TLS != nil {
		secured := tls.Client(conn, l.opts.TLS)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		conn = secured
	}
	c := &connection{Conn: conn, line: &line{conn: conn}}
	c.in = bufio.NewReaderSize(c.line, 64<<10)
	hs := &handshakeConn{Conn: conn, in: c.in}
	// mellium's time-out by context does not fire, and its session loop must not
	// run: it gets no context that ends, and what it returns is dropped.
	if _, err := component.NewSession(context.WithoutCancel(ctx), l.addr, l.opts.Secret, hs); err != nil {
		return nil, hs.explain(err)
	}
	var err error
	c.stream, c.spaces, err = readHeader(hs.read.Bytes())
	return c, err
}

// domain is the component's address for mellium.
func domain(s string) (jid.JID, error) {
	addr, err := jid.Parse(s)
	if err == nil && addr.String() != addr.Domain().String() {
		err = errors.New("not a domain")
	}
	return addr, err
}

// handshakeConn is what mellium shakes hands over. Having ReadByte, it gets no
// buffer of mellium's, so that all bytes behind the handshake are still in ours.
type handshakeConn struct {
	net.Conn
	in      *bufio.Reader
	read    bytes.Buffer
	atGap   bool // behind a tag: white space there, which mellium refuses, is dropped
	writing error
}

// maxHandshake bounds what a host may say before the handshake is done.
const maxHandshake = 64 << 10

func (c *handshakeConn) ReadByte() (byte, error) {
	for {
		b, err := c.in.ReadByte()
		if err != nil {
			return 0, err
		}
		if c.atGap && isSpace(b) {
			continue
		}
		c.atGap = b == '>'
		if c.read.Len() == maxHandshake {
			return 0, errors.New("the host's handshake is endless")
		}
		c.read.WriteByte(b)
		return b, nil
	}
}

func (c *handshakeConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b, err := c.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = b
	return 1, nil
}

// Write keeps its error back: when the host has said why it hangs up, reading
// tells more.
func (c *handshakeConn) Write(p []byte) (int, error) {
	if c.writing == nil {
		_, c.writing = c.Conn.Write(p)
	}
	return len(p), nil
}

// explain makes the most of a failed handshake.
func (c *handshakeConn) explain(err error) error {
	var syntax *xml.SyntaxError
	switch {
	case c.writing != nil && isNetwork(err):
		return c.writing
	case errors.As(err, &syntax), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the host hung up during the handshake: %w", err)
	}
	return err
}

func isNetwork(err error) bool {
	var e net.Error
	return errors.As(err, &e)
}

// readHeader finds the stream's start tag in what the host said.
func readHeader(said []byte) (Stream, map[string]string, error) {
	d := xml.NewDecoder(bytes.NewReader(said))
	for {
		from := d.InputOffset()
		token, err := d.RawToken()
		if err != nil {
			return Stream{}, nil, fmt.Errorf("stream header: %w", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		stream := Stream{Header: string(said[from:d.InputOffset()])}
		spaces := make(map[string]string)
		for _, a := range start.Attr {
			switch {
			case a.Name.Space == "xmlns":
				spaces[a.Name.Local] = a.Value
			case a.Name.Space == "" && a.Name.Local == "xmlns":
				spaces[""] = a.Value
			case a.Name.Space == "" && a.Name.Local == "id":
				stream.ID = a.Value
			}
		}
		return stream, spaces, nil
	}
}
