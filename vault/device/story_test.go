package device

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// trace is a history told step by step that ends badly unless both sides
// follow the protocol. Nothing in it is left to chance.
type trace struct {
	tell func(*story)
	// needs are rules of the device without any of which it ends badly.
	needs []rules
	// traps are services that do not do what they should, with each of which it
	// ends badly too.
	traps map[string]meddling
	// crashes are devices that keep too little or too much, with each of which it
	// ends badly too: what one does before it crashes.
	crashes map[string]func(*actor)
}

// test holds that the trace ends well, and only because of what it is about.
func (tr trace) test(t *testing.T) {
	t.Helper()
	t.Parallel()
	if wrong, log := tr.told(0, meddling{}, nil); len(wrong) > 0 {
		t.Fatalf("%s\n\n%s", strings.Join(wrong, "\n"), strings.Join(log, "\n"))
	}
	for _, rule := range tr.needs {
		if wrong, _ := tr.told(rule, meddling{}, nil); len(wrong) == 0 {
			t.Errorf("without the rules %b it ends well too", rule)
		}
	}
	for name, trap := range tr.traps {
		if wrong, _ := tr.told(0, trap, nil); len(wrong) == 0 {
			t.Errorf("with a service that %s it ends well too", name)
		}
	}
	for name, keeps := range tr.crashes {
		if wrong, _ := tr.told(0, meddling{}, keeps); len(wrong) == 0 {
			t.Errorf("with a device that %s it ends well too", name)
		}
	}
}

func (tr trace) told(broken rules, trap meddling, keeps func(*actor)) (wrong, log []string) {
	s := &story{world: newWorld(1, 0, 0), broken: broken, meddling: trap, keeps: keeps}
	s.calming, s.world.crashes = true, true // nothing gets lost by itself; devices keep their memory
	s.again()
	tr.tell(s)
	return s.wrong, s.log
}

// meddling is what a service does wrong: it takes requests for others, or says
// something else than it should.
type meddling struct {
	request func(*story, pep.Op) pep.Op
	answer  func(*story, any) any
	event   func(*story, *wire.Notification)
	disk    func(vault.Tx) vault.Tx // what it takes for its store
}

// meddledStore is a store whose transactions are meddled with.
type meddledStore struct {
	*memory
	disk func(vault.Tx) vault.Tx
}

func (m meddledStore) Update(ctx context.Context, key vault.Key, fn func(vault.Tx) error) error {
	return m.memory.Update(ctx, key, func(tx vault.Tx) error { return fn(m.disk(tx)) })
}

// story is a trace that is being told.
type story struct {
	*world
	meddling
	broken rules
	keeps  func(*actor)
	actors []*actor
	wrong  []string
}

func (s *story) fault(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	s.note("WRONG: "+format, args...)
}

// again has the service begin on its store, as it is after world.start.
func (s *story) again() {
	if s.disk != nil {
		s.engine = s.engineOn(meddledStore{s.store, s.disk})
	}
}

// actor is a device whose every move is told. Its answers wait in bulk, its
// events in in.
type actor struct {
	*client
	s *story
}

// device adds a device that holds nothing and is not connected. Its syncs have
// pages of one change. One that follows states says so in its capabilities.
func (s *story) device(name string, follows bool) *actor {
	a := &actor{s: s, client: &client{
		Replica: New(node), world: s.world, follows: follows,
		sender: pep.Sender{Account: owner, Address: string(owner) + "/" + name, Resource: name},
	}}
	a.rules &^= s.broken
	a.PageBy(1)
	a.StageBy(1)
	a.keep()
	s.clients, s.actors = append(s.clients, a.client), append(s.actors, a)
	return a
}

// comes begins a session, and takes in all that there is.
func (a *actor) comes() {
	a.connect()
	a.rests()
}

// goes ends the session.
func (a *actor) goes() { a.cut() }

// crashes has the device end without notice, and begin again with what it kept.
func (a *actor) crashes() {
	if a.s.keeps != nil {
		a.s.keeps(a)
	}
	a.crash()
	a.PageBy(1)
	a.StageBy(1)
}

// saves has a person change a record on the device.
func (a *actor) saves(id, text string) {
	a.edit(id, &vault.Payload{Form: vault.Native, Data: []byte(text)})
}

// removes has a person remove a record on the device.
func (a *actor) removes(id string) { a.edit(id, nil) }

// asks has the next request of the device reach the service. The answer is on
// its way, and so is what others are told.
func (a *actor) asks() {
	if op := a.Ask(); op != nil {
		a.sends(op)
	} else {
		a.s.fault("%s has nothing to ask", a.sender.Resource)
	}
}

// asksNothing holds that the device has nothing to ask.
func (a *actor) asksNothing() {
	if op := a.Ask(); op != nil {
		a.s.fault("%s asks %T %s, want nothing", a.sender.Resource, op, says(op))
		a.sends(op)
	}
}

func (a *actor) sends(op pep.Op) {
	a.s.note("%s asks %T %s", a.sender.Resource, op, says(op))
	answer, refusal := a.s.carryOut(a.sender, op)
	a.bulk = append(a.bulk, delivery{give: func(c *client) {
		if refusal != nil {
			a.s.note("%s is refused: %v", c.sender.Resource, refusal)
			c.Refused(refusal)
			return
		}
		c.Answered(answer)
	}})
}

