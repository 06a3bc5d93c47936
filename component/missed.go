package component

import (
	"context"
	"sync"

	"pepvault/pep"
	"pepvault/vault"
)

// missed are the addresses for which there was no room for an event: they are
// told where their vaults stand as soon as there is, since nothing else might
// follow that shows them the gap. It holds no more than there are known
// resources and stored subscriptions.
type missed struct {
	mu        sync.Mutex
	addresses map[missing]bool
}

// missing is who is to be told what later: a resource of all its vaults, a
// bare JID of one.
type missing struct {
	address string
	bare    vault.Key
}

func (m *missed) add(what missing) (isNew bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	isNew = !m.addresses[what]
	m.addresses[what] = true
	return isNew
}

func (m *missed) remove(what missing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.addresses, what)
}

func (m *missed) all() (list []missing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for what := range m.addresses {
		list = append(list, what)
	}
	return list
}

// catchUp has somebody told later what could not be told now. It does not
// block.
func (s *Service) catchUp(n pep.Notice) {
	what := missing{address: n.To}
	if _, resource := vault.SplitAddress(n.To); resource == "" {
		what.bare = vault.Key{Account: n.Event.Owner, Node: n.Event.Node}
	}
	if s.missed.add(what) {
		s.tellLater(what)
	}
}

// tellLater waits for room. Without a host, or when it leaves, a bare JID stays
// noted for the next connection; known resources are told then anyway.
func (s *Service) tellLater(what missing) {
	waits := s.beside(func(ctx context.Context) {
		if s.writer.Room(ctx) == nil {
			s.missed.remove(what) // what is missed from now on counts anew
			s.tell(ctx, what)
		} else if what.bare == (vault.Key{}) {
			s.missed.remove(what)
		}
	})
	if !waits && what.bare == (vault.Key{}) {
		s.missed.remove(what)
	}
}

func (s *Service) tell(ctx context.Context, what missing) {
	to, err := s.addresses.from(what.address)
	switch {
	case err != nil:
	case what.bare == (vault.Key{}):
		s.tellStates(ctx, to.sender)
	default:
		s.tellBare(ctx, to.sender.Account, what.bare)
	}
}

func (s *Service) tellBare(ctx context.Context, account vault.Account, key vault.Key) {
	defer s.guard()
	err := s.engine.BareState(ctx, account, key, func(notices []pep.Notice) {
		defer s.guard() // this may be the store's commit loop
		s.notify(notices)
	})
	if err != nil {
		s.note(err)
	}
}
