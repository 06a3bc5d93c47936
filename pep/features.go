package pep

import (
	"slices"
	"strings"

	"pepvault/vault"
)

// features is what a client can do, as far as it matters here. It never
// changes, so all that announce one hash share it. nil is one that can
// nothing.
type features struct {
	nodes map[string]struct{} // for which it wants events
	sync  bool                // whether it follows states
}

// Bounds of what is kept of one client. No client of vaults comes near them.
const (
	maxWanted      = 1024
	maxWantedBytes = 64 << 10
)

// newFeatures keeps what a client announced; whole says that nothing had to
// be left out. Names that no vault can have are not missed.
func newFeatures(a Announced) (f *features, whole bool) {
	f = &features{nodes: map[string]struct{}{}, sync: a.Sync}
	bytes := 0
	for _, node := range a.Nodes {
		if _, have := f.nodes[node]; have || !vault.ValidName(node) {
			continue
		}
		if bytes += len(node); bytes > maxWantedBytes || len(f.nodes) == maxWanted {
			return f, false
		}
		// The name must not keep a whole stanza.
		f.nodes[strings.Clone(node)] = struct{}{}
	}
	return f, true
}

func (f *features) wants(node string) bool {
	if f == nil {
		return false
	}
	_, ok := f.nodes[node]
	return ok
}

func (f *features) follows() bool { return f != nil && f.sync }

// within reports whether g wants all that f does.
func (f *features) within(g *features) bool {
	if f == nil || f == g {
		return true
	}
	for node := range f.nodes {
		if !g.wants(node) {
			return false
		}
	}
	return true
}

// both returns what f and g want.
func (f *features) both(g *features) *features {
	if f.within(g) {
		return f
	}
	common := &features{nodes: map[string]struct{}{}}
	for node := range f.nodes {
		if g.wants(node) {
			common.nodes[node] = struct{}{}
		}
	}
	return common
}

// same reports whether f and g are alike.
func (f *features) same(g *features) bool {
	return f.within(g) && g.within(f) && f.follows() == g.follows()
}

// sorted lists the nodes.
func (f *features) sorted() []string {
	list := make([]string, 0, len(f.nodes))
	for node := range f.nodes {
		list = append(list, node)
	}
	slices.Sort(list)
	return list
}
