package configs

import (
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pelletier/go-toml/v2/unstable"
	"mellium.im/xmpp/jid"
)

// key is one row of the table.
type key struct {
	table, name string
	kind        string // the type, as the documented file calls it
	unit        string
	allowed     string // the bounds as a phrase that can follow "allowed: "
	value       string // the default, as TOML; "" = none
	example     string // stands in the documented file where there is no default
	derived     string // where a missing value comes from, as a phrase
	text        string // what it means, whole sentences
	required    bool
	shown       bool // the documented file sets the example

	// set takes the value of the file and returns what is wrong with it, as
	// the first half of a sentence, or "".
	set func(c *Config, v *unstable.Node) string
}

func (k key) path() string { return k.table + "." + k.name }

// problem completes what set returned.
func (k key) problem(what string) string { return what + "; allowed: " + k.allowed }

func newKey(path, text string) key {
	table, name, _ := strings.Cut(path, ".")
	return key{table: table, name: name, text: text}
}

type wholeNumber interface{ int | int64 }

// integer is a whole number from least to most.
func integer[T wholeNumber](path, unit string, value, least, most T, field func(*Config) *T, text string) key {
	k := newKey(path, text)
	k.kind, k.unit, k.value = "integer", unit, fmt.Sprint(value)
	k.allowed = fmt.Sprintf("%d to %d", least, most)
	k.set = func(c *Config, v *unstable.Node) string {
		if v.Kind != unstable.Integer {
			return wrongType(v, "an integer")
		}
		n, err := strconv.ParseInt(string(v.Data), 0, 64)
		if err != nil || n < int64(least) || n > int64(most) {
			return string(v.Data) + " is out of bounds"
		}
		*field(c) = T(n)
		return ""
	}
	return k
}

// number is a number from least to most; an integer will do.
func number(path, unit string, value, least, most float64, field func(*Config) *float64, text string) key {
	k := newKey(path, text)
	k.kind, k.unit, k.value = "number", unit, fmt.Sprint(value)
	k.allowed = fmt.Sprintf("%v to %v", least, most)
	k.set = func(c *Config, v *unstable.Node) string {
		if v.Kind != unstable.Float && v.Kind != unstable.Integer {
			return wrongType(v, "a number")
		}
		n, err := strconv.ParseFloat(strings.ReplaceAll(string(v.Data), "_", ""), 64)
		if err != nil || !(n >= least && n <= most) { // not a number is out of bounds, too
			return string(v.Data) + " is out of bounds"
		}
		*field(c) = n
		return ""
	}
	return k
}

// duration is a text such as "90s" or "24h", from least to most.
func duration(path, value string, least, most time.Duration, field func(*Config) *time.Duration, text string) key {
	k := newKey(path, text)
	k.kind, k.value = "duration", strconv.Quote(value)
	k.allowed = fmt.Sprintf("%q to %q", shortDuration(least), shortDuration(most))
	k.set = func(c *Config, v *unstable.Node) string {
		if v.Kind != unstable.String {
			return wrongType(v, "a duration in quotes")
		}
		d, err := time.ParseDuration(string(v.Data))
		if err != nil {
			return fmt.Sprintf("%q is not a duration (a number with the unit h, m, s or ms)", v.Data)
		}
		if d < least || d > most {
			return fmt.Sprintf("%q is out of bounds", v.Data)
		}
		*field(c) = d
		return ""
	}
	return k
}

// shortDuration is String without zero parts at the end.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// truth is true or false.
func truth(path string, value bool, field func(*Config) *bool, text string) key {
	k := newKey(path, text)
	k.kind, k.value, k.allowed = "boolean", strconv.FormatBool(value), "true or false"
	k.set = func(c *Config, v *unstable.Node) string {
		if v.Kind != unstable.Bool {
			return wrongType(v, "true or false")
		}
		*field(c) = string(v.Data) == "true"
		return ""
	}
	return k
}

// text is a text that check prepares or refuses; value "" = no default.
func text(path, value, allowed string, check func(string) (string, bool), field func(*Config) *string, about string) key {
	k := newKey(path, about)
	k.kind, k.allowed = "text", allowed
	if value != "" {
		k.value = strconv.Quote(value)
	}
	k.set = func(c *Config, v *unstable.Node) string {
		if v.Kind != unstable.String {
			return wrongType(v, "a text in quotes")
		}
		prepared, ok := check(string(v.Data))
		if !ok {
			return fmt.Sprintf("%q is not allowed", v.Data)
		}
		*field(c) = prepared
		return ""
	}
	return k
}

// choice is one of some texts, each of which stands for a value.
func choice[T any](path, value string, options []option[T], field func(*Config) *T, about string) key {
	k := newKey(path, about)
	var names []string
	for _, o := range options {
		if o.refused == "" {
			names = append(names, strconv.Quote(o.name))
		}
	}
	k.kind, k.value, k.allowed = "text", strconv.Quote(value), strings.Join(names, ", ")
	k.set = func(c *Config, v *unstable.Node) string {
		if v.Kind != unstable.String {
			return wrongType(v, "a text in quotes")
		}
		i := slices.IndexFunc(options, func(o option[T]) bool { return o.name == string(v.Data) })
		if i < 0 {
			return fmt.Sprintf("%q is not allowed", v.Data)
		}
		if options[i].refused != "" {
			return fmt.Sprintf("%q %s", v.Data, options[i].refused)
		}
		*field(c) = options[i].value
		return ""
	}
	return k
}

