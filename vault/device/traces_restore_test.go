package device

import (
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// Traces about a service that knows less than it did (PROTOCOL §7).

// A device was away since before the backup that the service is restored from.
// What was removed before the backup stays so, what was written before it is
// not taken back, and only what was written after it is offered again.
func TestTraceStaleDeviceAfterRestore(t *testing.T) {
	trace{
		needs: []rules{dropUnseen, rescueLost},
		traps: map[string]meddling{
			"does not know how much is shared": {answer: func(_ *story, answer any) any {
				page, is := answer.(pep.SyncPage)
				if is {
					page.Fork = 0
					return page
				}
				return answer
			}},
		},
		tell: func(s *story) {
			s.byHand = false // by the restore command
			phone, laptop := s.device("phone", true), s.device("laptop", true)
			laptop.saves("a", "1")
			laptop.saves("b", "2")
			laptop.comes()
			phone.comes()
			phone.goes()
			laptop.removes("a")
			laptop.saves("b", "3")
			laptop.rests()
			s.saved = s.store.model.Clone()
			laptop.saves("c", "4")
			laptop.rests()
			s.restore()
			phone.comes()
			phone.holds("b=3")
			phone.keepsBoth()
			s.ends("b=3 c=4")
		},
	}.test(t)
}

// Somebody copies an older database back, and others write until the vault has
// more revisions than a device holds. Its cursor is of another history all the
// same: what it alone has comes back, and it takes what is new.
func TestTraceCopiedBackAndOvertaken(t *testing.T) {
	trace{
		needs: []rules{rescueLost},
		traps: map[string]meddling{
			"does not ask who wrote a revision": {request: func(s *story, op pep.Op) pep.Op {
				sync, is := op.(pep.Sync)
				held, err := s.store.key.Verify(sync.Cursor)
				if !is || err != nil {
					return op
				}
				s.view(func(v vault.View) error {
					runs, err := v.Runs(vault.Key{Account: owner, Node: node})
					if run, known := runs.Of(held.Revision); known {
						held.Run = run
					}
					return err
				})
				sync.Cursor = s.store.key.Sign(held)
				return sync
			}},
		},
		tell: func(s *story) {
			s.byHand = true
			phone, laptop := s.device("phone", true), s.device("laptop", true)
			laptop.saves("a", "1")
			laptop.comes()
			s.saved = s.store.model.Clone()
			laptop.saves("b", "2")
			laptop.rests()
			phone.comes()
			phone.holds("a=1 b=2")
			laptop.goes()
			s.restore()
			for _, text := range []string{"3", "4", "5"} {
				s.does(pep.Publish{Node: node, Items: []pep.Item{item("c", 1, text)}})
			}
			phone.comes()
			s.ends("a=1 b=2 c=5")
		},
	}.test(t)
}
