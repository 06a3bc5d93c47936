package device

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"pepvault/pep"
)

// history is a world and the steps that it takes. Each step draws from a seed of
// its own, so that it stays what it is when others are left out.
type history struct {
	seed   uint64
	steps  []uint64
	broken rules
	meddle bool // the devices' memories are not kept when they should be
}

func newHistory(seed uint64, broken rules) history {
	h := history{seed: seed, broken: broken}
	chance := rand.New(rand.NewPCG(seed, 11))
	for range 60 + chance.IntN(120) {
		h.steps = append(h.steps, chance.Uint64())
	}
	return h
}

// live goes through the history and returns what is wrong with it.
func (h history) live(logged bool) (faults, log []string) {
	w := newWorld(h.seed, 3, h.broken)
	w.unique, w.logged, w.wired, w.crashes = true, logged, h.seed%16 == 0, h.seed%2 == 0
	w.stormy = h.seed%7 == 0
	for _, c := range w.clients {
		c.meddle = h.meddle
		c.keep()
	}
	for _, step := range h.steps {
		w.source.Seed(step, 7)
		if w.step(); len(w.wrong) > 0 {
			return w.wrong, w.log
		}
	}
	w.source.Seed(h.seed, 13)
	w.note("all comes to rest")
	// What one device finds out about the store may begin a new epoch, which
	// the others learn of on their next session.
	for range 2 {
		if !w.calm() {
			return append(w.wrong, "it never comes to rest"), w.log
		}
		for _, c := range w.clients {
			c.missed = c.missed || w.restored
		}
	}
	return w.faults(), w.log
}

// fails reports whether the history ends badly.
func (h history) fails() bool {
	faults, _ := h.live(false)
	return len(faults) > 0
}

// shrunk leaves out steps for as long as the history still ends badly.
func (h history) shrunk() history {
	for size := len(h.steps) / 2; size > 0; {
		shorter := false
		for from := 0; from+size <= len(h.steps); {
			try := h
			try.steps = slices.Delete(slices.Clone(h.steps), from, from+size)
			if try.fails() {
				h, shorter = try, true
			} else {
				from += size
			}
		}
		if size = size / 2; size == 0 && shorter {
			size = 1
		}
	}
	return h
}

// story is the history in words.
func (h history) String() string {
	faults, log := h.live(true)
	text := fmt.Sprintf("seed %d, %d steps:\n", h.seed, len(h.steps))
	all := append(log, faults...)
	if len(all) > toldLines {
		all = append(all[:toldLines], "and so on")
	}
	for _, line := range all {
		text += "  " + line + "\n"
	}
	return text
}

// toldLines bounds what is told of one that never comes to rest.
const toldLines = 200

// step moves the world by one thing.
func (w *world) step() {
	c := w.clients[w.chance.IntN(len(w.clients))]
	id := fmt.Sprint(w.chance.IntN(4))
	switch kind := w.chance.IntN(48); {
	case kind < 5:
		payload := w.token()
		c.edit(id, &payload)
	case kind == 5:
		c.edit(id, nil)
	case kind == 6:
		if c.online {
			c.cut()
		}
	case kind < 13:
		w.seldom(kind)
	case kind < 18:
		w.batches(kind, c)
	case kind < 20:
		c.tend()
	case kind == 20:
		if w.crashes {
			if w.one(2) {
				c.keep()
			}
			if w.one(3) {
				c.crash()
			}
		}
	default:
		switch {
		case !c.online:
			c.connect()
		case w.one(2):
			c.send()
		default:
			c.deliver()
		}
	}
	c.check()
}

// seldom does what concerns everybody.
func (w *world) seldom(kind int) {
	switch {
	case kind == 7 && !w.stormy && w.one(4):
		w.command(pep.Purge{Node: node})
	case kind == 8 && !w.stormy && w.one(8):
		w.command(pep.Delete{Node: node})
	case kind == 8 && w.one(12):
		w.command(pep.Erase{})
	case kind == 9 && w.one(3):
		w.configure()
	case kind == 10 && w.one(4):
		w.note("the service restarts")
		w.restartService(w.store.restart)
	case kind == 11 && w.one(4), kind == 7 && w.stormy && w.one(2):
		w.note("a backup is made")
		w.saved = w.store.model.Clone()
	case kind == 12 && w.one(8), kind == 8 && w.stormy && w.one(2):
		w.restore()
	case kind == 12 && w.one(3):
		w.several()
	}
}

// batches does what concerns the batches of a device.
func (w *world) batches(kind int, c *client) {
	switch {
	case kind == 13 && w.stormy:
		c.rush()
	case kind == 13 && w.one(2):
		c.rotate(max(c.KeyVersion(), 1) + 1)
	case kind == 14 && w.one(2):
		c.together()
	case kind == 15 && w.one(8):
		c.abandon()
	case kind == 16 && w.one(8):
		w.dayPasses()
	default: // who has something under way, goes on with it
		c.tend()
		if c.online {
			c.send()
		}
	}
}

// rush has a device rotate while nobody else moves. In a stormy history what was
// before it comes back afterwards.
func (c *client) rush() {
	if !c.online {
		c.connect()
	}
	for i := range 24 {
		if i == 12 {
			c.rotate(max(c.KeyVersion(), 1) + 1)
		}
		c.tend()
		c.send()
		for c.deliver() {
			c.check()
		}
	}
}

// dayPasses has batches expire.
func (w *world) dayPasses() {
	w.note("a day passes")
	w.now = w.now.Add(25 * time.Hour)
	if w.one(2) {
		if err := w.engine.Expire(context.Background()); err != nil {
			panic(err)
		}
	}
}

// calm has everything arrive and everybody ask until there is nothing more to
// say; false if that does not end.
func (w *world) calm() bool {
	w.calming = true
	for _, c := range w.clients {
		if c.online && c.missed {
			c.cut()
		}
		if !c.online {
			c.connect() // on each session a device looks what it missed
		}
	}
	waits := 0
	for range 2000 {
		moved := false
		for _, c := range w.clients {
			for c.deliver() {
				moved = true
				c.check()
			}
			moved = c.send() || moved
		}
		if moved {
			continue
		}
		if waits == 2 || !slices.ContainsFunc(w.clients, func(c *client) bool { return c.batch != nil }) {
			return true
		}
		if waits++; waits == 2 {
			w.dayPasses() // the batches of devices that are gone end
		}
		for _, c := range w.clients {
			c.Again()
		}
	}
	return false
}
