// Command pepvault is the service: an external XMPP component (XEP-0114) that
// keeps encrypted vaults for the accounts of a server.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"pepvault/configs"
)

// What the process ends with.
const (
	exitOK    = 0
	exitFault = 1 // in input, file or surroundings
	exitUsage = 2
)

// cli is the command line. A command is a struct with its flags and a Run
// method that takes what it needs of a context.Context and a *process, and
// returns an error; what that means for the exit is decided in report.
type cli struct {
	Demo   demoCmd   `cmd:"" help:"Show the main job on this machine, with no set-up: two devices share a vault."`
	Serve  serveCmd  `cmd:"" help:"Attach to the host and serve."`
	Config configCmd `cmd:"" help:"Check a configuration file, or print the documented default one."`

	Backup  backupCmd  `cmd:"" help:"Copy the store into a new file, also while the service runs."`
	Verify  verifyCmd  `cmd:"" help:"Look for damage in a backup and sum it up."`
	Restore restoreCmd `cmd:"" help:"Put a backup in the place of the store. The service must be stopped."`
	Account accountCmd `cmd:"" help:"List accounts, or erase one, also while the service runs."`
	Vault   vaultCmd   `cmd:"" help:"List vaults, or show one, also while the service runs."`

	Version kong.VersionFlag `help:"Print the version and exit."`
}

// process is what a command has of the outside world.
type process struct {
	stdin          io.Reader // nil unless terminal
	terminal       bool      // whether a person can be asked
	stdout, stderr io.Writer
	getenv         func(string) string
}

func main() {
	os.Exit(run(context.Background(), os.Args[1:], &process{
		stdin: os.Stdin, terminal: isTerminal(os.Stdin), stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv,
	}))
}

// isTerminal reports whether somebody may type there.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// run carries out a command line and returns the exit code. A request for
// help or the version ends the process by itself.
func run(ctx context.Context, args []string, p *process) int {
	parser := kong.Must(new(cli),
		kong.Name("pepvault"),
		kong.Description("Encrypted vaults for the accounts of an XMPP server."),
		kong.Writers(p.stdout, p.stderr),
		kong.Vars{"version": "pepvault " + version() + " " + runtime.Version()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	command, err := parser.Parse(args)
	if err == nil {
		command.BindTo(ctx, (*context.Context)(nil))
		err = command.Run(p)
	}
	return report(p.stderr, err)
}

// report writes what went wrong, one line a fault, and returns the exit code.
func report(stderr io.Writer, err error) int {
	var usage *kong.ParseError
	var faults configs.Faults
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "pepvault: %s; see pepvault --help\n", oneLine(usage.Error()))
		return exitUsage
	case errors.As(err, &faults):
		for _, fault := range faults {
			fmt.Fprintln(stderr, fault.Error())
		}
	default:
		fmt.Fprintf(stderr, "pepvault: %s\n", oneLine(err.Error()))
	}
	return exitFault
}

// oneLine keeps an error from being more than a line on a terminal.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// version is that of the module as the build recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
