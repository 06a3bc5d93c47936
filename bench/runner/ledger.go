package runner

import (
	"fmt"
	"math/bits"
	"sync"
	"time"

	"pepvault/bench/fleet"
	"pepvault/bench/workload"
)

// never is later than anything.
const never = time.Duration(1<<63 - 1)

// outcome is what became of a save.
type outcome uint8

const (
	pending outcome = iota // no answer, so it may have been made or not
	acknowledged
	refused // must never be seen
)

// save is one save of a record. All times count from the ledger's beginning.
type save struct {
	record   int
	version  uint32
	at       moment // of the plan
	sent     time.Duration
	answered time.Duration // never while pending
	outcome  outcome
	online   uint64 // who of the user's devices has to hear of it, a bit each
	heard    uint64 // who has
	left     uint64 // who has gone since, and may be told again when it comes back
}

// book is what is known of one user's vault.
type book struct {
	mu      sync.Mutex
	saves   map[uint32]*save // by version
	records [][]*save        // by record, in the order of sending
	last    [][]uint32       // by device and record: the version that it heard of last
}

// ledger knows what a target was given, and judges by it what the target gives
// back. It holds a record for right if some order of the saves explains it: a
// save happens at one moment between its sending and its answer, and an
// unanswered one at any later moment or never.
type ledger struct {
	began time.Time
	shape workload.Shape
	books []book

	faults faults
}

func newLedger(shape workload.Shape) *ledger {
	l := &ledger{began: time.Now(), shape: shape, books: make([]book, shape.Users)}
	for i := range l.books {
		b := &l.books[i]
		b.saves = make(map[uint32]*save)
		b.records = make([][]*save, shape.Records)
		b.last = make([][]uint32, shape.Devices)
		for d := range b.last {
			b.last[d] = make([]uint32, shape.Records)
		}
	}
	return l
}

func (l *ledger) now() time.Duration { return time.Since(l.began) }

// send notes that a save is about to be sent while those devices are online.
func (l *ledger) send(user, record int, version uint32, online uint64, at moment) *save {
	s := &save{record: record, version: version, at: at, sent: l.now(), answered: never, online: online}
	b := &l.books[user]
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saves[version] = s
	b.records[record] = append(b.records[record], s)
	return s
}

// answer notes what became of a save.
func (l *ledger) answer(user int, s *save, o outcome) {
	b := &l.books[user]
	b.mu.Lock()
	defer b.mu.Unlock()
	s.outcome = o
	if o != pending {
		s.answered = l.now()
	}
}

// hear takes in a notification; at is the place of its save in the plan, if it
// is one that was waited for.
func (l *ledger) hear(h fleet.Heard) (at moment, expected bool) {
	if h.Err != nil {
		l.faults.add(wrong, "device %d of user %d was told something else: %v", h.Device, h.User, h.Err)
		return at, false
	}
	c, bit := h.Content, uint64(1)<<h.Device
	b := &l.books[h.User]
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.saves[c.Version]
	switch {
	case c.Version == 0:
		return at, false // what was last published, told because the device came
	case s == nil || s.record != c.Record:
		l.faults.add(wrong, "device %d of user %d was told of a save of record %d that nobody made", h.Device, h.User, c.Record)
		return at, false
	case s.online&bit == 0, s.left&bit != 0:
		return at, false // told because it came since
	case s.heard&bit != 0:
		l.faults.add(repeated, "device %d of user %d was told twice of version %d of record %d", h.Device, h.User, c.Version, c.Record)
		return at, false
	case s.outcome == refused:
		l.faults.add(wrong, "device %d of user %d was told of a refused save", h.Device, h.User)
	}
	s.heard |= bit
	b.last[h.Device][c.Record] = c.Version
	return s.at, true
}

// left notes that a device goes.
func (l *ledger) left(user, device int) {
	b := &l.books[user]
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.saves {
		s.left |= uint64(1) << device
	}
}

