package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// The log (SQLite's WAL) is moved into the database by the cleaner alone: the
// writer never does, so no commit takes that long, and no page is moved whose
// number was not noted.

const (
	logHeader   = 32
	frameHeader = 24
	// logFrames is from how many frames on the log is moved; one is a page.
	logFrames = 1000
)

// logPosition is up to where the log has been read.
type logPosition struct {
	salts  uint64 // of the log's present life
	frames int    // committed ones
}

// gather notes the pages in the log that are new since the last time. Who
// moves the log has to call it first, with a read transaction open: then no
// frame can be moved that was not seen, nor overwritten.
func (c *cleaner) gather() error {
	log, err := os.Open(c.path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		c.position = logPosition{}
		return nil
	}
	if err != nil {
		return err
	}
	defer log.Close()
	var head [logHeader]byte
	if _, err := io.ReadFull(log, head[:]); err != nil {
		c.position = logPosition{}
		return ended(err)
	}
	if salts := binary.BigEndian.Uint64(head[16:]); salts != c.position.salts {
		c.position, c.moveAt = logPosition{salts: salts}, logFrames
	}
	size := int64(frameHeader) + int64(binary.BigEndian.Uint32(head[8:]))
	defer func() {
		if c.large {
			c.touched = pageSet{}
		}
	}()
	var frame [frameHeader]byte
	for n := c.position.frames; ; n++ {
		if _, err := log.ReadAt(frame[:], logHeader+int64(n)*size); err != nil {
			return ended(err)
		}
		if binary.BigEndian.Uint64(frame[8:]) != c.position.salts {
			return nil // left over from the log's life before
		}
		c.touched.add(binary.BigEndian.Uint32(frame[:]))
		// Frames of no commit yet may be replaced by others.
		if pages := binary.BigEndian.Uint32(frame[4:]); pages != 0 { // a commit's last
			c.position.frames = n + 1
			c.large = c.large || pages >= mostPages
		}
	}
}

// ended says nothing of the end of the log.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// moveLog moves what is in the log now into the database, beside all others.
func (c *cleaner) moveLog(ctx context.Context) (left int, err error) {
	err = c.read(ctx, func() error {
		if err := c.gather(); err != nil {
			return err
		}
		_, left, err = c.checkpoint("PASSIVE")
		return err
	})
	return left, err
}

// checkpoint moves the log. blocked says that a reader is in the way of
// emptying it, left how many frames were not moved.
func (c *cleaner) checkpoint(mode string) (blocked bool, left int, err error) {
	var busy, frames, moved int
	row := c.move.QueryRowContext(c.store.ctx, "PRAGMA wal_checkpoint("+mode+")")
	if err := row.Scan(&busy, &frames, &moved); err != nil {
		if isBusy(err) {
			return true, 0, nil
		}
		return false, 0, failure("checkpoint", err)
	}
	return busy != 0, max(frames-moved, 0), nil
}
