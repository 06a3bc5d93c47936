package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memory borrows the memory from the kernel and gives it back, so that the
// garbage collector of a generator that is measured does not see it.
func memory(ctx context.Context) float64 {
	bytes, err := unix.Mmap(-1, 0, chaseBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Munmap(bytes) }() // nothing can be done about it
	return chase(ctx, unsafe.Slice((*[lineBytes / 4]uint32)(unsafe.Pointer(unsafe.SliceData(bytes))), chaseBytes/lineBytes))
}

// syncs times fdatasync behind writes of a page to the end of a file, which is
// what a database's log does.
func syncs(ctx context.Context, folder string, most time.Duration, count int) []time.Duration {
	f, err := os.CreateTemp(folder, "sync-*")
	if err != nil {
		return nil
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page := make([]byte, syncBytes)
	var took []time.Duration
	for began := time.Now(); time.Since(began) < most && (count == 0 || len(took) < count) && ctx.Err() == nil; {
		from := time.Now()
		if _, err := f.Write(page); err != nil {
			return took
		}
		if err := fdatasync(int(f.Fd())); err != nil {
			return took
		}
		took = append(took, time.Since(from))
	}
	return took
}

func fdatasync(fd int) error {
	for {
		if err := unix.Fdatasync(fd); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// fileSystems are the magic numbers of statfs(2) that a store may lie on.
var fileSystems = map[uint32]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
	unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.F2FS_SUPER_MAGIC: "f2fs",
	unix.NFS_SUPER_MAGIC: "nfs", 0x2fc12fc1: "zfs",
}

// FileSystem names the kind of file system that a folder lies on, or is "".
// Where it is tmpfs, nothing is written to storage.
func FileSystem(folder string) string {
	var s unix.Statfs_t
	if err := unix.Statfs(filepath.Clean(folder), &s); err != nil {
		return ""
	}
	return fileSystems[uint32(s.Type)]
}
