package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEndToEnd(t *testing.T) {
	t.Parallel()
	p := buildPrograms(t)
	tests := []struct {
		name string
		run  func(*place)
	}{
		{"page", (*place).testPage},
		{"walk", (*place).testWalk},
		{"pass phrase", (*place).testPassPhrase},
		{"conflicts", (*place).testConflicts},
		{"faults", (*place).testFaults},
		{"tampered", (*place).testTampered},
		{"killed put", (*place).testKilledPut},
		{"killed rotation", (*place).testKilledRotation},
		{"killed download", (*place).testKilledDownload},
		{"service killed", (*place).testServiceKilled},
		{"restored backup", (*place).testRestored},
	}
	var jids []string
	for i := range tests {
		jids = append(jids, fmt.Sprintf("vault%d.localhost", i))
	}
	server := startProsody(t, jids...)
	t.Run("all", func(t *testing.T) { // ends before the server does
		for i, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				test.run(newPlace(t, p, server, jids[i]))
			})
		}
	})
}

// testWalk is two terminals of one account, one of them watching.
func (w *place) testWalk() {
	laptop, phone := w.terminal("laptop"), w.terminal("phone")
	laptop.must(laptop.initArgs()...)
	phone.must(phone.initArgs()...)
	laptop.mustWith("correct horse", "put", "bank")
	phone.shows("bank", "correct horse")
	seen, stop := phone.watch()
	seen.await(w.t, "pep.Sync", 1)
	laptop.mustWith("tr0ub4dor", "put", "bank")
	seen.await(w.t, "bank\tchanged", 1)
	laptop.must("rm", "bank")
	seen.await(w.t, "bank\tremoved", 1)
	phone.fails(1, "no such record", "get", "--offline", "bank") // the watch has the folder
	phone.fails(1, "another pepvault-device is using it", "sync")
	stop()

	file := strings.Repeat("\x00\xff", 5000)
	laptop.write("file", file)
	laptop.must("put", "file of bytes", "file")
	phone.must("download")
	phone.shows("file of bytes", file)
	laptop.write("large", strings.Repeat("x", 65_300))
	laptop.must("put", "large", "large")
	laptop.write("too large", strings.Repeat("x", 65_600))
	laptop.fails(1, "the service refused \"too large\"", "put", "too large", "too large")
	laptop.fails(1, "no such record", "get", "too large")
	if list := phone.must("list"); list != "file of bytes\t10000\nlarge\t65300\n" {
		w.t.Errorf("list: %q", list)
	}
	w.testExport(phone)
	w.testSealed(laptop, phone)
}

func (w *place) testExport(d *terminal) {
	d.must("export", "all.json")
	if r := d.run("", "export", "all.json"); r.code != 1 || !strings.Contains(r.err, "exists") || !strings.Contains(r.err, "warning") {
		w.t.Errorf("exported over a file: %+v", r)
	}
	text, err := os.ReadFile(filepath.Join(d.dir, "all.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	var all struct {
		Records []struct{ Name, Text, Base64 string }
	}
	if err := json.Unmarshal(text, &all); err != nil || len(all.Records) != 2 || all.Records[0].Base64 == "" || len(all.Records[1].Text) != 65_300 {
		w.t.Errorf("exported %d records: %v", len(all.Records), err)
	}
}

// testSealed holds that neither the folders nor the service's files show a name
// or a content.
func (w *place) testSealed(devices ...*terminal) {
	folders := []string{filepath.Dir(w.config)}
	for _, d := range devices {
		d.mustWith("MARKED-CONTENT", "put", "MARKED-NAME")
		d.must("sync")
		folders = append(folders, filepath.Join(d.dir, "state"))
	}
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, entry := range entries {
			text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
			if err == nil && strings.Contains(string(text), "MARKED") {
				w.t.Errorf("%s shows what is sealed", filepath.Join(folder, entry.Name()))
			}
		}
	}
}

// testPassPhrase holds that a rotation reaches whoever knows the pass phrase, and
// what becomes of who doesn't.
func (w *place) testPassPhrase() {
	laptop, phone := w.terminal("laptop"), w.terminal("phone")
	laptop.must(laptop.initArgs()...)
	phone.must(phone.initArgs()...)
	laptop.mustWith("a", "put", "a")
	laptop.must("rotate")
	phone.shows("a", "a")
	phone.write("new", "another pass phrase")
	phone.must("rotate", "--passphrase-file", "new")
	phone.mustWith("b", "put", "b")

	laptop.mustWith("offline", "--server", "127.0.0.1:1", "put", "mine")
	laptop.fails(1, "pass phrase was changed", "sync")
	laptop.fails(1, "pass phrase", laptop.initArgs()...) // the old one
	laptop.write("passphrase", "another pass phrase")
	laptop.fails(1, "wrong pass phrase", "list", "--offline")
	laptop.must(laptop.initArgs()...)
	laptop.shows("b", "b")
	laptop.shows("mine", "offline") // what was not offered is not lost
	phone.shows("mine", "offline")
	tablet := w.terminal("tablet")
	tablet.fails(1, "wrong pass phrase", tablet.initArgs()...)
	tablet.write("passphrase", "another pass phrase")
	tablet.must(tablet.initArgs()...)
	tablet.shows("a", "a")
}

