package device

import (
	"flag"
	"strings"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

var (
	interleavings = flag.Int("interleavings", usualInterleavings, "how many histories TestReplicas tries")
	needed        = flag.Uint64("needed", 10_000, "how many histories TestRulesAreNeeded tries for each rule")
	firstSeed     = flag.Uint64("seed", 1, "the seed of the first history")
)

// Every device that follows the rules ends with what the service has, shows
// nothing on the way that the service never had, and nothing that was acknowledged
// or changed is lost, whatever happens.
func TestReplicas(t *testing.T) {
	t.Parallel()
	for i := range *interleavings {
		if h := newHistory(*firstSeed+uint64(i), 0); h.fails() {
			t.Fatal(h.shrunk())
		}
	}
}

// Each rule is needed: without it some history ends badly.
func TestRulesAreNeeded(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]rules{
		"adopt a cursor only from the one held":       followChain,
		"only with all that the state names":          wholeChange,
		"also from an own answer":                     ownChain,
		"adopt nothing during a sync":                 waitForEnd,
		"sync again if something was heard meanwhile": lookAgain,
		"what a full pass did not show is gone":       dropUnseen,
		"what was held above the fork stays":          rescueLost,
		"compare no revisions across epochs":          carryBases,
		"what is above the key version rotates":       rotateTogether,
		"say what a change relies on":                 expectBase,
		"repeat what was not answered as it was":      repeatSame,
		"never send a refused change again unasked":   keepBoth,
		"a rotation moves what a change stands on":    followRotation,
		"seal with the key of the vault":              sealAgain,
		"stage again what others changed":             stageAgain,
		"the first rotation to a version holds":       takeWinner,
		"a batch as a whole":                          asOne,
		"nearly all only if a person says so":         askFirst,
		"a batch in doubt begins anew":                beginAnew,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range *needed {
				if newHistory(seed+1, rule).fails() {
					return
				}
			}
			t.Error("no history needs it")
		})
	}
}

// So is the rule of when to keep the memory: before a request is sent.
func TestKeepingIsNeeded(t *testing.T) {
	t.Parallel()
	for seed := range *needed {
		h := newHistory(seed+1, 0)
		if h.meddle = true; h.fails() {
			return
		}
	}
	t.Error("no history needs it")
}

// A history that ends badly is told in few steps.
func TestShrinking(t *testing.T) {
	t.Parallel()
	for seed := range *needed {
		h := newHistory(seed+1, followChain)
		if !h.fails() {
			continue
		}
		short := h.shrunk()
		if n := len(short.steps); n > 12 || !short.fails() {
			t.Errorf("%d steps are left of %d:\n%s", n, len(h.steps), short)
		}
		if text := short.String(); !strings.Contains(text, "asks pep.Publish") {
			t.Errorf("it is not told:\n%s", text)
		}
		return
	}
	t.Error("no history fails")
}

// A pass that begins anew, for another reason, is still about a history that
// the service has lost.
func TestLostStaysLost(t *testing.T) {
	t.Parallel()
	for _, broken := range []rules{0, rememberLost} {
		r := New(node)
		r.rules &^= broken
		r.Ask()
		mine := vault.Payload{Form: vault.Native, Data: []byte("mine")}
		r.Answered(pep.SyncPage{Node: node, Cursor: "old", Reset: vault.ResetNew, First: true, Changes: []vault.Change{
			{Record: vault.Record{ID: "a", Revision: 45, Payload: mine}},
		}})
		r.Disconnected()
		r.Ask()
		r.Answered(pep.SyncPage{Node: node, Cursor: "half", More: true, Reset: vault.ResetLost, Fork: 41, First: true, Changes: []vault.Change{
			{Record: vault.Record{ID: "b", Revision: 7, Payload: mine}},
		}})
		r.Ask()
		r.Answered(pep.SyncPage{Node: node, Cursor: "new", Reset: vault.ResetPruned, First: true})
		got, want := len(r.Changes()), 1
		if broken != 0 {
			want = 0
		}
		if got != want {
			t.Errorf("without the rules %b: %d changes, want %d", broken, got, want)
		}
	}
}
