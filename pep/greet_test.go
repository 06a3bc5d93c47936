package pep_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

const sendLast = "pubsub#send_last_published_item"

// configure sets fields of one of alice's vaults.
func (w *world) configure(node string, fields ...string) {
	w.t.Helper()
	w.must(laptop, pep.Configure{Node: node, Form: configForm(fields...)})
}

func (w *world) makeVaults(nodes ...string) {
	w.t.Helper()
	for _, node := range nodes {
		w.must(laptop, pep.Publish{Node: node, Items: []pep.Item{item("first", "1"), item("last", "2")}})
	}
}

func moreVaults(o *pep.Options) { o.Limits.Vaults = 8; o.Limits.AccountBytes = 1 << 20 }

// C05, XEP-0163 §4.3.3: a resource that comes is told of each vault that it
// asked for, once for as long as it is there.
func TestGreet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, moreVaults)
	w.makeVaults("keys", "notes", "other", "third")
	w.configure("notes", sendLast, "on_sub_and_presence")
	w.configure("keys", sendLast, "on_sub")
	one := pep.Announced{Nodes: []string{"notes", "keys", "absent"}}
	two := pep.Announced{Nodes: []string{"notes", "third"}}
	steps := []struct {
		name string
		do   func() pep.Arrival
		want pep.Arrival
		told []string
	}{
		{
			"comes", func() pep.Arrival { return w.announce(phone, alice, hashOne, one) },
			pep.Arrival{New: true, Greet: true, Ask: []pep.Question{{To: device(phone), Caps: presence(phone, alice, hashOne).Caps[0]}}},
			[]string{"keys", "notes last past"},
		},
		{"comes again", func() pep.Arrival { return w.announce(phone, alice, hashOne, one) }, pep.Arrival{}, []string{}},
		{"comes again without caps", func() pep.Arrival { return w.arrive(phone) }, pep.Arrival{}, []string{}},
		{
			"asks for another", func() pep.Arrival { return w.announce(phone, alice, hashTwo, two) },
			pep.Arrival{Ask: []pep.Question{{To: device(phone), Caps: presence(phone, alice, hashTwo).Caps[0]}}},
			[]string{"third"},
		},
		{
			"asks for the first again", func() pep.Arrival { return w.announce(phone, alice, hashOne, one) },
			pep.Arrival{Greet: true}, []string{"keys"},
		},
		{
			"leaves and comes", func() pep.Arrival {
				w.Absent(device(phone), alice)
				return w.announce(phone, alice, hashOne, one)
			}, pep.Arrival{New: true, Greet: true}, []string{"keys", "notes last past"},
		},
		{
			"leaves between two presences that nobody greeted", func() pep.Arrival {
				w.announce(phone, alice, hashTwo, two)
				return w.announce(phone, alice, hashOne, one)
			}, pep.Arrival{Greet: true}, []string{"keys"},
		},
	}
	for _, s := range steps {
		equal(t, s.name+": arrival", s.do(), s.want)
		equal(t, s.name+": told", w.greet(phone), s.told)
	}
	equal(t, "all states", w.states(phone), []string{"keys", "notes"})
	equal(t, "nothing new after them", w.greet(phone), []string{})
	equal(t, "somebody who is not known", w.greet(tablet), []string{})
}

// A vault that a resource subscribed is no news when it asks for it by its
// capabilities too.
func TestGreetOfWhatWasHeardAlready(t *testing.T) {
	t.Parallel()
	w := newWorld(t, moreVaults)
	w.makeVaults("notes", "other", "third")
	w.arrive(phone)
	w.must(phone, pep.Subscribe{Node: "notes", JID: phone})
	w.must(phone, pep.Subscribe{Node: "other", JID: string(alice)})
	equal(t, "as it came", w.greet(phone), []string{"notes", "other"})
	w.announce(phone, alice, hashOne, notes("other", "third"))
	equal(t, "with capabilities", w.greet(phone), []string{"third"})
}

// All states tell what a greeting would have told.
func TestStatesComeBeforeAGreeting(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.makeVaults("notes")
	w.announce(phone, alice, hashOne, notes())
	equal(t, "states", w.states(phone), []string{"notes"})
	equal(t, "greeting", w.greet(phone), []string{})
}

