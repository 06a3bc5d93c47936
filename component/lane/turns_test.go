package lane

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// waiting is what a model knows of the first chunk of a device.
type waiting struct {
	others     int // bytes that others have sent since it is the first
	siblings   int // the most devices of its account that waited beside it at one time
	accounts   int // the most other accounts, likewise
	debt       int // what earlier chunks of the device had more than their Size
	debtOfMany int // likewise, of its account
}

// turnsModel holds turns against lists.
type turnsModel struct {
	turns          turns
	lists          map[string][]bulk // by device
	first          map[string]*waiting
	debts          map[string]int // of devices and of accounts
	count, largest int
	named          int
}

func accountOf(device string) string {
	account, _, _ := strings.Cut(device, "/")
	return account
}

// begin notes that another chunk is the first of that device.
func (m *turnsModel) begin(name string) {
	m.first[name] = &waiting{debt: m.debts[name], debtOfMany: m.debts[accountOf(name)]}
	for name, w := range m.first {
		siblings, accounts := -1, map[string]bool{}
		for other := range m.first {
			if accountOf(other) == accountOf(name) {
				siblings++
			} else {
				accounts[accountOf(other)] = true
			}
		}
		w.siblings, w.accounts = max(w.siblings, siblings), max(w.accounts, len(accounts))
	}
}

// bound is the documented one.
func (m *turnsModel) bound(b bulk, w *waiting) int {
	inTurns := func(bytes int) int { return (bytes + turnBytes - 1) / turnBytes }
	own := inTurns(b.cost()+w.debt) * w.siblings * (turnBytes + m.largest)
	return 2*(own+inTurns(own+b.cost()+w.debtOfMany)*w.accounts*(turnBytes+m.largest)) + turnBytes + 2*m.largest
}

func (m *turnsModel) push(t *rapid.T) {
	name := rapid.SampledFrom([]string{"a/1", "a/2", "a/3", "b/1", "b/2", "c/1", "d/1"}).Draw(t, "device")
	drawSize := rapid.OneOf(rapid.IntRange(0, 3000), rapid.IntRange(20_000, 70_000), rapid.IntRange(100_000, 500_000))
	b := bulk{Chunk: Chunk{Account: accountOf(name), For: name, Size: drawSize.Draw(t, "size")}}
	if rapid.Bool().Draw(t, "more to come") {
		b.Remaining = b.Size + drawSize.Draw(t, "more")
	}
	b.held = m.named
	m.named++
	m.turns.push(b)
	m.largest = max(m.largest, b.cost())
	m.lists[name] = append(m.lists[name], b)
	m.count++
	if len(m.lists[name]) == 1 {
		m.begin(name)
	}
}

func (m *turnsModel) take(t *rapid.T) {
	b, ok := m.turns.take()
	if ok != (m.count > 0) {
		t.Fatalf("take: %v with %d waiting", ok, m.count)
	}
	if !ok {
		return
	}
	list := m.lists[b.For]
	if len(list) == 0 || list[0].held != b.held {
		t.Fatalf("%s was sent chunk %d out of its order, %d wait", b.For, b.held, len(list))
	}
	m.count--
	more := max(rapid.SampledFrom([]int{0, 0, 1000, -b.cost()}).Draw(t, "more"), -b.cost())
	m.turns.made(&b, b.cost()+more)
	m.largest = max(m.largest, b.cost()+more)
	delete(m.first, b.For)
	m.debts[b.For] += max(more, 0)
	m.debts[b.Account] += max(more, 0)
	for name, w := range m.first {
		w.others += b.cost() + more
		if most := m.bound(m.lists[name][0], w); w.others > most {
			t.Fatalf("%s waits for %d bytes of at most %d others of %d accounts, the bound is %d", name, w.others, w.siblings, w.accounts, most)
		}
	}
	if m.lists[b.For] = list[1:]; len(list) > 1 {
		m.begin(b.For)
	} else {
		delete(m.lists, b.For)
		delete(m.debts, b.For)
	}
}

// TestTurnsAtRandom holds lane 1 against lists: nothing is lost, each device's
// chunks keep their order, and no chunk waits for more than the documented
// number of bytes of others.
func TestTurnsAtRandom(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := turnsModel{lists: map[string][]bulk{}, first: map[string]*waiting{}, debts: map[string]int{}}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(t, "n") {
					m.push(t)
				}
			},
			"take": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					m.take(t)
				}
			},
			"": func(t *rapid.T) {
				accounts := map[string]bool{}
				for name := range m.lists {
					accounts[accountOf(name)] = true
				}
				stand := 0
				for _, r := range []*round{&m.turns.short, &m.turns.long} {
					for _, s := range r.ring {
						if s != nil {
							stand += s.len()
						}
					}
				}
				if m.turns.chunks != m.count || len(m.turns.devices) != len(m.lists) || stand != len(m.lists) || len(m.turns.accounts) != len(accounts) {
					t.Fatalf("got %d chunks of %d devices (%d in a round) of %d accounts, want %d of %d of %d", m.turns.chunks,
						len(m.turns.devices), stand, len(m.turns.accounts), m.count, len(m.lists), len(accounts))
				}
			},
		})
		for m.count > 0 {
			m.take(t)
		}
	})
}

