package pep_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// erase carries out an erasure.
func (w *world) erase(account vault.Account) pep.Outcome {
	w.t.Helper()
	var outs []pep.Outcome
	if err := w.Erase(w.t.Context(), account, func(out pep.Outcome) { outs = append(outs, out) }); err != nil || len(outs) != 1 {
		w.t.Fatalf("done was called %d times, and Erase returned %v", len(outs), err)
	}
	return outs[0]
}

// C43, PROTOCOL §10: nothing of an account is left, and everybody concerned
// hears of it first.
func TestErase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b"))
	w.must(laptop, pep.Publish{Node: "other", Items: []pep.Item{item("c", "x")}})
	w.here(laptop)
	w.must(laptop, pep.Subscribe{Node: "notes", JID: laptop})
	w.affiliate("notes", "member")
	if !w.works(mallory, alice, pep.Subscribe{Node: "notes", JID: "mallory@localhost"}) {
		t.Fatal("a member can't subscribe")
	}
	w.must(mallory, pep.Create{Node: "hers"})
	w.must(mallory, pep.SetAffiliations{Node: "hers", Changes: []pep.AffiliationChange{{JID: string(alice), Affiliation: "publisher"}}})
	if !w.works(laptop, "mallory@localhost", pep.Subscribe{Node: "hers", JID: string(alice)}) {
		t.Fatal("a publisher can't subscribe")
	}
	usage, err := w.Usage(t.Context(), alice)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "usage", usage, vault.Usage{Vaults: 2, Records: 3, Bytes: 19})
	old := w.vault(laptop, "notes").Epoch

	_, err = w.askOf(mallory, alice, pep.Erase{})
	refused(t, err, pep.ErrForbidden)

	out := w.must(laptop, pep.Erase{})
	equal(t, "answer", out.Answer, pep.Answer(pep.Erased{Vaults: 2, Records: 3}))
	to := []string{}
	for _, n := range out.Notices {
		to = append(to, n.To)
		if !n.Event.Deleted || n.Event.Node != "notes" || n.Event.State.Cursor != "" || n.Event.State.Previous == pep.NoCursor {
			t.Errorf("%s is told %+v", n.To, n.Event)
		}
	}
	slices.Sort(to)
	equal(t, "told", to, []string{laptop, "mallory@localhost"})
	equal(t, "known resources", len(w.Known()), 0)
	if usage, err = w.Usage(t.Context(), alice); err != nil || usage != (vault.Usage{}) {
		t.Errorf("usage after the erasure is %+v, %v", usage, err)
	}
	equal(t, "told of Mallory's vault", len(w.must(mallory, pep.Publish{Node: "hers", Items: []pep.Item{item("a", "x")}}).Notices), 0)
	_, err = w.askOf(laptop, "mallory@localhost", pep.Items{Node: "hers"})
	refused(t, err, pep.ErrClosedNode)

	equal(t, "answer to a second erasure", w.erase(alice).Answer, pep.Answer(pep.Erased{}))
	w.must(laptop, publish("a"))
	if w.vault(laptop, "notes").Epoch == old {
		t.Error("a later account of that name has the old history")
	}
}

// An erasure that meets writers: what is told of each vault is a chain, in
// which each erasure ends a history and the next publish begins one.
func TestEraseBesideWriters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { many(o); o.Limits.Vaults = 1000 })
	const nodes, rounds = 12, 8
	names := map[string]int{}
	var wanted []string
	var last [nodes]string // cursor of each vault, as told: one at a time for a vault
	for i := range nodes {
		name := fmt.Sprint("n", i)
		names[name], last[i] = i, pep.NoCursor
		wanted = append(wanted, name)
	}
	note := func(s *pep.State) {
		i := names[s.Node]
		if s.Previous != last[i] {
			t.Errorf("%s went from %q, was told at %q", s.Node, s.Previous, last[i])
		}
		if last[i] = s.Cursor; s.Cursor == "" {
			last[i] = pep.NoCursor
		}
	}
	var writers sync.WaitGroup
	for i := range nodes {
		writers.Go(func() {
			for range rounds {
				op := pep.Publish{Node: fmt.Sprint("n", i), Items: []pep.Item{item("a", "x")}, State: true}
				err := w.Do(context.Background(), pep.Request{Sender: device(phone), Owner: alice, Op: op}, func(out pep.Outcome) {
					note(out.Answer.(pep.Published).State)
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	caps := pep.CapsHash{Hash: "sha-1:all", Node: "urn:example#all"}
	erased := 0
	for range rounds {
		w.Arrive(pep.Presence{Sender: device(laptop), Owner: alice, Caps: []pep.CapsHash{caps}})
		w.Learn(device(laptop), caps, pep.Announced{Nodes: wanted}, true)
		err := w.Erase(t.Context(), alice, func(out pep.Outcome) {
			for _, n := range out.Notices {
				note(&n.Event.State)
			}
			erased += out.Answer.(pep.Erased).Vaults
			equal(t, "vaults told of", len(out.Notices), out.Answer.(pep.Erased).Vaults)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	writers.Wait()
	left, err := w.Usage(t.Context(), alice)
	if err != nil || left.Vaults+erased == 0 {
		t.Errorf("%d vaults were erased, %v left, %v", erased, left, err)
	}
	told := 0
	for i := range last {
		if last[i] != pep.NoCursor {
			told++
		}
	}
	equal(t, "vaults that are there, as told", told, left.Vaults)
}

// hooked is a store that tells when it is read, and when it has been read.
type hooked struct {
	vault.Store
	viewing         func() // nil: nobody is told
	viewed, glanced func()
}

func (h *hooked) View(ctx context.Context, fn func(vault.View) error) error {
	if h.viewing != nil {
		h.viewing()
	}
	err := h.Store.View(ctx, fn)
	h.viewed()
	return err
}

func (h *hooked) Glance(ctx context.Context, fn func(vault.View) error) error {
	err := h.Store.Glance(ctx, fn)
	h.glanced()
	return err
}

// A vault that is made while an erasure begins is erased too, and a read of it
// that was under way does not show it after it was told to be gone.
func TestEraseOfAVaultMadeMeanwhile(t *testing.T) {
	t.Parallel()
	h := &hooked{viewed: func() {}, glanced: func() {}}
	w := newWorld(t, func(o *pep.Options) { h.Store, o.Store = o.Store, h })
	w.must(laptop, publish("a"))
	late := pep.Items{Node: "late"}
	hasRead, erased, answer := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	h.viewed = func() {
		h.viewed = func() {}
		w.must(laptop, pep.Create{Node: late.Node})
		h.glanced = sync.OnceFunc(func() {
			close(hasRead)
			<-erased
		})
		go func() {
			answer <- w.Do(context.Background(), pep.Request{Sender: device(phone), Owner: alice, Op: late}, func(pep.Outcome) {})
		}()
		<-hasRead
	}
	equal(t, "answer", w.erase(alice).Answer, pep.Answer(pep.Erased{Vaults: 2, Records: 1}))
	close(erased)
	refused(t, <-answer, vault.ErrNoVault)
}