// testConflicts holds that no version is lost where two devices changed a record.
func (w *place) testConflicts() {
	laptop, phone := w.terminal("laptop"), w.terminal("phone")
	laptop.must(laptop.initArgs()...)
	phone.must(phone.initArgs()...)
	laptop.mustWith("old", "put", "a")
	laptop.mustWith("old", "put", "b")
	laptop.mustWith("old", "put", "c")
	phone.must("sync")
	offline := func(stdin string, args ...string) {
		if r := phone.run(stdin, append([]string{"--server", "127.0.0.1:1"}, args...)...); r.code != 0 || !strings.Contains(r.err, "kept on this device") {
			w.t.Errorf("offline %v: %+v", args, r)
		}
	}
	offline("phone's", "put", "a")
	offline("phone's", "put", "b")
	offline("", "rm", "c")
	offline("new", "put", "d")
	if r := phone.run("", "--server", "127.0.0.1:1", "get", "a"); r.out != "phone's" {
		w.t.Errorf("offline the phone reads %+v", r)
	}
	for _, name := range []string{"a", "b", "c"} {
		laptop.mustWith("laptop's", "put", name)
	}
	if r := phone.run("", "sync"); r.code != 3 || strings.Count(r.err, "both versions are kept") != 3 {
		w.t.Errorf("sync: %+v", r)
	}
	if r := phone.run("", "get", "a"); r.code != 3 || r.out != "laptop's" {
		w.t.Errorf("get: %+v", r)
	}
	if got := phone.must("get", "--mine", "a"); got != "phone's" {
		w.t.Errorf("the phone's own: %q", got)
	}
	laptop.shows("d", "new")
	phone.run("", "settle", "--keep", "mine", "a")
	phone.run("", "settle", "--keep", "theirs", "b")
	phone.must("settle", "--keep", "mine", "c")
	for name, want := range map[string]string{"a": "phone's", "b": "laptop's"} {
		laptop.shows(name, want)
		phone.shows(name, want)
	}
	laptop.fails(1, "no such record", "get", "c")
	phone.fails(1, "has no conflict", "settle", "--keep", "mine", "a")

	// What was kept stays, however often the service refuses it.
	large := strings.Repeat("x", 66_000)
	offline(large, "put", "large")
	phone.run("", "sync")
	phone.fails(3, "payload-too-big", "settle", "--keep", "mine", "large")
	if got := phone.must("get", "--mine", "large"); got != large {
		w.t.Errorf("of what the service refused, %d bytes are kept", len(got))
	}
	phone.must("settle", "--keep", "theirs", "large")
}

// testFaults holds that what goes wrong is one clear line.
func (w *place) testFaults() {
	good := w.terminal("good")
	good.fails(1, "not set up", "list")
	good.must(good.initArgs()...)
	good.mustWith("a", "put", "a")

	other := w.terminal("other")
	other.write("passphrase", "wrong")
	other.fails(1, "wrong pass phrase", other.initArgs()...)
	other.write("keyfile", strings.Repeat("k", 32))
	args := other.initArgs()
	other.fails(1, "pass phrase", append(args[:len(args)-2], "--key-file", "keyfile")...)
	good.write("passphrase", "wrong")
	good.fails(1, "wrong pass phrase", "list")
	good.write("passphrase", "correct horse battery staple")

	good.write("password", "wrong")
	good.fails(1, "refused the account or its password", "sync")
	good.fails(1, "refused the account or its password", "get", "a")
	if got := good.must("get", "--offline", "a"); got != "a" {
		w.t.Errorf("offline: %q", got)
	}
	good.write("password", password)
	good.write("empty.pem", "")
	good.fails(1, "no certificate", "--ca", "empty.pem", "sync")
	another := w.terminal("of another server")
	another.write("other.pem", otherCA(w.t))
	good.fails(1, "wrong certificate", "--ca", filepath.Join(another.dir, "other.pem"), "sync")
	good.fails(1, "can't be reached", "--server", "127.0.0.1:1", "sync")
	good.must("--insecure-tls", "sync")
	good.fails(1, "holds the vault", "--vault", "other", "sync")
	good.fails(2, "unexpected argument", "list", "a")
	good.fails(1, "no such file", "put", "b", "nowhere")
	good.fails(1, "the service refuses", "--service", "nothing.localhost", "sync")
	good.must("--ca", "ca.pem", "sync")
}
