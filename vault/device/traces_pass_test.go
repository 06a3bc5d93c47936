package device

import (
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// Traces about passes through the whole vault (PROTOCOL §7).

// awayTooLong leaves the phone with the records a, b and c, of which a was
// removed so long ago that the service has forgotten that. The phone has come
// back and asked.
func awayTooLong(s *story) (phone *actor) {
	phone, laptop := s.device("phone", true), s.device("laptop", true)
	for _, id := range []string{"a", "b", "c"} {
		laptop.saves(id, id)
	}
	laptop.comes()
	phone.comes()
	phone.goes()
	laptop.goes()
	s.does(pep.Retract{Node: node, IDs: []string{"a"}})
	s.removals()
	phone.connect()
	phone.hears() // where the vault stands
	phone.asks()
	return phone
}

// What was removed since a pass began is told within it, though the device
// has asked for all that there is.
func TestTracePassAcrossTombstones(t *testing.T) {
	trace{
		needs: []rules{dropUnseen},
		traps: map[string]meddling{
			"tells no removal in a pass": {answer: func(_ *story, answer any) any {
				page, is := answer.(pep.SyncPage)
				if !is || page.Reset == 0 {
					return answer
				}
				kept := page.Changes[:0]
				for _, c := range page.Changes {
					if !c.Gone {
						kept = append(kept, c)
					}
				}
				page.Changes = kept
				return page
			}},
		},
		tell: func(s *story) {
			phone := awayTooLong(s)
			phone.isAnswered() // b is there
			s.does(pep.Retract{Node: node, IDs: []string{"b"}})
			phone.hears()
			phone.rests()
			phone.holds("c=c")
			s.ends("c=c")
		},
	}.test(t)
}

// What was removed since a pass began is forgotten before the pass ends: it
// begins anew, for the same reason, and what was seen before counts no more.
func TestTracePassBeginsAnew(t *testing.T) {
	begun := 0
	trace{
		traps: map[string]meddling{
			"hides that the pass began anew": {answer: func(_ *story, answer any) any {
				page, is := answer.(pep.SyncPage)
				if !is || !page.First || page.Reset != vault.ResetPruned {
					return answer
				}
				begun++
				page.First = begun == 1
				return page
			}},
		},
		tell: func(s *story) {
			phone := awayTooLong(s)
			phone.isAnswered() // b is there
			s.does(pep.Retract{Node: node, IDs: []string{"b"}})
			s.removals()
			phone.rests()
			phone.holds("c=c")
			s.ends("c=c")
		},
	}.test(t)
}

// A vault was deleted while a device was away: it gives up what it held, does
// not make the vault again, and what it has changed meanwhile is for a person.
func TestTraceDeletedWhileAway(t *testing.T) {
	trace{
		needs: []rules{dropUnseen, keepBoth},
		tell: func(s *story) {
			phone, laptop := s.device("phone", true), s.device("laptop", true)
			laptop.saves("a", "1")
			laptop.saves("b", "2")
			laptop.comes()
			phone.comes()
			phone.goes()
			phone.saves("a", "3")
			s.command(pep.Delete{Node: node})
			s.kept["3"] = true // nobody who saw it gave it up
			phone.comes()
			phone.holds("")
			phone.keepsBoth("a: 3 / -")
			s.ends("")
		},
	}.test(t)
}

// A vault was deleted and made again while a device was away. Its records have
// the numbers of the old ones, and are others all the same.
func TestTraceMadeAgainWhileAway(t *testing.T) {
	trace{
		needs: []rules{dropUnseen, carryBases},
		tell: func(s *story) {
			phone, laptop := s.device("phone", true), s.device("laptop", true)
			laptop.saves("a", "1")
			laptop.saves("b", "2")
			laptop.comes()
			phone.comes()
			phone.goes()
			phone.saves("a", "3")
			s.command(pep.Delete{Node: node})
			s.kept["3"] = true
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("a", 1, "another")}})
			phone.comes()
			phone.holds("a=another")
			phone.keepsBoth("a: 3 / another")
			s.ends("a=another")
		},
	}.test(t)
}

// A change is on its way while the vault is deleted and made again: it relied
// on a record of that number, but not on this one.
func TestTraceExpectationAcrossEpochs(t *testing.T) {
	trace{
		needs: []rules{expectBase},
		traps: map[string]meddling{
			"compares revisions only": {request: func(s *story, op pep.Op) pep.Op {
				if publish, is := op.(pep.Publish); is && publish.Expect != nil {
					publish.Expect.Cursor = s.cursor()
				}
				return op
			}},
		},
		tell: func(s *story) {
			phone, laptop := s.device("phone", true), s.device("laptop", true)
			laptop.saves("a", "1")
			laptop.comes()
			phone.comes()
			phone.saves("a", "2")
			s.command(pep.Delete{Node: node})
			s.kept["2"] = true
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("a", 1, "another")}})
			phone.asks() // it has not heard yet
			phone.rests()
			phone.keepsBoth("a: 2 / another")
			s.ends("a=another")
		},
	}.test(t)
}
