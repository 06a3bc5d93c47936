package servers_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pepvault/bench/servers"
	"pepvault/vault/device/c2s"
)

const (
	componentJID = "echo.localhost"
	secret       = "s3cret-of-the-test"
	password     = "pass-of-the-test"
)

var hosts = []struct {
	name, fragment string
	start          func(context.Context, servers.Options) (*servers.Server, error)
}{
	{"prosody", "../../configs/prosody.cfg.lua", servers.StartProsody},
	{"ejabberd", "../../configs/ejabberd.yml", servers.StartEjabberd},
}

// options are those of a server with alice, bob and the echo component.
func options(t *testing.T, fragmentFile string) servers.Options {
	t.Helper()
	fragment, err := os.ReadFile(fragmentFile)
	if err != nil {
		t.Fatal(err)
	}
	return servers.Options{
		Dir:        t.TempDir(),
		Components: []servers.Component{{JID: componentJID, Secret: secret}},
		Users:      []servers.User{{Name: "alice", Password: password}, {Name: "bob", Password: password}},
		Fragment:   string(fragment),
		Logger:     slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

// What the start script's configuration adds for Erlang is on its command line.
func TestControl(t *testing.T) {
	t.Parallel()
	control, err := os.ReadFile("../../configs/ejabberdctl.cfg")
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, "../../configs/ejabberd.yml")
	o.Control = string(control)
	server, err := servers.StartEjabberd(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", server.PID()))
	if want := "\x00-kernel\x00inet_default_listen_options\x00[{buffer,65536}]\x00"; err != nil || !strings.Contains(string(line), want) {
		t.Errorf("got %q (%v), want it to have %q", line, err, want)
	}
	exchange(t, server)
	o.Dir, o.Control = t.TempDir(), "ERL_OPTIONS=-kernel"
	if server, err := servers.StartEjabberd(t.Context(), o); err == nil {
		server.Stop()
		t.Error("a line that is not understood was taken")
	}
}

// A device and a component reach each other through a real server, also after
// the server was restarted.
func TestServersCarryStanzas(t *testing.T) {
	t.Parallel()
	for _, host := range hosts {
		t.Run(host.name, func(t *testing.T) {
			t.Parallel()
			server, err := host.start(t.Context(), options(t, host.fragment))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Stop)
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(server.LogTail(60))
				}
			})
			exchange(t, server)
			before := server.PID()
			if err := server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if server.PID() == before {
				t.Errorf("the process id is still %d after a restart", before)
			}
			exchange(t, server)
			pid := server.PID()
			server.Stop()
			// Its port may be another's by now, so who answers there says nothing.
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("process %d is still there after Stop: %v", pid, err)
			}
			server.Stop() // a second one does no harm
		})
	}
}

// Prosody keeps what it stores in SQLite, with the journal that was asked for.
func TestProsodyStorage(t *testing.T) {
	t.Parallel()
	for name, rollback := range map[string]bool{"WAL": false, "rollback journal": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, "../../configs/prosody.cfg.lua")
			o.RollbackJournal = rollback
			server, err := servers.StartProsody(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Stop)
			c := dial(t, server, "alice@localhost", "r", nil)
			answer, err := c.IQ(t.Context(), "set", "", []byte("<pubsub xmlns='http://jabber.org/protocol/pubsub'>"+
				"<publish node='n'><item id='i'><e xmlns='urn:example:stored-by-prosody'/></item></publish></pubsub>"))
			if err != nil || answer.Type != "result" {
				t.Fatalf("publish to Prosody's own PEP: %s, %v", answer.Raw, err)
			}
			server.Stop()
			database, err := os.ReadFile(filepath.Join(o.Dir, "data", "prosody.sqlite"))
			if err != nil {
				t.Fatal(err)
			}
			log, _ := os.ReadFile(filepath.Join(o.Dir, "data", "prosody.sqlite-wal")) // it may have been folded in
			if !bytes.Contains(append(database, log...), []byte("urn:example:stored-by-prosody")) {
				t.Error("the record is not in the database")
			}
			const versions = 18 // offset of the file format's write version: 2 = WAL
			if isWAL := database[versions] == 2; isWAL == rollback {
				t.Errorf("write-ahead log: %v", isWAL)
			}
		})
	}
}

