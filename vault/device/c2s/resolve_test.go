package c2s_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"testing"

	"pepvault/vault/device/c2s"
)

// zone is what DNS says, by service.
type zone map[string][]*net.SRV

func (z zone) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	records := z[service+"."+proto+"."+name]
	if records == nil {
		return "", nil, &net.DNSError{Err: "no such host", IsNotFound: true}
	}
	return name, records, nil
}

func TestTargets(t *testing.T) {
	t.Parallel()
	const secure, plain = "xmpps-client.tcp.example.org", "xmpp-client.tcp.example.org"
	srv := func(target string, port, priority uint16) *net.SRV {
		return &net.SRV{Target: target, Port: port, Priority: priority}
	}
	tests := map[string]struct {
		dns  zone
		want []c2s.Target
		err  error
	}{
		"nothing known":    {nil, []c2s.Target{{Addr: "example.org:5222"}}, nil},
		"STARTTLS":         {zone{plain: {srv("a.example.", 5222, 1), srv("b.example.", 5223, 2)}}, []c2s.Target{{Addr: "a.example:5222"}, {Addr: "b.example:5223"}}, nil},
		"direct TLS":       {zone{secure: {srv("a.example.", 443, 1)}}, []c2s.Target{{Addr: "a.example:443", DirectTLS: true}}, nil},
		"direct TLS first": {zone{secure: {srv("a.example.", 443, 5)}, plain: {srv("a.example.", 5222, 5)}}, []c2s.Target{{Addr: "a.example:443", DirectTLS: true}, {Addr: "a.example:5222"}}, nil},
		"by priority":      {zone{secure: {srv("a.example.", 443, 9)}, plain: {srv("b.example.", 5222, 5)}}, []c2s.Target{{Addr: "b.example:5222"}, {Addr: "a.example:443", DirectTLS: true}}, nil},
		"not served":       {zone{plain: {srv(".", 0, 0)}}, nil, c2s.ErrUnreachable},
		"only direct":      {zone{plain: {srv(".", 0, 0)}, secure: {srv("a.example.", 443, 0)}}, []c2s.Target{{Addr: "a.example:443", DirectTLS: true}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c2s.Targets(t.Context(), test.dns, "example.org")
			if !slices.Equal(got, test.want) || !errors.Is(err, test.err) {
				t.Errorf("got %v, %v; want %v, %v", got, err, test.want, test.err)
			}
		})
	}
}

// closed is an address where nobody listens.
func closed(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestDialAnyGoesOn(t *testing.T) {
	t.Parallel()
	options := serve(t, true, func(s *script) {
		s.login("alice@example.org/r", "")
		s.expect(`</stream:stream>`)
	})
	c, err := c2s.DialAny(t.Context(), []c2s.Target{{Addr: closed(t)}, {Addr: options.Server, DirectTLS: true}}, options)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	_, err = c2s.DialAny(t.Context(), []c2s.Target{{Addr: closed(t)}, {Addr: closed(t)}}, options)
	if !errors.Is(err, c2s.ErrUnreachable) {
		t.Errorf("got %v, want %v", err, c2s.ErrUnreachable)
	}
}

func TestWhyNot(t *testing.T) {
	t.Parallel()
	refuse := func(reason string) func(*script) {
		return func(s *script) {
			s.expect(`<stream:stream[^>]*>`)
			s.send(saslFeatures)
			s.expect(`<auth .*</auth>`)
			s.send("<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>" + reason + "</failure>")
			_, _ = io.Copy(io.Discard, s.r) // until the device has gone
		}
	}
	tests := map[string]struct {
		play   func(*script)
		change func(*c2s.Options)
		want   error
		not    []error
	}{
		"password": {refuse("<not-authorized/>"), nil, c2s.ErrPassword, []error{c2s.ErrUnreachable, c2s.ErrCertificate}},
		"a text":   {refuse("<account-disabled/><text>Call the operator</text>"), nil, c2s.ErrPassword, nil},
		"cut off in the middle": {func(s *script) {
			s.expect(`<stream:stream[^>]*>`)
			s.send(saslFeatures)
			s.expect(`<auth .*</auth>`)
		}, nil, nil, []error{c2s.ErrPassword}},
		"certificate": {func(s *script) { _, _ = io.Copy(io.Discard, s.r) }, func(o *c2s.Options) { o.TLS = &tls.Config{ServerName: "other.example"} }, c2s.ErrCertificate, []error{c2s.ErrPassword}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := serve(t, true, test.play)
			if test.change != nil {
				test.change(&options)
			}
			c, err := c2s.Dial(t.Context(), options)
			if err == nil {
				_ = c.Close()
				t.Fatal("it connected")
			}
			if test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			for _, not := range test.not {
				if errors.Is(err, not) {
					t.Errorf("%v is %v", err, not)
				}
			}
		})
	}
}
