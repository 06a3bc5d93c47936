package configs_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pepvault/configs"
)

var update = flag.Bool("update", false, "rewrite generated files")

const good = "[component]\njid = \"vault.example.org\"\n"

// load writes text as a configuration file in a folder of its own and reads
// it, with a secret in the environment.
func load(t *testing.T, text string) (configs.Config, error) {
	t.Helper()
	file := write(t, filepath.Join(t.TempDir(), "c.toml"), text, 0o600)
	return configs.Load(file, env("s3cret"))
}

func env(secret string) func(string) string {
	return func(name string) string {
		if name == configs.SecretEnv {
			return secret
		}
		return ""
	}
}

func write(t *testing.T, file, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return file
}

// lines returns the faults as "LINE: key: problem".
func lines(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var faults configs.Faults
	if !errors.As(err, &faults) {
		t.Fatalf("error is %T, want Faults: %v", err, err)
	}
	var all []string
	for _, f := range faults {
		line := strings.TrimPrefix(f.Error(), f.File+":")
		if strings.Contains(line, "\n") {
			t.Errorf("fault is not one line: %q", line)
		}
		all = append(all, line)
	}
	return all
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	got, err := configs.Load(write(t, filepath.Join(folder, "c.toml"), good, 0o600), env("s3cret"))
	if err != nil {
		t.Fatal(err)
	}
	want := configs.Config{
		Component: configs.Component{JID: "vault.example.org", Server: "127.0.0.1:5347", TLS: "off", Name: "pepvault"},
		Access:    configs.Access{Domains: []string{"example.org"}},
		Limits: configs.Limits{
			MaxRecords: 256, MaxRecordBytes: 65536, MaxVaults: 256, MaxAccountBytes: 67108864,
			MaxBatchRecords: 1024, MaxStagedBytes: 33554432, BatchExpiry: 24 * time.Hour,
			RatePerSecond: 200, RateBurst: 1000, MaxPendingRequests: 512, MaxResources: 32,
			MaxSubscriptions: 16, MaxDownloads: 4, MaxAffiliations: 32, MaxBatches: 2,
			TombstonesFactor: 4, ResourceDays: 30, MaxInboundBytes: 2097152, MaxInboundDepth: 128,
			CapsCache: 4096, MassDeleteShare: 0.9, MassDeleteMin: 8, ForeignPayloads: true,
		},
		Store: configs.Store{Driver: "sqlite", Path: filepath.Join(folder, "pepvault.db")},
		Stream: configs.Stream{
			ChunkBytes: 32768, MaxStanzaBytes: 491520, DeviceWindow: 4, HostWindowBytes: 65536,
			QueueBytes: 16777216, ConfirmJID: "example.org", AckTimeout: time.Minute,
			VerifyTimeout: time.Minute, ConfirmTimeout: 10 * time.Second,
		},
		HTTP: configs.HTTP{Listen: "127.0.0.1:9380"},
		Log:  configs.Log{Level: slog.LevelInfo, Format: "text"},
	}
	ignore := cmp.Options{cmpopts.IgnoreUnexported(configs.Component{}), cmpopts.IgnoreFields(configs.Component{}, "Secret")}
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if got.Component.Secret.Reveal() != "s3cret" {
		t.Error("secret of the environment not taken")
	}
}

