package fleet

import (
	"strings"
	"time"

	"pepvault/vault/device/c2s"
)

// standing is what a device waits for behind a restart of a service: to hear
// that the vault stands where the device does.
type standing struct {
	target int
	at     chan time.Time // takes one
}

// AwaitStanding has the device note when the target says next that the vault
// stands at the device's cursor. The channel gets that moment, once; an earlier
// wait ends unheard.
func (d *Device) AwaitStanding(target int) <-chan time.Time {
	at := make(chan time.Time, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waits = &standing{target, at}
	return at
}

// stands takes in what a message says about the vault's state.
func (d *Device) stands(target int, s c2s.Stanza) {
	state, found := findTag(s.Raw, "state")
	cursor, there := state.attr("cursor")
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.waits; found && there && w != nil && w.target == target && cursor == d.held[target].cursor {
		w.at <- time.Now()
		d.waits = nil
	}
}

// present answers presence of a service, which has begun anew: the device
// announces itself again (PROTOCOL §6).
func (d *Device) present(s c2s.Stanza) {
	from, _, _ := strings.Cut(s.From, "/")
	d.mu.Lock()
	conn, again := d.conn, false
	for _, t := range d.told {
		again = again || d.fleet.options.Targets[t].JID == from && from != ""
	}
	d.mu.Unlock()
	if conn != nil && again && s.Type == "" {
		_ = conn.Send(d.fleet.presence(from)) // if it fails, the connection has ended
	}
}
