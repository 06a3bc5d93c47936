package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pepvault/bench/servers"
)

// python is the system's own: Debian's slixmpp is installed for it.
const python = "/usr/bin/python3"

// slixmppAvailable returns nil if the third-party device can run.
func slixmppAvailable() error {
	if out, err := exec.Command(python, "-c", "import slixmpp").CombinedOutput(); err != nil {
		return fmt.Errorf("slixmpp: %w: install the package python3-slixmpp (%v: %s)", servers.ErrUnavailable, err, out)
	}
	return nil
}

// theirDevice is a program around somebody else's client library: what it says
// is what that library made of our answers. testdata/slixmpp_device.py is one,
// testdata/npm/device.mjs another.
type theirDevice struct {
	t       *testing.T
	in      io.Writer
	answers chan theirLine
	events  chan theirLine
	n       int
}

// theirLine is one line of the script.
type theirLine struct {
	N     int
	Fault string
	Error *struct {
		Type, Condition, Text string
		Extra                 []string
	}
	Text       string
	IDs        []string
	Items      []item
	Identities []string
	Features   []string
	Form       map[string][]string
	Forms      map[string]map[string][]string // by FORM_TYPE
	Steps      []theirStep
	// What a pass brought, page by page.
	Pages           [][]string
	Counts, Indexes []string

	Event, From, Type, Stanza, Node, XML, Delay string
}

// theirStep is what a command answered.
type theirStep struct {
	Status  string
	Actions []string
	Form    map[string][]string
}

// UnmarshalJSON knows the item's payload by its name in the script.
func (i *item) UnmarshalJSON(text []byte) error {
	var plain struct{ ID, Publisher, XML string }
	if err := json.Unmarshal(text, &plain); err != nil {
		return err
	}
	*i = item{plain.ID, plain.Publisher, plain.XML}
	return nil
}

// connectTheirs connects the third-party device; it ends with the test.
func connectTheirs(t *testing.T, server *servers.Server, account, resource, service string) *theirDevice {
	t.Helper()
	return runTheirs(t, exec.Command(python, "testdata/slixmpp_device.py"), server, account, resource, service)
}

// runTheirs connects the device that the program is; it ends with the test.
func runTheirs(t *testing.T, cmd *exec.Cmd, server *servers.Server, account, resource, service string) *theirDevice {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &theirDevice{t: t, in: stdin, answers: make(chan theirLine, 1), events: make(chan theirLine, 1024)}
	read := make(chan struct{})
	go d.read(stdout, read)
	t.Cleanup(func() {
		_ = stdin.Close() // the script ends by that
		select {
		case <-read:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			<-read
		}
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s says:\n%s", cmd, &stderr)
		}
	})
	host, port, err := net.SplitHostPort(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	d.write(map[string]any{
		"jid": account + "/" + resource, "password": password, "host": host, "port": number,
		"ca": server.CAFile, "service": service,
	})
	if line := d.answer(); line.Fault != "" || line.Text != account+"/"+resource {
		t.Fatalf("%s did not connect: %+v", cmd, line)
	}
	return d
}

func (d *theirDevice) read(r io.Reader, done chan<- struct{}) {
	defer close(done)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var line theirLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			line = theirLine{Fault: fmt.Sprintf("unreadable line %q: %v", lines.Text(), err)}
		}
		if line.Event != "" {
			d.events <- line
		} else {
			d.answers <- line
		}
	}
}

func (d *theirDevice) write(line map[string]any) {
	d.t.Helper()
	text, err := json.Marshal(line)
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.in.Write(append(text, '\n')); err != nil {
		d.t.Fatal(err)
	}
}

func (d *theirDevice) answer() theirLine {
	d.t.Helper()
	select {
	case line := <-d.answers:
		return line
	case <-time.After(3 * patience):
		d.t.Fatal("their device gave no answer")
		return theirLine{}
	}
}

// ask has the device do something; args are names and values.
func (d *theirDevice) ask(op string, args ...any) (theirLine, fault) {
	d.t.Helper()
	d.n++
	command := map[string]any{"op": op, "n": d.n}
	for pair := range slices.Chunk(args, 2) {
		command[pair[0].(string)] = pair[1]
	}
	d.write(command)
	line := d.answer()
	if line.N != d.n || line.Fault != "" {
		d.t.Fatalf("their device, %v: %+v", command, line)
	}
	if line.Error == nil {
		return line, ""
	}
	words := []string{line.Error.Type + "/" + line.Error.Condition}
	for _, tag := range line.Error.Extra {
		words = append(words, tag[strings.LastIndexByte(tag, '}')+1:])
	}
	return line, fault(strings.Join(words, " "))
}

// must is ask for what has to succeed.
func (d *theirDevice) must(op string, args ...any) theirLine {
	d.t.Helper()
	line, fault := d.ask(op, args...)
	if fault != "" {
		d.t.Fatalf("their device, %s %v: %s", op, args, fault)
	}
	return line
}

// items reads a vault through slixmpp; the payloads come by their meaning.
func (d *theirDevice) items(node string, args ...any) []item {
	d.t.Helper()
	found := d.must("items", append([]any{"node", node}, args...)...).Items
	for i := range found {
		found[i].Payload = meaning(d.t, found[i].Payload)
	}
	return found
}

// event waits for the next event that slixmpp understood.
func (d *theirDevice) event() theirLine {
	d.t.Helper()
	select {
	case line := <-d.events:
		if line.Type != "headline" {
			d.t.Errorf("event of type %q", line.Type)
		}
		return line
	case <-time.After(patience):
		d.t.Fatal("their device got no event")
		return theirLine{}
	}
}

// quiet holds that no event has come by the time a ping is answered.
func (d *theirDevice) quiet() {
	d.t.Helper()
	d.must("ping")
	select {
	case line := <-d.events:
		d.t.Errorf("their device got an unexpected event: %+v", line)
	default:
	}
}
