//go:build unix

package main_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// testNoRights holds that a user who may not open the store is told so in a
// line. Only root can become somebody else, so others are refused by modes.
func (s *station) testNoRights() {
	s.start()
	s.ask(s.connect("laptop"), "set", note("a"))
	program := filepath.Join(s.t.TempDir(), "pepvault")
	// No copy: a file that was just written can't be run while a process that began
	// meanwhile has it open.
	if err := errors.Join(os.Link(s.program, program), os.Chmod(program, 0o755)); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chmod(s.config, 0o644); err != nil {
		s.t.Fatal(err)
	}
	for _, dir := range []string{s.dir, filepath.Dir(s.dir), filepath.Dir(program), filepath.Dir(filepath.Dir(program))} {
		if err := os.Chmod(dir, 0o711); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, command := range []string{"account list", "vault list", "backup copy.db", "restore copy.db"} {
		cmd := exec.CommandContext(s.t.Context(), program, append(strings.Fields(command), "--config", s.config)...)
		cmd.Dir = "/"
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		} else if err := os.Chmod(filepath.Join(s.dir, storeName+".lock"), 0); err != nil {
			s.t.Fatal(err)
		}
		out, err := cmd.CombinedOutput() // of the error, the exit code is looked at
		if cmd.ProcessState.ExitCode() != 1 || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), "no right to use it") {
			s.t.Errorf("%s: exit %d, %q, %v", command, cmd.ProcessState.ExitCode(), out, err)
		}
	}
}
