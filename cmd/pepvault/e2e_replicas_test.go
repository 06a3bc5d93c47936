package main_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault/device"
)

// fleet is the devices of one account on a real service. One goroutine drives
// them.
type fleet struct {
	t       *testing.T
	chance  *rand.Rand
	service string
	dial    func(name string, take func(arrival)) (session, error)
	tend    func() // looks after the service, between any two things
	devices []*liveDevice
	tool    *liveDevice // somebody with a command line, who waits for each answer
	stirred chan struct{}

	requests, asked, count int
	keys                   map[uint32]string // the latest key of each version
	// kept are contents that must be somewhere: saved on a device, and neither
	// overwritten nor removed by somebody who saw them.
	kept   map[string]bool
	madeOf map[string]string // content: the one that its author saw before
	// batched are contents that were to be made together with others.
	batched map[string]bool
	// muddled says that contents of the past came back, or that the vault was
	// deleted: then a conflict may be one with what a change was made of.
	muddled bool
	wrong   int
	told    []string
}

func newFleet(t *testing.T, seed uint64, service string, devices int) *fleet {
	f := &fleet{
		t: t, chance: rand.New(rand.NewPCG(seed, 11)), service: service, stirred: make(chan struct{}, 1),
		keys: firstKeys(), kept: map[string]bool{}, madeOf: map[string]string{}, batched: map[string]bool{},
	}
	for i := range devices {
		d := &liveDevice{fleet: f, name: fmt.Sprint("d", i), follows: i%2 == 0, replica: device.New("notes")}
		d.number = i
		d.limits()
		d.keep()
		f.devices = append(f.devices, d)
	}
	f.tool = &liveDevice{fleet: f, name: "tool"}
	return f
}

func (f *fleet) note(format string, args ...any) {
	f.told = append(f.told, fmt.Sprintf(format, args...))
}

func (f *fleet) fault(format string, args ...any) {
	f.t.Helper()
	f.t.Errorf(format, args...)
	if f.wrong++; f.wrong == 1 {
		f.t.Logf("what led to it:\n%s", strings.Join(f.told[max(0, len(f.told)-150):], "\n"))
	}
}

// stir says that something came.
func (f *fleet) stir() {
	select {
	case f.stirred <- struct{}{}:
	default:
	}
}

func (f *fleet) one(n int) bool { return f.chance.IntN(n) == 0 }

// take has everybody take in what came.
func (f *fleet) take() (moved bool) {
	f.tend()
	moved = f.tool.take()
	for _, d := range f.devices {
		moved = d.take() || moved
	}
	return moved
}

// pump moves everybody by what there is to take in and to ask.
func (f *fleet) pump() (moved bool) {
	moved = f.take()
	for _, d := range f.devices {
		if d.ask() {
			f.asked++
			moved = true
		}
	}
	return moved
}

// wait waits until something comes, or a pause may be over.
func (f *fleet) wait() {
	select {
	case <-f.stirred:
	case <-time.After(5 * time.Millisecond):
	}
}

// until moves on, by turn, until there is no more to wait for.
func (f *fleet) until(what string, turn func() (moved bool), done func() bool) {
	f.t.Helper()
	for began := time.Now(); ; {
		moved := turn()
		if !moved && done() {
			return
		}
		if time.Since(began) > 2*patience {
			f.t.Fatalf("%s does not come to an end:\n%s", what, strings.Join(f.told[max(0, len(f.told)-80):], "\n"))
		}
		if !moved {
			f.wait()
		}
	}
}

// settle waits until nobody waits for an answer; nothing new is asked.
func (f *fleet) settle() {
	f.until("an answer", f.take, f.answered)
}

// answered reports whether nobody waits for an answer.
func (f *fleet) answered() bool { return !slices.ContainsFunc(f.devices, (*liveDevice).waits) }

// tries has the tool ask for something, and ask again until it is answered.
func (f *fleet) tries(call wire.Call) (answer any, refusal *wire.StanzaError) {
	f.t.Helper()
	answered := false
	f.note("the tool asks %T", call)
	f.until("the tool's request", func() bool {
		if f.tool.session == nil {
			f.tool.connect()
		}
		if !answered && !f.tool.waits() {
			f.tool.put(call, func(a any, r *wire.StanzaError) { answer, refusal, answered = a, r, true })
		}
		return f.take()
	}, func() bool { return answered })
	return answer, refusal
}

// calm has everybody come and ask until there is no more to say.
func (f *fleet) calm() {
	f.t.Helper()
	for range 2 { // what one finds out may be new to the others
		for _, d := range f.devices {
			d.cut()
			d.connect()
		}
		for before := -1; before != f.asked; {
			before = f.asked
			f.until("the talk", f.pump, func() bool { return !slices.ContainsFunc(f.devices, (*liveDevice).waits) })
			for _, d := range f.devices { // its answer comes behind the events
				if d.session == nil {
					d.connect()
				}
				d.put(wire.Ping{}, func(any, *wire.StanzaError) {})
			}
		}
		f.settle()
	}
}

