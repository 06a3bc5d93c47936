package lane

import "time"

const (
	// silentRate is how many bytes of bulk a second go to a host that answers
	// no ping, one stanza at a time: far below what any takes, so that bulk still
	// does not pile up where no small answer can overtake it.
	silentRate = 1 << 20
	// lastLook is enough to read what is in the socket, on a busy machine too.
	lastLook = 100 * time.Millisecond
	// busyHost is how many times the timeout a host that is heard of may take to
	// come to a ping: in a storm of logins it reads a stream slowly.
	busyHost = 6
)

// window follows how much bulk the host has confirmed. Pings go out behind
// bulk on the same stream; the host works through that in order, so any answer
// to one proves that it has taken all that was written before. It belongs to
// one connection after the other; the Writer's lock guards it.
type window struct {
	limit   int64 // bytes; 0: none
	timeout time.Duration

	sent, asked, confirmed int64 // bytes of bulk on this connection
	pings                  queue[ping]
	named                  uint64
	since                  time.Time // the silence about the pings that are out began
	looked                 time.Time // zero, or until when we look again, having been late to notice it
	greeted                bool      // the ping that shows whether the host answers is out
	answered               bool      // the host has done so in time, on this connection
	silent                 bool      // it does not; what it was found to do holds for the next connection
	free                   time.Time // when the next bulk may go to a silent host
}

// ping is one that is out.
type ping struct {
	name uint64
	upTo int64 // bytes that its answer confirms
}

// begin resets all for a new connection: what was unconfirmed is gone.
func (f *window) begin() {
	*f = window{limit: f.limit, timeout: f.timeout, named: f.named, silent: f.silent}
}

func (f *window) unconfirmed() int64 { return f.sent - f.confirmed }

// admits tells whether n bytes of bulk may go now. One stanza may always go
// when nothing is unconfirmed.
func (f *window) admits(n int, now time.Time) bool {
	switch {
	case f.limit == 0:
		return true
	case f.silent:
		return !now.Before(f.free)
	}
	return f.unconfirmed() == 0 || f.unconfirmed()+int64(n) <= f.limit
}

// send books bulk that goes out.
func (f *window) send(n int, now time.Time) {
	f.sent += int64(n)
	if f.silent {
		f.free = now.Add(time.Duration(n) * time.Second / silentRate)
	}
}

// wants tells whether a ping should go out now: when something is behind the
// last one and none is out, else for every quarter of the window; and when the
// connection begins, to learn early whether the host answers. So a few are out
// at most.
func (f *window) wants() bool {
	behind := f.sent - f.asked
	switch {
	case f.limit == 0 || f.silent && f.greeted:
		return false
	case f.pings.len() == 0:
		return behind > 0 || !f.greeted
	}
	return behind >= max(f.limit/4, 1)
}

// ask books a ping that is about to be written, and names it.
func (f *window) ask(now time.Time) (name uint64) {
	f.greeted = true
	f.written(now)
	f.named++
	f.pings.push(ping{name: f.named, upTo: f.sent})
	f.asked = f.sent
	return f.named
}

// written starts the clock: a ping was taken by the connection, or answered.
func (f *window) written(now time.Time) { f.since, f.looked = now, time.Time{} }

// confirm takes the answer to a ping; one of an earlier connection says
// nothing. It tells whether a silent host has begun to answer. One that comes
// late from such a host has it pinged again: it is still no host to wait for.
func (f *window) confirm(name uint64, now time.Time) (awake bool) {
	inTime := now.Sub(f.since) <= f.timeout
	for f.pings.len() > 0 && f.pings.front().name <= name {
		p, _ := f.pings.pop()
		f.confirmed = p.upTo
		f.written(now)
		switch {
		case inTime:
			f.answered = true
			awake, f.silent = awake || f.silent, false
		case f.silent:
			f.greeted = false
		}
	}
	return awake
}

// verdict is what the silence of the host means.
type verdict uint8

const (
	patient  verdict = iota // nothing yet
	halfOpen                // it has answered before, and nothing at all comes any more
	slow                    // it answers no pings, from now on
)

// judge tells what the host's silence means by now; heard is when something
// came from it last. Time in which the reader waits for room does not count, nor
// that in which this process did not run: what has come meanwhile is read first.
func (f *window) judge(now, heard time.Time, reading bool) verdict {
	if f.pings.len() == 0 || f.silent {
		return patient
	}
	if !reading {
		f.written(now)
		return patient
	}
	late := now.Sub(f.due(heard))
	switch {
	case late < 0:
		return patient
	case late > 0 && f.looked.IsZero():
		f.looked = now.Add(min(late, f.timeout) + lastLook)
		return patient
	case f.answered && !heard.Add(f.timeout).After(now):
		return halfOpen
	}
	f.silent = true
	return slow
}

// due is when the silence has lasted too long.
func (f *window) due(heard time.Time) time.Time {
	due := f.since.Add(f.timeout)
	if last := heard.Add(f.timeout); f.answered && last.After(due) {
		due = last
		if most := f.since.Add(busyHost * f.timeout); due.After(most) {
			due = most
		}
	}
	if f.looked.After(due) {
		return f.looked
	}
	return due
}

// wake is when there may be something to do that nobody else wakes the writer
// for; bulk tells whether some is ready. Zero: never.
func (f *window) wake(bulk bool, heard time.Time) time.Time {
	switch {
	case f.silent && bulk:
		return f.free
	case !f.silent && f.pings.len() > 0:
		return f.due(heard)
	}
	return time.Time{}
}
