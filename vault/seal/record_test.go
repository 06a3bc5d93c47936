package seal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var place = Place{Owner: "alice@example.org", Node: "notes"}

// keyOf is a key that tests tell by its first byte.
func keyOf(b byte) Key { return Key{secret{b}} }

func drawRecord(t *rapid.T) Record {
	return Record{
		Name:       rapid.StringMatching(`[a-zäß/. -]{1,40}`).Draw(t, "name"),
		Content:    rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "content"),
		Birth:      Birth(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "birth")),
		Generation: rapid.Uint64().Draw(t, "generation"),
	}
}

func same(a, b Record) bool {
	return a.Name == b.Name && bytes.Equal(a.Content, b.Content) && a.Birth == b.Birth && a.Generation == b.Generation
}

func TestWhatIsSealedOpens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		version := rapid.Uint32Range(0, 1<<31-1).Draw(t, "version")
		sealed, err := Seal(keyOf(1), place, "id", version, r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Open(keyOf(1), place, "id", version, sealed)
		if err != nil || !same(got, r) {
			t.Fatalf("opened as %+v, %v; want %+v", got, err, r)
		}
		if bytes.Contains(sealed, []byte(r.Name)) && len(r.Name) > 4 {
			t.Fatal("the name can be read")
		}
	})
}

// What a service could answer instead is no record of that place.
func TestEveryPlaceCounts(t *testing.T) {
	t.Parallel()
	sealed, err := Seal(keyOf(1), place, "id", 3, Record{Name: "n", Content: []byte("c")})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		key     Key
		at      Place
		id      string
		version uint32
		want    error
	}{
		"the right one":     {keyOf(1), place, "id", 3, nil},
		"another owner":     {keyOf(1), Place{"bob@example.org", "notes"}, "id", 3, ErrTampered},
		"another node":      {keyOf(1), Place{place.Owner, "other"}, "id", 3, ErrTampered},
		"owner and node":    {keyOf(1), Place{"alice@example.orgn", "otes"}, "id", 3, ErrTampered},
		"another id":        {keyOf(1), place, "id2", 3, ErrTampered},
		"node and id":       {keyOf(1), Place{place.Owner, "notesi"}, "d", 3, ErrTampered},
		"a lower version":   {keyOf(1), place, "id", 2, ErrTampered},
		"a higher version":  {keyOf(1), place, "id", 4, ErrTampered},
		"another key of it": {keyOf(2), place, "id", 3, ErrUnknownKey},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Open(test.key, test.at, test.id, test.version, sealed); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// flips calls check with every text that differs in one bit, is shorter, or
// longer.
func flips(text []byte, check func(what string, changed []byte)) {
	for i := range text {
		for bit := range 8 {
			changed := bytes.Clone(text)
			changed[i] ^= 1 << bit
			check(fmt.Sprintf("bit %d of byte %d", bit, i), changed)
		}
		check(fmt.Sprintf("the first %d bytes", i), text[:i])
	}
	check("one byte more", append(bytes.Clone(text), 0))
}

func TestEveryBitOfARecordCounts(t *testing.T) {
	t.Parallel()
	sealed, err := Seal(keyOf(1), place, "id", 3, Record{Name: "n", Content: []byte("c")})
	if err != nil {
		t.Fatal(err)
	}
	flips(sealed, func(what string, changed []byte) {
		if r, err := Open(keyOf(1), place, "id", 3, changed); err == nil {
			t.Errorf("%s: opened as %+v", what, r)
		}
	})
}

func TestNoncesDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 2000 {
		sealed, err := Seal(keyOf(1), place, "id", 3, Record{Name: "n"})
		if err != nil {
			t.Fatal(err)
		}
		nonce := string(sealed[1+len(KeyID{}) : recordHead])
		if seen[nonce] {
			t.Fatal("a nonce came twice")
		}
		seen[nonce] = true
	}
}

