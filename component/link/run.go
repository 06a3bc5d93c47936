package link

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"mellium.im/xmpp/stream"
)

// farewell is how long the host may take to close its side after we have
// closed ours in order.
const farewell = 2 * time.Second

// Run connects, reads, and connects again until ctx ends (it returns the
// cause) or Options.Serve has ended the stream on purpose (it returns nil).
// When it returns, nothing of it runs any more. It may be called once.
func (l *Link) Run(ctx context.Context) error {
	for failed := 0; ; failed++ {
		began := time.Now()
		c, err := l.open(ctx)
		if err == nil {
			attached := time.Now()
			if err = l.attach(ctx, c); err == nil {
				return nil
			}
			if began = time.Now(); began.Sub(attached) >= l.opts.Backoff.Max {
				failed = 0
			}
		} else if ctx.Err() == nil {
			l.refused(ctx, err)
		}
		if ctx.Err() != nil {
			l.set(state{reason: "stopped"})
			return context.Cause(ctx)
		}
		select {
		case <-time.After(l.opts.Backoff.pause(failed) - time.Since(began)):
		case <-ctx.Done():
			l.set(state{reason: "stopped"})
			return context.Cause(ctx)
		}
	}
}

// pause is the time from the beginning of one try, or the loss of a
// connection, to the next try.
func (b Backoff) pause(failed int) time.Duration {
	if failed == 0 {
		return rand.N(b.First)
	}
	d := b.Max
	if failed < 16 { // no overflow
		d = min(b.Max, b.First<<(failed-1))
	}
	return d - rand.N(d/2+1)
}

// attach works on one connection until it ends. nil: on purpose.
func (l *Link) attach(ctx context.Context, c *connection) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()

	l.attaches.Add(1)
	clear(l.told)
	l.answers.start()
	l.set(state{attached: true, reason: "attached"})
	l.opts.Logger.Info("attached", "server", l.opts.Server, "jid", l.opts.JID)
	l.handler.Attached(ctx, c.stream)

	var ended atomic.Bool // by us, on purpose: nothing can be answered any more
	written := make(chan error, 1)
	go func() {
		err := l.opts.Serve(ctx, c.Conn)
		if err == nil {
			ended.Store(true)
			// The host gets time to read it all: to close at once, with its bytes
			// unread, would reset the connection and could lose ours.
			time.AfterFunc(farewell, func() { cancel(errFarewell) })
		} else {
			cancel(fmt.Errorf("write: %w", err)) // closes the connection: the reader wakes
		}
		written <- err
	}()
	err := l.read(ctx, c, &ended)
	cancel(err)
	err = context.Cause(ctx) // what came first: the reader may only have seen the connection close
	if <-written == nil {
		err = nil
	}
	_ = c.Close()
	l.set(state{reason: reason(err)})
	l.opts.Logger.Info("detached", "reason", reason(err))
	l.answers.stop(ErrDetached)
	l.handler.Detached(err)
	return err
}

var errFarewell = errors.New("the host does not close the stream")

// read hands on what comes until the stream ends; it never returns nil.
func (l *Link) read(ctx context.Context, c *connection, ended *atomic.Bool) error {
	c.line.ping = func() { l.opts.Send(l.Ping(l.opts.KeepAlive.Answer, func(error) {})) }
	c.line.heard = func() { l.heard.Store(int64(time.Since(l.born))) }
	c.line.idle, c.line.answer = l.opts.KeepAlive.Idle, l.opts.KeepAlive.Answer
	f := NewFramer(c.in, l.opts.Limits, c.spaces)
	for {
		s, err := f.Next()
		switch {
		case err == io.EOF:
			return errHungUp
		case err != nil:
			return err
		case s.Name == Name{NSStream, "error"}:
			return streamError(c.stream, s)
		case ended.Load():
		case !s.Name.isStanza():
			l.opts.Logger.Debug("unknown element dropped", "name", s.Name.Local, "namespace", s.Name.Space)
		case s.IsAnswer():
			l.answers.answer(s)
		default:
			l.handler.Stanza(ctx, s)
		}
	}
}

// errHungUp: the connection ended between two stanzas, without a word.
var errHungUp = errors.New("the host hung up")

// isStanza: old hosts put the namespaces of clients and servers on stanzas.
func (n Name) isStanza() bool {
	switch n.Space {
	case NSComponent, "jabber:client", "jabber:server":
		return n.Local == "iq" || n.Local == "message" || n.Local == "presence"
	}
	return false
}

// streamError is what the host said in `<stream:error/>`.
func streamError(of Stream, s Stanza) error {
	e := stream.Error{Err: s.Child.Local}
	if s.Skipped == Whole {
		d := xml.NewDecoder(io.MultiReader(strings.NewReader(of.Header), bytes.NewReader(s.Raw)))
		var told stream.Error
		if _, err := d.Token(); err == nil && d.Decode(&told) == nil && told.Err != "" {
			e = told
		}
	}
	if e.Err == "" {
		e.Err = "undefined-condition"
	}
	return e
}

// reason is err in one line, for logs and /readyz.
func reason(err error) string {
	var e stream.Error
	if !errors.As(err, &e) {
		if err == nil {
			return "closed on purpose"
		}
		return err.Error()
	}
	said := "stream error: " + e.Err
	if len(e.Text) > 0 && e.Text[0].Value != "" {
		said += " (" + e.Text[0].Value + ")"
	}
	return said
}

// tellAgain is how soon a kind of failure is logged again that was logged
// since the last connection: a host that fails now in one way, now in another,
// does not fill the log.
const tellAgain = 5 * time.Minute

// refused notes a failed try. Each kind of failure is logged when it begins,
// not at every try.
func (l *Link) refused(ctx context.Context, err error) {
	msg, level, hint := "handshake failed", slog.LevelWarn, ""
	var said stream.Error
	var nobody *unreachable
	switch {
	case errors.As(err, &nobody):
		msg = "host unreachable"
	case errors.Is(err, stream.NotAuthorized):
		msg, level = "wrong secret", slog.LevelError
		hint = "the host has another secret for this component"
	case errors.Is(err, stream.HostUnknown):
		msg, level = "host-unknown", slog.LevelError
		hint = "the host has no component of this name"
	case errors.Is(err, stream.Conflict):
		msg, hint = "conflict", "another connection of this component is attached to the host"
	case errors.As(err, &said):
		msg = "host refuses"
	}
	if !l.set(state{kind: msg, reason: msg + ": " + reason(err)}) || time.Since(l.told[msg]) < tellAgain {
		return
	}
	l.told[msg] = time.Now()
	args := []any{"server", l.opts.Server, "jid", l.opts.JID, "reason", reason(err)}
	if hint != "" {
		args = append(args, "hint", hint)
	}
	l.opts.Logger.Log(ctx, level, msg, args...)
}

type state struct {
	attached bool
	kind     string // of failure
	reason   string
}

// set changes the state and tells whether its kind is another now.
func (l *Link) set(s state) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed = l.state.kind != s.kind
	l.state = s
	return changed
}
