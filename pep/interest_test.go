package pep_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

const (
	tablet  = "alice@localhost/tablet"
	carol   = vault.Account("carol@localhost")
	carols  = "carol@localhost/phone"
	carols2 = "carol@localhost/desk"
	noCaps  = ""
	hashOne = "sha-1:MQ=="
	hashTwo = "sha-1:Mg=="
)

// arrive has a device come to its own account's vaults without caps.
func (w *world) arrive(address string) pep.Arrival {
	sender := device(address)
	return w.Arrive(pep.Presence{Sender: sender, Owner: sender.Account, Silent: true})
}

// presence is that of a device with one hash.
func presence(address string, owner vault.Account, hash string) pep.Presence {
	p := pep.Presence{Sender: device(address), Owner: owner, Silent: hash == noCaps}
	if hash != noCaps {
		p.Caps = []pep.CapsHash{{Hash: hash, Node: "client#" + hash}}
	}
	return p
}

// announce has a device come with a hash, and answers what it is asked.
func (w *world) announce(address string, owner vault.Account, hash string, a pep.Announced) pep.Arrival {
	w.t.Helper()
	arrival := w.Arrive(presence(address, owner, hash))
	for _, q := range arrival.Ask {
		learned := w.Learn(q.To, q.Caps, a, true)
		if len(learned.Ask) > 0 {
			w.t.Errorf("a verified answer leads to %v", learned.Ask)
		}
	}
	return arrival
}

func notes(more ...string) pep.Announced { return pep.Announced{Nodes: append(more, "notes")} }

// greet has a device told what is new to it, as "node id,id past".
func (w *world) greet(address string) []string {
	w.t.Helper()
	return w.heard(func(tell func([]pep.Notice)) error { return w.Greet(w.t.Context(), device(address), tell) }, address)
}

func (w *world) states(address string) []string {
	w.t.Helper()
	return w.heard(func(tell func([]pep.Notice)) error { return w.States(w.t.Context(), device(address), tell) }, address)
}

func (w *world) heard(from func(func([]pep.Notice)) error, address string) []string {
	w.t.Helper()
	list := []string{}
	err := from(func(notices []pep.Notice) {
		for _, n := range notices {
			list = append(list, w.summary(n))
			if n.To != address || n.Account != device(address).Account {
				w.t.Errorf("the notice for %s goes to %s of %s", address, n.To, n.Account)
			}
		}
	})
	if err != nil {
		w.t.Error(err)
	}
	return list
}

// summary is a notice that tells where a vault stands.
func (w *world) summary(n pep.Notice) string {
	w.t.Helper()
	e := n.Event
	text := e.Node
	for _, c := range e.Changes {
		text += " " + c.ID
	}
	if e.Past {
		text += " past"
	}
	if e.Bare {
		text += " bare"
	}
	if e.Past != (len(e.Changes) == 1) || e.State.Previous != "" || e.State.Owner != e.Owner || n.StateOnly || n.Quiet {
		w.t.Errorf("%+v of %+v tells no state", n, e)
	}
	if _, err := w.store.CursorKey().Verify(e.State.Cursor); err != nil {
		w.t.Errorf("cursor %q: %v", e.State.Cursor, err)
	}
	return text
}

// grant makes an account what the name says to Alice's vault.
func (w *world) grant(account vault.Account, name string) {
	w.t.Helper()
	w.must(laptop, pep.SetAffiliations{Node: "notes", Changes: []pep.AffiliationChange{{JID: string(account), Affiliation: name}}})
}

// C07, C08, C11: who announced the node hears of every change in one copy, the
// publisher too; who did not hears nothing, and who announces something else
// hears nothing more.
func TestNotifyByCapabilities(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.announce(laptop, alice, hashOne, notes())
	w.announce(phone, alice, hashOne, notes())
	w.announce(tablet, alice, hashTwo, pep.Announced{Nodes: []string{"other"}})
	equal(t, "publish", told(w.must(laptop, publish("a"))), []string{laptop, phone})
	equal(t, "retract", told(w.must(laptop, pep.Retract{Node: "notes", IDs: []string{"a"}})), []string{laptop, phone})
	w.must(phone, pep.Subscribe{Node: "notes", JID: phone})
	w.must(phone, pep.Subscribe{Node: "notes", JID: string(alice)})
	equal(t, "one copy", told(w.must(laptop, publish("a"))), []string{laptop, phone, tablet})
	w.must(phone, pep.Unsubscribe{Node: "notes", JID: string(alice)})
	w.must(phone, pep.Unsubscribe{Node: "notes", JID: phone})

	w.announce(phone, alice, hashTwo, pep.Announced{})
	equal(t, "after other caps", told(w.must(laptop, publish("a"))), []string{laptop})
	w.announce(phone, alice, hashOne, pep.Announced{})
	equal(t, "after the first caps again", told(w.must(laptop, publish("a"))), []string{laptop, phone})
	w.arrive(phone)
	equal(t, "after presence without caps", told(w.must(laptop, publish("a"))), []string{laptop, phone})
	w.Absent(device(phone), alice)
	equal(t, "after unavailable", told(w.must(laptop, publish("a"))), []string{laptop})
}