// What a vault mutes is not sent to who comes either.
func TestGreetAsConfigured(t *testing.T) {
	t.Parallel()
	w := newWorld(t, moreVaults)
	w.makeVaults("bare", "empty", "muted")
	for _, node := range []string{"bare", "empty", "muted"} {
		w.configure(node, sendLast, "on_sub_and_presence")
	}
	w.configure("bare", "pubsub#deliver_payloads", "0")
	w.configure("muted", "pubsub#deliver_notifications", "0")
	w.must(laptop, pep.Purge{Node: "empty"})
	w.announce(phone, alice, hashOne, pep.Announced{Nodes: []string{"bare", "empty", "muted"}})
	equal(t, "told", w.greet(phone), []string{"bare last past bare", "empty", "muted"})
}

// A member is greeted with what it may read; what others shared comes after
// its own.
func TestGreetOfAnothersVaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, moreVaults)
	w.makeVaults("notes", "other")
	w.configure("notes", sendLast, "on_sub_and_presence")
	w.must(carols, pep.Publish{Node: "notes", Items: []pep.Item{item("hers", "1")}})
	both := notes("other")
	w.announce(carols, carol, hashOne, both)
	equal(t, "her own", w.greet(carols), []string{"notes"})
	w.announce(carols, alice, hashOne, both)
	equal(t, "as a stranger", w.greet(carols), []string{})
	w.Absent(device(carols), alice)
	w.grant(carol, "member")
	equal(t, "her own after she left alice", w.states(carols), []string{"notes"})
	equal(t, "arrival at alice's", w.announce(carols, alice, hashOne, both), pep.Arrival{Greet: true})
	equal(t, "as a member", w.greet(carols), []string{"notes last past"})
	equal(t, "all states", w.states(carols), []string{"notes", "notes"})
	w.Absent(device(carols), carol)
	equal(t, "still there for alice", w.states(carols), []string{"notes"})
	w.Absent(device(carols), alice)
	equal(t, "known", len(w.Known()), 0)
}

// A greeting that failed is made good by the next.
func TestGreetAfterAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	f := &failing{Store: w.store}
	w.Engine = pep.New(pep.Options{Store: f, Limits: limits, Domains: []string{"localhost"}, AnswerBytes: 100_000, InlineBytes: 10_000})
	w.makeVaults("notes")
	w.announce(phone, alice, hashOne, notes())
	f.fails.Store(true)
	if err := w.Greet(t.Context(), device(phone), func([]pep.Notice) { t.Error("told while the store fails") }); err == nil {
		t.Error("no error while the store fails")
	}
	f.fails.Store(false)
	equal(t, "told", w.greet(phone), []string{"notes"})
}

// A client that answers while its presence is being dealt with is told by what
// follows from its answer, and only by that.
func TestGreetIsNotRepeated(t *testing.T) {
	t.Parallel()
	h := &hooked{viewed: func() {}, glanced: func() {}}
	w := newWorld(t, func(o *pep.Options) { h.Store, o.Store = o.Store, h })
	w.makeVaults("notes")
	w.configure("notes", sendLast, "on_sub_and_presence")
	question := w.Arrive(presence(phone, alice, hashOne)).Ask[0]
	h.viewing = sync.OnceFunc(func() { w.Learn(question.To, question.Caps, notes(), true) })
	equal(t, "told of the presence", w.greet(phone), []string{})
	equal(t, "told of the answer", w.greet(phone), []string{"notes last past"})
}

// C06: who subscribes is told where the vault stands, with the last record as
// configured, and again each time that it subscribes.
func TestSubscribeTells(t *testing.T) {
	t.Parallel()
	tests := []struct {
		send         string
		first, again []string
	}{
		{"never", []string{phone + " notes"}, []string{}},
		{"on_sub", []string{phone + " notes last past"}, []string{phone + " notes last past"}},
		{"on_sub_and_presence", []string{phone + " notes last past"}, []string{phone + " notes last past"}},
	}
	for _, tt := range tests {
		for _, jid := range []string{phone, string(alice)} {
			t.Run(tt.send+" "+jid, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, nil)
				w.makeVaults("notes")
				w.configure("notes", sendLast, tt.send)
				w.arrive(phone)
				equal(t, "greeting", w.greet(phone), []string{})
				op := pep.Subscribe{Node: "notes", JID: jid}
				equal(t, "first", w.summaries(w.must(phone, op)), tt.first)
				equal(t, "again", w.summaries(w.must(phone, op)), tt.again)
			})
		}
	}
}

func (w *world) summaries(out pep.Outcome) []string {
	w.t.Helper()
	list := []string{}
	for _, n := range out.Notices {
		list = append(list, n.To+" "+w.summary(n))
	}
	return list
}

