package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
	"pepvault/vault/device/c2s"
)

var (
	// ErrNoAnswer says that the service answered nothing for a minute.
	ErrNoAnswer = errors.New("the service does not answer")
	// ErrRefused says that the service, or the server in its place, does not serve
	// the device; the text behind it is the answer.
	ErrRefused = errors.New("the service refuses")
	// ErrNotNow says that the service, or the server in its place, asks for
	// patience, for longer than a session has it: as where it is not running.
	ErrNotNow = errors.New("the service can't be used now")
)

// Stream is a connection to the server; a [c2s.Conn] is one. What Dial's handle
// gets comes in the order of the stream.
type Stream interface {
	Send(raw []byte) error
	Done() <-chan struct{}
	Err() error
	Close() error
}

// Dial connects; handle gets every stanza that comes.
type Dial func(ctx context.Context, handle func(c2s.Stanza) bool) (Stream, error)

// Mode says what a session is for.
type Mode uint8

const (
	// Once takes in what there is, offers what was changed, and ends.
	Once Mode = iota
	// Pushed is Once, with the service pushing what there is.
	Pushed
	// Live goes on until its context is done, and hears of every change.
	Live
)

const (
	answerTimeout = time.Minute
	// quietMost is how long a Live session hears nothing before it asks for a sign
	// of life: of a connection that is gone nobody else tells.
	quietMost  = 2 * time.Minute
	pauseLeast = time.Second
	pausesMost = 8 // of a session that is not Live
)

// session is one connection at work. All but the inbox belongs to the goroutine
// of Run.
type session struct {
	*Device
	mode   Mode
	stream Stream
	synced bool   // a sync of this session has ended
	idle   bool   // nothing is asked for
	id     string // of the request that waits for its answer
	call   wire.Call
	since  time.Time // of that request, or of the latest chunk
	pauses int
	said   error     // why there was a pause last
	later  time.Time // nothing is asked before
	start  string    // the cursor that the sync under way began with; "" = none is
	begun  pep.DownloadBegun
	came   int
	// astray is a cursor that the service can't read; its store is another one.
	astray  string
	heardOf time.Time // when something came last
	retry   int       // how often presence came back
	again   bool      // it is sent again after the pause

	mu    sync.Mutex
	inbox []c2s.Stanza
	stir  chan struct{} // has room for one
}

// Run has one session. In the modes Once and Pushed it returns when all is done;
// in the mode Live when the context is done, with its error, or the connection
// has ended, or, without one, when the pass phrase was changed elsewhere. Whatever
// comes of it, what a person changed is kept.
//
// ErrTampered and ErrConflict are no errors of Run: see [Device.Tampered] and
// [Device.Conflicts].
func (d *Device) Run(ctx context.Context, dial Dial, mode Mode) (err error) {
	s := &session{Device: d, mode: mode, heardOf: time.Now(), stir: make(chan struct{}, 1)}
	s.stream, err = dial(ctx, s.take)
	if err != nil {
		return err
	}
	defer func() {
		if bad := s.end(); bad != nil && (err == nil || bad.Error() != err.Error()) { // a full disk is told once
			err = errors.Join(err, bad)
		}
	}()
	d.r.Disconnected()
	if mode != Once { // the service tells whoever it knows that it was away
		if err := s.announce(); err != nil {
			return err
		}
	}
	return s.loop(ctx)
}

// end keeps what came. A session that ends in the middle of a sync goes on there.
func (s *session) end() error {
	_ = s.stream.Close() // what matters is on the disk
	s.r.Disconnected()
	return s.save()
}

// take puts a stanza into the inbox.
func (s *session) take(stanza c2s.Stanza) bool {
	request := stanza.Name == "iq" && (stanza.Type == "get" || stanza.Type == "set")
	if request && !s.fromService(stanza.From) {
		return false // nobody else gets an answer
	}
	s.mu.Lock()
	s.inbox = append(s.inbox, stanza)
	s.mu.Unlock()
	select {
	case s.stir <- struct{}{}:
	default:
	}
	return true
}

func (s *session) fromService(from string) bool { return strings.EqualFold(from, s.Service) }

func (s *session) loop(ctx context.Context) error {
	for {
		if err := s.work(); err != nil {
			return err
		}
		if s.idle && (s.mode != Live || errors.Is(s.locked, ErrPassPhraseChanged)) {
			return nil // Live too: of what comes now nothing can be shown
		}
		timer := time.NewTimer(s.wait())
		select {
		case <-s.stir:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-s.stream.Done():
			timer.Stop()
			if err := s.work(); err != nil { // what came before the end
				return err
			}
			return s.stream.Err()
		}
		timer.Stop()
	}
}

// wait is how long nothing has to be done, unless something comes.
func (s *session) wait() time.Duration {
	switch {
	case s.id != "" || s.r.Downloading():
		return time.Until(s.since.Add(answerTimeout))
	case !s.later.IsZero():
		return time.Until(s.later)
	}
	return time.Until(s.heardOf.Add(quietMost))
}

// work takes in all that came, does what the replica waits for, and asks on.
func (s *session) work() error {
	for {
		s.mu.Lock()
		inbox := s.inbox
		s.inbox = nil
		s.mu.Unlock()
		if len(inbox) > 0 {
			s.heardOf = time.Now()
		}
		for _, stanza := range inbox {
			if err := s.handle(stanza); err != nil {
				return err
			}
		}
		if len(inbox) == 0 {
			break
		}
	}
	if (s.id != "" || s.r.Downloading()) && time.Since(s.since) >= answerTimeout {
		if !s.r.Downloading() {
			return ErrNoAnswer
		}
		s.r.Stalled()
	}
	if !s.later.IsZero() {
		if time.Now().Before(s.later) {
			return nil
		}
		s.later = time.Time{}
		s.r.Again()
		if s.again {
			s.again = false
			if err := s.announce(); err != nil {
				return err
			}
		}
	}
	if s.id != "" || s.r.Downloading() {
		return nil
	}
	return s.ask()
}

