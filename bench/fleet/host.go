package fleet

import (
	"context"
	"crypto/tls"

	"pepvault/component/loopback"
	"pepvault/vault/device/c2s"
)

// Server is a Host: a real server, spoken to by TLS and SASL.
type Server struct {
	Addr     string // host:port
	Name     string // domain of the accounts
	Password string // of every account
	TLS      *tls.Config
}

// Domain is that of the accounts.
func (s Server) Domain() string { return s.Name }

// Connect logs a user in.
func (s Server) Connect(ctx context.Context, user, resource string, handle func(c2s.Stanza) bool) (Conn, error) {
	return c2s.Dial(ctx, c2s.Options{
		Server: s.Addr, JID: user + "@" + s.Name, Resource: resource, Password: s.Password, TLS: s.TLS, Handle: handle,
	})
}

// Embedded is a Host in this process, without TLS and SASL.
type Embedded struct{ Host *loopback.Host }

// Domain is that of the accounts.
func (e Embedded) Domain() string { return e.Host.Domain() }

// Connect connects a virtual device.
func (e Embedded) Connect(_ context.Context, user, resource string, handle func(c2s.Stanza) bool) (Conn, error) {
	d, err := e.Host.ConnectFunc(user+"@"+e.Host.Domain()+"/"+resource, func(d *loopback.Device, s loopback.Stanza) {
		if !handle(c2s.Stanza(s)) && s.Name == "iq" && (s.Type == "get" || s.Type == "set") {
			_ = d.Refuse(s, "cancel", "service-unavailable") // it may have ended
		}
	})
	if err != nil {
		return nil, err
	}
	return virtual{d}, nil
}

// virtual is a loopback device as a Conn.
type virtual struct{ *loopback.Device }

func (v virtual) IQ(ctx context.Context, typ, to string, payload []byte) (c2s.Stanza, error) {
	s, err := v.Device.IQ(ctx, typ, to, string(payload))
	return c2s.Stanza(s), err
}