// TestEveryKey sets every key away from its default, in both spellings of a
// table, and sees that it arrives.
func TestEveryKey(t *testing.T) {
	t.Parallel()
	got, err := load(t, `limits = { max_records = 1_000, max_record_bytes = 0x10000, "max_vaults" = 7 }
store.path = "/var/lib/v.db"
log.level = "debug"
log.format = "json"
[component]
jid = "Vault.Example.ORG"
server = "[::1]:5348"
tls = "direct"
name = "Tresor"
contact = "mailto:a@example.org"
[access]
domains = ["A.example", # one
  'b.example']
admins = ["Root@A.example"]
[stream]
confirm_jid = "a.example"
ack_timeout = "1m30s"
[http]
listen = ""
`)
	if err != nil {
		t.Fatal(err)
	}
	want := got
	want.Component.JID, want.Component.Server, want.Component.TLS = "vault.example.org", "[::1]:5348", configs.TLSDirect
	want.Component.Name, want.Component.Contact = "Tresor", "mailto:a@example.org"
	want.Access = configs.Access{Domains: []string{"a.example", "b.example"}, Admins: []string{"root@a.example"}}
	want.Limits.MaxRecords, want.Limits.MaxRecordBytes, want.Limits.MaxVaults = 1000, 65536, 7
	want.Store.Path = "/var/lib/v.db"
	want.Stream.ConfirmJID, want.Stream.AckTimeout = "a.example", 90*time.Second
	want.HTTP.Listen = ""
	want.Log = configs.Log{Level: slog.LevelDebug, Format: configs.LogJSON}
	ignore := cmp.Options{cmpopts.IgnoreUnexported(configs.Component{}), cmpopts.IgnoreFields(configs.Component{}, "Secret")}
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []string // a piece of each fault, in order
	}{
		"all at once": {
			"[component]\nserver = \"nowhere\"\n[limits]\nmax_records = 0\nmax_recrod_bytes = 5\nmax_vaults = \"many\"\n[store]\ndriver = \"postgres\"\n",
			[]string{
				`1: component.jid: is missing; allowed: a domain`,
				`2: component.server: "nowhere" is not allowed; allowed: HOST:PORT`,
				`4: limits.max_records: 0 is out of bounds; allowed: 1 to 32768`,
				`5: limits.max_recrod_bytes: unknown key; did you mean limits.max_record_bytes?`,
				`6: limits.max_vaults: is a text, not an integer; allowed: 1 to 65536`,
				`8: store.driver: "postgres" does not exist yet; allowed: "sqlite"`,
			},
		},
		"empty file":           {"", []string{"1: component.jid: is missing"}},
		"huge integer":         {good + "[limits]\nmax_records = 99999999999999999999\n", []string{"4: limits.max_records: 99999999999999999999 is out of bounds"}},
		"fraction":             {good + "[limits]\nmax_records = 2.5\n", []string{"4: limits.max_records: is a fraction, not an integer"}},
		"share not a number":   {good + "[limits]\nmass_delete_share = nan\n", []string{"nan is out of bounds; allowed: 0.01 to 1"}},
		"share too large":      {good + "[limits]\nmass_delete_share = 2\n", []string{"2 is out of bounds"}},
		"duration in a number": {good + "[stream]\nack_timeout = 60\n", []string{`4: stream.ack_timeout: is an integer, not a duration in quotes; allowed: "1s" to "1h"`}},
		"duration unit":        {good + "[limits]\nbatch_expiry = \"1d\"\n", []string{`"1d" is not a duration`}},
		"duration bounds":      {good + "[limits]\nbatch_expiry = \"1000h\"\n", []string{`"1000h" is out of bounds; allowed: "1m" to "720h"`}},
		"boolean in quotes":    {good + "[limits]\nforeign_payloads = \"true\"\n", []string{"is a text, not true or false"}},
		"list of numbers":      {good + "[access]\ndomains = [\"a.example\", 7]\n", []string{"4: access.domains: an entry is an integer"}},
		"list is a text":       {good + "[access]\ndomains = \"a.example\"\n", []string{"4: access.domains: is a text, not a list in brackets"}},
		"no domains":           {good + "[access]\ndomains = []\n", []string{"4: access.domains: is empty; allowed: a list of at least one domain"}},
		"admin a domain":       {good + "[access]\nadmins = [\"example.org\"]\n", []string{`"example.org" is not allowed; allowed: a list of bare JIDs`}},
		"admin from elsewhere": {good + "[access]\nadmins = [\"root@example.org\", \"root@elsewhere.example\"]\n", []string{`4: access.admins: names "root@elsewhere.example", which is of no domain of access.domains and so would not be heard; allowed: example.org`}},
		"full JID":             {"[component]\njid = \"a@b.example/c\"\n", []string{`2: component.jid: "a@b.example/c" is not allowed`}},
		"no parent": {"[component]\njid = \"vault\"\n", []string{
			"1: access.domains: is missing, and component.jid has no parent", "1: stream.confirm_jid: is missing, and"}},
		"date":            {"[component]\njid = 2026-01-01\n", []string{"2: component.jid: is a date or time, not a text"}},
		"log level":       {good + "[log]\nlevel = \"trace\"\n", []string{`allowed: "debug", "info", "warn", "error"`}},
		"listen":          {good + "[http]\nlisten = \"9380\"\n", []string{`4: http.listen: "9380" is not allowed; allowed: "" or HOST:PORT`}},
		"contact":         {good + "contact = \"call me\"\n", []string{`3: component.contact: "call me" is not allowed`}},
		"control in name": {good + "name = \"a\\nb\"\n", []string{`3: component.name: "a\nb" is not allowed`}},

		"repeated key":       {good + "jid = \"vault.example.org\"\n", []string{"3: component.jid: key is repeated; the first is on line 2"}},
		"repeated table":     {good + "[log]\n[component]\ntls = \"off\"\n", []string{"4: component: table is repeated; the first is on line 1"}},
		"repeated, dotted":   {"component.jid = \"vault.example.org\"\ncomponent.jid = \"vault.example.org\"\n", []string{"2: component.jid: key is repeated"}},
		"unknown table":      {good + "[limit]\nmax_records = 0\n", []string{"3: limit: unknown table; did you mean [limits]?", "4: limits.max_records: 0 is out of bounds"}},
		"misspelt component": {"[componnent]\njid = \"vault.example.org\"\n", []string{"1: componnent: unknown table; did you mean [component]?"}},
		"strange table":      {good + "[\"what ever\"]\nx = 1\n", []string{`3: "what ever": unknown table; allowed: [component], `}},
		"list of tables":     {good + "[[limits]]\nmax_records = 1\n", []string{"3: limits: is one table, not a list of tables"}},
		"table of a key":     {good + "[limits.max_records]\nx = 1\n", []string{"3: limits.max_records: is a key, not a table"}},
		"table as key":       {"limits = 3\n" + good, []string{"1: limits: is a table, not a key"}},
		"key as table":       {good + "[limits]\nmax_records = { a = 1 }\n", []string{"4: limits.max_records: is a table, not an integer"}},
		"wrong table":        {good + "max_records = 5\n", []string{"3: component.max_records: key is in the wrong table; allowed: under [limits]"}},
		"no table":           {"jid = \"vault.example.org\"\n", []string{"1: jid: key is in the wrong table; allowed: under [component]"}},
		"far from any key":   {good + "colour = \"blue\"\n", []string{"3: component.colour: unknown key; allowed in [component]: jid, server, secret_file"}},
		"dash":               {good + "secret-file = \"x\"\n", []string{"3: component.secret-file: unknown key; did you mean component.secret_file?"}},
		"upper case":         {good + "TLS = \"off\"\n", []string{"3: component.TLS: unknown key; did you mean component.tls?"}},
		"misspelt required":  {"[component]\njdi = \"vault.example.org\"\n", []string{"2: component.jdi: unknown key; did you mean component.jid?"}},

		"batch below records":  {good + "[limits]\nmax_records = 2000\n", []string{"4: limits.max_batch_records: 1024 is below limits.max_records, so a key rotation could not replace every record; allowed: at least 2000"}},
		"record above account": {good + "[limits]\nmax_account_bytes = 65536\nmax_staged_bytes = 65536\nmax_record_bytes = 65537\n", []string{"4: limits.max_account_bytes: 65536 can't hold", "5: limits.max_staged_bytes: 65536 can't hold"}},
		"record above inbound": {good + "[limits]\nmax_inbound_bytes = 300000\n", []string{"4: limits.max_inbound_bytes: 300000 can't let in one record", "allowed: at least 434176"}},
		"record above stanza":  {good + "[stream]\nmax_stanza_bytes = 100000\n", []string{"4: stream.max_stanza_bytes: 100000 can't hold one record of limits.max_record_bytes, which takes 87384 bytes in base64, with 40960 bytes around it; allowed: at least 128344"}},
		"chunk above stanza":   {good + "[stream]\nmax_stanza_bytes = 130000\nchunk_bytes = 140000\n", []string{"5: stream.chunk_bytes: 140000 is above stream.max_stanza_bytes; allowed: at most 130000"}},
		"no rule on bad keys":  {good + "[limits]\nmax_records = 2000\nmax_batch_records = 0\n", []string{"5: limits.max_batch_records: 0 is out of bounds"}},
		"stanza above hosts'":  {good + "[stream]\nmax_stanza_bytes = 524288\n", []string{"allowed: 65536 to 520192"}},

		"no quotes": {"[component]\njid = vault.example.org\n[limits]\nmax_records = 0\n", []string{
			"2: component.jid: not valid TOML: ", "4: limits.max_records: 0 is out of bounds"}},
		"no quotes, first line":    {"component.jid = vault\n", []string{"1: component.jid: not valid TOML"}},
		"no value":                 {good + "[limits]\n# a comment\n\nmax_records =\nmax_vaults = 0\n", []string{"6: limits.max_records: not valid TOML", "7: limits.max_vaults: 0 is out"}},
		"no value at the end":      {good + "name =", []string{"3: component.name: not valid TOML"}},
		"open header":              {"[component\njid = \"vault.example.org\"\ntls = 5\n", []string{"1: not valid TOML", "3: component.tls: is an integer"}},
		"open list":                {good + "[access]\ndomains = [\"a.example\"\n[limits]\nmax_records = 0\n", []string{"access.domains: not valid TOML", "6: limits.max_records: 0"}},
		"comma left out":           {good + "[access]\ndomains = [\n  \"a.example\"\n  \"b.example\"\n]\n[limits]\nmax_records = 0\n", []string{"6: access.domains: not valid TOML", "9: limits.max_records: 0"}},
		"words":                    {good + "hello world\nname = 5\n", []string{"3: not valid TOML", "4: component.name: is an integer"}},
		"two on a line":            {good + "name = \"x\" tls = \"off\"\nserver = 1\n", []string{"3: component.name: not valid TOML", "4: component.server: is an integer"}},
		"invalid UTF-8":            {good + "name = \"\xff\"\n", []string{"3: component.name: not valid TOML"}},
		"invalid UTF-8 in comment": {good + "# \xff\nname = 5\n", []string{"3: not valid TOML", "4: component.name: is an integer"}},
		"open string":              {good + "[store]\npath = \"\"\"\nx\n[log]\nlevel = \"loud\"\n", []string{"store.path: not valid TOML", "7: log.level: \"loud\" is not allowed"}},
		"carriage returns":         {"[component]\r\njid = \"vault.example.org\"\r\n[limits]\r\nmax_records = 0\r\n", []string{"4: limits.max_records: 0"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, test.text)
			got := lines(t, err)
			joined := strings.Join(got, "\n")
			rest := joined
			for _, want := range test.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("got:\n%s\nwant, in order: %q", joined, test.want)
				}
				rest = after
			}
			numbered := 0
			for _, want := range test.want {
				if want[0] >= '0' && want[0] <= '9' && strings.Contains(want[:min(4, len(want))], ": ") {
					numbered++
				}
			}
			if numbered == len(test.want) && len(got) != len(test.want) {
				t.Errorf("got %d faults, want %d:\n%s", len(got), len(test.want), joined)
			}
		})
	}
}

