// Command pepvault-device is the reference device: it keeps an account's secrets
// in a vault of the service, sealed, and on this machine, sealed too.
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
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"pepvault/vault/device/client"
)

// What the process ends with.
const (
	exitOK       = 0
	exitFault    = 1 // in input, file or surroundings
	exitUsage    = 2
	exitConflict = 3 // both versions are kept
	exitTampered = 4 // the service has something that no device made
)

// cli is the command line; docs/device.md describes it.
type cli struct {
	globals

	Init     initCmd     `cmd:"" help:"Join a vault with its pass phrase or key file, or make it."`
	Put      putCmd      `cmd:"" help:"Keep a text or a file under a name."`
	Get      getCmd      `cmd:"" help:"Write what is kept under a name."`
	List     listCmd     `cmd:"" help:"List all names."`
	Rm       rmCmd       `cmd:"" help:"Remove a name."`
	Settle   settleCmd   `cmd:"" help:"End a conflict: keep this device's version, or the service's."`
	Sync     syncCmd     `cmd:"" help:"Take in what others changed, and offer what was changed here."`
	Watch    watchCmd    `cmd:"" help:"Stay connected and tell every change, until stopped."`
	Download downloadCmd `cmd:"" help:"As sync, with the service sending all that is new by itself; goes on where it was stopped."`
	Rotate   rotateCmd   `cmd:"" help:"Give the vault a new key, and a new pass phrase if one is named; goes on where it was stopped."`
	Export   exportCmd   `cmd:"" help:"Write everything to a file, unsealed."`

	Version kong.VersionFlag `help:"Print the version and exit."`
}

// globals are flags of every command. What init was given, the others take from
// the folder.
type globals struct {
	Account      string `placeholder:"JID" help:"The account."`
	Server       string `placeholder:"HOST:PORT" help:"Where its server is (default: what DNS says, else the domain, port 5222)."`
	PasswordFile string `placeholder:"FILE" help:"File with the account's password (default: it is asked for)."`
	Service      string `placeholder:"JID" help:"The vault service (default: vault. and the account's domain)."`
	Vault        string `placeholder:"NODE" help:"The vault's name (default: secrets)."`
	State        string `placeholder:"DIR" help:"Folder of this device (default: pepvault-device in the user's configuration folder)."`
	CA           string `name:"ca" xor:"tls" placeholder:"FILE" help:"PEM file with the authority that the server's certificate comes from (default: the system's)."`
	InsecureTLS  bool   `name:"insecure-tls" xor:"tls" help:"Take any certificate: whoever is in between may read the password."`
	JSON         bool   `name:"json" help:"Print results as JSON."`
	Verbose      bool   `help:"Tell on stderr what travels, without contents."`
}

// process is what a command has of the outside world.
type process struct {
	stdin          *os.File
	stdout, stderr io.Writer
	// asks says that a person can be asked, shows that one looks at stderr.
	asks, shows bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], &process{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		asks: term.IsTerminal(int(os.Stdin.Fd())), shows: term.IsTerminal(int(os.Stderr.Fd())),
	})
	stop()
	os.Exit(code)
}

// run carries out a command line and returns the exit code. A request for help or
// the version ends the process by itself.
func run(ctx context.Context, args []string, p *process) int {
	c := new(cli)
	parser := kong.Must(c,
		kong.Name("pepvault-device"),
		kong.Description("Secrets of an XMPP account, sealed on this device, in a vault of the account's server."),
		kong.Writers(p.stdout, p.stderr),
		kong.Vars{"version": "pepvault-device " + version() + " " + runtime.Version()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	command, err := parser.Parse(args)
	if err == nil && slices.ContainsFunc(args, func(arg string) bool { return !utf8.ValidString(arg) }) {
		err = usageError("an argument is not UTF-8") // the parser would make other names of it
	}
	if err == nil {
		command.BindTo(ctx, (*context.Context)(nil))
		err = command.Run(&app{process: p, globals: c.globals})
	}
	return report(p.stderr, err)
}

// report writes what went wrong and returns the exit code.
func report(stderr io.Writer, err error) int {
	var usage *kong.ParseError
	var wrong usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage), errors.As(err, &wrong):
		fmt.Fprintf(stderr, "pepvault-device: %s; see pepvault-device --help\n", oneLine(err.Error()))
		return exitUsage
	}
	fmt.Fprintf(stderr, "pepvault-device: %s\n", oneLine(err.Error()))
	switch {
	case errors.Is(err, client.ErrTampered):
		return exitTampered
	case errors.Is(err, client.ErrConflict):
		return exitConflict
	}
	return exitFault
}

// usageError says that something was left out or does not go together.
type usageError string

func (e usageError) Error() string { return string(e) }

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
