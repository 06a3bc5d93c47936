package pep_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pepvault/pep"
	"pepvault/vault"
)

// setOf fails unless a page tells that it has these ids, from index on, of
// count.
func setOf(t *testing.T, page pep.ItemsPage, index, count int, want ...string) {
	t.Helper()
	equal(t, "ids", ids(page), append([]string{}, want...))
	if page.Set == nil {
		t.Fatal("there is no <set/>")
	}
	equal(t, "count", page.Set.Count, count)
	if len(want) == 0 {
		equal(t, "UIDs of an empty page", page.Set.First+page.Set.Last, "")
		return
	}
	equal(t, "index", page.Set.Index, index)
	if page.Set.First == "" || page.Set.Last == "" || (page.Set.First == page.Set.Last) != (len(want) == 1) {
		t.Errorf("UIDs are %q and %q", page.Set.First, page.Set.Last)
	}
}

func index(n int) *int { return &n }

// XEP-0059 §2, on seven records; C17 is the last page.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, many)
	w.fill(7, 10)
	all := w.page(pep.Items{Node: "notes", Page: &pep.PageRequest{Max: -1}})
	setOf(t, all, 0, 7, "r00", "r01", "r02", "r03", "r04", "r05", "r06")
	uids := make([]string, 7)
	for i := range uids {
		uids[i] = w.page(pep.Items{Node: "notes", Page: &pep.PageRequest{Max: 1, Index: index(i)}}).Set.First
	}
	tests := []struct {
		name  string
		page  pep.PageRequest
		index int
		want  []string
	}{
		{"the first", pep.PageRequest{Max: 3}, 0, []string{"r00", "r01", "r02"}},
		{"after the third", pep.PageRequest{Max: 3, After: uids[2]}, 3, []string{"r03", "r04", "r05"}},
		{"after the sixth", pep.PageRequest{Max: 3, After: uids[5]}, 6, []string{"r06"}},
		{"after the end", pep.PageRequest{Max: 3, After: uids[6]}, 0, nil},
		{"C17: the last", pep.PageRequest{Max: 3, Last: true}, 4, []string{"r04", "r05", "r06"}},
		{"the last of many", pep.PageRequest{Max: 30, Last: true}, 0, []string{"r00", "r01", "r02", "r03", "r04", "r05", "r06"}},
		{"before the fifth", pep.PageRequest{Max: 3, Before: uids[4]}, 1, []string{"r01", "r02", "r03"}},
		{"before the second", pep.PageRequest{Max: 3, Before: uids[1]}, 0, []string{"r00"}},
		{"before the start", pep.PageRequest{Max: 3, Before: uids[0]}, 0, nil},
		{"by index", pep.PageRequest{Max: 2, Index: index(3)}, 3, []string{"r03", "r04"}},
		{"by index 0", pep.PageRequest{Max: 2, Index: index(0)}, 0, []string{"r00", "r01"}},
		{"by index at the end", pep.PageRequest{Max: 2, Index: index(6)}, 6, []string{"r06"}},
		{"by index beyond", pep.PageRequest{Max: 2, Index: index(7)}, 0, nil},
		{"the count", pep.PageRequest{Max: 0}, 0, nil},
		{"the count before something", pep.PageRequest{Max: 0, Before: uids[4]}, 0, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			setOf(t, w.page(pep.Items{Node: "notes", Page: &tt.page}), tt.index, 7, tt.want...)
		})
	}
}

// XEP-0060 §6.5.7 and XEP-0059 together: pages of the latest.
func TestPagesOfTheLatest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, many)
	w.fill(7, 10)
	page := func(p pep.PageRequest) pep.ItemsPage { return w.page(pep.Items{Node: "notes", Max: 4, Page: &p}) }
	first := page(pep.PageRequest{Max: 3})
	setOf(t, first, 0, 4, "r03", "r04", "r05")
	setOf(t, page(pep.PageRequest{Max: 3, After: first.Set.Last}), 3, 4, "r06")
	last := page(pep.PageRequest{Max: 3, Last: true})
	setOf(t, last, 1, 4, "r04", "r05", "r06")
	setOf(t, page(pep.PageRequest{Max: 3, Before: last.Set.First}), 0, 4, "r03")
	setOf(t, page(pep.PageRequest{Max: 3, Before: first.Set.First}), 0, 4)
	setOf(t, page(pep.PageRequest{Max: 2, Index: index(1)}), 1, 4, "r04", "r05")
	setOf(t, page(pep.PageRequest{Max: 2, Index: index(4)}), 0, 4)
	setOf(t, page(pep.PageRequest{Max: 0}), 0, 4)
	oldest := w.page(pep.Items{Node: "notes", Page: &pep.PageRequest{Max: 1}}).Set.First
	setOf(t, page(pep.PageRequest{Max: 2, After: oldest}), 0, 4, "r03", "r04")
	setOf(t, page(pep.PageRequest{Max: 2, Before: oldest}), 0, 4)
	setOf(t, w.page(pep.Items{Node: "notes", Max: 50, Page: &pep.PageRequest{Max: 2, Last: true}}), 5, 7, "r05", "r06")
}