func TestNoConfigurationAtAll(t *testing.T) {
	t.Parallel()
	_, err := load(t, strings.Repeat("x=\n", 60000))
	got := lines(t, err)
	if len(got) < 10 || len(got) > 60 || !strings.Contains(strings.Join(got, "\n"), "is this a configuration file?") {
		t.Errorf("%d faults, the last %s", len(got), got[len(got)-1])
	}
}

func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	if _, err := load(t, "\ufeff"+good); err != nil {
		t.Error(err)
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	large := write(t, filepath.Join(folder, "large.toml"), strings.Repeat("#\n", 600000), 0o600)
	for file, want := range map[string]string{
		filepath.Join(folder, "none.toml"): "can't be read: no such file or directory",
		folder:                             "can't be read: is a directory",
		large:                              "can't be read: larger than 262144 bytes",
	} {
		_, err := configs.Load(file, env("x"))
		if err == nil || !strings.HasPrefix(err.Error(), file+": "+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Load(%s) = %v, want one line: %s", file, err, want)
		}
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	const plain = "secret = \"of the key\"\n"
	const file = "secret_file = \"secret\"\n"
	tests := map[string]struct {
		keys    string
		env     string
		content string // of the secret file; "-" = there is none
		mode    os.FileMode
		want    string
		fault   string
		warning string
	}{
		"environment first": {plain + file, "of the environment", "of the file", 0o600, "of the environment", "", ""},
		"then the file":     {plain + file, "", "of the file\n", 0o600, "of the file", "", ""},
		"then the key":      {plain, "", "-", 0o600, "of the key", "", ""},
		"environment, file missing": {
			file, "of the environment", "-", 0, "of the environment", "", ""},
		"one line break":     {file, "", "two\n\n", 0o600, "two\n", "", ""},
		"Windows line break": {file, "", "two\r\n", 0o600, "two", "", ""},
		"spaces stay":        {file, "", " a b ", 0o600, " a b ", "", ""},
		"none":               {"", "", "-", 0, "", "1: component.secret: is missing; allowed: a secret that is not empty, from the environment variable PEPVAULT_SECRET, else the file that component.secret_file names, else component.secret", ""},
		"empty key":          {"secret = \"\"\n", "", "-", 0, "", "3: component.secret: is empty; allowed: a secret", ""},
		"empty file":         {plain + file, "", "\n", 0o600, "", "secret is empty; allowed: a secret", ""},
		"missing file":       {file, "", "-", 0, "", "secret can't be read: no such file or directory; allowed: a secret", ""},
		"empty file name":    {plain + "secret_file = \"\"\n", "", "-", 0, "of the key", "", ""},
		"public file":        {file, "", "x", 0o644, "x", "", "3: component.secret_file: warning: everybody on this machine can read"},
		"not a text":         {"secret = 123456789\n", "", "-", 0, "", "3: component.secret: is an integer, not a text in quotes", ""},
		"not TOML":           {"secret = hunter2\n", "", "-", 0, "", "3: component.secret: not valid TOML: put it in quotes", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			config := write(t, filepath.Join(folder, "c.toml"), good+test.keys, 0o600)
			if test.content != "-" {
				write(t, filepath.Join(folder, "secret"), test.content, test.mode)
			}
			got, err := configs.Load(config, env(test.env))
			faults := strings.Join(lines(t, err), "\n")
			if !strings.Contains(faults, test.fault) || (test.fault == "") != (err == nil) {
				t.Fatalf("faults: %q, want %q", faults, test.fault)
			}
			if strings.Contains(faults, "123456789") || strings.Contains(faults, "hunter2") {
				t.Errorf("secret in %q", faults)
			}
			if got.Component.Secret.Reveal() != test.want {
				t.Errorf("secret is %q, want %q", got.Component.Secret.Reveal(), test.want)
			}
			warnings := strings.Join(got.Warnings, "\n")
			if !strings.Contains(warnings, test.warning) || (test.warning == "") != (warnings == "") {
				t.Errorf("warnings: %q, want %q", warnings, test.warning)
			}
		})
	}
}

