//go:build unix

package sqlite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// confined makes a backup in a process whose files may not grow: a disk on
// which there is no room for it.
func confined(path, to string) {
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 64 << 10, Max: 64 << 10}); err != nil {
		fmt.Println(err)
		return
	}
	_, err := Backup(context.Background(), path, to)
	fmt.Println(err)
}

// A backup for which there is no room says so in a line and leaves nothing.
func TestBackupWithoutRoom(t *testing.T) {
	t.Parallel()
	path, dir := filled(t, 300), t.TempDir()
	want := mustVerify(t, path)
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), operatorEnv+"=confined\n"+path+"\n"+filepath.Join(dir, "copy.db"))
	out, err := command.Output()
	if err != nil || !strings.HasPrefix(string(out), "backup "+dir) || !strings.Contains(string(out), "storage failed: copy: the disk") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("it said %q, %v", out, err)
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if got := mustVerify(t, path); got != want {
		t.Errorf("the store holds %+v, want %+v", got, want)
	}
}
