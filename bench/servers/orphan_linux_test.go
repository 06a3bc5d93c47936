package servers

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// orphanVariable makes the test's binary a run that starts a server; its value is
// the server's output.
const orphanVariable = "PEPVAULT_TEST_ORPHAN"

// TestServerEndsWithUs kills a run so that it can end nothing itself, and waits for
// its server's end.
func TestServerEndsWithUs(t *testing.T) {
	t.Parallel()
	if output := os.Getenv(orphanVariable); output != "" {
		p, err := startProcess(command{path: "sleep", args: []string{"3600"}}, output)
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC() // and what else may move us to other threads
		fmt.Println(p.cmd.Process.Pid)
		_, _ = io.Copy(io.Discard, os.Stdin) // until we are killed
		return
	}
	run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServerEndsWithUs$")
	run.Env = append(os.Environ(), orphanVariable+"="+filepath.Join(t.TempDir(), "output"))
	if _, err := run.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	server, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(server)
	events := []unix.PollFd{{Fd: int32(server), Events: unix.POLLIN}}
	if n, err := unix.Poll(events, 0); n != 0 || err != nil {
		t.Fatalf("the server has ended: %d, %v", n, err)
	}
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := run.Wait(); err == nil {
		t.Fatal("the run ended by itself")
	}
	for {
		n, err := unix.Poll(events, 60_000)
		if err == unix.EINTR {
			continue
		}
		if n != 1 || err != nil {
			_ = unix.Kill(pid, unix.SIGKILL)
			t.Errorf("the server lives on: %d, %v", n, err)
		}
		return
	}
}
