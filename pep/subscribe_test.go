package pep_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// A member subscribes at the owner's explicit address; all of that ends with
// its right to read, and to a stranger there is nothing to unsubscribe from.
func TestSubscribeToAnothersVault(t *testing.T) {
	t.Parallel()
	for _, jid := range []string{carols, string(carol)} {
		t.Run(jid, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.makeVaults("notes")
			subscribe := func(node string) error {
				_, err := w.askOf(carols, alice, pep.Subscribe{Node: node, JID: jid})
				return err
			}
			unsubscribe := func(node string) error {
				_, err := w.askOf(carols, alice, pep.Unsubscribe{Node: node, JID: jid})
				return err
			}
			w.Arrive(presence(carols, alice, noCaps))
			for _, node := range []string{"notes", "absent"} {
				refused(t, subscribe(node), pep.ErrClosedNode)
				refused(t, unsubscribe(node), pep.ErrClosedNode)
			}
			w.grant(carol, "member")
			refused(t, unsubscribe("notes"), pep.ErrNotSubscribed)
			for range 2 {
				if err := subscribe("notes"); err != nil {
					t.Fatal(err)
				}
			}
			equal(t, "subscribed", told(w.must(laptop, publish("a"))), []string{carols})
			for _, is := range []string{"publisher", "member"} {
				w.grant(carol, is)
				equal(t, "still subscribed as "+is, told(w.must(laptop, publish("a"))), []string{carols})
			}
			for _, is := range []string{"outcast", "none"} {
				w.grant(carol, is)
				equal(t, "after "+is, told(w.must(laptop, publish("a"))), []string{})
				refused(t, unsubscribe("notes"), pep.ErrClosedNode)
			}
			w.grant(carol, "member")
			equal(t, "a member again", told(w.must(laptop, publish("a"))), []string{})
			if err := errors.Join(subscribe("notes"), unsubscribe("notes")); err != nil {
				t.Error(err)
			}
			equal(t, "unsubscribed", told(w.must(laptop, publish("a"))), []string{})
		})
	}
}

// A full JID is subscribed to the vaults of an owner who was told of its
// presence, and for as long as that lasts.
func TestFullJIDNeedsPresenceToTheOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.makeVaults("notes")
	w.grant(carol, "member")
	op := pep.Subscribe{Node: "notes", JID: carols}
	w.arrive(carols) // to her own vaults
	_, err := w.askOf(carols, alice, op)
	refused(t, err, pep.ErrPresenceRequired)
	w.Arrive(presence(carols, alice, noCaps))
	if _, err = w.askOf(carols, alice, op); err != nil {
		t.Fatal(err)
	}
	w.Absent(device(carols), carol)
	equal(t, "gone from her own", told(w.must(laptop, publish("a"))), []string{carols})
	w.Arrive(presence(carols, carol, noCaps))
	w.Absent(device(carols), alice)
	equal(t, "gone from alice's", told(w.must(laptop, publish("a"))), []string{})
	w.Arrive(presence(carols, alice, noCaps))
	equal(t, "there for alice again", told(w.must(laptop, publish("a"))), []string{})
}

// However many ask at once, a vault has no more subscriptions than it may.
func TestSubscriptionsAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { o.Limits.Resources, o.Limits.Subscriptions = 64, 8 })
	w.makeVaults("notes")
	var granted, denied atomic.Int32
	var group sync.WaitGroup
	for n := range 64 {
		s := device(fmt.Sprintf("alice@localhost/%d", n))
		w.Arrive(presence(s.Address, alice, noCaps))
		group.Go(func() {
			req := pep.Request{Sender: s, Owner: alice, Op: pep.Subscribe{Node: "notes", JID: s.Address}}
			err := w.Do(context.Background(), req, func(pep.Outcome) { granted.Add(1) })
			switch {
			case errors.Is(err, pep.ErrTooManySubscriptions):
				denied.Add(1)
			case err != nil:
				t.Error(err)
			}
		})
	}
	group.Wait()
	equal(t, "granted", granted.Load(), int32(8))
	equal(t, "denied", denied.Load(), int32(56))
	equal(t, "told", len(told(w.must(laptop, publish("a")))), 8)
}

// An account that erases its data is forgotten everywhere.
func TestErasedAccountIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.makeVaults("notes")
	w.grant(carol, "member")
	w.announce(laptop, alice, hashOne, notes())
	w.announce(carols, alice, hashOne, notes())
	w.announce(carols2, carol, hashOne, notes())
	w.announce(carols2, alice, hashOne, notes())
	w.remembering(func(err error) { t.Error(err) })()
	if err := w.Erase(t.Context(), alice, func(pep.Outcome) {}); err != nil {
		t.Fatal(err)
	}
	w.remembering(func(err error) { t.Error(err) })()
	equal(t, "known", len(w.Known()), 1)
	stored := resources(t, w.store)
	if len(stored) != 1 || stored[0].Address != carols2 {
		t.Fatalf("stored: %+v", stored)
	}
	equal(t, "for whom she is there", stored[0].Owners, []vault.Account{carol})
}
