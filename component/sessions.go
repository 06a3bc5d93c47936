package component

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"pepvault/pep/wire"
	"pepvault/vault"
)

const (
	// sessionTime is how long an operator may take for a command.
	sessionTime = 10 * time.Minute
	// maxSessions bounds the commands under way; then the oldest ends.
	maxSessions = 64
)

// session is a command of more than one step that somebody is busy with
// (XEP-0050 §3.4).
type session struct {
	id     string
	node   string
	by     vault.Account
	began  time.Time
	target vault.Account // "" = not named yet
}

type sessions struct {
	mu  sync.Mutex
	all []*session // in the order in which they began
}

func (s *sessions) begin(node string, by vault.Account, now time.Time) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.all) > 0 && (len(s.all) >= maxSessions || now.Sub(s.all[0].began) > 2*sessionTime) {
		s.all = slices.Delete(s.all, 0, 1)
	}
	begun := &session{id: rand.Text(), node: node, by: by, began: now}
	s.all = append(s.all, begun)
	return begun
}

// find returns the session of that id, if it is somebody's own of that command.
// One account's requests come one after the other, so nobody else changes it.
func (s *sessions) find(id, node string, by vault.Account, now time.Time) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, found := range s.all {
		switch {
		case found.id != id:
		case found.node != node || found.by != by:
			return nil, wire.ErrBadSession
		case now.Sub(found.began) > sessionTime:
			return nil, wire.ErrSessionExpired
		default:
			return found, nil
		}
	}
	return nil, wire.ErrBadSession
}

func (s *sessions) end(ended *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(one *session) bool { return one == ended })
}
