package pep_test

import (
	"fmt"
	"strings"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

func ids(page pep.ItemsPage) []string {
	list := []string{}
	for _, r := range page.Records {
		list = append(list, r.ID)
	}
	return list
}

func many(o *pep.Options) {
	o.Limits.Records, o.Limits.AccountBytes, o.Limits.RecordBytes = 1000, 1<<30, 1<<20
}

func (w *world) fill(n, size int) {
	w.t.Helper()
	for i := range n {
		w.must(laptop, pep.Publish{Node: "notes", Items: []pep.Item{item(fmt.Sprintf("r%02d", i), strings.Repeat("x", size))}})
	}
}

// page reads items, at once or later.
func (w *world) page(op pep.Items) pep.ItemsPage {
	w.t.Helper()
	answer := w.must(laptop, op).Answer
	if later, ok := answer.(pep.Later); ok {
		var err error
		if answer, err = later.Read(); err != nil {
			w.t.Fatal(err)
		}
	}
	return answer.(pep.ItemsPage)
}

func TestItemsBySelection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, many)
	w.fill(5, 10)
	tests := []struct {
		name string
		op   pep.Items
		want []string
	}{
		{"all", pep.Items{Node: "notes"}, []string{"r00", "r01", "r02", "r03", "r04"}},
		{"the two latest", pep.Items{Node: "notes", Max: 2}, []string{"r03", "r04"}},
		{"more than there are", pep.Items{Node: "notes", Max: 50}, []string{"r00", "r01", "r02", "r03", "r04"}},
		{"by ids", pep.Items{Node: "notes", IDs: []string{"r03", "r01"}}, []string{"r03", "r01"}},
		{"some absent", pep.Items{Node: "notes", IDs: []string{"absent", "r01"}}, []string{"r01"}},
		{"all absent", pep.Items{Node: "notes", IDs: []string{"absent"}}, []string{}},
		{"a page", pep.Items{Node: "notes", Page: &pep.PageRequest{Max: 2}}, []string{"r00", "r01"}},
		{"a page of none", pep.Items{Node: "notes", Page: &pep.PageRequest{Max: 0}}, []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			page := w.page(tt.op)
			equal(t, "ids", ids(page), tt.want)
			if (page.Set != nil) != (tt.op.Page != nil) {
				t.Errorf("set is %v", page.Set)
			}
			if page.Set != nil {
				equal(t, "count", page.Set.Count, 5)
			}
		})
	}
}

// C19, XEP-0059: a pass by after sees every record that is there at its end,
// whatever is written meanwhile, and it ends.
func TestPassByAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, many)
	w.fill(25, 10)
	seen := map[string]bool{}
	after, pages := "", 0
	for {
		page := w.page(pep.Items{Node: "notes", Page: &pep.PageRequest{Max: 10, After: after}})
		if len(page.Records) == 0 {
			break
		}
		for _, id := range ids(page) {
			seen[id] = true
		}
		after = page.Set.Last
		if pages++; pages == 1 {
			w.must(laptop, publish("r03")) // seen already: comes again
			w.must(laptop, publish("new"))
			w.must(laptop, pep.Retract{Node: "notes", IDs: []string{"r20"}})
		}
	}
	equal(t, "pages", pages, 3)
	equal(t, "records seen", len(seen), 25)
	for _, r := range w.page(pep.Items{Node: "notes"}).Records {
		if !seen[r.ID] {
			t.Errorf("%s was missed", r.ID)
		}
	}
}

func TestUnknownPagePositions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, many)
	w.fill(3, 10)
	good := w.page(pep.Items{Node: "notes", Page: &pep.PageRequest{Max: 1}}).Set.Last
	w.must(laptop, pep.Publish{Node: "other", Items: []pep.Item{item("a", "x")}})
	foreign := w.page(pep.Items{Node: "other", Page: &pep.PageRequest{Max: 1}}).Set.Last
	for _, after := range []string{"r00", "0", "-", good + "0", "x" + good, strings.ToUpper(good) + "!", foreign, good[:len(good)-1] + "zzzzz"} {
		_, err := w.ask(laptop, pep.Items{Node: "notes", Page: &pep.PageRequest{Max: 1, After: after}})
		refused(t, err, pep.ErrUnknownPage)
	}
}

// A vault that no stanza can hold is answered page by page.
func TestVaultsLargerThanAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) {
		many(o)
		o.AnswerBytes, o.InlineBytes = 10_000, 2_000
	})
	w.fill(20, 900) // about 1,350 bytes each on the wire
	page := w.page(pep.Items{Node: "notes"})
	if page.Set == nil || len(page.Records) == 0 || len(page.Records) >= 20 || page.Set.Count != 20 {
		t.Fatalf("%d records, set %v", len(page.Records), page.Set)
	}
	got := ids(page)
	for len(page.Records) > 0 {
		page = w.page(pep.Items{Node: "notes", Page: &pep.PageRequest{Max: -1, After: page.Set.Last}})
		got = append(got, ids(page)...)
	}
	equal(t, "records of all pages", len(got), 20)

	latest := w.page(pep.Items{Node: "notes", Max: 15})
	if n := len(latest.Records); n == 0 || n >= 15 || latest.Set == nil || latest.Records[n-1].ID != "r19" {
		t.Errorf("of the 15 latest came %v, set %v", ids(latest), latest.Set)
	}
	_, err := w.ask(laptop, pep.Items{Node: "notes", IDs: got})
	refused(t, err, pep.ErrPolicy)
}

func TestLargeAnswersComeLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { many(o); o.InlineBytes = 2_000 })
	w.fill(3, 900)
	later, ok := w.must(laptop, pep.Items{Node: "notes"}).Answer.(pep.Later)
	if !ok {
		t.Fatal("a large answer was read at once")
	}
	w.must(laptop, pep.Delete{Node: "notes"})
	if _, err := later.Read(); err == nil {
		t.Error("a vault that is gone was read")
	} else {
		refused(t, err, vault.ErrNoVault)
	}
}
