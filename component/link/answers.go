package link

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/xml"
	"sync"
	"time"
)

// answers are the IQs of ours whose answer is still to come, by id. They belong
// to one connection: it ends, they end.
type answers struct {
	mu      sync.Mutex
	open    bool
	pending map[string]*expected
}

type expected struct {
	from  string
	done  func(Stanza, error)
	timer *time.Timer
}

// start begins to take expectations.
func (a *answers) start() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = true
	a.pending = make(map[string]*expected)
}

// stop ends all expectations with err, and those to come until the next start.
func (a *answers) stop(err error) {
	a.mu.Lock()
	pending := a.pending
	a.open, a.pending = false, nil
	a.mu.Unlock()
	for _, e := range pending {
		e.timer.Stop()
		e.done(Stanza{}, err)
	}
}

func (a *answers) add(id, from string, within time.Duration, done func(Stanza, error)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.open {
		return false
	}
	e := &expected{from: from, done: done}
	e.timer = time.AfterFunc(within, func() {
		if a.take(id, func(at *expected) bool { return at == e }) != nil {
			done(Stanza{}, ErrNoAnswer)
		}
	})
	a.pending[id] = e
	return true
}

// take removes the expectation of id, if it is the wanted one. Whoever gets it
// is the only one to call done.
func (a *answers) take(id string, wanted func(*expected) bool) *expected {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.pending[id]
	if e == nil || !wanted(e) {
		return nil
	}
	delete(a.pending, id)
	e.timer.Stop()
	return e
}

// answer hands s to who expects it; what nobody expects is dropped, also the
// right id from the wrong sender.
func (a *answers) answer(s Stanza) {
	if e := a.take(s.ID, func(e *expected) bool { return e.from == s.From }); e != nil {
		e.done(s, nil)
	}
}

// Expect announces an IQ of ours to `to` that the caller is about to send with
// the returned id, and calls done exactly once: with the result or error that
// carries this id and comes from exactly `to`, or with ErrNoAnswer after
// `within`, or with ErrDetached when the connection ends first. done must not
// block; if nothing is attached, it is called before Expect returns. cancel
// forgets the IQ: done is then not called any more, but may just be running.
// The caller bounds how many are under way.
func (l *Link) Expect(to string, within time.Duration, done func(Stanza, error)) (id string, cancel func()) {
	id = rand.Text()
	if !l.answers.add(id, to, within, done) {
		done(Stanza{}, ErrDetached)
	}
	return id, func() { l.answers.take(id, func(*expected) bool { return true }) }
}

// Request sends an IQ of ours (typ is "get" or "set") and waits for its answer;
// an error stanza is an answer: look at its Type. ErrNoAnswer says that none
// came within that time. An answer that was under way when the time was over
// still counts, since our own process may not have run meanwhile: silence is
// judged only when the host has answered a ping that was sent after that, and
// what comes from one stream comes in order. The other errors are ErrDetached,
// ErrNotTaken and the cause of the end of ctx.
func (l *Link) Request(ctx context.Context, typ, to string, payload []byte, within time.Duration) (Stanza, error) {
	answered, id, forget := l.expect(to)
	defer forget()
	select {
	case o := <-answered:
		return o.stanza, o.err
	default:
	}
	if !l.opts.Send(l.IQ(id, typ, to, payload)) {
		return Stanza{}, ErrNotTaken
	}
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case o := <-answered:
		return o.stanza, o.err
	case <-ctx.Done():
		return Stanza{}, context.Cause(ctx)
	case <-limit.C:
	}
	confirmed, id, forget := l.expect(l.opts.PingTo)
	defer forget()
	if !l.opts.Send(l.IQ(id, "get", l.opts.PingTo, []byte(pingPayload))) {
		return Stanza{}, ErrNotTaken
	}
	select {
	case o := <-answered:
		return o.stanza, o.err
	case <-ctx.Done():
		return Stanza{}, context.Cause(ctx)
	case o := <-confirmed:
		select {
		case o := <-answered: // it came first
			return o.stanza, o.err
		default:
		}
		if o.err != nil {
			return Stanza{}, o.err
		}
		return Stanza{}, ErrNoAnswer
	}
}

// outcome is what became of an expectation.
type outcome struct {
	stanza Stanza
	err    error
}

// expect is Expect for somebody who waits as long as it takes.
func (l *Link) expect(to string) (answered <-chan outcome, id string, forget func()) {
	c := make(chan outcome, 1)
	id, forget = l.Expect(to, forever, func(s Stanza, err error) { c <- outcome{s, err} })
	return c, id, forget
}

// forever is longer than any connection: ctx or its end come first.
const forever = 1 << 62

// Ping returns a ping to the host that the caller writes where it wants it
// answered, and calls done as Expect does: any answer, result or error, is nil
// and proves that the host has taken all that was written before it. within 0:
// the answer may come as long as the connection lasts.
func (l *Link) Ping(within time.Duration, done func(error)) []byte {
	if within == 0 {
		within = forever
	}
	id, _ := l.Expect(l.opts.PingTo, within, func(_ Stanza, err error) { done(err) })
	return l.IQ(id, "get", l.opts.PingTo, []byte(pingPayload))
}

const pingPayload = `<ping xmlns='urn:xmpp:ping'/>`

// IQ serialises an IQ of ours around a ready payload.
func (l *Link) IQ(id, typ, to string, payload []byte) []byte {
	var b bytes.Buffer
	attr := func(name, value string) {
		b.WriteString(" " + name + "='")
		_ = xml.EscapeText(&b, []byte(value)) // a Buffer takes everything
		b.WriteByte('\'')
	}
	b.WriteString("<iq")
	attr("type", typ)
	attr("id", id)
	attr("from", l.opts.JID)
	attr("to", to)
	b.WriteByte('>')
	b.Write(payload)
	b.WriteString("</iq>")
	return b.Bytes()
}
