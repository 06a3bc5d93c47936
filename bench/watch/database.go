package watch

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// logSuffixes are those of SQLite's logs: write-ahead and rollback.
var logSuffixes = []string{"-wal", "-journal"}

// DatabaseBytes is the size of a SQLite database, or of all files below a
// folder, as it will be when the write-ahead log has been copied into it; and,
// apart from it, that of the logs, which grow to a bound whatever is stored.
// What vanishes meanwhile does not count; a path that is not there has 0 bytes.
func DatabaseBytes(path string) (data, log int64) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0
	}
	if !info.IsDir() {
		for _, suffix := range logSuffixes {
			if info, err := os.Stat(path + suffix); err == nil {
				log += info.Size()
			}
		}
		return databaseBytes(path, info.Size()), log
	}
	_ = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "-shm") { // memory, not storage
			return nil
		}
		info, err := entry.Info()
		switch {
		case err != nil:
		case slices.ContainsFunc(logSuffixes, func(suffix string) bool { return strings.HasSuffix(path, suffix) }):
			log += info.Size()
		default:
			data += databaseBytes(path, info.Size())
		}
		return nil
	})
	return data, log
}

// databaseBytes is the size of a file, or, if it is a database of which a
// write-ahead log has a later state, what that says.
func databaseBytes(path string, size int64) int64 {
	wal, err := os.Open(path + "-wal")
	if err != nil {
		return size
	}
	defer wal.Close()
	if later, err := committedBytes(wal); err == nil && later > 0 {
		return later
	}
	return size
}

var errNoLog = errors.New("not a write-ahead log")

// committedBytes is the size that the database has by the last commit in a
// write-ahead log (SQLite's file format, §4); 0 if there is none.
func committedBytes(wal io.ReaderAt) (int64, error) {
	const headerBytes, frameBytes, magic = 32, 24, 0x377f0682 // the last bit of the magic number is the checksums' order
	header := make([]byte, headerBytes)
	if _, err := wal.ReadAt(header, 0); err != nil {
		return 0, err
	}
	if binary.BigEndian.Uint32(header)&^1 != magic {
		return 0, errNoLog
	}
	pageBytes := int64(binary.BigEndian.Uint32(header[8:]))
	if pageBytes < 512 || pageBytes > 65536 {
		return 0, errNoLog
	}
	salt := header[16:24]
	var committed int64
	frame := make([]byte, frameBytes)
	for at := int64(headerBytes); ; at += frameBytes + pageBytes {
		// Frames with another salt are left over from before the log's last start.
		if _, err := wal.ReadAt(frame, at); err != nil || string(frame[8:16]) != string(salt) {
			return committed, nil
		}
		if pages := int64(binary.BigEndian.Uint32(frame[4:])); pages > 0 {
			committed = pages * pageBytes
		}
	}
}
