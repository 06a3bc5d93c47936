package pep_test

import (
	"strings"
	"time"

	"pepvault/pep"
	"pepvault/vault"
)

// batchModel says in a few plain maps what a vault with batches does. Its time
// counts the changes.
type batchModel struct {
	there   bool
	history int // which life of the vault
	now     int
	records map[string]modelRecord
	changed map[string]int // id to the time of its latest change
	floor   uint32
	batches map[string]*modelBatch // by account and id
}

type modelRecord struct {
	data       string
	keyVersion uint32
}

type modelBatch struct {
	rotate uint32
	begun  time.Time
	end    string // "" = open
	staged map[string]modelStaged
}

type modelStaged struct {
	modelRecord
	gone bool
	held held
}

// held is what a device knows.
type held struct {
	cursor        string
	history, time int
}

func (m *batchModel) change(id string, r *modelRecord) {
	m.now++
	m.changed[id] = m.now
	if r == nil {
		delete(m.records, id)
	} else {
		m.records[id] = *r
	}
}

func (m *batchModel) make(r modelRecord, id string) {
	if !m.there {
		m.there, m.floor, m.history = true, 0, m.history+1
		m.records, m.changed = map[string]modelRecord{}, map[string]int{}
	}
	m.change(id, &r)
}

func (m *batchModel) end() {
	m.there, m.records = false, map[string]modelRecord{}
	m.batches = map[string]*modelBatch{}
}

// find returns a batch that has not expired.
func (m *batchModel) find(key string, now time.Time) *modelBatch {
	b := m.batches[key]
	if b == nil || !b.begun.Add(time.Hour).Truncate(time.Second).After(now) {
		return nil
	}
	return b
}

func (m *batchModel) open(account string, now time.Time) (n int) {
	for key := range m.batches {
		if b := m.find(key, now); b != nil && b.end == "" && strings.HasPrefix(key, account) {
			n++
		}
	}
	return n
}

func (m *batchModel) begin(key, account string, h held, rotate uint32, owner bool, now time.Time) error {
	b := m.find(key, now)
	switch {
	case !owner && (rotate > 0 || !m.there):
		return pep.ErrForbidden
	case !m.there:
		return vault.ErrNoVault
	case b != nil && b.rotate != rotate:
		return pep.ErrBadRequest
	case b != nil:
		return nil
	case h.history != m.history:
		return pep.ErrStale
	case rotate > 0 && rotate <= m.floor:
		return pep.ErrBadRequest
	case m.open(account, now) >= 2:
		return pep.ErrTooManyBatches
	}
	m.batches[key] = &modelBatch{rotate: rotate, begun: now, staged: map[string]modelStaged{}}
	return nil
}

func (m *batchModel) stage(key, id string, s modelStaged, owner bool, now time.Time) error {
	b := m.find(key, now)
	switch {
	case !owner && !m.there:
		return pep.ErrForbidden
	case b == nil || b.end != "":
		return vault.ErrNoBatch
	case s.held.history != m.history:
		return pep.ErrStale
	case !s.gone && (s.keyVersion < m.floor || s.keyVersion < b.rotate):
		return pep.ErrKeyVersionTooLow
	}
	b.staged[id] = s
	return nil
}

func (m *batchModel) commit(key string, h held, now time.Time) error {
	b := m.find(key, now)
	switch {
	case b == nil || b.end == "aborted":
		return vault.ErrNoBatch
	case b.end == "committed":
		return nil
	}
	stale := h.history != m.history || h.time != m.now
	low := b.rotate > 0 && b.rotate <= m.floor
	for id, s := range b.staged {
		stale = stale || s.held.time < m.changed[id] || b.rotate > 0 && !s.gone && s.keyVersion != b.rotate
	}
	for id := range m.records {
		_, staged := b.staged[id]
		stale = stale || b.rotate > 0 && !staged
	}
	switch {
	case stale:
		return pep.ErrStale
	case low:
		return pep.ErrBadRequest
	}
	for _, s := range b.staged {
		if !s.gone && s.keyVersion < m.floor {
			return pep.ErrKeyVersionTooLow
		}
	}
	for id, s := range b.staged {
		_, live := m.records[id]
		switch {
		case !s.gone:
			m.change(id, &s.modelRecord)
		case live:
			m.change(id, nil)
		}
	}
	if b.rotate > 0 {
		m.floor = b.rotate
		m.now++
	}
	b.end, b.staged = "committed", nil
	return nil
}