// order takes all that waits and tells for whom, one letter each.
func order(t *turns) string {
	var b strings.Builder
	for {
		c, ok := t.take()
		if !ok {
			return b.String()
		}
		t.made(&c, c.Size)
		b.WriteString(c.For)
	}
}

func TestTurns(t *testing.T) {
	t.Parallel()
	const vault = 350_000
	repeat := func(c Chunk, n int) []Chunk { return slices.Repeat([]Chunk{c}, n) }
	download := func(who string, n int) (chunks []Chunk) {
		for i := range n {
			chunks = append(chunks, Chunk{For: who, Size: 32 << 10, Remaining: (n - i) * 32 << 10})
		}
		return chunks
	}
	for name, test := range map[string]struct {
		waiting [][]Chunk
		want    string
	}{
		"fifty whole vaults beside one": {
			[][]Chunk{repeat(Chunk{For: "a", Size: vault}, 50), {{For: "b", Size: vault}}}, "ab" + strings.Repeat("a", 49)},
		"by bytes, not by answers": {
			[][]Chunk{repeat(Chunk{For: "a", Size: 200_000}, 4), repeat(Chunk{For: "b", Size: 100_000}, 8)}, "babbabbabbab"},
		"two downloads": {
			[][]Chunk{download("a", 8), download("b", 8)}, "aabbaabbaaaabbbb"},
		"a delta goes before whole vaults": {
			[][]Chunk{{{For: "a", Size: vault}, {For: "a", Size: vault}}, {{For: "b", Size: vault}}, {{For: "c", Size: 2000}}}, "caba"},
		"what is nearly done goes before what is not": {
			[][]Chunk{download("a", 6), download("b", 2)}, "bbaaaaaa"},
		"short ones leave half to the long ones": {
			[][]Chunk{{{For: "a", Size: 70_000}, {For: "a", Size: 70_000}}, repeat(Chunk{For: "b", Size: 32 << 10}, 9)}, "bbabbbabbbb"},
		"a device's own order": {
			[][]Chunk{{{For: "a", Size: vault}, {For: "a", Size: 10}, {For: "a", Size: vault}}}, "aaa"},
		"three devices of an account beside one of another": {
			[][]Chunk{{{Account: "x", For: "b", Size: vault}, {Account: "x", For: "c", Size: vault}, {Account: "x", For: "d", Size: vault}},
				{{Account: "y", For: "a", Size: vault}}}, "bacd"},
		"three of no account beside one of some": {
			[][]Chunk{{{For: "b", Size: vault}, {For: "c", Size: vault}, {For: "d", Size: vault}}, {{Account: "y", For: "a", Size: vault}}}, "bcda"},
		"who stands behind one that leaves": {
			[][]Chunk{{{For: "a", Size: 60_000}}, repeat(Chunk{For: "b", Size: 60_000}, 2), repeat(Chunk{For: "c", Size: 60_000}, 2)}, "abcbc"},
		"devices of an account among themselves": {
			[][]Chunk{repeat(Chunk{Account: "x", For: "a", Size: 60_000, Remaining: vault}, 3), repeat(Chunk{Account: "x", For: "b", Size: 60_000, Remaining: vault}, 3),
				{{Account: "x", For: "c", Size: 60_000}}}, "cababab"},
		"nobody named": {[][]Chunk{{{Size: 10}, {}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var turns turns
			for _, chunks := range test.waiting {
				for _, c := range chunks {
					turns.push(bulk{Chunk: c})
				}
			}
			if got := order(&turns); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if turns.chunks != 0 || len(turns.devices) != 0 || len(turns.accounts) != 0 {
				t.Errorf("left over: %d chunks of %d devices of %d accounts", turns.chunks, len(turns.devices), len(turns.accounts))
			}
		})
	}
}

// TestShortOnesDoNotStarveLongOnes: devices that come again and again with
// something short, each a new one, get half of the bytes.
func TestShortOnesDoNotStarveLongOnes(t *testing.T) {
	t.Parallel()
	var turns turns
	for range 20 {
		turns.push(bulk{Chunk: Chunk{For: "vault", Size: 350_000}})
	}
	short, long := 0, 0
	for i := 0; long < 20*350_000; i++ {
		turns.push(bulk{Chunk: Chunk{For: fmt.Sprint(i), Size: 5000}})
		b, _ := turns.take()
		turns.made(&b, b.Size)
		if b.For == "vault" {
			long += b.Size
		} else {
			short += b.Size
		}
		if d := short - long; d > turnBytes+5000 || d < -350_000 {
			t.Fatalf("%d bytes of short ones, %d of long ones", short, long)
		}
	}
}

// TestManyDevicesHaveTheTurnsOfOne: an account with thirty devices and one with
// a single device get the same, whatever each of the many asks for, and so do
// the thirty among themselves.
func TestManyDevicesHaveTheTurnsOfOne(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"chunks": 32 << 10, "short ones": 3000, "whole vaults": 350_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var turns turns
			push := func(account, device string) {
				remaining := 10 * size
				if name == "short ones" {
					remaining = size
				}
				turns.push(bulk{Chunk: Chunk{Account: account, For: account + device, Size: size, Remaining: remaining}})
			}
			for range 2 { // so that something of each waits at any time
				for i := range 30 {
					push("many", fmt.Sprint("/", i))
				}
				push("one", "/phone")
			}
			sent := map[string]int{}
			for range 3000 {
				b, _ := turns.take()
				turns.made(&b, b.Size)
				sent[b.Account] += size
				sent[b.For] += size
				push(b.Account, strings.TrimPrefix(b.For, b.Account))
				if d := sent["many"] - sent["one"]; d > 2*(turnBytes+size) || -d > 2*(turnBytes+size) {
					t.Fatalf("%d bytes for the many, %d for the one", sent["many"], sent["one"])
				}
			}
			least, most := 1<<30, 0
			for i := range 30 {
				n := sent[fmt.Sprint("many/", i)]
				least, most = min(least, n), max(most, n)
			}
			if most-least > 2*(turnBytes+size) {
				t.Errorf("the many got %d to %d bytes each", least, most)
			}
		})
	}
}