// read judges the version that a record had for a request that was sent at a
// time and has been answered.
func (l *ledger) read(user, record int, version uint32, sent, answered time.Duration) bool {
	b := &l.books[user]
	b.mu.Lock()
	defer b.mu.Unlock()
	kind, why := b.judge(record, version, sent, answered)
	if why != "" {
		l.faults.add(kind, "record %d of user %d %s", record, user, why)
	}
	return why == ""
}

// judge says what is wrong with a record's version, or "".
func (b *book) judge(record int, version uint32, sent, answered time.Duration) (faultKind, string) {
	done := time.Duration(-1) // when the version was surely there
	switch s := b.saves[version]; {
	case version == fleet.Absent:
		return lostSave, "is missing"
	case version == 0:
	case s == nil || s.record != record:
		return wrong, "has a version that nobody saved"
	case s.outcome == refused:
		return wrong, "has a version that was refused"
	case s.sent > answered:
		return wrong, "has a version that had not been sent"
	default:
		done = s.answered
	}
	for _, s := range b.records[record] {
		if s.outcome == acknowledged && s.sent > done && s.answered < sent {
			return lostSave, fmt.Sprintf("has version %d, but version %d was acknowledged since", version, s.version)
		}
	}
	return 0, ""
}

// vault judges all records of a user's vault.
func (l *ledger) vault(user int, versions []uint32, sent, answered time.Duration) bool {
	right := true
	for record, version := range versions {
		right = l.read(user, record, version, sent, answered) && right
	}
	return right
}

// unheard counts the notifications of acknowledged saves that have not come.
func (l *ledger) unheard() (missing int) {
	l.each(func(_ int, b *book) {
		for _, s := range b.saves {
			if s.outcome == acknowledged {
				missing += bits.OnesCount64(s.online &^ s.heard)
			}
		}
	})
	return missing
}

// heard counts the notifications that have come.
func (l *ledger) heard() (count int) {
	l.each(func(_ int, b *book) {
		for _, s := range b.saves {
			count += bits.OnesCount64(s.heard)
		}
	})
	return count
}

// acknowledged counts the saves that were.
func (l *ledger) acknowledged() (count int) {
	l.each(func(_ int, b *book) {
		for _, s := range b.saves {
			if s.outcome == acknowledged {
				count++
			}
		}
	})
	return count
}

// finish judges what is left at the end: who was not told, and whose last word
// about a record is not what lies there. A vault that could not be read is nil.
func (l *ledger) finish(final [][]uint32) {
	l.each(func(user int, b *book) {
		for _, s := range b.saves {
			if missing := s.online &^ s.heard; s.outcome == acknowledged && missing != 0 {
				l.faults.addMany(lostNotification, bits.OnesCount64(missing), "%d devices of user %d were not told of version %d of record %d",
					bits.OnesCount64(missing), user, s.version, s.record)
			}
		}
		if final[user] == nil {
			return
		}
		for device, last := range b.last {
			for record, version := range last {
				if version != 0 && version != final[user][record] && b.newer(record, version) {
					l.faults.add(wrong, "device %d of user %d was told last of version %d of record %d, and version %d lies there",
						device, user, version, record, final[user][record])
				}
			}
		}
	})
}

// newer reports whether all later saves of a record were for the same devices
// to hear, so that a device's last word must be what lies there.
func (b *book) newer(record int, version uint32) bool {
	after := false
	for _, s := range b.records[record] {
		if after && s.online != b.saves[version].online {
			return false
		}
		after = after || s.version == version
	}
	return true
}

func (l *ledger) each(look func(user int, b *book)) {
	for user := range l.books {
		b := &l.books[user]
		b.mu.Lock()
		look(user, b)
		b.mu.Unlock()
	}
}

// excuse has nobody be owed an event of what was saved so far: those who should
// have heard were cut off.
func (l *ledger) excuse() {
	l.each(func(_ int, b *book) {
		for _, s := range b.saves {
			s.online &= s.heard
		}
	})
}