func TestPagesOfAnEmptyVault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, pep.Create{Node: "notes"})
	for _, p := range []pep.PageRequest{{}, {Max: 1}, {Max: -1}, {Max: 1, Last: true}, {Max: 1, Index: index(0)}} {
		setOf(t, w.page(pep.Items{Node: "notes", Page: &p}), 0, 0)
		setOf(t, w.page(pep.Items{Node: "notes", Max: 2, Page: &p}), 0, 0)
	}
}

// A page that would not fit in a stanza is cut at the side that is further
// away from where the pass began.
func TestPagesAreBoundedByBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { many(o); o.AnswerBytes, o.InlineBytes = 5_000, 1_000 })
	w.fill(9, 900) // about 1,350 bytes each on the wire
	setOf(t, w.page(pep.Items{Node: "notes", Page: &pep.PageRequest{Max: 9}}), 0, 9, "r00", "r01", "r02")
	last := w.page(pep.Items{Node: "notes", Page: &pep.PageRequest{Max: 9, Last: true}})
	setOf(t, last, 6, 9, "r06", "r07", "r08")
	setOf(t, w.page(pep.Items{Node: "notes", Page: &pep.PageRequest{Max: -1, Before: last.Set.First}}), 3, 9, "r03", "r04", "r05")
	setOf(t, w.page(pep.Items{Node: "notes"}), 0, 9, "r00", "r01", "r02")
	setOf(t, w.page(pep.Items{Node: "notes", Max: 6}), 3, 6, "r06", "r07", "r08")
}

// pass is one of many pages, with writers in between, beside the model of what
// was there.
type pass struct {
	w      *world
	rt     *rapid.T
	before bool
	live   []string        // the model: ids in the order of their changes
	stayed map[string]bool // there and unchanged since the pass began
	seen   []string
}

func (p *pass) drop(id string) {
	p.live = slices.DeleteFunc(p.live, func(other string) bool { return other == id })
	delete(p.stayed, id)
}

// write lets others change the vault.
func (p *pass) write() {
	for range rapid.IntRange(0, 4).Draw(p.rt, "writes") {
		id := fmt.Sprintf("r%02d", rapid.IntRange(0, 14).Draw(p.rt, "id"))
		if slices.Contains(p.live, id) && rapid.Bool().Draw(p.rt, "retract") {
			p.w.must(laptop, pep.Retract{Node: "notes", IDs: []string{id}})
			p.drop(id)
			continue
		}
		p.w.must(laptop, publish(id))
		p.drop(id)
		p.live = append(p.live, id)
	}
}

// step reads one page and compares it with the model; it returns where to go
// on, "" at the end.
func (p *pass) step(r pep.PageRequest) string {
	page := p.w.page(pep.Items{Node: "notes", Page: &r})
	found := ids(page)
	if page.Set.Count != len(p.live) {
		p.rt.Fatalf("the count is %d, want %d", page.Set.Count, len(p.live))
	}
	if len(found) == 0 {
		return ""
	}
	at := page.Set.Index
	if at < 0 || at+len(found) > len(p.live) || !slices.Equal(p.live[at:at+len(found)], found) {
		p.rt.Fatalf("a page of %q at %d of %q", found, at, p.live)
	}
	p.seen = append(p.seen, found...)
	if p.before {
		return page.Set.First
	}
	return page.Set.Last
}

func (p *pass) run() {
	p.stayed = map[string]bool{}
	for _, id := range p.live {
		p.stayed[id] = true
	}
	most := rapid.IntRange(1, 4).Draw(p.rt, "page")
	request := pep.PageRequest{Max: most, Last: p.before}
	for range 200 {
		at := p.step(request)
		if at == "" {
			return
		}
		// Writers come to rest, as they do: else there would be no end.
		if len(p.seen) < 30 {
			p.write()
		}
		request = pep.PageRequest{Max: most, After: at}
		if p.before {
			request = pep.PageRequest{Max: most, Before: at}
		}
	}
	p.rt.Fatal("the pass does not end")
}

