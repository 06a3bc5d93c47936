package main_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault/device"
)

// session is a device's connection to a host.
type session interface {
	Send(raw []byte) error
	Cut() // without a word
}

// arrival is a stanza that came.
type arrival struct {
	name, kind, from, id string
	raw                  []byte
}

// liveDevice is a device with a replica, or a tool without one. Only its inbox
// is used by more than the goroutine that drives the fleet.
type liveDevice struct {
	fleet   *fleet
	name    string
	follows bool // it says that it follows states
	replica *device.Replica
	app
	session session // nil = not connected
	// id is that of the request which waits for its answer; "" = none does.
	id    string
	call  wire.Call
	reply func(answer any, refusal *wire.StanzaError) // nil = the replica takes it
	later time.Time                                   // nothing is asked before: the service said wait

	mu    sync.Mutex
	inbox []arrival
	epoch int // of the session: what comes for an earlier one is dropped
}

var replicaInfo = wire.Info{
	Identities: []wire.Identity{{Category: "client", Type: "pc", Name: "replica"}},
	Features:   []string{nsDisco + "info", "notes+notify", nsSync},
}

func (d *liveDevice) info() wire.Info {
	info := replicaInfo
	if !d.follows {
		info.Features = slices.Delete(slices.Clone(info.Features), 2, 3)
	}
	return info
}

// connect begins a session, if the host is there.
func (d *liveDevice) connect() {
	d.mu.Lock()
	d.epoch++
	epoch := d.epoch
	d.inbox = nil
	d.mu.Unlock()
	take := func(a arrival) {
		d.mu.Lock()
		if d.epoch == epoch {
			d.inbox = append(d.inbox, a)
		}
		d.mu.Unlock()
		d.fleet.stir()
	}
	made, err := d.fleet.dial(d.name, take)
	if err != nil {
		d.fleet.t.Fatalf("%s can't connect: %v", d.name, err)
	}
	d.session = made
	d.fleet.note("%s connects", d.name)
	d.announce()
}

func (d *liveDevice) announce() {
	d.send(wire.AppendAnnouncement(nil, "", d.fleet.service, "urn:example:replica", d.info()))
}

// send hands a stanza to the host. Where that is gone, the session is over.
func (d *liveDevice) send(raw []byte) {
	if err := d.session.Send(raw); err != nil {
		d.fleet.note("%s: %v", d.name, err)
		d.cut()
	}
}

// cut ends the session; what was on its way is gone.
func (d *liveDevice) cut() {
	if d.session == nil {
		return
	}
	d.fleet.note("%s is cut off", d.name)
	d.session.Cut()
	d.session = nil
	d.mu.Lock()
	d.epoch++
	d.inbox = nil
	d.mu.Unlock()
	d.lose()
}

// lose gives up waiting for an answer.
func (d *liveDevice) lose() {
	d.id, d.reply = "", nil
	if d.replica != nil {
		d.replica.Disconnected()
	}
}

// take takes in all that came.
func (d *liveDevice) take() (moved bool) {
	for d.session != nil {
		d.mu.Lock()
		if len(d.inbox) == 0 {
			d.mu.Unlock()
			return moved
		}
		a := d.inbox[0]
		d.inbox = d.inbox[1:]
		d.mu.Unlock()
		moved = true
		d.handle(a)
	}
	return moved
}

func (d *liveDevice) handle(a arrival) {
	switch {
	case a.from != d.fleet.service:
	case a.name == "message":
		n, err := wire.DecodeMessage(a.raw)
		if err != nil {
			d.fleet.fault("%s can't read %s: %v", d.name, a.raw, err)
			return
		}
		d.fleet.note("%s hears %s", d.name, inShort(n))
		if d.replica != nil {
			d.replica.Heard(n)
			d.look()
		}
	case a.name == "presence" && a.kind == "":
		d.announce() // the service wants to know whether this device is there
	case a.name == "iq" && a.kind == "get":
		node := parse(d.fleet.t, a.raw).child("", "query").attr("node")
		d.send(slices.Concat([]byte("<iq type='result' id='"+a.id+"' to='"+a.from+"'>"), wire.AppendInfo(nil, node, d.info()), []byte("</iq>")))
	case a.name == "iq" && a.id == d.id && d.id != "":
		d.answered(a.raw)
	}
}

// answered takes in the answer to the request.
func (d *liveDevice) answered(raw []byte) {
	answer, err := wire.DecodeReply(raw, d.call)
	var refusal *wire.StanzaError
	if err != nil && !errors.As(err, &refusal) {
		d.fleet.fault("%s can't read %s: %v", d.name, raw, err)
		return
	}
	reply := d.reply
	d.id, d.reply = "", nil
	switch {
	case reply != nil && (refusal == nil || refusal.Type != "wait"):
		reply(answer, refusal)
	case d.replica == nil:
		d.pause()
	case refusal != nil:
		d.fleet.note("%s is refused %T: %v", d.name, d.call, refusal)
		if refusal.Type == "wait" {
			d.pause() // the host has no component now, or that is too busy
		}
		d.replica.Refused(refusal)
	default:
		d.replica.Answered(answer)
		d.look()
	}
}

func (d *liveDevice) pause() { d.later = time.Now().Add(20 * time.Millisecond) }

// ask sends the next request of the replica, if there is one.
func (d *liveDevice) ask() (asked bool) {
	if d.session == nil || d.waits() {
		return false
	}
	d.care()
	op := d.replica.Ask()
	if op == nil {
		return false
	}
	if _, sync := op.(pep.Sync); !sync {
		d.keep()
	}
	d.fleet.note("%s asks %T", d.name, op)
	d.put(op, nil)
	return true
}

func (d *liveDevice) put(call wire.Call, reply func(any, *wire.StanzaError)) {
	d.fleet.requests++
	d.id, d.call, d.reply = fmt.Sprint(d.name, "-", d.fleet.requests), call, reply
	d.send(wire.AppendRequest(nil, wire.Header{To: d.fleet.service, ID: d.id}, call))
}

// waits reports whether an answer, or the end of a pause, is waited for.
func (d *liveDevice) waits() bool { return d.id != "" || time.Now().Before(d.later) }

func inShort(n wire.Notification) string {
	var b strings.Builder
	for _, c := range n.Changes {
		fmt.Fprintf(&b, "%s@%d ", c.ID, c.Revision)
	}
	if n.State == nil {
		return b.String() + "without a state"
	}
	return fmt.Sprintf("%sstate %d items, purged %v, deleted %v", b.String(), len(n.State.Items), n.Purged, n.Deleted)
}