// exchange has two devices ask the echo component and each other.
func exchange(t *testing.T, server *servers.Server) {
	t.Helper()
	stop := echo(t, server.Component(componentJID))
	defer stop()
	laptop := dial(t, server, "alice@localhost", "laptop", nil)
	inbox := make(chan c2s.Stanza, 8)
	phone := dial(t, server, "bob@localhost", "phone", func(s c2s.Stanza) bool {
		if s.Name == "message" {
			inbox <- s
		}
		return s.Name != "iq"
	})
	if want := "alice@localhost/laptop"; laptop.JID() != want {
		t.Errorf("bound %q, want %q", laptop.JID(), want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, c := range []*c2s.Conn{laptop, phone} {
		answer, err := c.IQ(ctx, "get", componentJID, []byte("<query xmlns='urn:example:echo'>a &lt; b</query>"))
		if err != nil {
			t.Fatal(err)
		}
		if answer.Type != "result" || answer.From != componentJID || !strings.Contains(string(answer.Raw), "asked by "+c.JID()) {
			t.Errorf("answer: %+v %s", answer, answer.Raw)
		}
	}
	if err := laptop.Send([]byte("<message to='" + phone.JID() + "' type='headline'><body>hello</body></message>")); err != nil {
		t.Fatal(err)
	}
	select {
	case s := <-inbox:
		if s.From != laptop.JID() || !strings.Contains(string(s.Raw), "<body>hello</body>") {
			t.Errorf("message: %+v %s", s, s.Raw)
		}
	case <-ctx.Done():
		t.Error("no message came")
	}
	// What the phone does not know it refuses by itself.
	answer, err := laptop.IQ(ctx, "get", phone.JID(), []byte("<query xmlns='urn:example:unknown'/>"))
	if err != nil {
		t.Fatal(err)
	}
	if answer.Type != "error" || !strings.Contains(string(answer.Raw), "service-unavailable") {
		t.Errorf("answer of an idle device: %s", answer.Raw)
	}
	for _, c := range []*c2s.Conn{laptop, phone} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func dial(t *testing.T, server *servers.Server, account, resource string, handle func(c2s.Stanza) bool) *c2s.Conn {
	t.Helper()
	c, err := c2s.Dial(t.Context(), c2s.Options{
		Server: server.Addr, JID: account, Resource: resource, Password: password, TLS: server.TLS(), Handle: handle,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestDialRefused(t *testing.T) {
	t.Parallel()
	for _, host := range hosts {
		t.Run(host.name, func(t *testing.T) {
			t.Parallel()
			server, err := host.start(t.Context(), options(t, host.fragment))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Stop)
			good := c2s.Options{Server: server.Addr, JID: "alice@localhost", Password: password, TLS: server.TLS()}

			wrongPassword := good
			wrongPassword.Password = "wrong"
			if c, err := c2s.Dial(t.Context(), wrongPassword); err == nil {
				_ = c.Close()
				t.Error("a wrong password was accepted")
			} else if strings.Contains(err.Error(), "wrong") {
				t.Errorf("the error shows the password: %v", err)
			}
			untrusted := good
			untrusted.TLS = nil
			if c, err := c2s.Dial(t.Context(), untrusted); err == nil {
				_ = c.Close()
				t.Error("a certificate of an unknown authority was accepted")
			}
		})
	}
}

func TestManyUsersAreQuick(t *testing.T) {
	t.Parallel()
	for _, host := range hosts {
		t.Run(host.name, func(t *testing.T) {
			t.Parallel()
			o := options(t, host.fragment)
			o.Domain = "many-users.example"
			for i := range 300 {
				o.Users = append(o.Users, servers.User{Name: fmt.Sprintf("user%d", i), Password: password})
			}
			began := time.Now()
			server, err := host.start(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Stop)
			t.Logf("ready with %d users after %v", len(o.Users), time.Since(began))
			dial(t, server, "user299@many-users.example", "r", nil)
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*servers.Options){
		"no folder":    func(o *servers.Options) { o.Dir += "/missing" },
		"quote":        func(o *servers.Options) { o.Users[0].Password = `a"b` },
		"empty secret": func(o *servers.Options) { o.Components[0].Secret = "" },
		"no fragment":  func(o *servers.Options) { o.Fragment = "" },
		"no binary":    func(o *servers.Options) { o.Binary = "/nonexistent/bin" },
	} {
		for _, host := range hosts {
			t.Run(host.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				o := options(t, host.fragment)
				spoil(&o)
				server, err := host.start(t.Context(), o)
				if err == nil {
					server.Stop()
					t.Error("it started")
				}
			})
		}
	}
}

// echo is a component that answers every IQ with who asked. It is ended by
// the returned func.
func echo(t *testing.T, addr string) (stop func()) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "<stream:stream xmlns='jabber:component:accept' "+
		"xmlns:stream='http://etherx.jabber.org/streams' to='%s'>", componentJID)
	if err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(conn)
	next := func() (xml.StartElement, error) {
		for {
			token, err := decoder.Token()
			if err != nil {
				return xml.StartElement{}, err
			}
			if start, ok := token.(xml.StartElement); ok {
				return start, nil
			}
		}
	}
	header, err := next()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "<handshake>%x</handshake>", sha1.Sum([]byte(attr(header, "id")+secret)))
	if accepted, err := next(); err != nil || accepted.Name.Local != "handshake" {
		t.Fatalf("handshake: %v %v", accepted.Name, err)
	}
	if err := decoder.Skip(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			start, err := next()
			if err != nil || decoder.Skip() != nil {
				return
			}
			fmt.Fprintf(conn, "<iq type='result' id='%s' from='%s' to='%s'><text xmlns='urn:example:echo'>asked by %s</text></iq>",
				attr(start, "id"), attr(start, "to"), attr(start, "from"), attr(start, "from"))
		}
	}()
	return func() {
		_ = conn.Close()
		<-done
	}
}

func attr(start xml.StartElement, name string) string {
	for _, a := range start.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