type option[T any] struct {
	name  string
	value T
	// refused says why the option can't be chosen; it is then not listed.
	refused string
}

func plainOptions(names ...string) []option[string] {
	options := make([]option[string], len(names))
	for i, name := range names {
		options[i] = option[string]{name: name, value: name}
	}
	return options
}

// list is a list of texts, each of which check prepares or refuses.
func list(path, value, allowed string, check func(string) (string, bool), field func(*Config) *[]string, about string) key {
	k := newKey(path, about)
	k.kind, k.value, k.allowed = "list of texts", value, allowed
	k.set = func(c *Config, v *unstable.Node) string {
		if v.Kind != unstable.Array {
			return wrongType(v, "a list in brackets")
		}
		var all []string
		for it := v.Children(); it.Next(); {
			item := it.Node()
			if item.Kind != unstable.String {
				return "an entry is " + kindName(item) + ", not a text in quotes"
			}
			prepared, ok := check(string(item.Data))
			if !ok {
				return fmt.Sprintf("%q is not allowed", item.Data)
			}
			all = append(all, prepared)
		}
		*field(c) = all
		return ""
	}
	return k
}

// secretKey takes a secret and never says what was given.
func secretKey(path string, field func(*Config) *Secret, about string) key {
	k := newKey(path, about)
	k.kind, k.allowed = "text", "a text that is not empty"
	k.set = func(c *Config, v *unstable.Node) string {
		if v.Kind != unstable.String {
			return wrongType(v, "a text in quotes")
		}
		*field(c) = NewSecret(string(v.Data))
		return ""
	}
	return k
}

// wrongType says what a value is and what it should be, not the value itself:
// it may be a secret on the wrong line.
func wrongType(v *unstable.Node, want string) string {
	return "is " + kindName(v) + ", not " + want
}

func kindName(v *unstable.Node) string {
	switch v.Kind {
	case unstable.String:
		return "a text"
	case unstable.Bool:
		return "a boolean"
	case unstable.Float:
		return "a fraction"
	case unstable.Integer:
		return "an integer"
	case unstable.Array:
		return "a list"
	case unstable.InlineTable:
		return "a table"
	default:
		return "a date or time"
	}
}

// domain prepares a JID that is a domain alone.
func domain(s string) (string, bool) {
	j, err := jid.Parse(s)
	if err != nil || j.Localpart() != "" || j.Resourcepart() != "" || strings.ContainsAny(s, "@/ ") {
		return "", false
	}
	prepared := strings.ToLower(strings.TrimSuffix(j.Domainpart(), "."))
	return prepared, prepared != ""
}

// bareJID prepares a JID with a local part and no resource.
func bareJID(s string) (string, bool) {
	j, err := jid.Parse(s)
	if err != nil || j.Localpart() == "" || j.Resourcepart() != "" {
		return "", false
	}
	d, ok := domain(j.Domainpart())
	return j.Localpart() + "@" + d, ok
}

// hostPort checks HOST:PORT with a host.
func hostPort(s string) (string, bool) {
	host, port, err := net.SplitHostPort(s)
	n, bad := strconv.ParseUint(port, 10, 16)
	return s, err == nil && bad == nil && n > 0 && plain(host)
}

// listenAddress checks [HOST]:PORT, port 0 included, or "".
func listenAddress(s string) (string, bool) {
	if s == "" {
		return "", true
	}
	host, port, err := net.SplitHostPort(s)
	_, bad := strconv.ParseUint(port, 10, 16)
	return s, err == nil && bad == nil && (host == "" || plain(host))
}

func plain(host string) bool {
	return host != "" && !strings.ContainsFunc(host, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == '/' || r == '@'
	})
}

// maxNameBytes bounds a name that every disco answer carries.
const maxNameBytes = 256

func displayName(s string) (string, bool) {
	return s, strings.TrimSpace(s) != "" && len(s) <= maxNameBytes && !strings.ContainsFunc(s, unicode.IsControl)
}

// contactURI checks a URI as XEP-0157 wants it, or "".
func contactURI(s string) (string, bool) {
	if s == "" {
		return "", true
	}
	u, err := url.Parse(s)
	if err != nil || len(s) > 1024 || !slices.Contains([]string{"mailto", "xmpp", "https", "http"}, u.Scheme) {
		return "", false
	}
	return s, u.Opaque != "" || u.Host != "" || u.Path != ""
}

// filePath checks a path that must not be empty.
func filePath(s string) (string, bool) { return s, s != "" && !strings.Contains(s, "\x00") }

// optionalPath checks a path, or "".
func optionalPath(s string) (string, bool) { return s, !strings.Contains(s, "\x00") }

func levels() []option[slog.Level] {
	return []option[slog.Level]{
		{name: "debug", value: slog.LevelDebug},
		{name: "info", value: slog.LevelInfo},
		{name: "warn", value: slog.LevelWarn},
		{name: "error", value: slog.LevelError},
	}
}

func drivers() []option[string] {
	return []option[string]{
		{name: DriverSQLite, value: DriverSQLite},
		{name: "postgres", refused: "does not exist yet"},
	}
}