// A subscription of the bare JID is news for every other resource that did
// not hear of the vault, and for the one that asked even if it is not there.
func TestSubscriptionOfTheBareJIDTellsAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.makeVaults("notes")
	w.announce(tablet, alice, hashOne, notes())
	w.arrive(laptop)
	out := w.must(phone, pep.Subscribe{Node: "notes", JID: string(alice)})
	equal(t, "told", w.summaries(out), []string{phone + " notes", laptop + " notes"})
	w.arrive(phone)
	equal(t, "one that comes later", w.greet(phone), []string{"notes"})
}

// What a device hears of a vault is an unbroken chain from its greeting on,
// whatever is written while it comes.
func TestGreetingJoinsTheEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { moreVaults(o); o.Limits.Resources = 100 })
	w.makeVaults("notes")
	w.configure("notes", sendLast, "on_sub_and_presence")
	w.announce(tablet, alice, hashOne, notes())
	var mu sync.Mutex
	at := map[string]string{} // cursor by address
	hear := func(notices []pep.Notice) {
		mu.Lock()
		defer mu.Unlock()
		for _, n := range notices {
			last, heard := at[n.To]
			s := n.Event.State
			if s.Previous == "" && heard && s.Cursor != last || s.Previous != "" && heard && s.Previous != last {
				t.Errorf("%s was at %q and hears of %q to %q", n.To, last, s.Previous, s.Cursor)
			}
			at[n.To] = s.Cursor
		}
	}
	var writers, devices sync.WaitGroup
	for range 3 {
		writers.Go(func() {
			for range 60 {
				req := pep.Request{Sender: device(laptop), Owner: alice, Op: publish("a")}
				if err := w.Do(context.Background(), req, func(out pep.Outcome) { hear(out.Notices) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for n := range 3 {
		devices.Go(func() {
			for m := range 20 {
				s := device(fmt.Sprintf("alice@localhost/%d-%d", n, m))
				w.Arrive(presence(s.Address, alice, hashOne))
				if err := w.Greet(context.Background(), s, hear); err != nil {
					t.Error(err)
				}
				if m%3 == 0 {
					w.Leave(s.Account, s.Resource)
				}
			}
		})
	}
	writers.Wait()
	devices.Wait()
	equal(t, "devices that heard", len(at), 3*20+1)
	v := w.vault(laptop, "notes")
	last := w.store.CursorKey().Sign(v.Cursor())
	for _, s := range w.Known() {
		equal(t, "where "+s.Address+" is", at[s.Address], last)
	}
}

// C38: however a resource ends, and however many come, what is known stays
// bounded, and nothing is left when they are gone.
func TestFiftyThousandResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	asked := map[pep.Question]bool{}
	most := 0
	for n := range 50_000 {
		s := device("alice@localhost/r" + strconv.Itoa(n))
		p := presence(s.Address, alice, "sha-1:"+strconv.Itoa(n))
		if n%5 == 0 {
			p = presence(s.Address, alice, noCaps)
		}
		for _, q := range w.Arrive(p).Ask {
			asked[q] = true
		}
		most = max(most, len(asked))
		switch n % 3 {
		case 0:
			w.Absent(s, alice)
		case 1:
			w.Leave(alice, s.Resource)
		}
		if n%7 == 0 { // answers come in late, and not in order
			for q := range maps.Keys(asked) {
				delete(asked, q)
				for _, next := range w.Unknown(q.To, q.Caps).Ask {
					asked[next] = true
				}
				break
			}
		}
	}
	if known := len(w.Known()); known > 2*limits.Resources {
		t.Errorf("%d resources are known", known)
	}
	if most > 2*limits.Resources {
		t.Errorf("%d questions were under way", most)
	}
	w.remembering(func(err error) { t.Error(err) })()
	if stored := len(resources(t, w.store)); stored > 2*limits.Resources {
		t.Errorf("%d resources are stored", stored)
	}
	for _, s := range w.Known() {
		w.Leave(s.Account, s.Resource)
	}
	w.remembering(func(err error) { t.Error(err) })()
	equal(t, "stored at the end", resources(t, w.store), []vault.Resource(nil))
}

// A resource can't be there for any number of owners.
func TestOwnersAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.announce(phone, alice, hashOne, notes())
	for n := range 10_000 {
		w.Arrive(presence(phone, vault.Account("owner"+strconv.Itoa(n)+"@localhost"), hashOne))
	}
	w.remembering(func(err error) { t.Error(err) })()
	stored := resources(t, w.store)
	if len(stored) != 1 || len(stored[0].Owners) != 64 || !slices.Contains(stored[0].Owners, alice) {
		t.Errorf("stored: %d resources, there for %d owners", len(stored), len(stored[0].Owners))
	}
}