func TestOnlyWhoFollowsStatesGetsThemAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.announce(laptop, alice, hashOne, pep.Announced{Nodes: []string{"notes"}, Sync: true})
	w.announce(phone, alice, hashTwo, notes())
	alone := func(op pep.Op) (list []string) {
		for _, n := range w.must(laptop, op).Notices {
			if n.StateOnly {
				list = append(list, n.To)
			}
		}
		return list
	}
	equal(t, "one change", alone(publish("a")), []string(nil))
	equal(t, "two changes", alone(publish("a", "b")), []string{laptop})
}

// A question is put once for a hash, however many announce it; its answer
// holds for all of them.
func TestOneQuestionForAHash(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	first := w.Arrive(presence(laptop, alice, hashOne))
	equal(t, "asked", first.Ask, []pep.Question{{To: device(laptop), Caps: pep.CapsHash{Hash: hashOne, Node: "client#" + hashOne}}})
	equal(t, "asked of the second", w.Arrive(presence(phone, alice, hashOne)).Ask, []pep.Question(nil))
	equal(t, "asked again meanwhile", w.Arrive(presence(laptop, alice, hashOne)).Ask, []pep.Question(nil))
	equal(t, "before the answer", told(w.must(laptop, publish("a"))), []string{})
	learned := w.Learn(device(laptop), first.Ask[0].Caps, notes(), true)
	equal(t, "who has to be greeted", learned, pep.Learned{Greet: []pep.Sender{device(phone), device(laptop)}})
	equal(t, "after the answer", told(w.must(laptop, publish("a"))), []string{phone, laptop})
	equal(t, "the third", w.Arrive(presence(tablet, alice, hashOne)), pep.Arrival{New: true, Greet: true})
	equal(t, "the first again", w.Arrive(presence(laptop, alice, hashOne)), pep.Arrival{})
}

// Who waits for the answer of another is asked itself when that fails, and a
// resource that did not answer is asked again when it comes again.
func TestQuestionsThatFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	q := w.Arrive(presence(tablet, alice, hashOne)).Ask[0]
	for _, d := range []string{laptop, phone} {
		equal(t, "asked while the tablet is", w.Arrive(presence(d, alice, hashOne)).Ask, []pep.Question(nil))
	}
	learned := w.Unknown(q.To, q.Caps)
	equal(t, "who is asked then", learned.Ask, []pep.Question{{To: device(laptop), Caps: q.Caps}, {To: device(phone), Caps: q.Caps}})
	equal(t, "the same end again", w.Unknown(q.To, q.Caps), pep.Learned{})
	for _, next := range learned.Ask {
		w.Unknown(next.To, next.Caps)
	}
	equal(t, "when the tablet comes again", w.Arrive(presence(tablet, alice, hashOne)).Ask, []pep.Question{q})
}

// A client that keeps silent delays nobody else's.
func TestNobodyWaitsForAStranger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	q := w.Arrive(presence(carols, carol, hashOne)).Ask[0]
	mine := pep.Question{To: device(phone), Caps: q.Caps}
	equal(t, "asked while carol is", w.Arrive(presence(phone, alice, hashOne)).Ask, []pep.Question{mine})
	learned := w.Learn(mine.To, mine.Caps, notes(), true)
	equal(t, "greeted", learned.Greet, []pep.Sender{device(carols), device(phone)})
}

// A client that lies about a hash changes nothing for others, and nothing of
// it is stored.
func TestPoisonedHash(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	q := w.Arrive(presence(carols, carol, hashOne)).Ask[0]
	equal(t, "who is asked beside", w.Arrive(presence(phone, alice, hashOne)).Ask, []pep.Question{{To: device(phone), Caps: q.Caps}})
	learned := w.Learn(q.To, q.Caps, notes("poison"), false)
	equal(t, "who is greeted", learned.Greet, []pep.Sender{device(carols)})
	equal(t, "told after the lie", told(w.must(laptop, publish("a"))), []string{})
	w.remembering(func(err error) { t.Error(err) })()
	equal(t, "stored after the lie", w.capabilities(), []vault.Capabilities(nil))

	greeted := w.Learn(device(phone), q.Caps, pep.Announced{Nodes: []string{"notes"}, Sync: true}, true).Greet
	equal(t, "who is greeted after the truth", greeted, []pep.Sender{device(phone)})
	equal(t, "told after the truth", told(w.must(laptop, publish("a"))), []string{phone})
	w.Learn(q.To, q.Caps, notes("poison"), false)
	w.Learn(q.To, q.Caps, notes("poison"), true) // it is known already
	equal(t, "told after another lie", told(w.must(laptop, publish("a"))), []string{phone})
	w.remembering(func(err error) { t.Error(err) })()
	stored := w.capabilities()
	if len(stored) != 1 || stored[0].Hash != hashOne || !slices.Equal(stored[0].Nodes, []string{"notes"}) || !stored[0].Sync {
		t.Errorf("stored: %+v", stored)
	}
}

