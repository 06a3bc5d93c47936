package sqlite

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pepvault/vault"
)

// leafPage is a leaf of a table with one cell at the end, one free block and
// something in all that is not used.
func leafPage() []byte {
	page := bytes.Repeat([]byte{'x'}, 512)
	copy(page, []byte{13, 1, 0x40, 0, 1, 1, 0, 0, 1, 0xf0}) // free block at 0x140, a cell at 0x1f0, content from 0x100
	binary.BigEndian.PutUint16(page[0x140:], 0)
	binary.BigEndian.PutUint16(page[0x142:], 0x20)
	return page
}

func TestWipe(t *testing.T) {
	t.Parallel()
	page := leafPage()
	if !wipe(page, false) {
		t.Error("nothing was found")
	}
	want := leafPage()
	clear(want[10:0x100])
	clear(want[0x144:0x160])
	if !bytes.Equal(page, want) {
		t.Errorf("page\n%q, want\n%q", page, want)
	}
	if wipe(page, false) {
		t.Error("something was found in a page that was overwritten")
	}
	for name, spoil := range map[string]func([]byte){
		"no b-tree":                   func(p []byte) { p[0] = 0 },
		"cells above the content":     func(p []byte) { p[3] = 1 },
		"content above the page":      func(p []byte) { p[5] = 0xff },
		"a free block above the page": func(p []byte) { p[1], p[2] = 1, 0xfe },
		"a free block of no size":     func(p []byte) { p[0x142], p[0x143] = 0, 3 },
		"a free block in a circle":    func(p []byte) { p[0x140], p[0x141] = 1, 0x40 },
	} {
		page, want := leafPage(), leafPage()
		spoil(page)
		spoil(want)
		wipe(page, false)
		if !bytes.Equal(page[0x100:], want[0x100:]) || !bytes.Equal(page[:8], want[:8]) {
			t.Errorf("%s: what is in use was changed", name)
		}
	}
	first := append(make([]byte, fileHeader), leafPage()...)
	for i := range fileHeader {
		first[i] = 'h'
	}
	before := bytes.Clone(first[:fileHeader])
	wipe(first, true)
	if !bytes.Equal(first[:fileHeader], before) {
		t.Error("the header of the file was changed")
	}
	for n := range 20 {
		wipe(leafPage()[:n], false) // it does not panic
	}
}

func FuzzWipe(f *testing.F) {
	f.Add(leafPage(), false)
	f.Add(append(make([]byte, fileHeader), leafPage()...), true)
	f.Fuzz(func(t *testing.T, page []byte, first bool) {
		wipe(page, first)
		if wipe(page, first) {
			t.Error("something was found in a page that was overwritten")
		}
	})
}

