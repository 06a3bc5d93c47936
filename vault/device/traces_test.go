package device

import (
	"testing"

	"pepvault/pep"
	"pepvault/pep/wire"
)

// Traces about events and answers (PROTOCOL §6).

// The publish of a device that has missed an event does not make up for that:
// the answer tells a state that holds more than the device.
func TestTraceOwnPublishOverMissedEvent(t *testing.T) {
	trace{
		needs: []rules{ownChain},
		tell: func(s *story) {
			phone, laptop := s.device("phone", true), s.device("laptop", true)
			laptop.saves("a", "1")
			laptop.comes()
			phone.comes()
			laptop.saves("b", "2")
			laptop.rests()
			phone.misses()
			phone.saves("c", "3")
			phone.rests()
			phone.holds("a=1 b=2 c=3")
			s.ends("a=1 b=2 c=3")
		},
	}.test(t)
}

// The state of a batch comes without its records: whoever adopts it lacks them
// for ever.
func TestTraceBatchStateWithoutContent(t *testing.T) {
	trace{
		needs: []rules{wholeChange},
		tell: func(s *story) {
			phone, laptop := s.device("phone", true), s.device("laptop", true)
			laptop.saves("a", "1")
			laptop.comes()
			phone.comes()
			s.commits("both", 0, item("a", 1, "2"), item("b", 1, "3"))
			phone.hears()
			phone.holds("a=1") // both or none
			phone.rests()
			phone.holds("a=2 b=3")
			s.ends("a=2 b=3")
		},
	}.test(t)
}

// The owner has switched events off, or what is in them: the states go on, and
// name what does not come.
func TestTraceEventsSwitchedOff(t *testing.T) {
	for _, field := range []string{"pubsub#deliver_payloads", "pubsub#deliver_notifications"} {
		for name, follows := range map[string]bool{"follows states": true, "is any client": false} {
			t.Run(field+", the phone "+name, func(t *testing.T) {
				trace{
					needs: []rules{wholeChange},
					tell: func(s *story) {
						phone, laptop := s.device("phone", follows), s.device("laptop", true)
						laptop.saves("a", "1")
						laptop.comes()
						phone.comes()
						s.configured(field, "false")
						phone.rests()
						laptop.rests()
						laptop.saves("a", "2")
						laptop.rests()
						phone.hears()
						phone.holds("a=1")
						phone.rests()
						phone.holds("a=2")
						laptop.removes("a")
						laptop.saves("b", "3")
						laptop.rests()
						s.ends("b=3")
					},
				}.test(t)
			})
		}
	}
}

// A change of the configuration takes a revision, and can be the last one: a
// device that has come to it is where the vault is, whatever it is started on.
func TestTraceConfigurationLast(t *testing.T) {
	trace{
		traps: map[string]meddling{
			"ends a sync at the last record": endsAtRecord(),
		},
		tell: func(s *story) {
			phone, laptop := s.device("phone", true), s.device("laptop", true)
			laptop.saves("a", "1")
			laptop.comes()
			s.configured("pubsub#title", "mine")
			phone.comes()
			for _, text := range []string{"2", "3"} {
				s.returns(s.store.restart)
				phone.comes()
				laptop.comes()
				laptop.saves("a", text)
				laptop.rests()
				phone.hears()
				phone.holds("a=" + text)
				phone.asksNothing()
				s.configured("pubsub#title", text)
				phone.hears()
				phone.asksNothing()
			}
			s.ends("a=3")
		},
	}.test(t)
}

// endsAtRecord does not count configurations at the end of a sync.
func endsAtRecord() meddling {
	var asked string
	return meddling{
		request: func(_ *story, op pep.Op) pep.Op {
			if sync, is := op.(pep.Sync); is {
				asked = sync.Cursor
			}
			return op
		},
		answer: func(s *story, answer any) any {
			page, is := answer.(pep.SyncPage)
			if !is || page.More {
				return answer
			}
			if len(page.Changes) == 0 {
				page.Cursor = asked
				return page
			}
			end, err := s.store.key.Verify(page.Cursor)
			if err != nil {
				panic(err)
			}
			end.Revision = page.Changes[len(page.Changes)-1].Revision
			page.Cursor = s.store.key.Sign(end)
			return page
		},
	}
}

// A full vault drops its oldest record for a new one, as its owner wants it:
// whose publish that was knows what went, by its answer alone.
func TestTraceEvictionByOwnPublish(t *testing.T) {
	trace{
		traps: map[string]meddling{
			"names only what was asked for": {answer: func(_ *story, answer any) any {
				if made, is := answer.(pep.Published); is && made.State != nil {
					made.State.Items = made.State.Items[len(made.State.Items)-1:]
				}
				return answer
			}},
		},
		tell: func(s *story) {
			phone, laptop, tablet := s.device("phone", true), s.device("laptop", true), s.device("tablet", false)
			for _, id := range []string{"a", "b", "c"} {
				laptop.saves(id, id)
			}
			laptop.comes()
			s.configured("pubsub#publish_node_full", "retract-oldest")
			phone.comes()
			tablet.comes()
			phone.saves("d", "d")
			delete(s.kept, "a") // its owner wants it so
			phone.asks()
			phone.isAnswered()
			phone.holds("b=b c=c d=d")
			phone.hears() // its own echo
			phone.asksNothing()
			s.ends("b=b c=c d=d")
		},
	}.test(t)
}

