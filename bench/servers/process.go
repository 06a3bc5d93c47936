package servers

import (
	"os"
	"os/exec"
	"runtime"
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

// startProcess runs c with its output appended to a file. Where the kernel can, it
// ends the leader with us, however we end.
func startProcess(c command, output string) (*process, error) {
	out, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	path, args := c.path, c.args
	if c.wrap != nil {
		path, args = c.wrap(path, args)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithUs(cmd.SysProcAttr)
	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go func() { // ends with the process, which stop waits for
		// For the kernel, we are the thread that started it: that has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // how it ended shows in its log
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
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
