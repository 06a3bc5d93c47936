package device

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/store/storetest"
	"pepvault/vault"
)

const (
	owner = vault.Account("alice@localhost")
	node  = "notes"
)

// world is a service and the devices of one account, with everything between
// them that can get lost, late or twice. One goroutine moves it.
type world struct {
	source  *rand.PCG
	chance  *rand.Rand // of source
	store   *memory
	engine  *pep.Engine
	now     time.Time
	clients []*client
	saved   *storetest.Model
	count   int
	watch
	restored bool // an older store came back
	deleted  bool // the vault was deleted
	// byHand says how older states come back in this history: as files, of which
	// nobody knows, or by the restore command.
	byHand  bool
	crashes bool // devices end without notice
	stormy  bool // older states come back often
	log     []string
	logged  bool // what happens is written down
	// wired has all that goes between the two go through its XML. Most histories
	// do without: that takes longer than all the rest.
	wired bool
	// calming has nothing get lost any more.
	calming bool
}

// client is a device with its connection.
type client struct {
	*Replica
	world   *world
	sender  pep.Sender
	follows bool // it has urn:pepvault:sync:0
	// downloads counts those that it asked for; asked is the latest one.
	downloads int
	asked     string
	online    bool
	app
	missed bool       // something was lost in this session
	in     []delivery // small answers and events, in the order of commits
	bulk   []delivery // large answers, which come when they come
}

// delivery is one stanza on its way to a device.
type delivery struct {
	event bool
	raw   []byte               // an event as it travels
	news  *wire.Notification   // the same, where nothing goes through XML
	read  func() func(*client) // makes give of a large answer when it is its turn
	give  func(*client)
}

func newWorld(seed uint64, devices int, broken rules) *world {
	w := &world{source: rand.NewPCG(seed, 7), wired: true, logged: true, now: time.UnixMilli(1_700_000_000_000)}
	w.chance = rand.New(w.source)
	w.watch = newWatch()
	w.byHand = w.one(2)
	w.store = newMemory(w.chance)
	w.store.changed = w.looks
	w.saved = w.store.model.Clone()
	w.start()
	for i := range devices {
		name := fmt.Sprint("d", i)
		c := &client{
			Replica: New(node), world: w,
			follows: i%2 == 0,
			sender:  pep.Sender{Account: owner, Address: string(owner) + "/" + name, Resource: name},
		}
		c.rules &^= broken
		c.limits()
		c.keep()
		w.clients = append(w.clients, c)
	}
	return w
}

// limits has one device take all at once, and the others piece by piece.
func (c *client) limits() {
	n := int(c.sender.Resource[len(c.sender.Resource)-1] - '0')
	c.PageBy(n)
	c.StageBy(n)
}

func (w *world) start() {
	w.engine = w.engineOn(w.store)
}

func (w *world) engineOn(store vault.Store) *pep.Engine {
	return pep.New(pep.Options{
		Store: store, Domains: []string{"localhost"}, AnswerBytes: 100_000, InlineBytes: 300, BatchRecords: 8,
		Limits: vault.Limits{
			Records: 3, RecordBytes: 1000, Vaults: 4, AccountBytes: 1 << 20, TombstonesFactor: 1,
			Subscriptions: 16, Affiliations: 4, Resources: 32, Capabilities: 16, ForeignPayloads: true,
			Batches: 2, StagedBytes: 1 << 20, BatchExpiry: 24 * time.Hour, MassDeleteShare: 0.5, MassDeleteMin: 1,
		},
		Now: func() time.Time { return w.now },
	})
}

func (w *world) note(format string, args ...any) {
	if w.logged {
		w.log = append(w.log, fmt.Sprintf(format, args...))
	}
}

func (w *world) one(n int) bool { return w.chance.IntN(n) == 0 }

// token makes a content that never was before.
func (w *world) token() vault.Payload {
	w.count++
	return vault.Payload{Form: vault.Native, Data: fmt.Append(nil, "v", w.count)}
}

func (w *world) view(fn func(vault.View) error) {
	if err := w.store.View(context.Background(), fn); err != nil && !errors.Is(err, vault.ErrNoVault) {
		panic(err)
	}
}

// contents are the records that the service has.
func (w *world) contents() map[string]Record {
	found := map[string]Record{}
	w.view(func(v vault.View) error {
		page, err := v.Changes(vault.Key{Account: owner, Node: node}, 0, vault.PageLimit{Records: 100, Cost: 1 << 30, Live: true})
		for _, c := range page.Changes {
			found[c.ID] = Record{Revision: c.Revision, KeyVersion: c.KeyVersion, Payload: c.Payload}
		}
		return err
	})
	return found
}

func (w *world) cursor() string {
	cursor := pep.NoCursor
	w.view(func(v vault.View) error {
		state, err := v.Vault(vault.Key{Account: owner, Node: node})
		if err == nil {
			cursor = w.store.key.Sign(state.Cursor())
		}
		return err
	})
	return cursor
}

