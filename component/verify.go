package component

import (
	"context"
	"errors"
	"sync"
	"time"

	"pepvault/component/link"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// verifying is how many resources are asked at once whether they are still
// there; each waits for a device, not for us.
const verifying = 512

// verifier asks resources whether they are still there, since hosts never
// tell that one is gone (PROTOCOL §6). Its questions live as long as the
// connection that they were asked on.
type verifier struct {
	request Request
	timeout time.Duration

	asking sync.WaitGroup
	places chan struct{}
	// arrivals counts the presences that came: pep.Engine.Arrivals is one.
	arrivals func() uint64

	mu       sync.Mutex
	asked    map[string]*question // under way, by full JID
	attached context.Context      // nil while there is no connection
	detach   context.CancelFunc
	thinning map[vault.Account]bool // accounts that Service.thin is busy with
}

// question is one that a resource is asked. What it led to is set when done is
// closed.
type question struct {
	done     chan struct{}
	answer   link.Stanza
	err      error
	arrivals uint64 // when it was asked: a presence behind that is of who may not have got it
}

// begin opens the time in which questions may be asked.
func (v *verifier) begin(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.attached, v.detach = context.WithCancel(ctx)
}

// end closes it, and waits until all questions are given up.
func (v *verifier) end() {
	v.mu.Lock()
	if v.attached != nil {
		v.detach()
		v.attached = nil
	}
	v.mu.Unlock()
	v.asking.Wait()
}

// run has f called beside everything else; false if there is no connection.
func (v *verifier) run(f func(ctx context.Context)) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.attached == nil {
		return false
	}
	ctx := v.attached
	v.asking.Go(func() { f(ctx) })
	return true
}

// ask asks one resource what it is (disco#info), unless it is being asked
// already: then it waits for that answer, which may be about another node, and
// mine is false. The errors in it are those of Request.
func (v *verifier) ask(ctx context.Context, address, node string) (_ question, mine bool) {
	v.mu.Lock()
	q, asked := v.asked[address]
	if !asked {
		q = &question{done: make(chan struct{}), err: context.Canceled}
		v.asked[address] = q
	}
	v.mu.Unlock()
	if asked {
		select {
		case <-q.done:
			return *q, false
		case <-ctx.Done():
			return question{err: context.Cause(ctx)}, false
		}
	}
	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.asked, address)
		close(q.done)
	}()
	select {
	case v.places <- struct{}{}:
		defer func() { <-v.places }()
	case <-ctx.Done():
		return question{err: context.Cause(ctx)}, true
	}
	q.arrivals = v.arrivals()
	kind, payload := wire.AskInfo(node)
	q.answer, q.err = v.request(ctx, kind, address, payload, v.timeout)
	return *q, true
}

// there asks one resource whether it is there. known is false if the question
// could not be asked or the connection ended first.
func (v *verifier) there(ctx context.Context, address string) (q question, alive, known bool) {
	for {
		q, mine := v.ask(ctx, address, "")
		switch {
		case errors.Is(q.err, link.ErrNoAnswer):
			return q, false, true // silence
		case q.err != nil:
			return q, false, false
		case q.answer.Type == "result":
			return q, true, true
		case mine:
			return q, false, true
		}
		// Somebody asked about a node: that it has none says nothing.
	}
}

// verifyAll asks resources after a handshake: those that are there are told
// where their vaults stand, the others are forgotten.
func (s *Service) verifyAll(ctx context.Context, resources []pep.Sender) {
	for _, known := range resources {
		if s.writer.Room(ctx) != nil {
			return
		}
		s.sendPresence("", s.addresses.service, known.Address)
		s.beside(func(ctx context.Context) {
			if there, learned := s.verify(ctx, known); there {
				s.tellStates(ctx, known) // all of them, also what it has just learned of
				s.ask(learned.Ask)
			}
		})
	}
}

// VerifyUnseen asks the resources that were not heard of since a time, and
// forgets those that are gone. It does not wait for their answers.
func (s *Service) VerifyUnseen(since time.Time) {
	for _, unseen := range s.engine.Unseen(since) {
		s.beside(func(ctx context.Context) {
			_, learned := s.verify(ctx, unseen)
			s.follow(ctx, learned)
		})
	}
}

// verify asks a resource whether it is there, and forgets it if it is not. Its
// answer also says what it can do. A presence that came meanwhile counts: it is
// of a session that was not asked.
func (s *Service) verify(ctx context.Context, r pep.Sender) (there bool, learned pep.Learned) {
	q, alive, certain := s.verifier.there(ctx, r.Address)
	switch {
	case alive:
		s.engine.Heard(r)
		if info, ok := decodeInfo(q.answer); ok {
			learned = s.engine.Learn(r, pep.CapsHash{}, info.Announced(), false)
		}
	case certain:
		return s.unanswered(r, q), learned
	}
	return alive, learned
}

// unanswered forgets a resource that did not answer a question, unless it came
// back since: then kept is true.
func (s *Service) unanswered(r pep.Sender, q question) (kept bool) {
	if kept = s.engine.LeaveSince(r, q.arrivals); !kept {
		s.downloads.endOf(r.Account, r.Resource, "")
	}
	return kept
}

func (s *Service) tellStates(ctx context.Context, to pep.Sender) {
	defer s.guard()
	err := s.engine.States(ctx, to, func(notices []pep.Notice) {
		defer s.guard() // this may be the store's commit loop
		s.notify(notices)
	})
	if err != nil {
		s.note(err)
	}
}

// beside is verifier.run with a guard.
func (s *Service) beside(f func(ctx context.Context)) bool {
	return s.verifier.run(func(ctx context.Context) {
		defer s.guard()
		f(ctx)
	})
}

// thin brings a crowded account back to its bound: the resource that was
// heard of longest ago is asked, and forgotten if it is gone. If it is there
// it is forgotten too, but told so, unless it came back meanwhile: then another
// one is the next.
func (s *Service) thin(ctx context.Context, account vault.Account) {
	if !s.verifier.claim(account) {
		return
	}
	defer s.verifier.unclaim(account)
	for {
		stale, crowded := s.engine.Stalest(account)
		if !crowded {
			return
		}
		q, alive, certain := s.verifier.there(ctx, stale.Address)
		switch {
		case !certain:
			return
		case !alive:
			s.unanswered(stale, q)
		case !s.engine.LeaveSince(stale, q.arrivals):
			s.sendPresence("unavailable", s.addresses.service, stale.Address)
		}
	}
}

func (v *verifier) claim(account vault.Account) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.thinning[account] {
		return false
	}
	v.thinning[account] = true
	return true
}

func (v *verifier) unclaim(account vault.Account) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.thinning, account)
}
