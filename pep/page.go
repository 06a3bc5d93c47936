package pep

import (
	"strconv"
	"strings"

	"pepvault/vault"
)

// window is the part of a vault that pages are of: all records or the latest.
// It begins behind a revision, since that is where records are counted from.
type window struct {
	state vault.Vault
	after vault.Revision // records up to here are left out
	left  int            // how many that are
	count int            // of the records in the window
}

// newWindow is that of the n latest records; 0 is all.
func newWindow(v vault.View, state vault.Vault, n int) (window, error) {
	w := window{state: state, count: state.Records}
	if n == 0 || n >= state.Records {
		return w, nil
	}
	w.left, w.count = state.Records-n, n
	last, err := v.Nth(state.Key, w.left-1)
	w.after = last
	return w, err
}

// planLatest is of the whole window, or of the latest records in it if not all
// fit.
func (e *Engine) planLatest(v vault.View, w window) plan {
	return plan{cost: e.costOf(w.state, w.count), read: func() (Answer, error) {
		latest, err := v.Latest(w.state.Key, 0, e.pageLimit(w.count))
		if err != nil {
			return nil, err
		}
		page := ItemsPage{Node: w.state.Key.Node, Records: records(latest)}
		if len(page.Records) < w.count {
			page.Set, err = w.resultSet(v, page.Records)
		}
		return page, err
	}}
}

// pageLimit bounds a page of n records by the size of an answer, too.
func (e *Engine) pageLimit(n int) vault.PageLimit {
	return vault.PageLimit{Records: max(n, 1), Cost: e.answer, Live: true}
}

// planPage is one page of a window (XEP-0059).
func (e *Engine) planPage(v vault.View, w window, p PageRequest) (plan, error) {
	if p.Max < 0 || p.Max > w.count {
		p.Max = max(w.count, 1)
	}
	read, err := e.pageReader(v, w, p)
	if err != nil {
		return plan{}, err
	}
	if p.Max == 0 { // §2.7: only the count
		read = func() (vault.Page, error) { return vault.Page{}, nil }
	}
	return plan{cost: e.costOf(w.state, p.Max), read: func() (Answer, error) {
		page, err := read()
		if err != nil {
			return nil, err
		}
		found := records(page)
		set, err := w.resultSet(v, found)
		return ItemsPage{Node: w.state.Key.Node, Records: found, Set: set}, err
	}}, nil
}

// pageReader finds where a page is, and returns what reads it.
func (e *Engine) pageReader(v vault.View, w window, p PageRequest) (func() (vault.Page, error), error) {
	key := w.state.Key
	forward := func(after vault.Revision) func() (vault.Page, error) {
		return func() (vault.Page, error) { return v.Changes(key, after, e.pageLimit(p.Max)) }
	}
	switch {
	case p.Last:
		return w.backward(v, 0, w.count, e.pageLimit(p.Max)), nil
	case p.Before != "":
		r, err := parseUID(p.Before, w.state)
		if err != nil {
			return nil, err
		}
		before, err := v.Rank(key, r)
		return w.backward(v, r, before-w.left, e.pageLimit(p.Max)), err
	case p.After != "":
		r, err := parseUID(p.After, w.state)
		return forward(max(r, w.after)), err
	case p.Index != nil:
		if *p.Index < 0 || *p.Index >= w.count { // §2.6: an empty page
			return forward(w.state.Revision), nil
		}
		first, err := v.Nth(key, w.left+*p.Index)
		return forward(max(first, 1) - 1), err
	default:
		return forward(w.after), nil
	}
}

// backward reads the records right below a revision (0 = the end), of which n
// are in the window.
func (w window) backward(v vault.View, below vault.Revision, n int, limit vault.PageLimit) func() (vault.Page, error) {
	return func() (vault.Page, error) {
		if n <= 0 {
			return vault.Page{}, nil
		}
		limit.Records = min(limit.Records, n)
		return v.Latest(w.state.Key, below, limit)
	}
}

// resultSet tells where a page stands in the window.
func (w window) resultSet(v vault.View, page []vault.Record) (*ResultSet, error) {
	set := &ResultSet{Count: w.count}
	if len(page) == 0 {
		return set, nil
	}
	first := page[0].Revision
	set.First, set.Last = uid(first, w.state), uid(page[len(page)-1].Revision, w.state)
	before, err := v.Rank(w.state.Key, first)
	set.Index = before - w.left
	return set, err
}

// uid names a place in the order of a vault's records (XEP-0059 §2). It is
// good for as long as the vault's history goes on: whatever is written, what
// follows it is what changed later.
func uid(r vault.Revision, state vault.Vault) string {
	return epochTag(state) + "-" + strconv.FormatUint(uint64(r), 36)
}

func parseUID(text string, state vault.Vault) (vault.Revision, error) {
	number, found := strings.CutPrefix(text, epochTag(state)+"-")
	r, err := strconv.ParseUint(number, 36, 64)
	if !found || err != nil || r == 0 || vault.Revision(r) > state.Revision || uid(vault.Revision(r), state) != text {
		return 0, Refuse(ErrUnknownPage, "the page position is not one of this vault")
	}
	return vault.Revision(r), nil
}

func epochTag(state vault.Vault) string {
	tag := uint64(0)
	for _, b := range state.Epoch[:5] {
		tag = tag<<8 | uint64(b)
	}
	return strconv.FormatUint(tag, 36)
}
