package main_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"pepvault/bench/servers"
	"pepvault/component/hosttest"
	"pepvault/vault/device/c2s"
)

// testScripts runs the scripts of the component's own tests here, each against
// a service of its own.
func (h *host) testScripts(t *testing.T) {
	files, err := filepath.Glob("../../component/testdata/*.script")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".script"), func(t *testing.T) {
			s := h.serve(t, scriptJID, "[access]\nadmins = [\"bob@localhost\"]\n")
			hosttest.Script(t, realNetwork{h.server}, file)
			if n := s.log.count("msg=attached"); n != 1 {
				t.Errorf("the service has attached %d times", n)
			}
		})
	}
}

// realNetwork has scripts run behind a real server.
type realNetwork struct{ server *servers.Server }

func (n realNetwork) Domain() string    { return n.server.Domain }
func (n realNetwork) Component() string { return scriptJID }

// Connect connects as ordinary clients do, which ask for their roster: hosts
// hand answers to subscriptions only to those.
func (n realNetwork) Connect(ctx context.Context, jid string) (hosttest.Peer, error) {
	account, resource, _ := strings.Cut(jid, "/")
	p := &realPeer{heard: make(chan c2s.Stanza, 256)}
	conn, err := c2s.Dial(ctx, c2s.Options{
		Server: n.server.Addr, JID: account, Resource: resource, Password: password, TLS: n.server.TLS(),
		Handle: p.hear,
	})
	if err != nil {
		return nil, err
	}
	p.Conn = conn
	if _, err := conn.IQ(ctx, "get", "", []byte("<query xmlns='jabber:iq:roster'/>")); err != nil {
		return nil, err
	}
	return p, nil
}

// realPeer is a device that hears of the component alone: what hosts say for
// themselves, or for other devices, is no part of a script.
type realPeer struct {
	*c2s.Conn
	heard chan c2s.Stanza
}

func (p *realPeer) hear(s c2s.Stanza) bool {
	address, _, _ := strings.Cut(s.From, "/")
	if domain := address[strings.LastIndexByte(address, '@')+1:]; !strings.EqualFold(domain, scriptJID) {
		return false
	}
	p.heard <- s
	return true
}

// Recv implements [hosttest.Peer].
func (p *realPeer) Recv(ctx context.Context) ([]byte, error) {
	select {
	case s := <-p.heard:
		return s.Raw, nil
	default:
	}
	select {
	case s := <-p.heard:
		return s.Raw, nil
	case <-p.Done():
		return nil, p.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
