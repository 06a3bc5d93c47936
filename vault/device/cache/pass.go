package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// pass is the file of a sync under way: its pages, one behind the other, so that
// a device that is stopped in the middle goes on there (PROTOCOL §7: a cursor
// inside a pass is kept only together with what was seen). A page that was not
// written to its end is passed over with all behind it.
type pass struct {
	file  *os.File
	pages int
}

// maxPage bounds a page that is read back, in bytes.
const maxPage = 64 << 20

// AddPage keeps one more page of a sync. The first one begins a new file.
func (s *Store) AddPage(page []byte) error {
	if s.pass.file == nil {
		f, err := os.OpenFile(filepath.Join(s.dir, passFile), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		s.pass.file = f
		if s.pass.pages == 0 {
			if err := f.Truncate(0); err != nil {
				return err
			}
		}
		if _, err := f.Seek(0, 2); err != nil {
			return err
		}
	}
	sealed := s.key.Seal(pageName(s.pass.pages), page)
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(sealed)))
	if _, err := s.pass.file.Write(append(frame, sealed...)); err != nil {
		return err
	}
	s.pass.pages++
	return s.pass.file.Sync()
}

// Pages reads the pages that were kept; further ones follow them.
func (s *Store) Pages() (pages [][]byte, err error) {
	if err := s.closePass(); err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, passFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	whole := 0
	for rest := text; len(rest) >= 4; {
		length := binary.BigEndian.Uint32(rest)
		if length > maxPage || int(length) > len(rest)-4 {
			break
		}
		page, err := s.key.Open(pageName(len(pages)), rest[4:4+length])
		if err != nil {
			break
		}
		pages = append(pages, page)
		rest = rest[4+length:]
		whole = len(text) - len(rest)
	}
	s.pass.pages = len(pages)
	if s.Writable() && whole < len(text) {
		err = os.Truncate(path, int64(whole))
	}
	return pages, err
}

// DropPass forgets the pages: what they bring is kept, or is of no use.
func (s *Store) DropPass() error {
	err := s.closePass()
	removed := os.Remove(filepath.Join(s.dir, passFile))
	if errors.Is(removed, fs.ErrNotExist) {
		removed = nil
	}
	return errors.Join(err, removed)
}

func (s *Store) closePass() (err error) {
	if s.pass.file != nil {
		err = s.pass.file.Close()
	}
	s.pass = pass{}
	return err
}

// pageName binds a page to its place.
func pageName(i int) string { return fmt.Sprint("page ", i) }
