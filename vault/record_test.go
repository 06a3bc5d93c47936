package vault_test

import (
	"strings"
	"testing"

	"pepvault/vault"
)

func TestValidName(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       bool
	}{
		{"plain", "login-7", true},
		{"a space", "my notes", true},
		{"emoji", "\U0001f511", true},
		{"quotes and markup", `"'<&>]]>`, true},
		{"path", "../../etc/passwd", true},
		{"longest", strings.Repeat("a", vault.MaxNameBytes), true},
		{"empty", "", false},
		{"too long", strings.Repeat("a", vault.MaxNameBytes+1), false},
		{"tab", "a\tb", false},
		{"newline", "a\nb", false},
		{"delete", "a\x7fb", false},
		{"C1 control", "a\u0085b", false},
		{"no XML character", "a\ufffeb", false},
		{"not UTF-8", "a\xffb", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := vault.ValidName(tt.text); got != tt.want {
				t.Errorf("ValidName(%q) = %v, want %v", tt.text, got, tt.want)
			}
		})
	}
}
