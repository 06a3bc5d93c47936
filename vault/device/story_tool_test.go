package device

import (
	"maps"
	"slices"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// What somebody with a tool does in a story.

// does has a tool of the account, which is no device of the story, ask for
// something that has to succeed.
func (s *story) does(op pep.Op) any {
	answer, refusal := s.tries(op)
	if refusal != nil {
		s.fault("%T is refused: %v", op, refusal)
	}
	return answer
}

// tries has the tool ask for something.
func (s *story) tries(op pep.Op) (any, *wire.StanzaError) {
	s.note("the tool asks %T", op)
	before := s.contents()
	answer, refusal := s.carryOut(pep.Sender{Account: owner, Address: string(owner) + "/tool", Resource: "tool"}, op)
	now := s.contents()
	for _, r := range before { // whoever uses the tool knows what goes
		if !slices.ContainsFunc(slices.Collect(maps.Values(now)), r.alike) {
			delete(s.kept, string(r.Payload.Data))
		}
	}
	return answer, refusal
}

// item is a record in a request.
func item(id string, keyVersion uint32, text string) pep.Item {
	return pep.Item{ID: id, KeyVersion: keyVersion, Payload: vault.Payload{Form: vault.Native, Data: []byte(text)}}
}

// configured has the tool change the configuration.
func (s *story) configured(field, value string) {
	s.does(pep.Configure{Node: node, Form: pep.Form{
		Type: pep.FormConfig, Fields: []pep.Field{{Name: field, Values: []string{value}}},
	}})
}

// commits has the tool make these changes as one batch.
func (s *story) commits(id string, rotateTo uint32, items ...pep.Item) {
	s.does(pep.BeginBatch{Node: node, ID: id, Cursor: s.cursor(), RotateTo: rotateTo})
	s.does(pep.Publish{Node: node, Items: items, Batch: &pep.BatchRef{ID: id, Cursor: s.cursor()}})
	s.does(pep.CommitBatch{ID: id, Cursor: s.cursor()})
}

// removals has the tool make and remove so many records that all removals
// before are forgotten.
func (s *story) removals() {
	for _, id := range []string{"r1", "r2", "r3", "r4"} {
		s.does(pep.Publish{Node: node, Items: []pep.Item{item(id, 1, id)}})
		s.does(pep.Retract{Node: node, IDs: []string{id}})
	}
}

// refuses holds that the service refuses what the tool asks, with that
// condition of ours.
func (s *story) refuses(want string, op pep.Op) *wire.StanzaError {
	_, refusal := s.tries(op)
	if refusal == nil || refusal.Own != want && refusal.Condition != want {
		s.fault("%T: %v, want %s", op, refusal, want)
		return &wire.StanzaError{}
	}
	return refusal
}
