//go:build unix

package sqlite

import (
	"os"
	"syscall"
)

// adopt gives a file that root has made to whom like belongs: the service runs
// as somebody else and has to open it.
func adopt(file, like string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(like)
	if err != nil {
		return err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return nil
	}
	return os.Chown(file, int(owner.Uid), int(owner.Gid))
}