func TestPadding(t *testing.T) {
	t.Parallel()
	steps := map[int]bool{}
	before := 0
	for n := range 1 << 17 {
		p := padded(n)
		switch {
		case p < n, p < before:
			t.Fatalf("%d becomes %d, after %d", n, p, before)
		case n > leastBytes && float64(p) > 1.12*float64(n):
			t.Fatalf("%d becomes %d", n, p)
		case padded(p) != p:
			t.Fatalf("%d is padded again", p)
		}
		before = p
		steps[p] = true
	}
	for exponent := 8; exponent <= 16; exponent++ {
		if !steps[1<<exponent] {
			t.Errorf("%d is no step, so a limit of that size would be exceeded", 1<<exponent)
		}
	}
	if len(steps) > 200 {
		t.Errorf("%d lengths can be told apart up to 128 KiB", len(steps))
	}
}

func TestWhatCanNotBeSealed(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Record{
		"no name":           {},
		"long name":         {Name: strings.Repeat("n", 513)},
		"control character": {Name: "a\nb"},
		"not UTF-8":         {Name: "a\xff"},
	} {
		if _, err := Seal(keyOf(1), place, "id", 1, r); !errors.Is(err, ErrTooLong) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A body that sealWith doesn't write is refused, also with the right key.
func TestBodiesAreStrict(t *testing.T) {
	t.Parallel()
	good, err := Seal(keyOf(1), place, "id", 1, Record{Name: "name", Content: []byte("content")})
	if err != nil {
		t.Fatal(err)
	}
	total := len(good)
	body := func(change func([]byte)) []byte {
		b := make([]byte, total-recordHead-16)
		b[25], b[29] = 4, 7 // the lengths
		copy(b[30:], "namecontent")
		change(b)
		return b
	}
	tests := map[string]struct {
		body []byte
		good bool
	}{
		"as it is written":   {body(func([]byte) {}), true},
		"padding":            {body(func(b []byte) { b[41] = 1 }), false},
		"end of padding":     {body(func(b []byte) { b[len(b)-1] = 1 }), false},
		"lengths too long":   {body(func(b []byte) { b[26] = 0xff }), false},
		"padded too far":     {append(body(func([]byte) {}), make([]byte, 500)...), false},
		"no name":            {body(func(b []byte) { b[25], b[29] = 0, 11 }), false},
		"name of controls":   {body(func(b []byte) { b[31] = 1 }), false},
		"nothing":            {nil, false},
		"shorter than heads": {make([]byte, bodyHead-1), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			size := total
			if len(test.body) > len(good) {
				size = total + 500
			}
			if _, err := readBody(test.body, size); (err == nil) != test.good {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRecordIDs(t *testing.T) {
	t.Parallel()
	names := NameKey{secret{1}}
	ids := []string{
		KeyRecordID, names.RecordID(place, "bank"), names.RecordID(place, "Bank"),
		names.RecordID(Place{place.Owner, "other"}, "bank"), names.RecordID(Place{"bob@example.org", "notes"}, "bank"),
		NameKey{secret{2}}.RecordID(place, "bank"),
	}
	if again := names.RecordID(place, "bank"); again != ids[1] {
		t.Errorf("one name has the ids %s and %s", ids[1], again)
	}
	if slices.Min(ids) != KeyRecordID {
		t.Error("the key record doesn't come first")
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 6 {
		t.Errorf("two of them are alike: %q", ids)
	}
}

func FuzzOpen(f *testing.F) {
	for _, content := range []string{"", "c", strings.Repeat("long", 400)} {
		sealed, err := Seal(keyOf(1), place, "id", 3, Record{Name: "n", Content: []byte(content)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(sealed, []byte(content))
	}
	f.Fuzz(func(t *testing.T, sealed, body []byte) {
		if r, err := Open(keyOf(1), place, "id", 3, sealed); err == nil {
			again(t, r)
		}
		// And with the right key, which no fuzzer finds.
		if r, err := readBody(body, len(body)+recordHead+16); err == nil {
			again(t, r)
		}
		if keys, err := Unwrap(Root{secret{9}}, place, 3, sealed); err == nil {
			t.Errorf("unwrapped %v", keys)
		}
	})
}

func again(t *testing.T, r Record) {
	sealed, err := Seal(keyOf(1), place, "id", 3, r)
	if err != nil {
		t.Fatalf("opened, but not sealed again: %v", err)
	}
	if got, err := Open(keyOf(1), place, "id", 3, sealed); err != nil || !same(got, r) {
		t.Fatalf("sealed again it is %+v, %v", got, err)
	}
}
