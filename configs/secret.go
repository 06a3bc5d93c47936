package configs

import "log/slog"

// Secret is a text that hides itself from logs, errors and JSON. The zero
// value is empty.
type Secret struct {
	// A pointer, since fmt prints the plain fields of a struct that it
	// reaches through an unexported one, without asking for String.
	text *string
}

const hidden = "(secret)"

// NewSecret hides text.
func NewSecret(text string) Secret { return Secret{text: &text} }

// Reveal returns the text, for the one place that needs it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty reports whether there is no text.
func (s Secret) Empty() bool { return s.Reveal() == "" }

// LogValue says nothing.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// String says nothing.
func (Secret) String() string { return hidden }

// GoString says nothing.
func (Secret) GoString() string { return hidden }

// MarshalText says nothing: it is what JSON and the like ask for.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
