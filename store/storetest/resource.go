package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"pepvault/vault"
)

func testResources(f *fixture) {
	phone := vault.Resource{Account: alice, Name: "phone", Address: "Alice@example.org/phone", Seen: at,
		Owners: []vault.Account{alice, bob}, Vaults: []vault.Key{notes, tasks, {Account: bob, Node: "far"}}, Caps: "sha-256:AAAA"}
	laptop := vault.Resource{Account: alice, Name: "laptop", Address: "alice@example.org/laptop", Seen: at}
	other := vault.Resource{Account: bob, Name: "phone", Address: "bob@example.org/phone", Seen: at}
	f.update(func(tx vault.Tx) error {
		for _, r := range []vault.Resource{other, phone, laptop} {
			if err := tx.KeepResource(r); err != nil {
				return err
			}
		}
		return nil
	})
	f.wantResources("kept", laptop, phone, other)
	phone.Seen, phone.Owners, phone.Vaults, phone.Caps = at.Add(time.Hour), nil, nil, ""
	f.update(func(tx vault.Tx) error { return tx.KeepResource(phone) })
	f.wantResources("replaced", laptop, phone, other)
	f.reopen()
	f.wantResources("reopened", laptop, phone, other)
	f.update(func(tx vault.Tx) error {
		if err := tx.DropResource(alice, "phone"); err != nil {
			return err
		}
		return tx.DropResource(alice, "never there")
	})
	f.wantResources("dropped", laptop, other)
	// Resources are not part of any vault.
	f.update(func(tx vault.Tx) error {
		if _, err := tx.Create(notes, vault.Config{}); err != nil {
			return err
		}
		return tx.Delete(notes)
	})
	f.wantResources("after a vault was deleted", laptop, other)
	f.update(func(tx vault.Tx) error { return tx.KeepResource(phone) })
	f.update(func(tx vault.Tx) error { return tx.ForgetResources(alice) })
	f.wantResources("forgotten", other)
	f.reopen()
	f.wantResources("forgotten for good", other)
}

func (f *fixture) wantResources(when string, want ...vault.Resource) {
	f.Helper()
	got := look(f, func(v vault.View) ([]vault.Resource, error) { return v.Resources() })
	if diff := cmp.Diff(want, got, same); diff != "" {
		f.Errorf("resources, %s (-want +got):\n%s", when, diff)
	}
}