// sawBefore reports whether the author of a content had seen the other one.
// Where a batch is in between, that is no matter: it could not be made as a
// whole.
func (f *fleet) sawBefore(content, other string) bool {
	for content != "" && !f.batched[content] {
		if content = f.madeOf[content]; content == other {
			return other != ""
		}
	}
	return false
}

// contents are the records that the service has, and its cursor.
func (f *fleet) contents() (records map[string]device.Record, cursor string) {
	f.t.Helper()
	records, cursor = map[string]device.Record{}, pep.NoCursor
	for more := true; more; {
		answer, refusal := f.tries(pep.Sync{Node: "notes", Cursor: cursor})
		if refusal != nil {
			f.t.Fatalf("the tool can't sync: %v", refusal)
		}
		page := answer.(pep.SyncPage)
		if page.First {
			clear(records)
		}
		for _, c := range page.Changes {
			if c.Gone {
				delete(records, c.ID)
				continue
			}
			records[c.ID] = device.Record{Revision: c.Revision, KeyVersion: c.KeyVersion, Payload: c.Payload}
		}
		cursor, more = page.Cursor, page.More
	}
	return records, cursor
}

// forget notes that records were removed on purpose.
func (f *fleet) forget(records map[string]device.Record) {
	for _, r := range records {
		delete(f.kept, contentOf(r.Payload))
	}
}

// forgetLost notes that an older state came back, and that what nobody has
// any more is gone. Nobody has asked for anything since.
func (f *fleet) forgetLost() {
	f.muddled = true
	records, _ := f.contents()
	for content := range f.kept {
		held := func(r device.Record) bool { return contentOf(r.Payload) == content }
		if !slices.ContainsFunc(slices.Collect(maps.Values(records)), held) &&
			!slices.ContainsFunc(f.devices, func(d *liveDevice) bool { return d.has(content) }) {
			f.note("%s is lost with the store", content)
			delete(f.kept, content)
		}
	}
}

// judge holds that after calm everybody has what the service has, and that
// nothing is missing.
func (f *fleet) judge() {
	f.t.Helper()
	now, cursor := f.contents()
	for _, d := range f.devices {
		same := maps.EqualFunc(d.replica.Records(), now, func(a, b device.Record) bool {
			return a.Revision == b.Revision && a.KeyVersion == b.KeyVersion && string(a.Payload.Data) == string(b.Payload.Data)
		})
		if !same || d.replica.Cursor() != cursor {
			f.fault("%s holds %v at %s, the service %v at %s", d.name, d.replica.Records(), d.replica.Cursor(), now, cursor)
		}
		if left := d.replica.Changes(); len(left) > 0 {
			f.fault("%s still has %d changes to say", d.name, len(left))
		}
		if batch, under := d.replica.Batch(); under {
			f.fault("%s has the batch %s under way: begun %v, full %v, removals %d", d.name, batch.ID, batch.Begun, batch.Full, batch.Removals)
		}
		f.judgeConflicts(d)
	}
	has := func(content string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(now)), func(r device.Record) bool { return contentOf(r.Payload) == content })
	}
	for _, content := range slices.Sorted(maps.Keys(f.kept)) {
		if !has(content) && !slices.ContainsFunc(f.devices, func(d *liveDevice) bool { return d.has(content) }) {
			f.fault("%s is nowhere", content)
		}
	}
}

func (f *fleet) judgeConflicts(d *liveDevice) {
	for _, x := range d.replica.Conflicts() {
		if x.Theirs == nil || x.Mine.Gone {
			continue
		}
		mine, theirs := contentOf(x.Mine.Payload), contentOf(x.Theirs.Payload)
		if mine == theirs || !f.muddled && f.sawBefore(mine, theirs) {
			f.fault("%s has a conflict between %s and %s, which it was made of", d.name, mine, theirs)
		}
	}
}

// clearConflicts has a person settle all of them, for what the service has.
func (f *fleet) clearConflicts() {
	settled := map[string]bool{}
	for _, d := range f.devices {
		for _, x := range d.replica.Conflicts() {
			settled[contentOf(x.Mine.Payload)] = true
			if x.Theirs != nil {
				settled[contentOf(x.Theirs.Payload)] = true
			}
			d.replica.Settle(0)
		}
		d.keep()
	}
	for content := range settled {
		if !slices.ContainsFunc(f.devices, func(d *liveDevice) bool { return d.has(content) }) {
			delete(f.kept, content)
		}
	}
	f.muddled = false
}
