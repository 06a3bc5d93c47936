// Command pepvault-bench is the load lab: it drives devices by the hundred
// against a service and against a server's own PEP, and says in figures how
// they did. A run that lost or changed anything has none.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"pepvault/bench/lab"
)

// What the process ends with.
const (
	exitOK    = 0
	exitFault = 1 // the run failed its verification, or could not be made
	exitUsage = 2
)

// cli is the command line. A command is a struct with its flags and a Run
// method that takes what it needs of a context.Context and a *process.
type cli struct {
	Run     runCmd     `cmd:"" help:"Run a workload; the last line on standard output is the verdict as JSON."`
	Compare compareCmd `cmd:"" help:"Print the figures of two results files side by side; unlike work is refused."`
	Report  reportCmd  `cmd:"" help:"Make one report of results files: HTML, Markdown or JSON."`
	Echo    echoCmd    `cmd:"" hidden:"" help:"Answer at once, for a run with --echo."`

	Version kong.VersionFlag `help:"Print the version and exit."`
}

// process is what a command has of the outside world.
type process struct {
	args           []string
	stdout, stderr io.Writer
}

func main() {
	ctx, release := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := run(ctx, &process{args: os.Args[1:], stdout: os.Stdout, stderr: os.Stderr})
	release()
	os.Exit(code)
}

// run carries out a command line and returns the exit code. A request for
// help or the version ends the process by itself.
func run(ctx context.Context, p *process) int {
	out := &printed{to: p.stdout}
	parser := kong.Must(new(cli),
		kong.Name("pepvault-bench"),
		kong.Description("Honest figures of encrypted vaults under load."),
		kong.Writers(out, p.stderr),
		kong.Exit(func(code int) { os.Exit(max(code, report(p.stderr, out.fault()))) }), // of help and version
		kong.Vars{"version": program()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	command, err := parser.Parse(p.args)
	if err == nil {
		command.BindTo(ctx, (*context.Context)(nil))
		err = command.Run(&process{args: p.args, stdout: out, stderr: p.stderr})
	}
	if fault := out.fault(); fault != nil && (err == nil || errors.Is(err, out.err)) {
		err = fault
	}
	return report(p.stderr, err)
}

// printed is standard output, which remembers that something could not be
// written: a result that nobody has is a fault, whatever command made it.
type printed struct {
	to  io.Writer
	err error
}

func (p *printed) Write(text []byte) (int, error) {
	n, err := p.to.Write(text)
	if err != nil && p.err == nil {
		p.err = err
	}
	return n, err
}

// fault is why what was printed is not all there, or nil.
func (p *printed) fault() error {
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("the output could not be written: %w", p.err)
}

// report writes what went wrong in one line and returns the exit code.
func report(stderr io.Writer, err error) int {
	var usage *kong.ParseError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage), errors.Is(err, lab.ErrUsage):
		fmt.Fprintf(stderr, "pepvault-bench: %s; see pepvault-bench --help\n", oneLine(err.Error()))
		return exitUsage
	}
	fmt.Fprintf(stderr, "pepvault-bench: %s\n", oneLine(err.Error()))
	return exitFault
}

// oneLine keeps an error from being more than a line on a terminal.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// program is the name and the version of the module as the build recorded it.
func program() string {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		version = info.Main.Version
	}
	return "pepvault-bench " + version + " " + runtime.Version()
}
