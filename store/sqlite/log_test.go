package sqlite

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// The pages in the log are noted, but for those of a database that is so large
// that a page of a payload could pass for one of a b-tree.
func TestGather(t *testing.T) {
	t.Parallel()
	for pages, want := range map[uint32]int{100: 2, mostPages - 1: 2, mostPages: 0, 1<<32 - 2: 0} {
		path := filepath.Join(t.TempDir(), "vault.db")
		const size = 512
		log := make([]byte, logHeader, logHeader+2*(frameHeader+size))
		binary.BigEndian.PutUint32(log[8:], size)
		binary.BigEndian.PutUint64(log[16:], 42)
		for page := range uint32(2) {
			frame := make([]byte, frameHeader+size)
			binary.BigEndian.PutUint32(frame, page+5)
			binary.BigEndian.PutUint32(frame[4:], page*pages) // the second one commits
			binary.BigEndian.PutUint64(frame[8:], 42)
			log = append(log, frame...)
		}
		if err := os.WriteFile(path+"-wal", log, 0o600); err != nil {
			t.Fatal(err)
		}
		c := &cleaner{path: path}
		if err := c.gather(); err != nil {
			t.Fatal(err)
		}
		if c.touched.n != want || c.position.frames != 2 {
			t.Errorf("a database of %d pages: %d noted after %d frames, want %d", pages, c.touched.n, c.position.frames, want)
		}
	}
}
