package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"pepvault/bench/fleet"
	"pepvault/pep/wire"
)

// cleanUpTimeout bounds the deletion of a run's vaults.
const cleanUpTimeout = time.Minute

// made are the vaults that a run has made, so that it deletes no other.
type made struct {
	mu   sync.Mutex
	byID map[int][]int // by the user's number of all: the targets
}

func (m *made) add(user, target int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byID == nil {
		m.byID = make(map[int][]int)
	}
	m.byID[user] = append(m.byID[user], target)
}

// prepareVault makes a user's vault; first is the number of the fleet's first
// user.
func (r *run) prepareVault(ctx context.Context, d *fleet.Device, first, target int) error {
	err := d.Prepare(ctx, target)
	var refusal *wire.StanzaError
	switch {
	case err == nil:
		r.made.add(first+d.User, target)
	case errors.As(err, &refusal) && refusal.Condition == "conflict":
		return fmt.Errorf("the vault %s exists already, and a run needs one of its own: delete it, or use other accounts: %w", fleet.Node, err)
	}
	return err
}

// cleanUp deletes what the run has made on a server that goes on. It works
// after an interruption, too.
func (r *run) cleanUp(ctx context.Context) {
	r.fleet.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	shape := r.shape
	shape.Users, shape.Devices = shape.Users+1, 1 // with the probe of a storm
	f := fleet.New(fleet.Options{Shape: shape, Host: r.Host, Targets: r.Targets, UserPrefix: r.UserPrefix})
	defer f.Close()
	err := f.EachUser(ctx, connectWidth, func(ctx context.Context, d *fleet.Device) error {
		targets := r.made.byID[d.User]
		if len(targets) == 0 {
			return nil
		}
		if err := d.Connect(ctx); err != nil {
			return err
		}
		for _, target := range targets {
			if err := d.Remove(ctx, target); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.Say("vaults of the run are left on the server: %v", err)
	}
}
