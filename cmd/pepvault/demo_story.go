package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

const (
	demoNode    = "urn:example:notes"
	demoRecords = 256 // the default size of a vault
)

// tell has the two devices at work, and checks every answer.
func (s *story) tell(ctx context.Context, laptop, phone *demoDevice) error {
	first, err := s.save(ctx, laptop, "login-1", 1)
	if err != nil {
		return err
	}
	if err := s.subscribe(ctx, phone); err != nil {
		return err
	}
	second, err := s.save(ctx, laptop, "login-2", 1)
	if err != nil {
		return err
	}
	if err := s.hear(ctx, phone, "login-2", second); err != nil {
		return err
	}
	if err := s.read(ctx, phone, "login-1", first); err != nil {
		return err
	}
	newer, err := s.save(ctx, phone, "login-1", 2)
	if err != nil {
		return err
	}
	if err := s.hear(ctx, phone, "login-1", newer); err != nil {
		return err
	}
	if err := s.read(ctx, laptop, "login-1", newer); err != nil {
		return err
	}
	if err := s.fill(ctx, laptop, phone); err != nil {
		return err
	}
	if err := s.catchUp(ctx, laptop, phone); err != nil {
		return err
	}
	if err := s.download(ctx, laptop, phone); err != nil {
		return err
	}
	s.say("all of it was right")
	return nil
}

// save stores random bytes, which is what a sealed record looks like.
func (s *story) save(ctx context.Context, d *demoDevice, id string, keyVersion uint32) ([]byte, error) {
	sealed := make([]byte, 924)
	_, _ = rand.Read(sealed) // never fails
	began := time.Now()
	if _, err := ask[pep.Published](ctx, d, demoPublish(id, keyVersion, sealed)); err != nil {
		return nil, err
	}
	s.say("%s saved %s: %d bytes of ciphertext, on disk after %s", d.name, id, len(sealed), took(began))
	return sealed, nil
}

func demoPublish(id string, keyVersion uint32, sealed []byte) pep.Publish {
	return pep.Publish{Node: demoNode, Items: []pep.Item{{
		ID: id, KeyVersion: keyVersion, Payload: vault.Payload{Form: vault.Native, Data: sealed},
	}}}
}

func (s *story) subscribe(ctx context.Context, d *demoDevice) error {
	if err := d.presence(); err != nil {
		return err
	}
	if _, err := ask[pep.Subscribed](ctx, d, pep.Subscribe{Node: demoNode, JID: d.jid}); err != nil {
		return err
	}
	s.say("%s listens to the vault", d.name)
	return nil
}

func (s *story) hear(ctx context.Context, d *demoDevice, id string, want []byte) error {
	began := time.Now()
	n, err := d.notification(ctx)
	if err != nil {
		return err
	}
	if n.Node != demoNode || len(n.Changes) != 1 || n.Changes[0].ID != id || !bytes.Equal(n.Changes[0].Payload.Data, want) || n.State == nil {
		return fmt.Errorf("%s heard of something else than the new %s", d.name, id)
	}
	s.say("%s was told of %s, ciphertext included, %s later", d.name, id, took(began))
	return nil
}

func (s *story) read(ctx context.Context, d *demoDevice, id string, want []byte) error {
	began := time.Now()
	page, err := ask[pep.ItemsPage](ctx, d, pep.Items{Node: demoNode, IDs: []string{id}})
	if err != nil {
		return err
	}
	if len(page.Records) != 1 || !bytes.Equal(page.Records[0].Payload.Data, want) {
		return fmt.Errorf("%s did not read back what was saved as %s", d.name, id)
	}
	s.say("%s read %s in %s: byte for byte what was saved, key version %d", d.name, id, took(began), page.Records[0].KeyVersion)
	return nil
}

// fill saves until the vault is full, and shows that a full vault keeps all
// that it has.
func (s *story) fill(ctx context.Context, laptop, phone *demoDevice) error {
	began := time.Now()
	for i := 3; i <= demoRecords; i++ {
		id := fmt.Sprintf("login-%d", i)
		if _, err := ask[pep.Published](ctx, laptop, demoPublish(id, 2, []byte("sealed "+id))); err != nil {
			return err
		}
		if _, err := phone.notification(ctx); err != nil {
			return err
		}
	}
	s.say("laptop saved %d more, phone was told of each: %s", demoRecords-2, took(began))

	_, err := ask[pep.Published](ctx, laptop, demoPublish("one-too-many", 2, []byte("sealed")))
	var refusal *wire.StanzaError
	if !errors.As(err, &refusal) || refusal.Pubsub != "node-full" {
		return fmt.Errorf("record %d was not refused as it should be: %w", demoRecords+1, err)
	}
	s.say("record %d was refused (%s, %s): a full vault drops nothing", demoRecords+1, refusal.Condition, refusal.Pubsub)
	if _, err := s.save(ctx, laptop, "login-2", 2); err != nil {
		return err
	}

	began = time.Now()
	page, err := ask[pep.ItemsPage](ctx, phone, pep.Items{Node: demoNode})
	if err != nil {
		return err
	}
	if len(page.Records) != demoRecords || page.Records[demoRecords-1].ID != "login-2" {
		return fmt.Errorf("phone read %d records, not the %d that are there", len(page.Records), demoRecords)
	}
	s.say("phone read the whole vault, %d records, in %s", len(page.Records), took(began))
	return nil
}

// ask has a device ask, and reads the answer as A.
func ask[A any](ctx context.Context, d *demoDevice, call wire.Call) (A, error) {
	var none A
	answer, err := d.ask(ctx, call)
	if err != nil {
		return none, fmt.Errorf("%s: %w", d.name, err)
	}
	a, ok := answer.(A)
	if !ok {
		return none, fmt.Errorf("%s: the answer is a %T", d.name, answer)
	}
	return a, nil
}

func took(began time.Time) string {
	return fmt.Sprintf("%.1f ms", float64(time.Since(began).Microseconds())/1000)
}