// carryOut has the service do something, and tells everybody who is connected.
func (s *story) carryOut(sender pep.Sender, op pep.Op) (answer any, refusal *wire.StanzaError) {
	asked := op
	if s.request != nil {
		asked = s.request(s, op)
	}
	header := wire.Header{From: sender.Address, To: "vault.localhost", ID: "i"}
	var raw []byte
	err := s.engine.Do(context.Background(), pep.Request{Sender: sender, Owner: owner, Op: asked}, func(out pep.Outcome) {
		made := any(out.Answer)
		if later, large := made.(pep.Later); large {
			read, err := later.Read()
			if err != nil {
				panic(err)
			}
			made = read
		}
		raw = wire.AppendResult(nil, header, made)
		s.tell(out.Notices)
	})
	if err != nil {
		raw = wire.AppendError(nil, header, err)
	}
	answer, err = wire.DecodeReply(raw, op)
	if refused, is := err.(*wire.StanzaError); is {
		return nil, refused
	}
	if err != nil {
		panic(err)
	}
	if s.answer != nil {
		answer = s.answer(s, answer)
	}
	return answer, nil
}

// hears brings the device the next event.
func (a *actor) hears() {
	raw := a.next()
	if raw == nil {
		return
	}
	n, err := wire.DecodeMessage(raw)
	if err != nil {
		panic(err)
	}
	if a.s.event != nil {
		a.s.event(a.s, &n)
	}
	a.Heard(n)
	a.look()
}

// misses has the next event get lost on its way.
func (a *actor) misses() {
	a.s.note("%s misses an event", a.sender.Resource)
	a.next()
}

func (a *actor) next() []byte {
	if len(a.in) == 0 {
		a.s.fault("there is nothing on its way to %s", a.sender.Resource)
		return nil
	}
	d := a.in[0]
	a.in = a.in[1:]
	return d.raw
}

// isAnswered brings the device the answer to its request.
func (a *actor) isAnswered() {
	if len(a.bulk) == 0 {
		a.s.fault("there is no answer on its way to %s", a.sender.Resource)
		return
	}
	d := a.bulk[0]
	a.bulk = a.bulk[1:]
	d.give(a.client)
	a.look()
}

// look holds that nobody shows a part of a rotation: in a story all records of
// a vault have one key version.
func (a *actor) look() {
	versions := map[uint32]bool{}
	for _, r := range a.records {
		versions[r.KeyVersion] = true
	}
	if len(versions) > 1 {
		a.s.fault("%s shows a part of a rotation: %s", a.sender.Resource, a.shows())
	}
}

// rests takes in all that is on its way and asks all that there is to ask.
func (a *actor) rests() {
	for range 1000 {
		switch {
		case len(a.in) > 0:
			a.hears()
			continue
		case len(a.bulk) > 0:
			a.isAnswered()
			continue
		}
		op := a.Ask()
		if op == nil {
			return
		}
		a.sends(op)
	}
	a.s.fault("%s never comes to rest", a.sender.Resource)
}

// shows is what the service has as far as the device knows: "a=1 b=2".
func (a *actor) shows() string { return inWords(a.records) }

func inWords(records map[string]Record) string {
	words := make([]string, 0, len(records))
	for _, id := range slices.Sorted(maps.Keys(records)) {
		words = append(words, id+"="+string(records[id].Payload.Data))
	}
	return strings.Join(words, " ")
}

// holds compares what a device shows.
func (a *actor) holds(want string) {
	if got := a.shows(); got != want {
		a.s.fault("%s shows %q, want %q", a.sender.Resource, got, want)
	}
}

// keepsBoth holds that the device has exactly these conflicts, each as "id:
// mine / theirs", with "-" for a record that is not there.
func (a *actor) keepsBoth(want ...string) {
	var got []string
	for _, x := range a.conflicts {
		mine, theirs := string(x.Mine.Payload.Data), "-"
		if x.Mine.Gone {
			mine = "-"
		}
		if x.Theirs != nil {
			theirs = string(x.Theirs.Payload.Data)
		}
		got = append(got, x.Mine.ID+": "+mine+" / "+theirs)
	}
	if !slices.Equal(got, want) {
		a.s.fault("%s keeps both of %q, want %q", a.sender.Resource, got, want)
	}
}

// returns has the service end and begin again; store is what becomes of its
// store meanwhile. Everybody is cut off by that.
func (s *story) returns(store func()) {
	s.note("the service begins again")
	s.restartService(store)
	s.again()
}

// ends has everybody come and take in all that there is, and holds that each
// has what the service has, which is want.
func (s *story) ends(want string) {
	for range 2 { // what one finds out, others may learn only when they come again
		for _, a := range s.actors {
			if !a.online {
				a.connect()
			}
		}
		for range 4 {
			for _, a := range s.actors {
				a.rests()
			}
		}
		if s.restored {
			for _, a := range s.actors {
				a.goes()
			}
		}
	}
	for _, what := range s.faults() {
		s.fault("in the end %s", what)
	}
	if got := inWords(s.contents()); got != want {
		s.fault("in the end the service has %q, want %q", got, want)
	}
}