// TestChunksOfAnotherSize: who sends more than was said waits for it later,
// among accounts and among the devices of one.
func TestChunksOfAnotherSize(t *testing.T) {
	t.Parallel()
	for _, account := range []string{"", "one"} {
		var turns turns
		for range 30 {
			turns.push(bulk{Chunk: Chunk{Account: account, For: "liar", Size: 10_000}})
			turns.push(bulk{Chunk: Chunk{Account: account, For: "honest", Size: 50_000}})
		}
		sent := map[string]int{}
		for range 30 {
			b, _ := turns.take()
			turns.made(&b, 50_000)
			sent[b.For] += 50_000
			if d := sent["liar"] - sent["honest"]; d > 2*turnBytes+300_000 || d < -2*turnBytes-50_000 {
				t.Fatalf("account %q: sent %v", account, sent)
			}
		}
	}
}

// TestNothingIsSavedUp: an account whose short answers come one at a time has
// no more turns for it later, though a long one of its own waits all the while.
func TestNothingIsSavedUp(t *testing.T) {
	t.Parallel()
	var turns turns
	push := func(account, device string, size, remaining int) {
		turns.push(bulk{Chunk: Chunk{Account: account, For: account + device, Size: size, Remaining: remaining}})
	}
	push("x", "/long", 300_000, 1_000_000)
	for range 10 {
		push("x", "/short", 10, 0)
		turns.take()
	}
	for range 4 {
		push("x", "/short", 60_000, 0)
		push("y", "/short", 60_000, 0)
	}
	var order []string
	for turns.chunks > 0 {
		if b, _ := turns.take(); b.For != "x/long" {
			order = append(order, b.Account)
		}
	}
	if got, want := strings.Join(order, ""), "xyxyxyxy"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestLeads: what one kind sends while the other is not there is not counted
// against it later.
func TestLeads(t *testing.T) {
	t.Parallel()
	var turns turns
	push := func(who string, size int) { turns.push(bulk{Chunk: Chunk{For: who, Size: size}}) }
	take := func(want string) {
		t.Helper()
		b, _ := turns.take()
		turns.made(&b, b.Size)
		if b.For != want {
			t.Errorf("got %q, want %q", b.For, want)
		}
	}
	for range 10 {
		push("short", 50_000)
		take("short")
	}
	push("long", 100_000)
	push("short", 50_000)
	take("short")
	push("short", 50_000)
	take("short")
	push("short", 50_000) // 100,000 ahead by now
	take("long")
	take("short")
	for range 10 {
		push("long", 300_000)
		take("long")
	}
	// The short one may go a turn ahead now, not three million bytes.
	push("long", 300_000)
	push("short", 50_000)
	for range 2 {
		take("short")
		push("short", 50_000)
	}
	take("long")
}

// TestLittleOfALongOne: a little that a long one sends alone does not make
// good the lead that short ones have.
func TestLittleOfALongOne(t *testing.T) {
	t.Parallel()
	var turns turns
	little := bulk{Chunk: Chunk{For: "long", Size: 10, Remaining: 1_000_000}}
	short := bulk{Chunk: Chunk{For: "short", Size: 50_000}}
	turns.push(little)
	for i, want := range []string{"short", "short", "long", "long", "long"} {
		if i != 2 {
			turns.push(short)
		}
		turns.push(little)
		if b, _ := turns.take(); b.For != want {
			t.Errorf("%d: got %q, want %q", i, b.For, want)
		}
	}
}