// ask sends the next request, if there is one.
func (s *session) ask() error {
	if s.joining && s.synced {
		if err := s.join(); err != nil {
			return err
		}
	}
	if err := s.care(); err != nil {
		return err
	}
	if err := s.mayOffer(); err != nil {
		return err
	}
	op := s.r.Ask()
	s.idle = op == nil
	if op == nil {
		if s.r.PutOff() {
			s.idle = false
			return s.pause(0)
		}
		if s.mode == Live && time.Since(s.heardOf) >= quietMost {
			return s.put(wire.Ping{})
		}
		return nil
	}
	sync, isSync := op.(pep.Sync)
	if !isSync {
		s.start = ""
		if err := s.save(); err != nil {
			return err
		}
		return s.put(op)
	}
	return s.askSync(sync)
}

// mayOffer holds back what was changed where there is no vault any more: a record
// without the vault's keys would be of use to nobody.
func (s *session) mayOffer() error {
	switch {
	case !s.synced || s.joining:
		return nil
	case s.locked != nil && !errors.Is(s.locked, ErrPassPhraseChanged):
		return nil // it waits: see care
	case len(s.r.Records()) == 0 && !s.offersKey():
		return ErrNoVault
	}
	return nil
}

// askSync asks for the next page, or has the service push all that follow.
func (s *session) askSync(op pep.Sync) error {
	if s.start == "" {
		s.start = op.Cursor
		if next, err := s.replay(op); err != nil || next == nil {
			return err
		} else {
			op = *next
		}
	}
	if s.astray != "" && op.Cursor == s.astray {
		op.Cursor = pep.NoCursor
		return s.put(op)
	}
	if s.mode == Pushed {
		if download, ok := s.r.Pushed(rand.Text()); ok {
			s.begun, s.came = pep.DownloadBegun{}, 0
			return s.put(download)
		}
	}
	return s.put(op)
}

func (s *session) put(call wire.Call) error {
	s.id, s.call, s.since = rand.Text(), call, time.Now()
	s.Logger.Debug("asks", "what", fmt.Sprintf("%T", call))
	return s.send(wire.AppendRequest(nil, wire.Header{To: s.Service, ID: s.id}, call))
}

func (s *session) send(raw []byte) error { return s.stream.Send(raw) }

// pause has nothing asked for a while.
func (s *session) pause(seconds int) error {
	s.pauses++
	if s.mode != Live && s.pauses > pausesMost {
		if s.said != nil {
			return fmt.Errorf("%w: it answers %w", ErrNotNow, s.said)
		}
		return ErrNotNow
	}
	least := pauseLeast * time.Duration(min(s.pauses, 30))
	s.later = time.Now().Add(max(least, time.Duration(seconds)*time.Second))
	return nil
}

// info is what the device says of itself: events of this vault, by states.
func (s *session) info() wire.Info {
	return wire.Info{
		Identities: []wire.Identity{{Category: "client", Type: "console", Name: "pepvault-device"}},
		Features:   []string{"http://jabber.org/protocol/disco#info", s.Node + "+notify", "urn:pepvault:sync:0"},
	}
}

// announce sends directed presence: no other makes this resource available, so no
// chat message comes here (PROTOCOL §6).
func (s *session) announce() error {
	return s.send(wire.AppendAnnouncement(nil, "", s.Service, "urn:pepvault:device:0", s.info()))
}

// page notes what a page tells beside its changes, before the replica takes it.
func (s *session) page(p *pep.SyncPage) {
	if s.astray != "" && p.First && p.Reset != vault.NoReset {
		// The service knows nothing of what this device knows.
		p.Reset, p.Fork = vault.ResetLost, 0
	}
	if p.Reset == vault.ResetLost || p.Reset == vault.ResetEnded {
		s.other = true
	}
	s.back = s.back || p.Reset == vault.ResetLost
}

// paged keeps a page that others follow, and ends the sync with the last one.
func (s *session) paged(p pep.SyncPage) error {
	if p.More {
		return s.keepPage(p)
	}
	s.start, s.synced, s.astray = "", true, ""
	if err := s.keepLook(); err != nil {
		return err
	}
	return s.Store.DropPass()
}

// refused takes in that the service refused a request.
func (s *session) refused(err *wire.StanzaError) error {
	call := s.call
	s.Logger.Debug("is refused", "what", fmt.Sprintf("%T", call), slog.String("why", err.Error()))
	_, syncs := call.(pep.Sync)
	_, downloads := call.(pep.Download)
	switch {
	case err.Type == "wait":
		s.r.Refused(err)
		s.start, s.said = "", err
		return s.pause(err.RetryAfter)
	case (syncs || downloads) && err.Condition == "bad-request" && s.astray == "" && s.start != "" && s.start != pep.NoCursor:
		s.astray = s.start
		s.r.Refused(err)
		s.start = ""
		return s.Store.DropPass()
	case syncs || downloads:
		s.r.Refused(err)
		return fmt.Errorf("%w: %s answers %w", ErrRefused, s.Service, err)
	}
	s.noteRefusal(call, err)
	s.r.Refused(err)
	return s.save()
}
