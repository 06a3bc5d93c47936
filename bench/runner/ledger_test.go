package runner

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"pepvault/bench/fleet"
	"pepvault/bench/workload"
)

var ledgerShape = workload.Shape{Seed: 1, Users: 2, Devices: 2, Records: 3, Bytes: 16}

// TestLedgerJudges plays short histories of record 1 of user 0. Time goes on by
// a second between two steps.
func TestLedgerJudges(t *testing.T) {
	t.Parallel()
	const both = 0b11
	type play struct {
		*ledger
		saves map[uint32]*save
	}
	send := func(v uint32) func(*play) { return func(p *play) { p.saves[v] = p.send(0, 1, v, both, moment{}) } }
	ends := func(v uint32, o outcome) func(*play) { return func(p *play) { p.answer(0, p.saves[v], o) } }
	reads := func(v uint32) func(*play) { return func(p *play) { p.read(0, 1, v, p.now(), p.now()) } }
	hear := func(device, record int, v uint32) func(*play) {
		return func(p *play) {
			p.hear(fleet.Heard{User: 0, Device: device, Content: workload.Content{Record: record, Version: v}})
		}
	}
	saved := func(v uint32) []func(*play) {
		return []func(*play){send(v), ends(v, acknowledged), hear(0, 1, v), hear(1, 1, v)}
	}
	final := func(v uint32) func(*play) {
		return func(p *play) { p.finish([][]uint32{{0, v, 0}, {0, 0, 0}}) }
	}
	steps := func(parts ...any) (all []func(*play)) {
		for _, part := range parts {
			switch part := part.(type) {
			case func(*play):
				all = append(all, part)
			case []func(*play):
				all = append(all, part...)
			}
		}
		return all
	}
	tests := map[string]struct {
		steps []func(*play)
		want  string // a part of the first fault; "" = none
	}{
		"nothing happened":          {steps(reads(0), final(0)), ""},
		"saved and read":            {steps(saved(1), reads(1), final(1)), ""},
		"lost save":                 {steps(saved(1), reads(0)), "version 1 was acknowledged since"},
		"older version":             {steps(saved(1), saved(2), reads(1)), "version 2 was acknowledged since"},
		"read while it is saved":    {steps(send(1), reads(0), reads(1), ends(1, acknowledged)), ""},
		"two at once, either":       {steps(send(1), send(2), ends(1, acknowledged), ends(2, acknowledged), reads(1), reads(2)), ""},
		"unanswered, seen or not":   {steps(send(1), reads(0), reads(1), reads(0)), ""},
		"unanswered, made later":    {steps(send(1), saved(2), reads(1), reads(2)), ""},
		"refused":                   {steps(send(1), ends(1, refused), reads(0)), ""},
		"refused, seen":             {steps(send(1), ends(1, refused), reads(1)), "was refused"},
		"refused, told":             {steps(send(1), ends(1, refused), hear(0, 1, 1)), "refused save"},
		"from nowhere":              {steps(reads(9)), "nobody saved"},
		"missing":                   {steps(reads(fleet.Absent)), "is missing"},
		"told of nothing":           {steps(hear(0, 1, 9)), "nobody made"},
		"told of another record":    {steps(send(1), hear(0, 2, 1)), "nobody made"},
		"told twice":                {steps(saved(1), hear(1, 1, 1)), "told twice"},
		"told before the answer":    {steps(send(1), hear(0, 1, 1), hear(1, 1, 1), ends(1, acknowledged), final(1)), ""},
		"one is not told":           {steps(send(1), ends(1, acknowledged), hear(0, 1, 1), final(1)), "1 devices of user 0 were not told"},
		"unanswered, one is told":   {steps(send(1), hear(0, 1, 1), final(1)), ""},
		"told in the wrong order":   {steps(send(1), send(2), ends(1, acknowledged), ends(2, acknowledged), hear(0, 1, 2), hear(0, 1, 1), hear(1, 1, 1), hear(1, 1, 2), final(2)), "was told last of version 1"},
		"what was there is no news": {steps(hear(0, 1, 0), final(0)), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &play{newLedger(ledgerShape), map[uint32]*save{}}
				for _, step := range test.steps {
					time.Sleep(time.Second)
					step(p)
				}
				got := p.faults.text()
				if test.want == "" && got != "" || !strings.Contains(got, test.want) {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		})
	}
}

func TestLedgerHearsOfWrongContent(t *testing.T) {
	t.Parallel()
	l := newLedger(ledgerShape)
	l.hear(fleet.Heard{Err: errors.Join(fleet.ErrWrong)})
	if got := l.check("t"); got.Wrong != 1 {
		t.Errorf("found %+v, want one wrong content", got)
	}
}

// TestLedgerAllowsWhatARegisterDoes plays random saves that happen at one moment
// between sending and answer, and reads likewise: none of it is a fault. Then
// one acknowledged save is taken back, which is one.
func TestLedgerAllowsWhatARegisterDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		l := newLedger(ledgerShape)
		b := &l.books[0]
		present := uint32(0) // what the register holds
		var flying []*save
		at := time.Duration(0)
		reading, readSent := uint32(0), time.Duration(-1)
		for i := range rapid.IntRange(1, 40).Draw(rt, "steps") {
			at += time.Millisecond
			switch rapid.IntRange(0, 4).Draw(rt, "step") {
			case 0:
				s := &save{record: 1, version: uint32(i + 1), sent: at, answered: never}
				b.saves[s.version], b.records[1] = s, append(b.records[1], s)
				flying = append(flying, s)
			case 1: // one happens
				if len(flying) > 0 {
					present = flying[rapid.IntRange(0, len(flying)-1).Draw(rt, "which")].version
				}
			case 2: // one happens, if it has not, and is answered
				if len(flying) > 0 {
					s := flying[0]
					flying = flying[1:]
					present, s.answered, s.outcome = s.version, at, acknowledged
				}
			case 3:
				readSent = at
			case 4:
				reading = present
				if _, why := b.judge(1, reading, max(readSent, 0), at); why != "" {
					rt.Fatalf("a right read of version %d: %s", reading, why)
				}
			}
		}
		// All that is still under way ends before one more save, so what was
		// there before is gone for good.
		last := &save{record: 1, version: 1000, sent: at + 2, answered: at + 3, outcome: acknowledged}
		for _, s := range flying {
			s.answered, s.outcome = at+1, acknowledged
		}
		b.saves[last.version], b.records[1] = last, append(b.records[1], last)
		if _, why := b.judge(1, present, at+4, at+5); why == "" {
			rt.Fatalf("version %d passes for the present one", present)
		}
	})
}

// TestWhoComesBackMayBeToldAgain holds that a device that has left since it heard
// of a save may be told of it once more, and one that stayed may not.
func TestWhoComesBackMayBeToldAgain(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]bool{"it stayed": false, "it came back": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(workload.Shape{Seed: 1, Users: 1, Devices: 2, Records: 1, Bytes: 924})
			l.answer(0, l.send(0, 0, 7, 0b11, moment{}), acknowledged)
			heard := fleet.Heard{Device: 1, Content: workload.Content{Version: 7}}
			if _, expected := l.hear(heard); !expected {
				t.Fatal("the first time is not expected")
			}
			if leaves {
				l.left(0, 1)
			}
			if _, expected := l.hear(heard); expected {
				t.Error("the second time is expected")
			}
			check := l.check("component")
			if want := map[bool]int64{true: 0, false: 1}[leaves]; check.Repeated != want || check.Notifications != 1 || l.unheard() != 1 {
				t.Errorf("%+v with %d unheard, want %d repeated", check, l.unheard(), want)
			}
		})
	}
}
