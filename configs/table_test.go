package configs

import (
	"strings"
	"testing"
)

// TestTable holds what the rest of the package takes for granted.
func TestTable(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool)
	d := newDocument("", &Config{})
	for _, k := range keys() {
		if names[k.name] { // suggestions go by the name alone
			t.Errorf("two keys are called %s", k.name)
		}
		names[k.name] = true
		if !d.isTable(k.table) {
			t.Errorf("%s is in no table", k.path())
		}
		if !strings.HasSuffix(k.text, ".") || k.allowed == "" || k.kind == "" {
			t.Errorf("%s is not described", k.path())
		}
		if k.value == "" && k.example == "" {
			t.Errorf("%s has neither default nor example", k.path())
		}
		if k.example != "" {
			if what := k.set(&Config{}, parseValue(k.example)); what != "" {
				t.Errorf("%s: example %s", k.path(), what)
			}
		}
	}
	config := defaults()
	for _, r := range rules() {
		if !d.known(r.key) || !d.known(r.other) {
			t.Errorf("rule on %s and %s: no such key", r.key, r.other)
		}
		if problem := r.check(&config); problem != "" {
			t.Errorf("defaults break a rule: %s %s", r.key, problem)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"jid", "tls", "server", "max_records", "max_record_bytes"}
	for word, want := range map[string]string{
		"jdi": "jid", "JID": "jid", "sever": "server", "max-records": "max_records",
		"max_recrods": "max_records", "maxrecordbytes": "max_record_bytes",
		"": "", "colour": "", "abc": "",
	} {
		if got := nearest(word, names); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
