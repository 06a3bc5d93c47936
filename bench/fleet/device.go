package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault/device/c2s"
)

const (
	nsCaps      = "http://jabber.org/protocol/caps"
	nsDiscoInfo = "http://jabber.org/protocol/disco#info"
	nsSync      = "urn:pepvault:sync:0"
)

// Device is one device of the fleet. It keeps its place in a vault (a cursor)
// while it is not connected.
type Device struct {
	User, Number int // of all users; of the user's devices

	fleet *Fleet

	mu     sync.Mutex // guards what follows
	conn   Conn
	joined []chan struct{} // by target: closed when it counts the device as interested
	told   []int           // targets that it announced itself to in this session
	held   []held          // by target
	push   *pushed         // the pushed download under way
	waits  *standing       // what it waits to hear of a vault's state

	pushing chan struct{} // holds a token while one is: a second would replace it
}

// Connect logs the device in. It is told of nothing yet.
func (d *Device) Connect(ctx context.Context) error {
	d.mu.Lock()
	for i := range d.joined {
		d.joined[i] = make(chan struct{})
	}
	d.told = nil
	d.mu.Unlock()
	conn, err := d.fleet.options.Host.Connect(ctx, d.fleet.UserName(d.User), fmt.Sprintf("d%d", d.Number), d.handle)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn = conn
	return nil
}

// Leave disconnects; the server tells whom it tells.
func (d *Device) Leave() {
	if conn := d.connection(); conn != nil {
		_ = conn.Close() // it is gone either way
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn = nil
}

// Connected reports whether the device has logged in and not left since; the
// network may have ended its connection.
func (d *Device) Connected() bool { return d.connection() != nil }

func (d *Device) connection() Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conn
}

// Announce says to a target by presence that the device wants to be told of
// changes: to the component directly, for PEP to the server. It does not wait.
func (d *Device) Announce(target int) error {
	conn := d.connection()
	if conn == nil {
		return errNotConnected
	}
	d.mu.Lock()
	d.told = append(d.told, target)
	d.mu.Unlock()
	return conn.Send(d.fleet.presence(d.fleet.options.Targets[target].JID))
}

// Again has the device log in anew and announce itself to whom it had.
func (d *Device) Again(ctx context.Context) error {
	d.mu.Lock()
	told := d.told
	d.mu.Unlock()
	d.Leave()
	if err := d.Connect(ctx); err != nil {
		return err
	}
	for _, target := range told {
		if err := d.Announce(target); err != nil {
			return err
		}
	}
	return nil
}

// Listening waits until all targets that the device announced itself to count it
// as interested: a component says where the vault stands, PEP sends what was
// last published.
func (d *Device) Listening(ctx context.Context) error {
	d.mu.Lock()
	told := d.told
	d.mu.Unlock()
	for _, target := range told {
		if err := d.listening(ctx, target); err != nil {
			return err
		}
	}
	return nil
}

func (d *Device) listening(ctx context.Context, target int) error {
	t := d.fleet.options.Targets[target]
	if t.Echo {
		return nil
	}
	d.mu.Lock()
	joined := d.joined[target]
	d.mu.Unlock()
	select {
	case <-joined:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s does not say that it notifies the device: %w", t.Name, ctx.Err())
	}
}

var errNotConnected = errors.New("the device is not connected")

// ask sends a request to a target and returns the answer, which is a result.
func (d *Device) ask(ctx context.Context, target int, call wire.Call) ([]byte, error) {
	conn := d.connection()
	if conn == nil {
		return nil, errNotConnected
	}
	kind, payload := wire.Ask(call)
	answer, err := conn.IQ(ctx, kind, d.fleet.options.Targets[target].JID, payload)
	if err != nil {
		return nil, err
	}
	if answer.Type == "result" {
		return answer.Raw, nil
	}
	if _, err = wire.DecodeReply(answer.Raw, call); err == nil {
		err = fmt.Errorf("%w: an answer of type %q", wire.ErrBadReply, answer.Type)
	}
	return nil, err
}

// handle takes what answers no request of ours. It runs on the connection's
// reader.
func (d *Device) handle(s c2s.Stanza) bool {
	switch {
	case s.Name == "message":
		if target, ours := d.fleet.target(s.From, d.account()); ours {
			d.hear(target, s)
		}
		return true
	case s.Name == "presence":
		d.present(s)
		return true
	case s.Name != "iq" || s.Type != "get" && s.Type != "set":
		return true
	case s.Type == "set":
		return d.takeChunk(s)
	case bytes.Contains(s.Raw, []byte(nsDiscoInfo)):
		d.describe(s)
		return true
	}
	return false
}

func (d *Device) account() string {
	return d.fleet.UserName(d.User) + "@" + d.fleet.options.Host.Domain()
}

// describe answers what the device can do, which its hash in presence stands
// for.
func (d *Device) describe(s c2s.Stanza) {
	conn := d.connection()
	if conn == nil {
		return
	}
	query, _ := findTag(s.Raw, "query")
	node, _ := query.attr("node")
	_ = conn.Send(appendResult(nil, s, wire.AppendInfo(nil, node, d.fleet.info))) // if it fails, the connection has ended
}

// appendResult appends the result of a request that came to a device.
func appendResult(dst []byte, s c2s.Stanza, payload []byte) []byte {
	dst = append(append(dst, "<iq type='result' id='"...), escape(s.ID)...)
	if s.From != "" {
		dst = append(append(dst, "' to='"...), escape(s.From)...)
	}
	return append(append(append(dst, "'>"...), payload...), "</iq>"...)
}

// Prepare makes the account's vault with room for so many records, open to
// nobody else. It waits for the answer as Fill does.
func (d *Device) Prepare(ctx context.Context, target int) error {
	form := &pep.Form{Type: "http://jabber.org/protocol/pubsub#node_config", Fields: []pep.Field{
		{Name: "pubsub#persist_items", Values: []string{"true"}},
		{Name: "pubsub#max_items", Values: []string{fmt.Sprint(d.fleet.options.Shape.Records)}},
		{Name: "pubsub#access_model", Values: []string{"whitelist"}},
	}}
	return answered(ctx, func(ctx context.Context) error {
		_, err := d.ask(ctx, target, pep.Create{Node: Node, Config: form})
		return err
	})
}

// Remove deletes the account's vault. It waits for the answer as Fill does.
func (d *Device) Remove(ctx context.Context, target int) error {
	return answered(ctx, func(ctx context.Context) error {
		_, err := d.ask(ctx, target, pep.Delete{Node: Node})
		return err
	})
}
