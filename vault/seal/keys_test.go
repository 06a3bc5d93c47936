package seal

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// cheap is the least that a lock may ask for.
var cheap = Lock{Kind: PassPhrase, Memory: leastMemory, Passes: 1, Lanes: 1, Salt: [16]byte{1}}

func rootOf(t testing.TB, l Lock, text string) Root {
	t.Helper()
	root, err := l.Root([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

var someKeys = Keys{Records: keyOf(1), Names: NameKey{secret{2}}}

func TestKeysAreUnwrapped(t *testing.T) {
	t.Parallel()
	file := Lock{Kind: KeyFile, Salt: [16]byte{2}}
	for name, test := range map[string]struct {
		lock Lock
		text string
	}{"pass phrase": {cheap, "correct horse"}, "key file": {file, strings.Repeat("k", 32)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := rootOf(t, test.lock, test.text)
			text := Wrap(root, test.lock, place, 3, someKeys, nil)
			record, err := ReadKeyRecord(text)
			if err != nil || record.Lock != test.lock || record.Key != someKeys.Records.ID() || record.Previous != (KeyID{}) {
				t.Fatalf("read as %+v, %v", record, err)
			}
			again := rootOf(t, record.Lock, test.text)
			if got, err := Unwrap(again, place, 3, text); err != nil || got != someKeys {
				t.Errorf("unwrapped: %v, equal %v", err, got == someKeys)
			}
			if _, err := Unwrap(rootOf(t, test.lock, test.text+"?"), place, 3, text); !errors.Is(err, ErrWrongSecret) {
				t.Errorf("with another secret: %v", err)
			}
			for _, other := range []Place{{"bob@example.org", "notes"}, {place.Owner, "other"}} {
				if _, err := Unwrap(root, other, 3, text); !errors.Is(err, ErrWrongSecret) {
					t.Errorf("at %v: %v", other, err)
				}
			}
			if _, err := Unwrap(root, place, 4, text); !errors.Is(err, ErrWrongSecret) {
				t.Errorf("with another key version: %v", err)
			}
		})
	}
}

func TestEveryBitOfAKeyRecordCounts(t *testing.T) {
	t.Parallel()
	root, previous := rootOf(t, cheap, "correct horse"), keyOf(7)
	for _, before := range []*Key{nil, &previous} {
		flips(Wrap(root, cheap, place, 3, someKeys, before), func(what string, changed []byte) {
			if _, err := Unwrap(root, place, 3, changed); err == nil {
				t.Errorf("%s: unwrapped", what)
			}
		})
	}
}

func TestWhoMadeAKeyRecord(t *testing.T) {
	t.Parallel()
	root, previous := rootOf(t, cheap, "correct horse"), keyOf(7)
	read := func(text []byte) KeyRecord {
		r, err := ReadKeyRecord(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	made := Wrap(root, cheap, place, 3, someKeys, &previous)
	forged := bytes.Clone(made)
	forged[20] ^= 1 // of the salt
	for name, test := range map[string]struct {
		r       KeyRecord
		key     Key
		version uint32
		want    bool
	}{
		"good":            {read(made), keyOf(7), 3, true},
		"another key":     {read(made), keyOf(8), 3, false},
		"another version": {read(made), keyOf(7), 4, false},
		"another salt":    {read(forged), keyOf(7), 3, false},
		"none before":     {read(Wrap(root, cheap, place, 3, someKeys, nil)), keyOf(7), 3, false},
	} {
		if got := test.r.Follows(test.key, place, test.version); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestLocks(t *testing.T) {
	t.Parallel()
	change := func(f func(*Lock)) Lock {
		l := cheap
		f(&l)
		return l
	}
	for name, test := range map[string]struct {
		lock Lock
		good bool
	}{
		"made":          {NewLock(PassPhrase), true},
		"key file":      {NewLock(KeyFile), true},
		"cheap":         {cheap, true},
		"little memory": {change(func(l *Lock) { l.Memory-- }), false},
		"much memory":   {change(func(l *Lock) { l.Memory = mostMemory + 1 }), false},
		"no passes":     {change(func(l *Lock) { l.Passes = 0 }), false},
		"many passes":   {change(func(l *Lock) { l.Passes = mostPasses + 1 }), false},
		"no lanes":      {change(func(l *Lock) { l.Lanes = 0 }), false},
		"many lanes":    {change(func(l *Lock) { l.Lanes = mostLanes + 1 }), false},
		"unknown kind":  {change(func(l *Lock) { l.Kind = 3 }), false},
		"odd key file":  {change(func(l *Lock) { l.Kind = KeyFile }), false},
	} {
		got, rest, err := ReadLock(append(test.lock.Append(nil), "rest"...))
		if test.good != (err == nil) || test.good && (got != test.lock || string(rest) != "rest") {
			t.Errorf("%s: read as %+v, %q, %v", name, got, rest, err)
		}
		if _, err := test.lock.Root(bytes.Repeat([]byte("x"), 32)); test.good != (err == nil) {
			t.Errorf("%s: root: %v", name, err)
		}
	}
	if _, _, err := ReadLock(cheap.Append(nil)[:lockBytes-1]); err == nil {
		t.Error("half a lock was read")
	}
}

func TestSecretsThatAreNone(t *testing.T) {
	t.Parallel()
	file := Lock{Kind: KeyFile}
	for name, test := range map[string]struct {
		lock Lock
		text string
	}{
		"empty":          {cheap, ""},
		"two lines":      {cheap, "a\nb"},
		"not UTF-8":      {cheap, "a\xff"},
		"short key file": {file, strings.Repeat("k", 31)},
		"long key file":  {file, strings.Repeat("k", MaxKeyFile+1)},
	} {
		if _, err := test.lock.Root([]byte(test.text)); !errors.Is(err, ErrBadSecret) || strings.Contains(fmt.Sprint(err), "kkk") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if rootOf(t, cheap, "e\u0301") != rootOf(t, cheap, "\u00e9") {
		t.Error("a pass phrase that looks the same is another one")
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	k := FileKey{secret{5}}
	sealed := k.Seal("state", []byte("text"))
	if got, err := k.Open("state", sealed); err != nil || string(got) != "text" {
		t.Fatalf("opened as %q, %v", got, err)
	}
	if _, err := k.Open("journal", sealed); !errors.Is(err, ErrWrongSecret) {
		t.Errorf("as something else: %v", err)
	}
	if _, err := NewFileKey().Open("state", sealed); !errors.Is(err, ErrWrongSecret) {
		t.Errorf("with another key: %v", err)
	}
	flips(sealed, func(what string, changed []byte) {
		if _, err := k.Open("state", changed); err == nil {
			t.Errorf("%s: opened", what)
		}
	})
}

// One secret makes keys for several purposes: none of them is another.
func TestPurposesAreApart(t *testing.T) {
	t.Parallel()
	s := secret{1}
	seen := map[string]string{}
	for _, purpose := range []string{"records", "key id", "next key", "record ids", "keys", "file"} {
		key := string(s.derive(purpose))
		if other, found := seen[key]; found || key == string(s[:]) {
			t.Errorf("%s is as %s", purpose, other)
		}
		seen[key] = purpose
	}
}

func TestSecretsHideThemselves(t *testing.T) {
	t.Parallel()
	var s secret
	copy(s[:], "MARKED")
	marks := []string{"MARKED", "77 65 82", fmt.Sprintf("%x", "MARKED"), "0x4d, 0x41"}
	for _, value := range []any{Key{s}, NameKey{s}, Root{s}, FileKey{s}, Keys{Key{s}, NameKey{s}}, &Key{s}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
			text := fmt.Sprintf(verb, value)
			for _, mark := range marks {
				if strings.Contains(text, mark) {
					t.Errorf("%s of a %s shows %q", verb, reflect.TypeOf(value), text)
				}
			}
		}
	}
}

var update = flag.Bool("update", false, "write the vectors of testdata anew")

// vector is a text of testdata that other programs can be tested with; binary
// values are in hexadecimal. Nonces count up from 0.
type vector struct {
	Name, Owner, Node, ID string `json:",omitempty"`
	KeyVersion            uint32
	Key, NameKey, Secret  string `json:",omitempty"`
	Lock, PreviousKey     string `json:",omitempty"`
	Content, Birth        string `json:",omitempty"`
	Generation            uint64 `json:",omitempty"`
	KeyID, Sealed         string
}

// vectors seals everything that is described in testdata anew.
func vectors(t *testing.T) (all []vector) {
	nonce := [24]byte{}
	for i := range nonce {
		nonce[i] = byte(i)
	}
	names := NameKey{secret{3: 9}}
	for _, r := range []Record{
		{Name: "bank", Content: []byte("correct horse")},
		{Name: "Schlüssel/Haus", Content: []byte{}, Birth: Birth{1, 2, 3}, Generation: 7},
		{Name: "long", Content: bytes.Repeat([]byte("0123456789"), 60), Birth: Birth{15: 255}, Generation: 1 << 40},
	} {
		v := vector{
			Name: r.Name, Owner: string(place.Owner), Node: place.Node, ID: names.RecordID(place, r.Name), KeyVersion: 3,
			Key: hex.EncodeToString(keyOf(1).Bytes()), NameKey: hex.EncodeToString(names.secret[:]),
			Content: hex.EncodeToString(r.Content), Birth: hex.EncodeToString(r.Birth[:]), Generation: r.Generation, KeyID: keyOf(1).ID().String(),
		}
		sealed, err := sealWith(nonce, keyOf(1), place, v.ID, v.KeyVersion, r)
		if err != nil {
			t.Fatal(err)
		}
		v.Sealed = hex.EncodeToString(sealed)
		all = append(all, v)
	}
	previous := keyOf(8)
	for _, made := range []struct {
		lock     Lock
		secret   string
		previous *Key
	}{
		{cheap, "correct horse battery staple", nil},
		{Lock{Kind: PassPhrase, Memory: 64 << 10, Passes: 3, Lanes: 4, Salt: [16]byte{5}}, "pass", &previous},
		{Lock{Kind: KeyFile, Salt: [16]byte{6}}, strings.Repeat("k", 40), nil},
	} {
		keys := Keys{Records: keyOf(1), Names: names}
		v := vector{
			Owner: string(place.Owner), Node: place.Node, ID: KeyRecordID, KeyVersion: 4, Secret: made.secret,
			Lock: hex.EncodeToString(made.lock.Append(nil)), Key: hex.EncodeToString(keys.Records.Bytes()), NameKey: hex.EncodeToString(names.secret[:]),
			KeyID: keys.Records.ID().String(),
		}
		if made.previous != nil {
			v.PreviousKey = hex.EncodeToString(made.previous.Bytes())
		}
		v.Sealed = hex.EncodeToString(wrapWith(nonce, rootOf(t, made.lock, made.secret), made.lock, place, 4, keys, made.previous))
		all = append(all, v)
	}
	return all
}

// TestVectors holds that the format stays as it is: what is sealed today has to
// open for ever.
func TestVectors(t *testing.T) {
	t.Parallel()
	got, err := json.MarshalIndent(vectors(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/vectors.json"
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(append(got, '\n'), want) {
		t.Errorf("the format has changed; it is now\n%s", got)
	}
}
