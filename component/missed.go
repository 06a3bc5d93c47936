package component

import (
	"context"
	"sync"
)

// missed are the full JIDs for which there was no room for an event: they are
// told where their vaults stand as soon as there is, since nothing else might
// follow that shows them the gap. It holds no more than resources are known.
type missed struct {
	mu        sync.Mutex
	resources map[string]bool
}

func (m *missed) add(address string) (isNew bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	isNew = !m.resources[address]
	m.resources[address] = true
	return isNew
}

func (m *missed) remove(address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.resources, address)
}

// catchUp has a resource told later what it could not be told now. It does
// not block.
func (s *Service) catchUp(address string) {
	to, err := s.addresses.from(address)
	if err != nil || to.sender.Resource == "" || !s.missed.add(address) {
		return
	}
	if !s.beside(func(ctx context.Context) {
		err := s.writer.Room(ctx)
		s.missed.remove(address) // what is missed from now on counts anew
		if err == nil {
			s.tellStates(ctx, to.sender)
		}
	}) {
		s.missed.remove(address) // all are told when the host is back
	}
}