// A page comes later than the event of what was changed behind it: the device
// looks again.
func TestTracePageOvertakenByEvent(t *testing.T) {
	trace{
		needs: []rules{lookAgain},
		tell: func(s *story) {
			phone, laptop := s.device("phone", true), s.device("laptop", true)
			laptop.saves("a", "1")
			laptop.comes()
			phone.connect()
			phone.hears() // where the vault stands
			phone.asks()
			laptop.saves("a", "2")
			laptop.rests()
			phone.hears()
			phone.isAnswered() // the page was read before
			s.ends("a=2")
		},
	}.test(t)
}

// A page that is older than what the device could have adopted meanwhile takes
// it back to where it was.
func TestTracePageOlderThanHeld(t *testing.T) {
	trace{
		needs: []rules{waitForEnd},
		tell: func(s *story) {
			phone, laptop := s.device("phone", true), s.device("laptop", true)
			laptop.saves("a", "1")
			laptop.comes()
			phone.comes()
			phone.goes()
			phone.connect()
			phone.hears()
			phone.asks()
			laptop.saves("a", "2")
			laptop.rests()
			phone.hears() // it follows what the phone holds
			phone.isAnswered()
			s.ends("a=2")
		},
	}.test(t)
}

// Of a rotation of two records the message about one comes, and the other one
// gets lost: nobody shows one record under the new key and one under the old.
func TestTraceRotationHalfDelivered(t *testing.T) {
	trace{
		traps: map[string]meddling{
			"tells states inside a commit": {event: func(s *story, n *wire.Notification) {
				if n.State != nil || len(n.Changes) == 0 {
					return
				}
				n.State = &pep.State{Owner: owner, Node: node, Previous: s.actors[0].cursor, Cursor: "inside"}
				for _, c := range n.Changes {
					n.State.Items = append(n.State.Items, pep.StateItem{ID: c.ID, Revision: c.Revision})
				}
			}},
		},
		tell: func(s *story) {
			phone, laptop := s.device("phone", false), s.device("laptop", true)
			laptop.saves("a", "1")
			laptop.saves("b", "2")
			laptop.comes()
			phone.comes()
			s.commits("rotation", 2, item("a", 2, "1 anew"), item("b", 2, "2 anew"))
			phone.hears()
			phone.holds("a=1 b=2")
			phone.misses() // the other record
			phone.misses() // the configuration, with the state
			laptop.rests()
			laptop.holds("a=1 anew b=2 anew")
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("c", 2, "3")}})
			phone.hears()
			phone.holds("a=1 b=2")
			s.ends("a=1 anew b=2 anew c=3")
		},
	}.test(t)
}

// The last message of a rotation has the new configuration and the state of all
// that was sealed anew, which came before, one by one: it is not whole by itself.
func TestTraceRotationToldOneByOne(t *testing.T) {
	trace{
		needs: []rules{wholeChange},
		tell: func(s *story) {
			phone, laptop := s.device("phone", false), s.device("laptop", true)
			laptop.saves("a", "1")
			laptop.saves("b", "2")
			laptop.comes()
			phone.comes()
			s.commits("rotation", 2, item("a", 2, "1 anew"), item("b", 2, "2 anew"))
			for range 3 {
				phone.hears()
				phone.holds("a=1 b=2")
			}
			phone.rests()
			phone.holds("a=1 anew b=2 anew")
			s.ends("a=1 anew b=2 anew")
		},
	}.test(t)
}

// The answer to a save is lost, and meanwhile somebody who has seen it removes
// the record: the repeat does not bring it back.
func TestTraceRepeatAfterForeignDeletion(t *testing.T) {
	trace{
		needs: []rules{keepBoth, expectBase},
		traps: map[string]meddling{"looks at no expectation": {request: unconditional}},
		tell: func(s *story) {
			phone, laptop := s.device("phone", true), s.device("laptop", true)
			laptop.saves("a", "1")
			laptop.comes()
			phone.comes()
			phone.saves("a", "2")
			phone.asks()
			phone.goes() // the answer is lost
			laptop.rests()
			laptop.holds("a=2")
			laptop.removes("a")
			laptop.rests()
			phone.comes()
			phone.keepsBoth("a: 2 / -")
			s.ends("")
		},
	}.test(t)
}

// unconditional takes the expectation out of a request.
func unconditional(_ *story, op pep.Op) pep.Op {
	switch op := op.(type) {
	case pep.Publish:
		op.Expect = nil
		return op
	case pep.Retract:
		op.Expect = nil
		return op
	}
	return op
}