func TestPublicConfigWithSecret(t *testing.T) {
	t.Parallel()
	file := write(t, filepath.Join(t.TempDir(), "c.toml"), good+"secret = \"x\"\n", 0o644)
	got, err := configs.Load(file, env(""))
	if err != nil || len(got.Warnings) != 1 || !strings.HasPrefix(got.Warnings[0], file+":3: component.secret: warning: ") {
		t.Errorf("warnings %q, error %v", got.Warnings, err)
	}
}

func TestSecretHides(t *testing.T) {
	t.Parallel()
	config, err := load(t, good)
	if err != nil {
		t.Fatal(err)
	}
	unexported := struct{ c configs.Config }{config}
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("x", "secret", config.Component.Secret, "config", config, "inner", unexported)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		fmt.Fprintf(&log, format, config)
		fmt.Fprintf(&log, format, config.Component.Secret)
		fmt.Fprintf(&log, format, unexported)
	}
	for _, leak := range []string{"s3cret", fmt.Sprintf("%x", "s3cret")} {
		if strings.Contains(log.String(), leak) {
			t.Errorf("secret in:\n%s", log.String())
		}
	}
}

func TestDocumentedFile(t *testing.T) {
	t.Parallel()
	want := configs.Describe()
	if *update {
		if err := os.WriteFile("pepvault.toml", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("pepvault.toml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("pepvault.toml is out of date, run go test ./configs -update (-want +got):\n%s", diff)
	}
}

// TestDocumentedFileIsTheDefault reads the documented file back: as it is, and
// with every key that it only shows in a comment.
func TestDocumentedFileIsTheDefault(t *testing.T) {
	t.Parallel()
	plain, err := load(t, good)
	if err != nil {
		t.Fatal(err)
	}
	got, err := load(t, string(configs.Describe()))
	if err != nil {
		t.Fatal(err)
	}
	ignore := cmp.Options{
		cmpopts.IgnoreUnexported(configs.Component{}), cmpopts.IgnoreFields(configs.Component{}, "Secret"),
		cmpopts.IgnoreFields(configs.Store{}, "Path"), cmpopts.EquateEmpty(),
	}
	if diff := cmp.Diff(plain, got, ignore); diff != "" {
		t.Errorf("-defaults +documented:\n%s", diff)
	}
	var all []string
	for line := range strings.Lines(string(configs.Describe())) {
		if rest, ok := strings.CutPrefix(line, "# "); ok && strings.Contains(line, " = ") && !strings.Contains(line, ";") {
			line = rest
		}
		all = append(all, line)
	}
	if _, err := load(t, strings.Join(all, "")); err != nil {
		t.Errorf("with the commented keys: %v", err)
	}
}

// FuzzLoad holds that no text makes Load panic, and that each fault is one
// line that exists.
func FuzzLoad(f *testing.F) {
	f.Add(good)
	f.Add(string(configs.Describe()))
	f.Add("[a\nb = \"\"\"\n[limits]\nmax_records = [{a=1},\n")
	f.Add("x.y = {a = 1, b = {c = 2}}\n\"\\n\" = 1\n[[limits]]\n")
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(folder, fmt.Sprint(os.Getpid())+".toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := configs.Load(file, env("x"))
		if err == nil {
			return
		}
		var faults configs.Faults
		if !errors.As(err, &faults) || len(faults) == 0 {
			t.Fatalf("error is %T: %v", err, err)
		}
		last := max(1, strings.Count(text, "\n")+1)
		for _, fault := range faults {
			if fault.Line < 1 || fault.Line > last || strings.ContainsAny(fault.Error(), "\n\r") {
				t.Errorf("fault %q at line %d of %d", fault.Error(), fault.Line, last)
			}
		}
	})
}
