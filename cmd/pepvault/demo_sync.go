package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// catchUp shows what a device needs that was away: no more than has changed.
// And that it can't overwrite by accident what it has not seen.
func (s *story) catchUp(ctx context.Context, laptop, phone *demoDevice) error {
	held, _, err := s.sync(ctx, phone, pep.NoCursor)
	if err != nil {
		return err
	}
	s.say("phone looks away")
	if _, err := s.save(ctx, laptop, "login-7", 2); err != nil {
		return err
	}
	if _, err := ask[pep.Retracted](ctx, laptop, pep.Retract{Node: demoNode, IDs: []string{"login-8"}}); err != nil {
		return err
	}
	s.say("laptop removed login-8")
	if err := s.conflict(ctx, phone, held); err != nil {
		return err
	}

	began := time.Now()
	_, changes, err := s.sync(ctx, phone, held)
	if err != nil {
		return err
	}
	if len(changes) != 2 || changes[0].ID != "login-7" || changes[1].ID != "login-8" || !changes[1].Gone {
		return fmt.Errorf("phone was told of %d changes, not of the two that it missed", len(changes))
	}
	s.say("phone caught up in %s: 1 record and 1 removal instead of %d records", took(began), demoRecords-1)
	return nil
}

// sync brings a device from a cursor to now.
func (s *story) sync(ctx context.Context, d *demoDevice, cursor string) (now string, changes []vault.Change, err error) {
	for {
		page, err := ask[pep.SyncPage](ctx, d, pep.Sync{Node: demoNode, Cursor: cursor})
		if err != nil {
			return "", nil, err
		}
		changes = append(changes, page.Changes...)
		if cursor = page.Cursor; !page.More {
			return cursor, changes, nil
		}
	}
}

// conflict has a device save on top of what it last saw, which has changed.
func (s *story) conflict(ctx context.Context, d *demoDevice, held string) error {
	op := demoPublish("login-7", 2, []byte("sealed on the phone"))
	op.Expect = &pep.Expect{Cursor: held} // nothing has changed since
	_, err := ask[pep.Published](ctx, d, op)
	var refusal *wire.StanzaError
	if !errors.As(err, &refusal) || refusal.Cursor == "" {
		return fmt.Errorf("phone overwrote a record that it had not seen: %w", err)
	}
	s.say("phone saved login-7 too and was refused (%s): it has not seen laptop's yet", refusal.Condition)
	return nil
}
