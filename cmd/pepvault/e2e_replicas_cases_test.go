package main_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"pepvault/component/loopback"
	"pepvault/vault/device"
)

// C26: two devices change the same record, and the one that saves last has not
// seen the other one's change: it is told so, and both versions are there.
func testTwoEdits(t *testing.T, program string) {
	p := newPlace(t, program, 2, "")
	p.start()
	laptop, phone := p.devices[0], p.devices[1]
	laptop.edit("login-7", false) // v1
	p.calm()
	if got := phone.shown("login-7"); got != "v1" {
		t.Fatalf("the phone shows %q", got)
	}
	laptop.cut()
	phone.edit("login-7", false) // v2
	p.until("the save", p.pump, func() bool { return !phone.waits() })
	laptop.edit("login-7", false) // v3
	p.calm()
	p.judge()
	conflicts := laptop.replica.Conflicts()
	if len(conflicts) != 1 || contentOf(conflicts[0].Mine.Payload) != "v3" || contentOf(conflicts[0].Theirs.Payload) != "v2" {
		t.Errorf("the laptop has the conflicts %+v", conflicts)
	}
	if got := phone.shown("login-7"); got != "v2" {
		t.Errorf("the phone shows %q", got)
	}
}

// C29: the operator restores a copy from before what a device holds. It is
// told so, compares by itself, and brings back what only it has.
func testRestoredBehind(t *testing.T, program string) {
	p := newPlace(t, program, 2, "")
	p.start()
	laptop, phone := p.devices[0], p.devices[1]
	laptop.edit("a", false) // v1
	laptop.edit("b", false) // v2
	p.calm()
	p.must("backup", p.copyName(1))
	laptop.edit("c", false) // v3
	laptop.edit("a", false) // v4
	laptop.edit("b", true)
	p.calm()
	p.end()
	p.must("restore", p.copyName(1))
	p.begin()
	p.forgetLost()
	p.calm()
	p.judge()
	for _, d := range []*liveDevice{laptop, phone} {
		// Nobody has b as it was: what an operator restores is there again.
		if a, b, c := d.shown("a"), d.shown("b"), d.shown("c"); a != "v4" || b != "v2" || c != "v3" {
			t.Errorf("%s shows a=%s b=%s c=%s", d.name, a, b, c)
		}
		if got := d.replica.Conflicts(); len(got) > 0 {
			t.Errorf("%s has the conflicts %+v", d.name, got)
		}
	}
}

// C50: a client imports 2,000 records in one go. Most are refused for a while;
// once it has asked for these again, with pauses, all are there.
func testLargeImport(t *testing.T, program string) {
	const all = 2000
	p := newPlace(t, program, 1, "[limits]\nmax_records = 2000\nmax_batch_records = 2000\nrate_per_second = 1000\nrate_burst = 700\n")
	p.start()
	answers := make(chan loopback.Stanza, all)
	client, err := p.host.ConnectFunc(operatorOwner+"/client", func(_ *loopback.Device, s loopback.Stanza) {
		if s.Name == "iq" {
			answers <- s.Clone()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	left := make([]int, all)
	for i := range left {
		left[i] = i
	}
	refused := 0
	for turn := 0; len(left) > 0; turn++ {
		if turn == 20 {
			t.Fatalf("%d records are refused for ever", len(left))
		}
		for _, i := range left {
			stanza := fmt.Sprintf("<iq type='set' id='%d' to='%s'>%s</iq>", i, operatorJID, publish("notes", fmt.Sprint("r", i), record(1, fmt.Sprint(i))))
			if err := client.Send([]byte(stanza)); err != nil {
				t.Fatal(err)
			}
		}
		var again []int
		var pause time.Duration
		for range left {
			wait := importAnswer(t, <-answers, &again)
			pause = max(pause, wait)
		}
		refused += len(again)
		left = again
		if len(left) > 0 {
			time.Sleep(pause) // as the service wants it
		}
	}
	if refused == 0 {
		t.Error("nothing was refused: this is no test of it")
	}
	want := map[string]bool{}
	for i := range all {
		want[fmt.Sprint("r", i)] = true
	}
	d := p.devices[0]
	d.replica = device.New("notes")
	p.calm()
	for id := range d.replica.Records() {
		delete(want, id)
	}
	if len(want) > 0 || len(d.replica.Records()) != all {
		t.Errorf("%d records, and %d are missing", len(d.replica.Records()), len(want))
	}
	t.Logf("%d refused on the way", refused)
}

// importAnswer looks at the answer to one publish, and returns how long the
// client has to pause before it asks again.
func importAnswer(t *testing.T, s loopback.Stanza, again *[]int) time.Duration {
	t.Helper()
	fault := s.Err()
	if fault == nil {
		return 0
	}
	if fault.Type != "wait" || !slices.Contains([]string{"resource-constraint", "policy-violation"}, fault.Condition) {
		t.Fatalf("an import is refused: %v", fault)
	}
	n, err := strconv.Atoi(s.ID)
	if err != nil {
		t.Fatal(err)
	}
	*again = append(*again, n)
	seconds, err := strconv.Atoi(attributeIn(t, string(s.Raw), "after"))
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(seconds) * time.Second
}
