package component

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pepvault/pep/wire"
	"pepvault/vault"
)

// A session is its operator's, of one command, for ten minutes, and one of 64.
func TestSessions(t *testing.T) {
	t.Parallel()
	const admin, other = "admin@localhost", "other@localhost"
	now := time.Now()
	var s sessions
	open := s.begin("a", admin, now)
	for _, row := range []struct {
		name, id, node string
		by             vault.Account
		later          time.Duration
		want           error
	}{
		{"own", open.id, "a", admin, 0, nil},
		{"in time", open.id, "a", admin, sessionTime, nil},
		{"too late", open.id, "a", admin, sessionTime + 1, wire.ErrSessionExpired},
		{"of another command", open.id, "b", admin, 0, wire.ErrBadSession},
		{"of somebody else", open.id, "a", other, 0, wire.ErrBadSession},
		{"made up", "x", "a", admin, 0, wire.ErrBadSession},
		{"none", "", "a", admin, 0, wire.ErrBadSession},
	} {
		if _, err := s.find(row.id, row.node, row.by, now.Add(row.later)); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
	}
	for range maxSessions - 1 {
		s.begin("a", admin, now)
	}
	if _, err := s.find(open.id, "a", admin, now); err != nil {
		t.Errorf("with %d sessions: %v", maxSessions, err)
	}
	last := s.begin("a", admin, now)
	if _, err := s.find(open.id, "a", admin, now); !errors.Is(err, wire.ErrBadSession) || len(s.all) != maxSessions {
		t.Errorf("the oldest of %d did not end: %v", len(s.all), err)
	}
	s.end(last)
	if _, err := s.find(last.id, "a", admin, now); !errors.Is(err, wire.ErrBadSession) {
		t.Errorf("an ended session: %v", err)
	}
}

// Whatever a JID holds, it comes back from a local part, which holds nothing
// that may not stand there (XEP-0106 §4).
func TestEscape(t *testing.T) {
	t.Parallel()
	for jid, want := range map[string]string{
		"alice@example.org":   `alice\40example.org`,
		`a\40b@example.org`:   `a\5c40b\40example.org`,
		`a\b@example.org`:     `a\b\40example.org`,
		`d'artagnan@a.b`:      `d\27artagnan\40a.b`,
		`\5c@x`:               `\5c5c\40x`,
		`x\`:                  `x\`,
		`call me "ish":/<&>@`: `call\20me\20\22ish\22\3a\2f\3c\26\3e\40`,
	} {
		if got := escape(jid); got != want {
			t.Errorf("%s: got %s, want %s", jid, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		jid := rapid.StringOf(rapid.RuneFrom([]rune(`\\\\0223456789abcefABCEF "&'/:<>@xé♥`))).Draw(t, "jid")
		local := escape(jid)
		if strings.ContainsAny(local, ` "&'/:<>@`) {
			t.Fatalf("%q: %q is no local part", jid, local)
		}
		if got := unescape.Replace(local); got != jid {
			t.Fatalf("%q became %q, and then %q", jid, local, got)
		}
	})
}
