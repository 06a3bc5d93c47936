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
	// request sends an IQ of ours and waits for its answer (link.Link.Request).
	request func(ctx context.Context, kind, to string, payload []byte) (link.Stanza, error)
	timeout time.Duration

	asking sync.WaitGroup
	places chan struct{}

	mu       sync.Mutex
	attached context.Context // nil while there is no connection
	detach   context.CancelFunc
	thinning map[vault.Account]bool // accounts that Service.thin is busy with
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

// there asks one resource. known is false if the question could not be asked
// or the connection ended first.
func (v *verifier) there(ctx context.Context, s pep.Sender) (alive, known bool) {
	select {
	case v.places <- struct{}{}:
		defer func() { <-v.places }()
	case <-ctx.Done():
		return false, false
	}
	limited, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	kind, payload := wire.Ask(pep.DescribeService{})
	answer, err := v.request(limited, kind, s.Address, payload)
	switch {
	case err == nil:
		return answer.Type == "result", true
	case errors.Is(err, context.DeadlineExceeded):
		return false, true // silence
	default:
		return false, false
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
			if s.verify(ctx, known) {
				s.tellStates(ctx, known)
			}
		})
	}
}

// VerifyUnseen asks the resources that were not heard of since a time, and
// forgets those that are gone. It does not wait for their answers.
func (s *Service) VerifyUnseen(since time.Time) {
	for _, unseen := range s.engine.Unseen(since) {
		s.beside(func(ctx context.Context) { s.verify(ctx, unseen) })
	}
}

// verify asks a resource whether it is there, and forgets it if it is not.
func (s *Service) verify(ctx context.Context, r pep.Sender) (alive bool) {
	alive, certain := s.verifier.there(ctx, r)
	switch {
	case alive:
		s.engine.Heard(r)
	case certain:
		s.engine.Leave(r.Account, r.Resource)
	}
	return alive
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

// arrived follows a directed presence up.
func (s *Service) arrived(ctx context.Context, sender pep.Sender, a pep.Arrival) {
	if a.Forgotten != "" {
		s.sendPresence("unavailable", s.addresses.service, a.Forgotten)
	}
	if a.Crowded {
		s.beside(func(ctx context.Context) { s.thin(ctx, sender.Account) })
	}
	if a.New {
		// In the turn of the account's requests: what it asks for next is
		// answered after this. If too many wait, the device asks by itself.
		s.queues.push(string(sender.Account), func() { s.tellStates(context.WithoutCancel(ctx), sender) })
	}
}

// thin brings a crowded account back to its bound: the resource that was
// heard of longest ago is asked, and forgotten if it is gone. If it is there
// it is forgotten too, but told so.
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
		alive, certain := s.verifier.there(ctx, stale)
		if !certain {
			return
		}
		s.engine.Leave(stale.Account, stale.Resource)
		if alive {
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
