package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
)

// SQLite overwrites what is deleted (secure_delete), but not always what it
// moves: when it lays out a page anew, the unused middle of the page keeps what
// lay there. Such a copy stays when the record itself is deleted later, at its
// new place. So pages that were written are looked at once more, and what they
// do not use is overwritten.

const (
	// lookPages is how many pages are looked at in one read transaction.
	lookPages = 256
	// scrubPages is how many pages one write transaction overwrites.
	scrubPages = 32
	// mostPages is the size from which pages can't be told apart by themselves
	// (128 GiB of 4 KiB pages): one of a large payload begins with the number of
	// the next one, whose first byte could be the mark of a b-tree then. Nothing
	// is overwritten in such a database but by SQLite itself.
	mostPages = 2 << 24
)

// pageSet is a set of page numbers, at one bit a page of the database.
type pageSet struct {
	words []uint64
	n     int
}

func (p *pageSet) add(page uint32) {
	word, bit := int(page/64), uint64(1)<<(page%64)
	if word >= len(p.words) {
		p.words = append(p.words, make([]uint64, word+1-len(p.words))...)
	}
	if p.words[word]&bit == 0 {
		p.words[word] |= bit
		p.n++
	}
}

func (p *pageSet) remove(page uint32) {
	word, bit := int(page/64), uint64(1)<<(page%64)
	if word < len(p.words) && p.words[word]&bit != 0 {
		p.words[word] &^= bit
		p.n--
	}
}

// join adds all pages of another set.
func (p *pageSet) join(other pageSet) {
	for _, page := range other.first(other.n) {
		p.add(page)
	}
}

// first returns up to most pages, the lowest first.
func (p *pageSet) first(most int) (pages []uint32) {
	for i, word := range p.words {
		for ; word != 0 && len(pages) < most; word &= word - 1 {
			pages = append(pages, uint32(i*64+bits.TrailingZeros64(word)))
		}
		if len(pages) == most {
			break
		}
	}
	return pages
}

// scrub overwrites what the pages in touched do not use. Whoever writes one
// from then on touches it anew; those are left to the next time, or there would
// be no end while others write.
func (c *cleaner) scrub(ctx context.Context) error {
	if c.touched.n == 0 {
		return nil
	}
	var begun pageSet
	// A commit may be in the log, and noted, before readers see it: while the
	// disk is waited for. Between two commits all that was noted can be seen.
	if err := c.store.pause(ctx, func() { begun, c.touched = c.touched, pageSet{} }); err != nil {
		return err
	}
	for begun.n > 0 {
		pages := begun.first(lookPages)
		if err := c.scrubSome(ctx, pages); err != nil {
			c.touched.join(begun)
			return err
		}
		for _, page := range pages {
			begun.remove(page)
		}
	}
	return nil
}

// scrubSome is scrub for pages that were looked up.
func (c *cleaner) scrubSome(ctx context.Context, pages []uint32) error {
	dirty, err := c.soiled(ctx, pages)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(dirty, scrubPages) {
		if err := c.write(ctx, func(t *tx) error { return t.scrub(some) }); err != nil {
			return err
		}
	}
	return nil
}

// soiled returns those of the pages that hold something where they should not.
func (c *cleaner) soiled(ctx context.Context, pages []uint32) (dirty []uint32, err error) {
	err = c.read(ctx, func() error {
		for _, page := range pages {
			var data []byte
			found, err := c.look.one(ctx, readPage, []any{int64(page)}, &data)
			if err != nil {
				return err
			}
			if found && wipe(data, page == 1) {
				dirty = append(dirty, page)
			}
		}
		return nil
	})
	return dirty, err
}

// scrub overwrites what some pages do not use.
func (t *tx) scrub(pages []uint32) error {
	const doing = "clean up pages"
	for _, page := range pages {
		var data []byte
		err := t.row(doing, readPage, []any{int64(page)}, &data)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return err
		}
		if !wipe(data, page == 1) {
			continue
		}
		if _, err := t.write(doing, writePage, data, int64(page)); err != nil {
			return err
		}
	}
	return nil
}

// fileHeader is how much of the first page stands before its b-tree.
const fileHeader = 100

// wipe zeroes what a page of a b-tree does not use, and reports whether
// anything was there. Other pages, and what is not laid out as it should be, it
// leaves alone. The layout is section 1.6 of SQLite's file format.
func wipe(page []byte, first bool) (changed bool) {
	header := 0
	if first {
		header = fileHeader
	}
	if len(page) < header+12 {
		return false
	}
	cells := header + 8
	switch page[header] {
	case 2, 5: // they have a right-most child
		cells = header + 12
	case 10, 13:
	default:
		return false
	}
	at := func(i int) int { return int(binary.BigEndian.Uint16(page[i:])) }
	cells += 2 * at(header+3)
	content := at(header + 5)
	if content == 0 {
		content = 1 << 16
	}
	if cells > content || content > len(page) {
		return false
	}
	changed = zero(page[cells:content])
	for block := at(header + 1); block != 0; {
		if block < content || block+4 > len(page) {
			return changed
		}
		next, size := at(block), at(block+2)
		if size < 4 || block+size > len(page) || next != 0 && next < block+size {
			return changed
		}
		changed = zero(page[block+4:block+size]) || changed
		block = next
	}
	return changed
}

func zero(b []byte) (changed bool) {
	for i := range b {
		changed = changed || b[i] != 0
		b[i] = 0
	}
	return changed
}
