package hosttest

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// Peer is a connected device of any host.
type Peer interface {
	// Send sends one stanza.
	Send(raw []byte) error
	// Recv waits for the next stanza, in the order of delivery.
	Recv(ctx context.Context) ([]byte, error)
	// Close disconnects.
	Close() error
}

// Network is any host, with a component attached.
type Network interface {
	// Connect connects a device, with exactly this full JID.
	Connect(ctx context.Context, jid string) (Peer, error)
	// Domain is the domain of the accounts.
	Domain() string
	// Component is the component's domain.
	Component() string
}

// Script runs the script in file and fails the test at the first line that
// does not hold. A script is lines; "#" begins a comment:
//
//	alice/phone connects
//	alice/phone sends:
//	  <iq type='get' id='1' to='$component'><ping xmlns='urn:xmpp:ping'/></iq>
//	alice/phone receives:
//	  <iq type='result' id='1' from='$component'/>
//	alice/phone receives in any order:
//	  <message …/>
//	  <message …/>
//	alice/phone receives nothing
//	alice/phone disconnects
//
// Stanzas stand on the indented lines below, or behind the colon; sends and
// receives may have several, taken in their order. A stanza that goes over
// several lines is put together without the line breaks and indentation. What
// is received is compared by [Match], and what is sent may use the variables
// that this bound; $host and $component are set. "receives nothing" pings the
// component and wants the answer as the next stanza.
func Script(t testing.TB, on Network, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := parseScript(string(text))
	if err != nil {
		t.Fatalf("%s:%v", file, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	r := run{on: on, peers: map[string]Peer{}, vars: Vars{"host": on.Domain(), "component": on.Component()}}
	defer r.close()
	for _, s := range steps {
		if err := r.step(ctx, s); err != nil {
			t.Fatalf("%s:%d: %s %s: %v", file, s.line, s.who, s.does, err)
		}
	}
}

// step is a line of a script with its stanzas.
type step struct {
	line    int
	who     string
	does    string
	stanzas []string
}

var (
	errScript = errors.New("not understood")
	// takesStanzas says for each thing to do whether stanzas follow.
	takesStanzas = map[string]bool{
		"connects": false, "disconnects": false, "sends": true,
		"receives": true, "receives in any order": true, "receives nothing": false,
	}
)

func parseScript(text string) ([]step, error) {
	var steps []step
	var body strings.Builder
	finish := func() error {
		if len(steps) == 0 {
			return nil
		}
		s := &steps[len(steps)-1]
		var err error
		if s.stanzas, err = elements(body.String()); err != nil {
			return fmt.Errorf("%d: %w", s.line, err)
		}
		if takesStanzas[s.does] != (len(s.stanzas) > 0) {
			return fmt.Errorf("%d: %w: %d stanzas for %q", s.line, errScript, len(s.stanzas), s.does)
		}
		body.Reset()
		return nil
	}
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		if line[0] == ' ' || line[0] == '\t' {
			if len(steps) == 0 {
				return nil, fmt.Errorf("%d: %w", i+1, errScript)
			}
			join(&body, trimmed)
			continue
		}
		if err := finish(); err != nil {
			return nil, err
		}
		head, inline, _ := strings.Cut(line, ":")
		who, does, _ := strings.Cut(strings.TrimSpace(head), " ")
		if _, ok := takesStanzas[does]; !ok || !strings.Contains(who, "/") {
			return nil, fmt.Errorf("%d: %w: %s", i+1, errScript, line)
		}
		steps = append(steps, step{line: i + 1, who: who, does: does})
		join(&body, strings.TrimSpace(inline))
	}
	return steps, finish()
}

// join adds a line to a stanza: with a space if it goes on inside a tag.
func join(body *strings.Builder, line string) {
	before := body.String()
	if strings.LastIndexByte(before, '<') > strings.LastIndexByte(before, '>') {
		body.WriteByte(' ')
	}
	body.WriteString(line)
}

// elements cuts text into its elements.
func elements(text string) ([]string, error) {
	d := xml.NewDecoder(strings.NewReader(text))
	var all []string
	depth, start := 0, int64(0)
	for {
		before := d.InputOffset()
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth == 0 {
				start = before
			}
			depth++
		case xml.EndElement:
			depth--
			if depth == 0 {
				all = append(all, text[start:d.InputOffset()])
			}
		case xml.CharData:
			if depth == 0 && strings.TrimSpace(string(t)) != "" {
				return nil, fmt.Errorf("%w: %q", errScript, t)
			}
		}
	}
}

// run is a script under way.
type run struct {
	on    Network
	peers map[string]Peer
	vars  Vars
}

func (r *run) close() {
	for _, p := range r.peers {
		p.Close()
	}
}

func (r *run) step(ctx context.Context, s step) error {
	p := r.peers[s.who]
	if s.does == "connects" {
		if p != nil {
			return errors.New("is connected already")
		}
		p, err := r.on.Connect(ctx, fullJID(s.who, r.on.Domain()))
		if err == nil {
			r.peers[s.who] = p
		}
		return err
	}
	if p == nil {
		return errors.New("is not connected")
	}
	switch s.does {
	case "disconnects":
		delete(r.peers, s.who)
		return p.Close()
	case "receives in any order":
		return receiveSet(ctx, p, s.stanzas, r.vars)
	case "receives nothing":
		return receiveNothing(ctx, p, r.on.Component())
	}
	for _, stanza := range s.stanzas {
		if err := r.one(ctx, p, s.does, stanza); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) one(ctx context.Context, p Peer, does, stanza string) error {
	if does == "sends" {
		raw, err := r.vars.Expand(stanza)
		if err != nil {
			return err
		}
		return p.Send([]byte(raw))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got, err := p.Recv(ctx)
	if err != nil {
		return fmt.Errorf("nothing came: %w\nwant: %s", err, stanza)
	}
	return Match(stanza, got, r.vars)
}

// receiveSet takes as many stanzas as are wanted and finds for each the first
// expectation that is left and matches.
func receiveSet(ctx context.Context, p Peer, want []string, vars Vars) error {
	left := append([]string(nil), want...)
	for len(left) > 0 {
		got, err := p.Recv(ctx)
		if err != nil {
			return fmt.Errorf("nothing came: %w\nwant: %s", err, strings.Join(left, "\n      "))
		}
		var differences []error
		for i, w := range left {
			err := Match(w, got, vars)
			if err == nil {
				left = append(left[:i], left[i+1:]...)
				differences = nil
				break
			}
			differences = append(differences, err)
		}
		if differences != nil {
			return errors.Join(differences...)
		}
	}
	return nil
}

// fenceID marks the pings of receiveNothing.
const fenceID = "hosttest-fence"

func receiveNothing(ctx context.Context, p Peer, component string) error {
	ping := "<iq type='get' id='" + fenceID + "' to='" + component + "'><ping xmlns='urn:xmpp:ping'/></iq>"
	if err := p.Send([]byte(ping)); err != nil {
		return err
	}
	got, err := p.Recv(ctx)
	if err != nil {
		return fmt.Errorf("not even the answer to a ping came: %w", err)
	}
	n, err := parse(string(got))
	if err != nil {
		return err
	}
	if kind := n.attrs[xml.Name{Local: "type"}]; n.name.Local != "iq" || n.attrs[xml.Name{Local: "id"}] != fenceID ||
		kind != "result" && kind != "error" {
		return fmt.Errorf("got %s, want nothing", got)
	}
	return nil
}
