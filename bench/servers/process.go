package servers

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// stopTimeout is how long a server may take to end by itself.
const stopTimeout = 15 * time.Second

// process is a running server in a process group of its own.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the leader has ended
}

// startProcess runs c with its output appended to a file.
func startProcess(c command, output string) (*process, error) {
	out, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	cmd := exec.Command(c.path, c.args...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	go func() { // ends with the process, which stop waits for
		_ = cmd.Wait() // how it ended shows in its log
		close(p.exited)
	}()
	return p, nil
}

// stop ends the group: SIGTERM to the leader, SIGKILL to all that is left.
func (p *process) stop() {
	group := p.cmd.Process.Pid
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
	}
	_ = syscall.Kill(-group, syscall.SIGKILL) // nobody may be left
	<-p.exited
}
