package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"pepvault/bench/echo"
	"pepvault/bench/lab"
	"pepvault/component/link"
)

const (
	// echoSecret is the environment variable of its secret: other users of the
	// machine see a command line, and no environment.
	echoSecret = "PEPVAULT_SECRET"
	// attachedWord is what it prints at its first handshake.
	attachedWord = "attached"
	// attachTimeout bounds how long that may take.
	attachTimeout = 30 * time.Second
)

// echoCmd is the component of the target "echo" in a process of its own, so
// that what it costs is counted apart. It ends with its standard input.
type echoCmd struct {
	JID     string `name:"jid" required:"" help:"The component's domain."`
	Server  string `required:"" placeholder:"HOST:PORT" help:"Where it attaches."`
	Records int    `default:"256" help:"Records of every vault."`
	Bytes   int    `default:"924" help:"Size of each."`
}

// Run answers until its input ends.
func (c *echoCmd) Run(ctx context.Context, p *process) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the input, which nobody else reads
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var once sync.Once
	return echo.Run(ctx, echo.Options{
		Server: c.Server, JID: c.JID, Secret: link.Secret(os.Getenv(echoSecret)),
		Records: c.Records, RecordBytes: c.Bytes,
		Ready: func() { once.Do(func() { fmt.Fprintln(p.stdout, attachedWord) }) },
	})
}

// echoChild is a running echoCmd.
type echoChild struct {
	cmd   *exec.Cmd
	input io.Closer
}

func (e echoChild) PID() int { return e.cmd.Process.Pid }

// Stop ends its input and waits for its end.
func (e echoChild) Stop() {
	_ = e.input.Close()
	_ = e.cmd.Wait() // it has done its work
}

// startEcho runs this program as an echoCmd and waits until it is attached.
func startEcho(ctx context.Context, e lab.Echo) (lab.Child, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(own, "echo", "--jid", e.JID, "--server", e.Server,
		"--records", strconv.Itoa(e.Work.Records), "--bytes", strconv.Itoa(e.Work.RecordBytes))
	cmd.Env = append(os.Environ(), echoSecret+"="+e.Secret)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	child := echoChild{cmd, input}
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = input.Close() })
	defer stop()
	word, err := bufio.NewReader(output).ReadString('\n')
	if err == nil && word != attachedWord+"\n" {
		err = fmt.Errorf("it says %q", word)
	}
	if err != nil {
		child.Stop()
		return nil, fmt.Errorf("it did not attach to %s: %w", e.Server, err)
	}
	return child, nil
}
