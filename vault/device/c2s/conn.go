// Package c2s is a device's connection to its server: STARTTLS or direct TLS,
// SASL, resource binding (RFC 6120), and after that stanzas as raw text. It
// knows nothing of what the stanzas mean.
package c2s

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/unicode/norm"
)

var (
	// ErrClosed says that the connection has been closed by this side.
	ErrClosed = errors.New("connection is closed")
	// ErrEnded says that the server ended the stream; the text behind it says
	// how.
	ErrEnded = errors.New("server ended the stream")
)

// writeTimeout bounds one write; a server that takes nothing for so long is
// as good as gone.
const writeTimeout = 30 * time.Second

// Stanza is one first-level element of the stream. Its attributes are
// unescaped; Raw is the whole element as it came, which inherits the default
// namespace jabber:client.
type Stanza struct {
	Name, Type, From, To, ID string
	Raw                      []byte
}

// Conn is a bound connection. Its methods may be called by many goroutines at
// once.
type Conn struct {
	conn   *bufferedConn
	bare   string // the account as it was dialled
	handle func(Stanza) bool
	logger *slog.Logger

	writing sync.Mutex // held for one write

	mu      sync.Mutex // guards what follows
	full    string     // what the server bound; "" until then
	pending map[string]request
	err     error // why the connection ended

	done chan struct{} // closed when the reader has ended
}

// request is an IQ of ours that waits for its answer.
type request struct {
	to     string
	answer chan<- Stanza // has room for the one answer
}

// JID returns the full JID that the server bound, as the server spells it.
func (c *Conn) JID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.full
}

// Done is closed when the connection has ended; then Err says why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns nil while the connection lives, then ErrClosed, or an error that
// is ErrEnded, or a failure of the network.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Send writes raw, which must be whole stanzas, in one piece. It waits for the
// network, but at most half a minute; any failure ends the connection.
func (c *Conn) Send(raw []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.Err(); err != nil {
		return err
	}
	err := c.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err == nil {
		_, err = c.conn.Write(raw)
	}
	if err != nil {
		c.end(fmt.Errorf("write: %w", err))
		return c.Err()
	}
	return nil
}

// IQ sends an IQ of type get or set and waits for its answer, which is of type
// result or error and comes from to; an answer of type error is no error of
// IQ. An empty to is the account itself.
func (c *Conn) IQ(ctx context.Context, typ, to string, payload []byte) (Stanza, error) {
	id := rand.Text()
	answer := make(chan Stanza, 1)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return Stanza{}, c.err
	}
	c.pending[id] = request{to: to, answer: answer}
	c.mu.Unlock()
	defer c.forget(id)

	raw := make([]byte, 0, len(payload)+len(to)+128)
	raw = append(raw, "<iq type='"...)
	raw = append(raw, typ...)
	raw = append(raw, "' id='"...)
	raw = append(raw, id...)
	if to != "" {
		raw = append(raw, "' to='"...)
		raw = append(raw, escape(to)...)
	}
	raw = append(raw, "'>"...)
	raw = append(raw, payload...)
	raw = append(raw, "</iq>"...)
	if err := c.Send(raw); err != nil {
		return Stanza{}, err
	}
	select {
	case s := <-answer:
		return s, nil
	case <-ctx.Done():
		return Stanza{}, fmt.Errorf("IQ to %q: %w", to, ctx.Err())
	case <-c.done:
	}
	select { // the answer may have been the last stanza
	case s := <-answer:
		return s, nil
	default:
		return Stanza{}, c.Err()
	}
}

func (c *Conn) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}

// Close ends the stream and waits until the reader has stopped, so it must not
// be called from Handle. It can be called again.
func (c *Conn) Close() error {
	if c.Err() == nil {
		_ = c.Send([]byte("</stream:stream>")) // a courtesy: the socket is closed anyway
	}
	c.end(ErrClosed)
	<-c.done
	return nil
}

// Cut drops the connection without ending the stream, as a lost network does.
func (c *Conn) Cut() {
	c.end(ErrClosed)
	<-c.done
}

// end keeps the first reason and closes the socket, which stops the reader.
func (c *Conn) end(reason error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = reason
	}
	c.mu.Unlock()
	if first {
		_ = c.conn.raw.Close() // below TLS: its goodbye could block
	}
}

// read is the connection's only reader.
func (c *Conn) read() {
	defer close(c.done)
	cutter := newCutter(c.conn)
	for {
		stanza, err := cutter.next()
		if err != nil {
			if !errors.Is(err, ErrEnded) && !errors.Is(err, net.ErrClosed) {
				err = fmt.Errorf("read: %w", err)
			}
			c.end(err)
			return
		}
		c.take(stanza)
	}
}

func (c *Conn) take(s Stanza) {
	isRequest := s.Name == "iq" && (s.Type == "get" || s.Type == "set")
	if s.Name == "iq" && !isRequest && c.answered(s) {
		return
	}
	if c.handle != nil && c.handle(s) || !isRequest {
		return
	}
	to := ""
	if s.From != "" {
		to = " to='" + escape(s.From) + "'"
	}
	err := c.Send([]byte("<iq type='error' id='" + escape(s.ID) + "'" + to + "><error type='cancel'>" +
		"<service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"))
	if err != nil {
		c.logger.Debug("could not refuse a request", "from", s.From, "err", err)
	}
}

// answered hands an answer to the request that waits for it. The id alone is
// not enough: anybody may send a result with a guessed one.
func (c *Conn) answered(s Stanza) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, found := c.pending[s.ID]
	if !found || !c.answersFor(r.to, s.From) {
		return false
	}
	delete(c.pending, s.ID)
	r.answer <- s
	return true
}

// answersFor reports whether from may answer a request to to (RFC 6120
// §8.2.3); c.mu is held.
func (c *Conn) answersFor(to, from string) bool {
	if sameJID(to, from) {
		return true
	}
	_, domain, _ := strings.Cut(c.bare, "@")
	own := to == "" || sameJID(to, c.bare)
	return own && (from == "" || sameJID(from, c.bare) || sameJID(from, c.full) || strings.EqualFold(from, domain))
}

// sameJID reports whether two spellings are one JID to a server: it may write
// any character in its compatible form, and what comes before the resource in
// lower case (RFC 6122).
func sameJID(a, b string) bool {
	if a == b {
		return true
	}
	aBare, aResource, _ := strings.Cut(a, "/")
	bBare, bResource, _ := strings.Cut(b, "/")
	return norm.NFKC.String(aResource) == norm.NFKC.String(bResource) &&
		strings.EqualFold(norm.NFKC.String(aBare), norm.NFKC.String(bBare))
}
