package vault_test

import (
	"errors"
	"strings"
	"testing"

	"pepvault/vault"
)

func TestPrepareAccount(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, bare, want string }{
		{"plain", "alice@example.org", "alice@example.org"},
		{"upper case local", "ALICE@example.org", "alice@example.org"},
		{"upper case domain", "alice@EXAMPLE.Org", "alice@example.org"},
		{"absolute domain", "alice@example.org.", "alice@example.org"},
		{"combining accent", "re\u0301mi@example.org", "r\u00e9mi@example.org"},
		{"composed accent", "r\u00e9mi@example.org", "r\u00e9mi@example.org"},
		{"full width", "\uff21lice@example.org", "alice@example.org"},
		{"heart that PRECIS refuses", "I\u2665u@example.org", "i\u2665u@example.org"},
		{"underscore in domain", "alice@a_b.example", "alice@a_b.example"},
		{"escaped", `alice\40work@example.org`, `alice\40work@example.org`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := vault.PrepareAccount(tt.bare)
			if err != nil || string(got) != tt.want {
				t.Errorf("PrepareAccount(%q) = %q, %v; want %q", tt.bare, got, err, tt.want)
			}
			again, err := vault.PrepareAccount(string(got))
			if err != nil || again != got {
				t.Errorf("preparing %q again gives %q, %v", got, again, err)
			}
		})
	}
}

func TestPrepareAccountRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, bare string }{
		{"empty", ""},
		{"domain only", "example.org"},
		{"no local part", "@example.org"},
		{"no domain", "alice@"},
		{"two ats", "alice@work@example.org"},
		{"control character", "al\x01ice@example.org"},
		{"not UTF-8", "al\xffice@example.org"},
		{"a slash that NFKC makes", "a\uff0fb\u2665@example.org"},
		{"an at that NFKC makes", "a\uff20b\u2665@example.org"},
		{"long local part", strings.Repeat("a", vault.MaxAddressPart+1) + "@example.org"},
		{"two dots at the end", "alice@example.org.."},
		{"space in the domain", "alice@exa mple.org"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := vault.PrepareAccount(tt.bare)
			if !errors.Is(err, vault.ErrMalformedAddress) {
				t.Errorf("PrepareAccount(%q) = %q, %v; want ErrMalformedAddress", tt.bare, got, err)
			}
		})
	}
}

func FuzzPrepareAccount(f *testing.F) {
	for _, seed := range []string{"alice@example.org", "I\u2665u@EXAMPLE.org", "\u017f\u212a@x", "\u0130@x", "a@\u1e9e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, bare string) {
		first, err := vault.PrepareAccount(bare)
		if err != nil {
			return
		}
		second, err := vault.PrepareAccount(string(first))
		if err != nil || second != first {
			t.Errorf("%q is prepared to %q, and that to %q, %v", bare, first, second, err)
		}
	})
}

func TestSplitAddress(t *testing.T) {
	t.Parallel()
	tests := []struct{ address, bare, resource string }{
		{"alice@example.org/phone", "alice@example.org", "phone"},
		{"alice@example.org/a/b@c", "alice@example.org", "a/b@c"},
		{"alice@example.org", "alice@example.org", ""},
		{"example.org", "example.org", ""},
	}
	for _, tt := range tests {
		if bare, resource := vault.SplitAddress(tt.address); bare != tt.bare || resource != tt.resource {
			t.Errorf("SplitAddress(%q) = %q, %q; want %q, %q", tt.address, bare, resource, tt.bare, tt.resource)
		}
	}
}
