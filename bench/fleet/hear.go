package fleet

import (
	"bytes"
	"fmt"
	"strings"

	"pepvault/bench/workload"
	"pepvault/vault/device/c2s"
)

// hear takes in a message of a target.
func (d *Device) hear(target int, s c2s.Stanza) {
	if s.Type == "error" || !bytes.Contains(s.Raw, []byte(Node)) {
		return
	}
	// ejabberd sends an event twice to its owner's devices: for their
	// capabilities, and to the account itself, hence to all of them. The first
	// is what a device asked for.
	if d.fleet.options.Targets[target].PEP() && !strings.Contains(s.To, "/") {
		return
	}
	defer d.countIn(target)
	d.stands(target, s)
	hear := d.fleet.options.Hear
	if hear == nil || d.fleet.options.Targets[target].Echo || !bytes.Contains(s.Raw, []byte("#event")) {
		return
	}
	count := 0
	err := eachItem(beforeState(s.Raw), func(id string, ciphertext []byte) error {
		count++
		c, err := d.judge(id, ciphertext)
		hear(Heard{Target: target, User: d.User, Device: d.Number, Content: c, Err: err})
		return nil
	})
	if err != nil || count == 0 {
		hear(Heard{Target: target, User: d.User, Device: d.Number,
			Err: fmt.Errorf("%w: a notification that brings no record (%d bytes)", ErrWrong, len(s.Raw))})
	}
}

// beforeState cuts off what a component says about the vault's state, whose
// items are no records.
func beforeState(raw []byte) []byte {
	if i := bytes.Index(raw, []byte("<state ")); i >= 0 {
		return raw[:i]
	}
	return raw
}

// countIn notes that a target counts the device as interested.
func (d *Device) countIn(target int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.joined[target]:
	default:
		close(d.joined[target])
	}
}

// judge tells what a record is, if it is one of this user's under its own id.
func (d *Device) judge(id string, ciphertext []byte) (workload.Content, error) {
	shape := d.fleet.options.Shape
	// A stack's worth of scratch: records of the standard size need no heap.
	var scratch [1024]byte
	c, _, err := shape.Judge(ciphertext, scratch[:0])
	if err != nil {
		return c, fmt.Errorf("%w: record %s: %w", ErrWrong, id, err)
	}
	if record, ok := shape.Record(id); !ok || record != c.Record || c.User != d.User {
		return c, fmt.Errorf("%w: under the id %s lies record %d of user %d", ErrWrong, id, c.Record, c.User)
	}
	return c, nil
}
