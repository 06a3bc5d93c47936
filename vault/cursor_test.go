package vault_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pepvault/vault"
)

func drawCursor(t *rapid.T) vault.Cursor {
	c := vault.Cursor{
		Epoch:    vault.Epoch(rapid.SliceOfN(rapid.Byte(), len(vault.Epoch{}), len(vault.Epoch{})).Draw(t, "epoch")),
		Revision: vault.Revision(rapid.Uint64().Draw(t, "revision")),
		Run:      vault.Run(rapid.Uint64().Draw(t, "run")),
	}
	if rapid.Bool().Draw(t, "in a pass") {
		c.Pass = vault.Pass{
			Reset: vault.Reset(rapid.IntRange(0, 4).Draw(t, "reset")),
			Start: vault.Revision(rapid.Uint64().Draw(t, "start")),
			Fork:  vault.Revision(rapid.Uint64().Draw(t, "fork")),
		}
	}
	return c
}

func TestCursorsAreCanonical(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := vault.CursorKey(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"))
		a, b := drawCursor(t), drawCursor(t)
		got, err := key.Verify(key.Sign(a))
		if err != nil || got != a {
			t.Fatalf("Verify(Sign(%v)) = %v, %v", a, got, err)
		}
		if (key.Sign(a) == key.Sign(b)) != (a == b) {
			t.Fatalf("%v and %v: texts %q and %q", a, b, key.Sign(a), key.Sign(b))
		}
	})
}

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	key, other := vault.CursorKey{1}, vault.CursorKey{2}
	pass := vault.Pass{Reset: vault.ResetNew, Start: 50}
	for _, c := range []vault.Cursor{{Epoch: vault.Epoch{7}, Revision: 41, Run: 5}, {Epoch: vault.Epoch{7}, Revision: 41, Run: 5, Pass: pass}} {
		testForged(t, key, key.Sign(c))
	}
	good := key.Sign(vault.Cursor{Epoch: vault.Epoch{7}, Revision: 41, Run: 5})
	tests := []struct{ name, text string }{
		{"empty", ""},
		{"none", "none"},
		{"another store's", other.Sign(vault.Cursor{Revision: 41})},
		{"cut short", good[:len(good)-1]},
		{"longer", good + "A"},
		{"padded", good + "="},
		{"white space", good[:10] + "\n" + good[10:]},
		{"not base64", strings.Repeat("!", len(good))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if c, err := key.Verify(tt.text); !errors.Is(err, vault.ErrBadCursor) {
				t.Errorf("Verify(%q) = %v, %v; want ErrBadCursor", tt.text, c, err)
			}
		})
	}
}

// testForged flips every bit of a good cursor.
func testForged(t *testing.T, key vault.CursorKey, good string) {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		for bit := range 8 {
			forged := append([]byte(nil), raw...)
			forged[i] ^= 1 << bit
			text := base64.RawURLEncoding.EncodeToString(forged)
			if c, err := key.Verify(text); !errors.Is(err, vault.ErrBadCursor) {
				t.Errorf("byte %d, bit %d flipped: Verify gives %v, %v", i, bit, c, err)
			}
		}
	}
}

func TestSecretsHideThemselves(t *testing.T) {
	t.Parallel()
	var key vault.CursorKey
	copy(key[:], "MARKED-KEY")
	payload := vault.Payload{Form: vault.Native, Data: []byte("MARKED-PAYLOAD")}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		text := fmt.Sprintf(verb+" "+verb, key, payload)
		if strings.Contains(text, "MARKED") {
			t.Errorf("%s shows %q", verb, text)
		}
	}
	if text := fmt.Sprint(key.LogValue(), payload.LogValue()); strings.Contains(text, "MARKED") {
		t.Errorf("the log shows %q", text)
	}
}