// A pass by after misses nothing that is there at its end; a pass by before
// shows once what was there all the time. Whatever is written meanwhile, index
// and count are those of the moment.
func TestPassesUnderWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, many)
	rapid.Check(t, func(rt *rapid.T) {
		if _, err := w.ask(laptop, pep.Delete{Node: "notes"}); err != nil && err != vault.ErrNoVault {
			rt.Fatal(err)
		}
		w.must(laptop, pep.Create{Node: "notes"})
		p := &pass{w: w, rt: rt, before: rapid.Bool().Draw(rt, "before")}
		for range 3 {
			p.write()
		}
		p.run()
		if !p.before {
			for _, id := range p.live {
				if !slices.Contains(p.seen, id) {
					rt.Fatalf("%s was missed: seen are %q", id, p.seen)
				}
			}
			return
		}
		for id := range p.stayed {
			if n := strings.Count(strings.Join(p.seen, " "), id); n != 1 {
				rt.Fatalf("%s came %d times: seen are %q", id, n, p.seen)
			}
		}
	})
}

// ListVaults has the same pages; a vault's UID is its name.
func TestPagesOfVaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { o.Limits.Vaults = 9 })
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	for _, name := range names {
		w.must(laptop, pep.Create{Node: name})
	}
	tests := []struct {
		name  string
		page  pep.PageRequest
		index int
		want  []string
	}{
		{"the first", pep.PageRequest{Max: 3}, 0, []string{"a", "b", "c"}},
		{"after", pep.PageRequest{Max: 3, After: "c"}, 3, []string{"d", "e", "f"}},
		{"after the end", pep.PageRequest{Max: 3, After: "g"}, 0, nil},
		{"after one that is gone", pep.PageRequest{Max: 2, After: "cc"}, 3, []string{"d", "e"}},
		{"the last", pep.PageRequest{Max: 3, Last: true}, 4, []string{"e", "f", "g"}},
		{"before", pep.PageRequest{Max: 3, Before: "e"}, 1, []string{"b", "c", "d"}},
		{"before the start", pep.PageRequest{Max: 3, Before: "a"}, 0, nil},
		{"by index", pep.PageRequest{Max: 2, Index: index(3)}, 3, []string{"d", "e"}},
		{"by index beyond", pep.PageRequest{Max: 2, Index: index(9)}, 0, nil},
		{"the count", pep.PageRequest{}, 0, nil},
		{"as many as fit", pep.PageRequest{Max: -1}, 0, names},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			list := w.must(laptop, pep.ListVaults{Page: &tt.page}).Answer.(pep.VaultList)
			got := []string{}
			for _, v := range list.Vaults {
				got = append(got, v.Key.Node)
			}
			equal(t, "vaults", got, append([]string{}, tt.want...))
			want := &pep.ResultSet{Count: 7}
			if len(got) > 0 {
				want.First, want.Last, want.Index = got[0], got[len(got)-1], tt.index
			}
			equal(t, "set", list.Set, want)
		})
	}
	list := w.must(laptop, pep.ListVaults{}).Answer.(pep.VaultList)
	equal(t, "vaults without pages", len(list.Vaults), 7)
	if list.Set != nil {
		t.Errorf("a set that nobody asked for: %v", list.Set)
	}
}

// More vaults than fit in an answer come page by page.
func TestManyVaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { o.Limits.Vaults = 20; o.AnswerBytes = 2_000 })
	for i := range 12 {
		w.must(laptop, pep.Create{Node: fmt.Sprintf("%02d", i), Config: form(pep.FormConfig, "pubsub#title", strings.Repeat("x", 100))})
	}
	var got []string
	list := w.must(laptop, pep.ListVaults{}).Answer.(pep.VaultList)
	if list.Set == nil || list.Set.Count != 12 || len(list.Vaults) == 12 {
		t.Fatalf("%d vaults came, set %v", len(list.Vaults), list.Set)
	}
	for len(list.Vaults) > 0 {
		for _, v := range list.Vaults {
			got = append(got, v.Key.Node)
		}
		list = w.must(laptop, pep.ListVaults{Page: &pep.PageRequest{Max: -1, After: list.Set.Last}}).Answer.(pep.VaultList)
	}
	equal(t, "vaults of all pages", len(got), 12)
}
