package main_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"pepvault/component/loopback"
)

// testBackupUnderLoad holds that writes go on while a backup is made, and that
// all that was acknowledged before it began is served after it was restored
// elsewhere (C31).
func (s *station) testBackupUnderLoad() {
	s.start()
	s.fill(120)
	w := s.startWriters()
	w.until(20)
	var before []int
	copied := filepath.Join(s.dir, "copy3.db")
	began, served := time.Now(), w.acknowledged()
	for _, path := range []string{filepath.Join(s.dir, "copy1.db"), filepath.Join(s.dir, "copy2.db"), copied} {
		before = w.acknowledgedBy()
		s.must("backup", path)
	}
	took, during := time.Since(began), w.acknowledged()-served
	if during == 0 {
		s.t.Error("nothing was written while copies were made")
	}
	s.t.Logf("%d writes acknowledged in %.2f s of backups: %.0f/s of %d/s", during, took.Seconds(), float64(during)/took.Seconds(), backupRate)
	w.stop()
	s.terminate()

	elsewhere := newStation(s.t, s.program)
	elsewhere.must("restore", copied)
	elsewhere.must("verify", filepath.Join(elsewhere.dir, storeName))
	elsewhere.start()
	all := elsewhere.ask(elsewhere.connect("laptop"), "get", allNotes)
	for n, count := range before {
		for i := range min(count, backupRecords) {
			if id := "id='" + backupID(n, i) + "'"; !strings.Contains(all, id) {
				s.t.Errorf("%s was saved and is not there", id)
			}
		}
	}
}

const (
	backupWriters = 4
	backupRecords = 60  // of each
	backupRate    = 100 // writes a second, all together
)

func backupID(writer, n int) string { return fmt.Sprint(writer, "-", n%backupRecords) }

// fill stores n records of nearly 64 KiB, so that a copy takes its time.
func (s *station) fill(n int) {
	d := s.connect("filler")
	large := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(markedText), 65_000/len(markedText)))
	for i := range n {
		s.ask(d, "set", publish("large", fmt.Sprint(i), "<record xmlns='"+nsRecord+"' key-version='3'>"+large+"</record>"))
	}
}

// backupLoad is writers of which each writes whenever it is planned, whatever
// becomes of what it wrote before.
type backupLoad struct {
	s      *station
	end    context.CancelFunc
	busy   sync.WaitGroup
	moved  chan struct{}
	mu     sync.Mutex
	sent   [backupWriters]int
	done   [backupWriters]int // acknowledged, in the order of sending
	failed error
}

func (s *station) startWriters() *backupLoad {
	ctx, end := context.WithCancel(s.t.Context())
	w := &backupLoad{s: s, end: end, moved: make(chan struct{}, 1)}
	began := time.Now()
	for n := range backupWriters {
		d, err := s.host.ConnectFunc(fmt.Sprint(operatorOwner, "/writer", n), func(_ *loopback.Device, stanza loopback.Stanza) { w.answered(n, stanza) })
		if err != nil {
			s.t.Fatal(err)
		}
		w.busy.Go(func() { w.write(ctx, n, d, began) })
	}
	return w
}

func (w *backupLoad) write(ctx context.Context, n int, d *loopback.Device, began time.Time) {
	for i := 0; ; i++ {
		planned := began.Add(time.Duration(i) * backupWriters * time.Second / backupRate)
		select {
		case <-time.After(time.Until(planned)):
		case <-ctx.Done():
			return
		}
		w.mu.Lock()
		w.sent[n]++
		w.mu.Unlock()
		stanza := fmt.Sprintf("<iq type='set' id='w%d' to='%s'>%s</iq>", i, operatorJID, note(backupID(n, i)))
		if err := d.Send([]byte(stanza)); err != nil {
			w.fail(err)
			return
		}
	}
}

func (w *backupLoad) answered(n int, stanza loopback.Stanza) {
	if stanza.Name != "iq" {
		return
	}
	if err := stanza.Err(); err != nil {
		w.fail(err)
		return
	}
	w.mu.Lock()
	if want := fmt.Sprint("w", w.done[n]); stanza.ID != want { // an account is served in order
		w.failed = errors.Join(w.failed, fmt.Errorf("%s is answered, want %s", stanza.ID, want))
	}
	w.done[n]++
	w.mu.Unlock()
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

func (w *backupLoad) fail(err error) {
	w.mu.Lock()
	w.failed = errors.Join(w.failed, err)
	w.mu.Unlock()
	w.end()
}

// acknowledgedBy counts by writer.
func (w *backupLoad) acknowledgedBy() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.done[:])
}

func (w *backupLoad) acknowledged() (n int) {
	for _, done := range w.acknowledgedBy() {
		n += done
	}
	return n
}

// until waits for so many acknowledged writes.
func (w *backupLoad) until(n int) {
	w.s.t.Helper()
	patient := time.After(2 * patience)
	for w.acknowledged() < n {
		select {
		case <-w.moved:
		case <-patient:
			w.s.t.Fatalf("%d of %d writes are acknowledged", w.acknowledged(), n)
		}
	}
}

// stop ends the writing, and holds that all that was written as planned was
// acknowledged: none was refused, and none was put off.
func (w *backupLoad) stop() {
	w.s.t.Helper()
	w.end()
	w.busy.Wait()
	sent := 0
	for _, n := range w.sent {
		sent += n
	}
	w.mu.Lock()
	failed := w.failed
	w.mu.Unlock()
	if failed != nil {
		w.s.t.Fatal("a write during the backup:", failed)
	}
	w.until(sent)
}