// soil puts a mark where a leaf of the records does not use it, as SQLite may
// when it lays out a page anew.
func soil(t *testing.T, s *Store, mark string) {
	t.Helper()
	err := s.submit(t.Context(), func(tx *tx) error {
		var page int64
		err := tx.conn.sql.QueryRowContext(t.Context(), "SELECT pageno FROM dbstat WHERE name = 'record' AND pagetype = 'leaf' AND unused > 200 LIMIT 1").Scan(&page)
		if err != nil {
			return err
		}
		var data []byte
		if err := tx.row("read", readPage, []any{page}, &data); err != nil {
			return err
		}
		copy(data[8+2*binary.BigEndian.Uint16(data[3:]):], mark)
		_, err = tx.write("soil", writePage, data, page)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What lies in the unused part of a page goes: of a page that was written, and
// after a kill of every page.
func TestScrub(t *testing.T) {
	t.Parallel()
	mark := []string{"<left in a page>"}
	path := filepath.Join(t.TempDir(), "vault.db")
	s := still(openWith(t, Options{Path: path}))
	fill(t, s, 9)
	soil(t, s, mark[0])
	mustClean(t, s)
	if found := holding(t, path, mark); len(found) > 0 {
		t.Errorf("still there: %q", found)
	}

	soil(t, s, mark[0])
	if err := s.checkpoint(); err != nil { // no log tells of it
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "vault.db")
	if err := copyFile(path, copied); err != nil {
		t.Fatal(err)
	}
	if found := holding(t, copied, mark); len(found) == 0 {
		t.Error("it is gone before the clean-up: this test shows nothing")
	}
	next := still(openWith(t, Options{Path: copied}))
	mustClean(t, next)
	if found := holding(t, copied, mark); len(found) > 0 {
		t.Errorf("still there after a kill: %q", found)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	if got := mustVerify(t, copied); got.Records != 9 {
		t.Errorf("%+v", got)
	}
}

// soiledPage returns a page of the records that soil may choose.
func soiledPage(t *testing.T, s *Store) (page uint32) {
	t.Helper()
	row := s.writer.sql.QueryRowContext(t.Context(), "SELECT pageno FROM dbstat WHERE name = 'record' AND pagetype = 'leaf' AND unused > 200 LIMIT 1")
	if err := row.Scan(&page); err != nil {
		t.Fatal(err)
	}
	return page
}

// A page of a commit that nobody sees yet is noted already: it is looked at when
// it can be seen.
func TestScrubAwaitsCommit(t *testing.T) {
	t.Parallel()
	const mark = "<left in a page>"
	path := filepath.Join(t.TempDir(), "vault.db")
	s := still(openWith(t, Options{Path: path}))
	fill(t, s, 9)
	mustClean(t, s)
	page := soiledPage(t, s)
	s.cleaner.touched.add(page)
	done := make(chan error, 1)
	var between func()
	err := s.submit(t.Context(), func(tx *tx) error {
		var data []byte
		if err := tx.row("read", readPage, []any{int64(page)}, &data); err != nil {
			return err
		}
		copy(data[8+2*binary.BigEndian.Uint16(data[3:]):], mark)
		if _, err := tx.write("soil", writePage, data, int64(page)); err != nil {
			return err
		}
		go func() { done <- s.cleaner.scrub(t.Context()) }()
		select {
		case between = <-s.pauses: // it waits until this is committed
		case err := <-done:
			t.Errorf("a page was looked at before its commit was in sight: %v", err)
		}
		return nil
	})
	if err != nil || between == nil {
		t.Fatal(err)
	}
	if err := s.pause(t.Context(), between); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	err = s.submit(t.Context(), func(tx *tx) error {
		var data []byte
		err := tx.row("read", readPage, []any{int64(page)}, &data)
		if bytes.Contains(data, []byte(mark)) {
			t.Error("still there")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A page that is written while it is looked at is looked at again.
func TestScrubWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	var s *Store
	var page uint32
	watching, commits := false, 0 // belong to the commit loop
	s = still(openWith(t, Options{Path: path, Committed: func(int, time.Duration) {
		if watching {
			commits++
			s.cleaner.touched.add(page) // which waits for this commit, its own
		}
	}}))
	fill(t, s, 9)
	mustClean(t, s)
	page = soiledPage(t, s)
	soil(t, s, "<left in a page>")
	if err := s.cleaner.gather(); err != nil {
		t.Fatal(err)
	}
	if err := s.submit(t.Context(), func(*tx) error { watching = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.cleaner.scrub(t.Context()); err != nil {
		t.Fatal(err)
	}
	if commits != 1 {
		t.Fatalf("%d commits: this test shows nothing", commits)
	}
	if left := s.cleaner.touched.first(9); !slices.Contains(left, page) {
		t.Errorf("to be looked at: %d, want %d among them", left, page)
	}
}

// A store that was closed in order has nothing to look at when it is opened.
func TestTidy(t *testing.T) {
	t.Parallel()
	path := filled(t, 300)
	s := still(openWith(t, Options{Path: path}))
	if n := s.cleaner.touched.n; n > 5 {
		t.Errorf("%d pages are to be looked at", n)
	}
	mustUpdate(t, s, func(tx vault.Tx) error { return tx.Delete(vault.Key{Account: "fill@example.org", Node: "fill"}) })
	if err := s.Close(); err != nil { // before it was cleaned up
		t.Fatal(err)
	}
	s = still(openWith(t, Options{Path: path}))
	if n := s.cleaner.touched.n; n < 50 {
		t.Errorf("only %d pages are to be looked at", n)
	}
	mustClean(t, s)
	if n := count(t, s, "record"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// Records of many sizes come and go at random, with clean-ups in between: what
// is gone is gone from the files.
func TestForgetsRandomly(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	path := filepath.Join(t.TempDir(), "vault.db")
	s := still(openWith(t, Options{Path: path}))
	pragma(t, s, "synchronous = OFF")
	m, live := &marks{}, map[string]string{}
	var gone []string
	for round := range 12 {
		key := vault.Key{Account: "alice@example.org", Node: fmt.Sprint(round % 3)}
		mustUpdate(t, s, func(tx vault.Tx) error {
			if _, err := tx.Vault(key); err != nil {
				if _, err := tx.Create(key, vault.Config{}); err != nil {
					return err
				}
			}
			for range 100 {
				id := fmt.Sprint(random.IntN(60))
				if old := live[key.Node+id]; old != "" {
					gone = append(gone, old)
				}
				delete(live, key.Node+id)
				if random.IntN(3) == 0 {
					tx.Retract(key, id)
					continue
				}
				mark, p := m.payload(random.IntN(1500) * (1 + random.IntN(8)/7*9))
				if _, err := tx.Put(key, vault.Record{ID: id, Payload: p}); err != nil {
					return err
				}
				live[key.Node+id] = mark
			}
			return nil
		})
		if round%3 == 0 {
			mustClean(t, s)
		}
	}
	mustClean(t, s)
	if found := holding(t, path, gone); len(found) > 0 {
		t.Errorf("still there: %q", found)
	}
	var left []string
	for _, mark := range live {
		left = append(left, mark)
	}
	if found := holding(t, path, left); len(found) != len(left) {
		t.Errorf("%d of %d marks are there", len(found), len(left))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mustVerify(t, path)
}

// The log is not emptied over a page that was written since it was looked at.
func TestFinishLooksAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	s := still(openWith(t, Options{Path: path}))
	fill(t, s, 9)
	mustClean(t, s)
	if done, err := s.cleaner.finish(t.Context()); !done || err != nil {
		t.Errorf("done %v, %v with nothing to do", done, err)
	}
	soil(t, s, "<left in a page>")
	if done, err := s.cleaner.finish(t.Context()); done || err != nil {
		t.Errorf("done %v, %v with something left in a page", done, err)
	}
}

// The log is used anew while writes go on without a rest.
func TestLogStaysShort(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	s := still(openWith(t, Options{Path: path}))
	mustUpdate(t, s, func(tx vault.Tx) error { _, err := tx.Create(faultKey, vault.Config{}); return err })
	for n := range 12 {
		data := bytes.Repeat([]byte{byte(n)}, logFrames/2*4096) // what stays the same is not written
		mustUpdate(t, s, func(tx vault.Tx) error {
			_, err := tx.Put(faultKey, vault.Record{ID: fmt.Sprint(n % 2), Payload: vault.Payload{Form: vault.Native, Data: data}})
			return err
		})
		if err := s.cleaner.keepShort(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path + "-wal")
	if err != nil || info.Size() > 3*logFrames*4096 {
		t.Errorf("the log has %d bytes, %v", info.Size(), err)
	}
	wantIDs(t, s, "0", "1")
}

// The log is used anew within a sweep, however much that removes.
func TestLogStaysShortInSweep(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	longest := int64(0) // belongs to the commit loop
	s := still(openWith(t, Options{Path: path, Committed: func(int, time.Duration) {
		if info, err := os.Stat(path + "-wal"); err == nil {
			longest = max(longest, info.Size())
		}
	}}))
	pragma(t, s, "synchronous = OFF")
	mustUpdate(t, s, func(tx vault.Tx) error { _, err := tx.Create(faultKey, vault.Config{}); return err })
	const size, records = 60_000, 300
	for i := range records {
		mustUpdate(t, s, putting(fmt.Sprint(i), size))
	}
	mustClean(t, s)
	mustUpdate(t, s, func(tx vault.Tx) error { longest = 0; return tx.Delete(faultKey) })
	if err := s.cleaner.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s, "record"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if longest == 0 || longest > 2*logFrames*4096 {
		t.Errorf("the log had %d bytes", longest)
	}
}