// tell puts events on their way, each to its device.
func (w *world) tell(notices []pep.Notice) {
	for _, n := range notices {
		for _, c := range w.clients {
			if c.sender.Address != n.To || !c.online {
				continue
			}
			if !w.wired {
				for _, news := range notifications(n) {
					c.in = append(c.in, delivery{event: true, news: news})
				}
				continue
			}
			for _, body := range wire.EventBody(n.Event, wire.DetailOf(n)) {
				raw := wire.AppendMessage(nil, "vault.localhost", n.To, "m", body)
				c.in = append(c.in, delivery{event: true, raw: raw})
			}
		}
	}
}

// connect begins a session: directed presence with what the client can do, and
// what the service says to that.
func (c *client) connect() {
	c.online, c.missed = true, false
	c.world.note("%s connects", c.sender.Resource)
	c.world.engine.Arrive(pep.Presence{Sender: c.sender, Owner: owner})
	c.world.engine.Learn(c.sender, pep.CapsHash{}, pep.Announced{Nodes: []string{node}, Sync: c.follows}, false)
	if err := c.world.engine.Greet(context.Background(), c.sender, c.world.tell); err != nil {
		panic(err)
	}
}

// cut ends the session; what was on its way is gone.
func (c *client) cut() {
	c.world.note("%s is cut off", c.sender.Resource)
	c.online, c.in, c.bulk = false, nil, nil
	c.world.engine.Leave(owner, c.sender.Resource)
	c.Disconnected()
}

// send has the device ask what it wants to ask.
func (c *client) send() bool {
	c.lookForChunks()
	op := c.instead(c.Ask())
	if op == nil {
		return false
	}
	c.world.note("%s asks %T %s", c.sender.Resource, op, spoken{op})
	check := c.asking(op)
	err := c.world.engine.Do(context.Background(), pep.Request{Sender: c.sender, Owner: owner, Op: op}, func(out pep.Outcome) {
		check()
		c.answer(op, out)
	})
	if err != nil {
		c.refuse(op, err)
	}
	return true
}

// answer puts an answer and the events of that commit on their way: to a device
// the order is that of commits, between the two of one commit either.
func (c *client) answer(op pep.Op, out pep.Outcome) {
	give := func(answer any) func(*client) {
		return func(c *client) { c.Answered(answer) }
	}
	if begun, is := out.Answer.(pep.DownloadBegun); is {
		c.asked = begun.ID
		c.sendChunk(begun, op.(pep.Download).Cursor, 0)
	}
	if later, large := out.Answer.(pep.Later); large {
		read := func() func(*client) {
			answer, err := later.Read()
			if err != nil {
				return func(c *client) { c.Refused(&wire.StanzaError{}) }
			}
			return give(answer)
		}
		d := delivery{read: read}
		if c.world.one(2) { // it is read early, and events overtake it
			d = delivery{give: read()}
		}
		c.bulk = append(c.bulk, d)
		return
	}
	answer := any(out.Answer)
	if c.world.wired {
		raw := wire.AppendResult(nil, wire.Header{From: c.sender.Address, To: "vault.localhost", ID: "i"}, out.Answer)
		var err error
		if answer, err = wire.DecodeReply(raw, op); err != nil {
			panic(err)
		}
	}
	first := c.world.one(2)
	if first {
		c.world.tell(out.Notices)
	}
	c.in = append(c.in, delivery{give: give(answer)})
	if !first {
		c.world.tell(out.Notices)
	}
}

func (c *client) refuse(op pep.Op, err error) {
	c.world.note("%s is refused: %v", c.sender.Resource, err)
	raw := wire.AppendError(nil, wire.Header{From: c.sender.Address, To: "vault.localhost", ID: "i"}, err)
	_, err = wire.DecodeReply(raw, op)
	refusal := err.(*wire.StanzaError)
	c.in = append(c.in, delivery{give: func(c *client) { c.Refused(refusal) }})
}

// deliver brings a device one stanza.
func (c *client) deliver() bool {
	if len(c.bulk) > 0 && (len(c.in) == 0 || c.world.one(3)) {
		d := c.bulk[0]
		c.bulk = c.bulk[1:]
		if d.read != nil {
			d.give = d.read()
		}
		d.give(c)
		return true
	}
	if len(c.in) == 0 {
		return false
	}
	d := c.in[0]
	c.in = c.in[1:]
	if !d.event {
		d.give(c)
		return true
	}
	n := d.notification()
	switch {
	case !c.world.calming && c.world.one(12): // a host drops headlines at times
		c.world.note("%s misses an event", c.sender.Resource)
		c.missed = true
	case c.world.one(12):
		c.Heard(n)
		c.Heard(n)
	default:
		c.Heard(n)
	}
	return true
}