func (w *world) capabilities() (stored []vault.Capabilities) {
	w.t.Helper()
	err := w.store.View(w.t.Context(), func(v vault.View) (err error) {
		stored, err = v.Capabilities()
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
	return stored
}

// What a legacy client says counts for it alone, once.
func TestLegacyCapabilities(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	legacy := pep.CapsHash{Node: "http://client.example/#1.0"}
	come := func(address string) pep.Arrival {
		return w.Arrive(pep.Presence{Sender: device(address), Owner: alice, Caps: []pep.CapsHash{legacy}})
	}
	equal(t, "asked", come(laptop).Ask, []pep.Question{{To: device(laptop), Caps: legacy}})
	equal(t, "asked of the second too", come(phone).Ask, []pep.Question{{To: device(phone), Caps: legacy}})
	w.Learn(device(laptop), legacy, notes(), false)
	w.Learn(device(phone), legacy, pep.Announced{}, false)
	equal(t, "told", told(w.must(laptop, publish("a"))), []string{laptop})
	equal(t, "come again", come(laptop), pep.Arrival{})
	w.remembering(func(err error) { t.Error(err) })()
	equal(t, "stored", w.capabilities(), []vault.Capabilities(nil))
}

// While new caps are not known the old ones hold; the second hash is asked for
// if the answer does not have the first.
func TestNewCapabilitiesThatAreNotKnownYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.announce(phone, alice, hashOne, notes())
	p := presence(phone, alice, "sha3-512:QQ==")
	p.Caps = append(p.Caps, pep.CapsHash{Hash: hashTwo, Node: "client#two"})
	asked := w.Arrive(p).Ask
	equal(t, "asked", asked, []pep.Question{{To: device(phone), Caps: p.Caps[0]}})
	equal(t, "before the answer", told(w.must(laptop, publish("a"))), []string{phone})
	learned := w.Learn(device(phone), p.Caps[0], pep.Announced{}, false)
	equal(t, "then asked", learned.Ask, []pep.Question{{To: device(phone), Caps: p.Caps[1]}})
	equal(t, "after an answer for this one", told(w.must(laptop, publish("a"))), []string{})
	learned = w.Learn(device(phone), p.Caps[1], notes(), true)
	equal(t, "after the verified one", learned, pep.Learned{Greet: []pep.Sender{device(phone)}})
	equal(t, "told", told(w.must(laptop, publish("a"))), []string{phone})
}

// More than a client can sensibly want is cut, for it alone.
func TestAnnouncedNodesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	a := notes()
	a.Nodes = slices.Insert(a.Nodes, 0, "notes", "", "no\tname")
	for n := range 3000 {
		a.Nodes = append(a.Nodes, fmt.Sprintf("node-%d", n))
	}
	w.announceCut(phone, hashOne, a)
	equal(t, "within the bound", told(w.must(laptop, publish("a"))), []string{phone})
	long := pep.Announced{}
	for n := range 200 {
		long.Nodes = append(long.Nodes, strings.Repeat("x", 500)+fmt.Sprint(n))
	}
	w.announceCut(phone, hashTwo, notes(long.Nodes...))
	equal(t, "beyond the bound", told(w.must(laptop, publish("a"))), []string{})
	w.remembering(func(err error) { t.Error(err) })()
	equal(t, "stored", w.capabilities(), []vault.Capabilities(nil))
}

func (w *world) announceCut(address, hash string, a pep.Announced) {
	w.t.Helper()
	q := w.Arrive(presence(address, alice, hash)).Ask[0]
	w.Learn(q.To, q.Caps, a, true)
}

// Members hear of a vault at its explicit address, for as long as they may
// read it.
func TestWhoIsToldOfAnothersVault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.announce(carols, alice, hashOne, notes())
	w.announce(carols2, carol, hashOne, notes())
	w.announce(phone, alice, hashOne, notes())
	equal(t, "a stranger", told(w.must(laptop, publish("a"))), []string{phone})
	for _, row := range []struct {
		is   string
		want []string
	}{
		{"member", []string{carols, phone}}, {"publisher", []string{carols, phone}},
		{"outcast", []string{phone}}, {"none", []string{phone}},
	} {
		w.grant(carol, row.is)
		equal(t, row.is, told(w.must(laptop, publish("a"))), row.want)
	}
	w.grant(carol, "member")
	if _, err := w.askOf(carols2, alice, pep.Subscribe{Node: "notes", JID: string(carol)}); err != nil {
		t.Fatal(err)
	}
	equal(t, "bare JID, one there for alice", told(w.must(laptop, publish("a"))), []string{carols, phone})
	w.Absent(device(carols), alice)
	equal(t, "none there for alice", told(w.must(laptop, publish("a"))), []string{phone, string(carol) + " (quiet)"})
	out := w.must(laptop, publish("a"))
	equal(t, "whose the addresses are", []vault.Account{out.Notices[0].Account, out.Notices[1].Account}, []vault.Account{alice, carol})
	equal(t, "carol's own vault", told(w.must(carols2, publish("a"))), []string{carols2})
}
