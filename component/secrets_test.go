package component_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"pepvault/component/hosttest"
	"pepvault/component/loopback"
	"pepvault/store"
	"pepvault/vault"
)

const (
	markedSecret  = "MARKED-SECRET-0815"
	markedPayload = "MARKED-PAYLOAD-4711-of-a-note"
)

// tape keeps what is written to it.
type tape struct {
	mu   sync.Mutex
	more sync.Cond
	buf  bytes.Buffer
}

func newTape() *tape {
	t := new(tape)
	t.more.L = &t.mu
	return t
}

func (t *tape) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.more.Broadcast()
	return t.buf.Write(p)
}

// await waits until a text is on the tape.
func (t *tape) await(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !strings.Contains(t.buf.String(), text) {
		t.more.Wait()
	}
}

func (t *tape) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// tapedConn keeps what goes out on it, too.
type tapedConn struct {
	net.Conn
	out io.Writer
}

func (c tapedConn) Write(p []byte) (int, error) {
	_, _ = c.out.Write(p) // a tape takes everything
	return c.Conn.Write(p)
}

// C44: at the most talkative log level, through errors of every kind and
// crashes, neither the log nor an error text tells the secret, what proves that
// we have it, or what a device has stored.
func TestC44Secrets(t *testing.T) {
	t.Parallel()
	talkative := &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true}
	for name, handler := range map[string]func(io.Writer) slog.Handler{
		"json": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, talkative) },
		"text": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, talkative) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, wire := newTape(), newTape()
			log := slog.New(handler(said))
			host := hosttest.New(t, func(o *loopback.Options) { o.Secret = markedSecret })
			kept, err := store.Open(t.Context(), store.Options{Driver: "sqlite", Path: filepath.Join(t.TempDir(), "vault.db"), Logger: log})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = kept.Close() })
			broken := &faulty{Store: kept}
			taped := func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				return tapedConn{conn, wire}, err
			}
			serve(t, host, func(s *setup) { s.log, s.store, s.dial, s.verify = log, broken, taped, 50*time.Millisecond })
			texts := misuse(t, host, broken)
			wrong := start(t, host.Host, func(s *setup) {
				s.log, s.dial, s.secret = log, taped, "WRONG-"+markedSecret
			})
			said.await("wrong secret")
			_, why := wrong.link.State()
			texts = append(texts, why)
			wrong.stop()

			secrets := []string{
				markedSecret, base64.StdEncoding.EncodeToString([]byte(markedSecret)),
				markedPayload, base64.StdEncoding.EncodeToString([]byte(markedPayload)),
			}
			digests := regexp.MustCompile(`<handshake[^>]*>([0-9a-f]{40})<`).FindAllStringSubmatch(wire.String(), -1)
			if len(digests) < 3 {
				t.Fatalf("%d handshakes were seen, want 3 at least", len(digests))
			}
			for _, d := range digests {
				secrets = append(secrets, d[1])
			}
			for _, line := range strings.Split(said.String(), "\n") {
				for _, secret := range secrets {
					if strings.Contains(line, secret) {
						t.Errorf("the log tells %q: %s", secret, line)
					}
				}
				if !strings.Contains(line, "DEBUG") && strings.Contains(line, "@localhost/") {
					t.Errorf("the log tells who asked: %s", line)
				}
			}
			for _, text := range texts {
				for _, secret := range secrets {
					if strings.Contains(text, secret) {
						t.Errorf("an error tells %q: %s", secret, text)
					}
				}
			}
			for _, want := range []string{"fault in the service", "wrong secret", "storage failed", "detached"} {
				if !strings.Contains(said.String(), want) {
					t.Errorf("nothing of %q is logged, so this test proves nothing about it:\n%s", want, said)
				}
			}
		})
	}
}

// misuse has every kind of error happen around a marked payload, and returns
// what the devices were told.
func misuse(t *testing.T, host *hosttest.Host, broken *faulty) (texts []string) {
	t.Helper()
	d := host.Device("alice/phone")
	marked := []string{native(markedPayload), foreign(markedPayload), `<n xmlns='urn:example' a='` + markedPayload + `'/>`}
	bad := []string{
		markedPayload, native(markedPayload) + markedPayload, native(markedPayload) + foreign(markedPayload),
		`<record xmlns='urn:pepvault:record:0' key-version='` + markedPayload + `'>Zmly</record>`,
		`<record xmlns='urn:pepvault:record:0' key-version='1'>` + markedPayload + `</record>`,
		foreign(strings.Repeat(markedPayload, 1000)), native(strings.Repeat(markedPayload, 1000)),
		`<n xmlns='urn:example' a='` + markedPayload + `&#9;'/>`, foreign(markedPayload + `&#13;`),
	}
	publish := func(payloads []string) {
		for _, node := range []string{"notes", "1", "2", "3", "4"} {
			for i, payload := range payloads {
				answer, err := d.IQ(t.Context(), "set", host.Component(), publication(node, fmt.Sprint(i), payload))
				if err != nil {
					t.Fatal(err)
				}
				if answer.Type == "error" {
					texts = append(texts, string(answer.Raw))
				}
			}
		}
	}
	publish(marked)
	publish(bad)
	faults := []func() error{
		func() error { return fmt.Errorf("insert: %w", vault.ErrStorage) },
		func() error { return errors.New(markedPayload) },
		func() error { panic(markedPayload) },
		func() error { panic(errors.New(markedPayload)) },
		func() error { panic(vault.Record{Payload: vault.Payload{Data: []byte(markedPayload)}}) },
	}
	for _, fault := range faults {
		broken.set(fault)
		publish(marked)
		send(t, d, `<presence type='unavailable' to='vault.localhost'/>`)
		send(t, d, `<presence to='vault.localhost'/>`) // its state is read
		d.Asks("get", ping)
	}
	broken.set(func() error { return nil })
	for _, raw := range []string{
		`<iq type='set' id='1' from='alice@localhost/phone' to='vault.localhost'><` + markedPayload + `/></iq>`,
		`<iq type='result' id='` + markedPayload + `' from='alice@localhost/phone' to='vault.localhost'/>`,
		`<message type='error' from='alice@localhost/phone' to='vault.localhost'>` + markedPayload + `<a></message>`,
		storing(markedPayload + `<!-- ` + markedPayload + `-->`),
		storing(foreign(strings.Repeat(markedPayload, 100_000))),
	} {
		host.Inject(raw)
	}
	for _, breaks := range []string{
		markedPayload, `<iq a='` + markedPayload + `' a='` + markedPayload, `</` + markedPayload + `>`, `<iq <` + markedPayload, `<!DOCTYPE ` + markedPayload + `>`,
		`<iq id='` + markedPayload + `' id='` + markedPayload + `'/>`,
	} {
		number := host.AwaitAttached()
		host.Inject(breaks)
		host.Drop()
		host.AwaitReattached(number)
	}
	number := host.AwaitAttached()
	host.StreamError("reset")
	host.AwaitReattached(number)
	for d.Waiting() > 0 {
		s, err := d.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Type == "error" {
			texts = append(texts, string(s.Raw))
		}
	}
	if len(texts) < 100 {
		t.Errorf("%d errors were seen only", len(texts))
	}
	return texts
}
