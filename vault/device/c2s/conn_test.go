package c2s_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pepvault/vault/device/c2s"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	header = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' " +
		"from='example.org' id='s' version='1.0'>"
	saslFeatures = header + "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>" +
		"<mechanism>PLAIN</mechanism></mechanisms></stream:features>"
	bindFeatures = header + "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>" +
		"<unknown xmlns='urn:example:feature'><deep/></unknown></stream:features>"
)

// script is the server's side of one connection.
type script struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

// expect reads up to the first match of the pattern's end and returns its
// first group, or all of it.
func (s *script) expect(pattern string) string {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	var got []byte
	for {
		b, err := s.r.ReadByte()
		if err != nil {
			s.t.Errorf("expected %s, got %q and %v", pattern, got, err)
			return ""
		}
		got = append(got, b)
		if m := re.FindSubmatch(got); m != nil {
			return string(m[len(m)-1])
		}
	}
}

func (s *script) send(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.conn, text); err != nil {
		s.t.Errorf("send: %v", err)
	}
}

// login plays a server up to the bind; behind it, in the same segment, comes
// extra.
func (s *script) login(jid, extra string) {
	s.expect(`<stream:stream[^>]*>`)
	s.send(saslFeatures)
	s.expect(`<auth [^>]*mechanism="PLAIN"[^>]*>AGFsaWNlAHNlY3JldA==</auth>`) // \0alice\0secret
	s.send("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
	s.expect(`<stream:stream[^>]*>`)
	s.send(bindFeatures)
	id := s.expect(`<iq type='set' id='([^']*)'><bind .*</iq>`)
	s.send("<iq type='result' id='" + id + "'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>" + jid + "</jid></bind></iq>" + extra)
}

// serve plays a server for one connection; secure says whether TLS is spoken
// from the first byte.
func serve(t *testing.T, secure bool, play func(*script)) c2s.Options {
	t.Helper()
	cert, pool := certificate(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if secure {
			conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{cert}})
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
		play(&script{t: t, conn: conn, r: bufio.NewReader(conn)})
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return c2s.Options{
		Server: listener.Addr().String(), JID: "alice@example.org", Password: "secret",
		TLS: &tls.Config{RootCAs: pool}, DirectTLS: secure,
	}
}

func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"example.org"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func dial(t *testing.T, options c2s.Options) *c2s.Conn {
	t.Helper()
	c, err := c2s.Dial(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestNothingBehindTheBindIsLost(t *testing.T) {
	t.Parallel()
	const odd = "♥@example.org/Phone A"
	options := serve(t, true, func(s *script) {
		s.login(odd, "<message from='vault.example.org' id='m'/>")
		s.expect(`</stream:stream>`)
	})
	got := make(chan c2s.Stanza, 1)
	options.Handle = func(s c2s.Stanza) bool { got <- s; return true }
	c := dial(t, options)
	if c.JID() != odd {
		t.Errorf("bound %q, want %q", c.JID(), odd)
	}
	if s := <-got; s.ID != "m" {
		t.Errorf("first stanza: %+v", s)
	}
}

func TestAnswerMustComeFromWhomWasAsked(t *testing.T) {
	t.Parallel()
	options := serve(t, true, func(s *script) {
		s.login("alice@example.org/r", "")
		id := s.expect(`<iq type='get' id='([^']*)' to='Vault.example.org'><q/></iq>`)
		s.send("<iq type='result' id='" + id + "' from='mallory@example.org/x'><evil/></iq>")
		s.send("<iq type='result' id='" + id + "'><evil/></iq>")
		s.send("<iq type='result' id='" + id + "' from='vault.example.org'><good/></iq>")
		id = s.expect(`<iq type='get' id='([^']*)'><q/></iq>`)
		s.send("<iq type='result' id='" + id + "' from='mallory@example.org'><evil/></iq>")
		s.send("<iq type='error' id='" + id + "' from='alice@example.org'><good/></iq>")
		s.expect(`</stream:stream>`)
	})
	c := dial(t, options)
	s, err := c.IQ(t.Context(), "get", "Vault.example.org", []byte("<q/>"))
	if err != nil || s.Type != "result" || !strings.Contains(string(s.Raw), "<good/>") {
		t.Errorf("answer of the service: %+v, %v", s, err)
	}
	s, err = c.IQ(t.Context(), "get", "", []byte("<q/>"))
	if err != nil || s.Type != "error" || !strings.Contains(string(s.Raw), "<good/>") {
		t.Errorf("answer of the own account: %+v, %v", s, err)
	}
}

// Servers answer in their own spelling of an address.
func TestAnswerInAnotherSpelling(t *testing.T) {
	t.Parallel()
	options := serve(t, true, func(s *script) {
		s.login("alice@example.org/r", "")
		for range 4 {
			id := s.expect(`<iq type='get' id='([^']*)' to='[^']*'><q/></iq>`)
			s.send("<iq type='result' id='" + id + "' from='cafe@example.org/\u00e9'><evil/></iq>")
			s.send("<iq type='result' id='" + id + "' from='caf\u00e9@example.org/E\u0301'><evil/></iq>")
			s.send("<iq type='result' id='" + id + "' from='caf\u00e9@example.org/\u00e9'><good/></iq>")
		}
		s.expect(`</stream:stream>`)
	})
	c := dial(t, options)
	for _, to := range []string{
		"caf\u00e9@example.org/\u00e9", "cafe\u0301@example.org/e\u0301", "CAFE\u0301@Example.org/\u00e9", "\uff43af\u00e9@example.org/\u00e9",
	} {
		answer, err := c.IQ(t.Context(), "get", to, []byte("<q/>"))
		if err != nil || !strings.Contains(string(answer.Raw), "<good/>") {
			t.Errorf("answer of %s: %s, %v", to, answer.Raw, err)
		}
	}
}

func TestUnknownRequestsAreRefused(t *testing.T) {
	t.Parallel()
	options := serve(t, true, func(s *script) {
		s.login("alice@example.org/r", "<iq type='get' id='a&amp;b' from='q&apos;s@x/y'><q/></iq>")
		s.expect(`<iq type='error' id='a&amp;b' to='q&apos;s@x/y'><error type='cancel'><service-unavailable `)
		s.send("<iq type='set' id='2'><q/></iq><iq type='result' id='3'/><message/>")
		s.expect(`<iq type='error' id='2'><error type='cancel'><service-unavailable .*?</iq>`)
		s.expect(`^</stream:stream>`) // and no other answer
	})
	seen := make(chan c2s.Stanza, 8)
	options.Handle = func(s c2s.Stanza) bool { seen <- s; return false }
	c := dial(t, options)
	for range 4 {
		<-seen
	}
	_ = c.Close()
}

func TestStreamErrorEndsAll(t *testing.T) {
	t.Parallel()
	options := serve(t, true, func(s *script) {
		s.login("alice@example.org/r", "")
		s.expect(`<q/></iq>`)
		s.send("<stream:error><system-shutdown xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>")
	})
	c := dial(t, options)
	_, err := c.IQ(t.Context(), "get", "x", []byte("<q/>"))
	if !errors.Is(err, c2s.ErrEnded) || !strings.Contains(err.Error(), "system-shutdown") {
		t.Errorf("waiting IQ got %v", err)
	}
	<-c.Done()
	if err := c.Send([]byte("<presence/>")); !errors.Is(err, c2s.ErrEnded) {
		t.Errorf("Send behind the end: %v", err)
	}
	if _, err := c.IQ(t.Context(), "get", "x", nil); !errors.Is(err, c2s.ErrEnded) {
		t.Errorf("IQ behind the end: %v", err)
	}
}

func TestCloseFreesWaiters(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	options := serve(t, true, func(s *script) {
		s.login("alice@example.org/r", "")
		s.expect(`<q/></iq>`)
		close(asked)
		_, _ = io.Copy(io.Discard, s.r)
	})
	c := dial(t, options)
	failed := make(chan error)
	go func() {
		_, err := c.IQ(context.Background(), "get", "x", []byte("<q/>"))
		failed <- err
	}()
	<-asked
	c.Cut()
	if err := <-failed; !errors.Is(err, c2s.ErrClosed) {
		t.Errorf("waiting IQ got %v", err)
	}
	if err := c.Close(); err != nil || !errors.Is(c.Err(), c2s.ErrClosed) {
		t.Errorf("Close: %v; Err: %v", err, c.Err())
	}
}

func TestNoPasswordOutsideTLS(t *testing.T) {
	t.Parallel()
	heard := make(chan string, 1)
	options := serve(t, false, func(s *script) {
		s.expect(`<stream:stream[^>]*>`)
		s.send(saslFeatures) // without STARTTLS
		s.expect(`<starttls[^>]*>`)
		s.send("<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
		all, err := io.ReadAll(s.r) // until the device gives up
		if err != nil {
			s.t.Error(err)
		}
		heard <- string(all)
	})
	if c, err := c2s.Dial(t.Context(), options); err == nil {
		_ = c.Close()
		t.Error("it connected without TLS")
	}
	if all := <-heard; strings.Contains(all, "<auth") || strings.Contains(all, "AGFsaWNl") {
		t.Errorf("sent outside TLS: %s", all)
	}
}

func TestDialStopsWithContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	options := serve(t, true, func(s *script) {
		s.expect(`<stream:stream[^>]*>`)
		cancel()
		_, _ = io.Copy(io.Discard, s.r) // silent for ever
	})
	c, err := c2s.Dial(ctx, options)
	if err == nil {
		_ = c.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// TestDialTellsLoss holds that a server that goes away before it has judged the
// device counts as one that can't be reached, not as one that refuses.
func TestDialTellsLoss(t *testing.T) {
	t.Parallel()
	for name, serves := range map[string]func(*script){
		"at once":              func(*script) {},
		"behind a header":      func(s *script) { s.expect(`<stream:stream[^>]*>`); s.send(header) },
		"in the middle of XML": func(s *script) { s.expect(`<stream:stream[^>]*>`); s.send(header + "<stream:fea") },
		"behind the password":  func(s *script) { s.expect(`<stream:stream[^>]*>`); s.send(saslFeatures); s.expect(`</auth>`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := c2s.Dial(t.Context(), serve(t, true, serves))
			if err == nil {
				_ = c.Close()
			}
			if !errors.Is(err, c2s.ErrUnreachable) {
				t.Errorf("got %v, want %v", err, c2s.ErrUnreachable)
			}
		})
	}
}
