package pep

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pepvault/vault"
)

// The model of interest says the same without any index: it looks at
// everything each time.

var (
	modelAccounts  = []vault.Account{"alice@localhost", "bob@localhost", "carol@localhost"}
	modelResources = []string{"phone", "laptop", "tablet"}
	modelNodes     = []string{"notes", "keys", "cards"}
	// modelTruth is what each hash really stands for.
	modelTruth = map[string]Announced{
		"sha-1:none":  {},
		"sha-1:notes": {Nodes: []string{"notes"}, Sync: true},
		"sha-1:all":   {Nodes: []string{"notes", "keys", "cards"}},
		"sha-256:all": {Nodes: []string{"cards", "keys", "notes"}, Sync: true},
	}
)

type modelResource struct {
	arrived int
	owners  map[vault.Account]bool
	vaults  map[vault.Key]bool
	caps    []CapsHash
	hashed  bool // what it can do comes from a verified hash
	can     Announced
}

type model struct {
	arrivals int
	known    map[Sender]*modelResource
	hashes   map[string]Announced // verified
}

func (m *model) arrive(p Presence) {
	m.arrivals++
	r := m.known[p.Sender]
	if r == nil {
		r = &modelResource{owners: map[vault.Account]bool{}, vaults: map[vault.Key]bool{}}
		m.known[p.Sender] = r
	}
	r.arrived = m.arrivals
	r.owners[p.Owner] = true
	if p.Silent || len(p.Caps) == 0 {
		return
	}
	if !slices.Equal(r.caps, p.Caps) {
		r.caps, r.hashed = p.Caps, false
	}
	for _, c := range p.Caps {
		if can, ok := m.hashes[c.Hash]; ok {
			r.can, r.hashed = can, true
			return
		}
	}
}

func (m *model) absent(s Sender, owner vault.Account) {
	r := m.known[s]
	if r == nil || !r.owners[owner] {
		return
	}
	delete(r.owners, owner)
	maps.DeleteFunc(r.vaults, func(key vault.Key, _ bool) bool { return key.Account == owner })
	if len(r.owners) == 0 {
		delete(m.known, s)
	}
}

func (m *model) learn(s Sender, c CapsHash, a Announced, verified bool) {
	if verified && c.Hash != "" {
		m.hashes[c.Hash] = a
		for _, r := range m.known {
			if !r.hashed && slices.ContainsFunc(r.caps, func(o CapsHash) bool { return o.Hash == c.Hash }) {
				r.can, r.hashed = a, true
			}
		}
		return
	}
	r := m.known[s]
	if r != nil && !r.hashed && (c == CapsHash{} || slices.Contains(r.caps, c)) {
		r.can = a
	}
}

// told lists who hears of a vault, as interest.notices does.
func (m *model) told(key vault.Key, subscribed []vault.Subscription, affiliated []vault.Affiliated, several bool) []string {
	readers := []vault.Account{key.Account}
	for _, a := range affiliated {
		if a.Affiliation == vault.Member || a.Affiliation == vault.Publisher {
			readers = append(readers, a.Account)
		}
	}
	type copyTo struct {
		arrived int
		text    string
	}
	var copies []copyTo
	var quiet []string
	for _, account := range readers {
		bare := slices.Contains(subscribed, vault.Subscription{Account: account})
		there := false
		for s, r := range m.known {
			if s.Account != account || !r.owners[key.Account] {
				continue
			}
			there = true
			if bare || r.vaults[key] || slices.Contains(r.can.Nodes, key.Node) {
				copies = append(copies, copyTo{r.arrived, fmt.Sprintf("%s state only %t", s.Address, several && r.can.Sync)})
			}
		}
		if bare && !there {
			quiet = append(quiet, string(account)+" quiet")
		}
	}
	slices.SortFunc(copies, func(a, b copyTo) int { return cmp.Compare(a.arrived, b.arrived) })
	list := []string{}
	for _, c := range copies {
		list = append(list, c.text)
	}
	return append(list, quiet...)
}

func textOf(notices []Notice) []string {
	list := []string{}
	for _, n := range notices {
		if n.Quiet {
			list = append(list, n.To+" quiet")
		} else {
			list = append(list, fmt.Sprintf("%s state only %t", n.To, n.StateOnly))
		}
	}
	return list
}

// pair is interest beside its model, and what is being asked.
type pair struct {
	interest *interest
	model    *model
	asked    []Question
}

func newPair() *pair {
	limits := vault.Limits{Resources: len(modelResources), Capabilities: 100}
	return &pair{
		interest: newInterest(limits, func() time.Time { return time.UnixMilli(1_700_000_000_000) }),
		model:    &model{known: map[Sender]*modelResource{}, hashes: map[string]Announced{}},
	}
}

func drawSender(t *rapid.T) Sender {
	account := rapid.SampledFrom(modelAccounts).Draw(t, "account")
	resource := rapid.SampledFrom(modelResources).Draw(t, "resource")
	return Sender{Account: account, Resource: resource, Address: string(account) + "/" + resource}
}

func drawKey(t *rapid.T) vault.Key {
	return vault.Key{
		Account: rapid.SampledFrom(modelAccounts).Draw(t, "owner"),
		Node:    rapid.SampledFrom(modelNodes).Draw(t, "node"),
	}
}

func drawCaps(t *rapid.T) []CapsHash {
	hashes := slices.Sorted(maps.Keys(modelTruth))
	caps := rapid.SampledFrom([][]CapsHash{
		nil, {{Node: "legacy#1"}}, {{Node: "legacy#2"}},
		{{hashes[0], "n"}}, {{hashes[1], "n"}}, {{hashes[2], "n"}}, {{hashes[3], "n"}},
		{{hashes[3], "n"}, {hashes[0], "n"}}, {{hashes[0], "n"}, {hashes[1], "o"}},
	}).Draw(t, "caps")
	return caps
}

func drawAnnounced(t *rapid.T) Announced {
	return Announced{
		Nodes: rapid.SliceOfNDistinct(rapid.SampledFrom(modelNodes), 0, 3, rapid.ID[string]).Draw(t, "nodes"),
		Sync:  rapid.Bool().Draw(t, "sync"),
	}
}

func (p *pair) arrive(t *rapid.T) {
	presence := Presence{
		Sender: drawSender(t), Owner: rapid.SampledFrom(modelAccounts).Draw(t, "owner"),
		Caps: drawCaps(t), Silent: rapid.Bool().Draw(t, "silent"),
	}
	_, known := p.model.known[presence.Sender]
	arrival := p.interest.arrive(presence)
	p.model.arrive(presence)
	if arrival.New == known {
		t.Fatalf("arrival of %v is new: %t", presence.Sender, arrival.New)
	}
	p.ask(t, arrival.Ask)
}

func (p *pair) ask(t *rapid.T, questions []Question) {
	for _, q := range questions {
		if slices.ContainsFunc(p.asked, func(o Question) bool { return o.To == q.To }) {
			t.Fatalf("%v is asked twice at a time", q.To)
		}
		if _, known := p.model.hashes[q.Caps.Hash]; known {
			t.Fatalf("%v is asked for a hash that is known", q.To)
		}
		p.asked = append(p.asked, q)
	}
}

// answer ends one of the questions: truly, with a lie, or not at all.
func (p *pair) answer(t *rapid.T) {
	if len(p.asked) == 0 {
		return
	}
	n := rapid.IntRange(0, len(p.asked)-1).Draw(t, "question")
	q := p.asked[n]
	p.asked = slices.Delete(p.asked, n, n+1)
	truth, hashed := modelTruth[q.Caps.Hash]
	var learned Learned
	switch how := rapid.SampledFrom([]string{"true", "false", "silent"}).Draw(t, "answer"); {
	case how == "silent":
		learned = p.interest.unknown(q.To, q.Caps)
	case how == "true" && hashed:
		learned = p.interest.learn(q.To, q.Caps, truth, true)
		p.model.learn(q.To, q.Caps, truth, true)
	default:
		a := drawAnnounced(t)
		learned = p.interest.learn(q.To, q.Caps, a, false)
		p.model.learn(q.To, q.Caps, a, false)
	}
	p.ask(t, learned.Ask)
}

func (p *pair) subscribe(t *rapid.T) {
	s, key := drawSender(t), drawKey(t)
	r := p.model.known[s]
	err := p.interest.add(s, key, 2)
	there := r != nil && r.owners[key.Account]
	had := there && r.vaults[key]
	others := 0
	for _, o := range p.model.known {
		if o.vaults[key] {
			others++
		}
	}
	if want := there && (had || others < 2); (err == nil) != want {
		t.Fatalf("subscription of %v to %v: %v", s, key, err)
	}
	if err == nil {
		r.vaults[key] = true
	}
}

func (p *pair) end(t *rapid.T) {
	s, key := drawSender(t), drawKey(t)
	switch rapid.IntRange(0, 5).Draw(t, "how") {
	case 0:
		p.interest.leave(s.Account, s.Resource)
		delete(p.model.known, s)
	case 1:
		p.interest.absent(s, key.Account)
		p.model.absent(s, key.Account)
	case 2:
		p.interest.drop(s, key)
		if r := p.model.known[s]; r != nil {
			delete(r.vaults, key)
		}
	case 3:
		p.interest.forget(key)
		for _, r := range p.model.known {
			delete(r.vaults, key)
		}
	case 4:
		p.interest.revoke(key, s.Account)
		for o, r := range p.model.known {
			if o.Account == s.Account {
				delete(r.vaults, key)
			}
		}
	case 5:
		p.interest.forgetAccount(s.Account)
		for o := range p.model.known {
			if o.Account == s.Account {
				delete(p.model.known, o)
			}
			p.model.absent(o, s.Account)
		}
	}
}

func (p *pair) notify(t *rapid.T) {
	key := drawKey(t)
	var subscribed []vault.Subscription
	var affiliated []vault.Affiliated
	for _, account := range modelAccounts {
		if rapid.Bool().Draw(t, "subscribed") {
			subscribed = append(subscribed, vault.Subscription{Account: account})
		}
		a := vault.Affiliation(rapid.IntRange(0, int(vault.Publisher)).Draw(t, "affiliation"))
		if account != key.Account && a != vault.NotAffiliated {
			affiliated = append(affiliated, vault.Affiliated{Account: account, Affiliation: a})
		}
	}
	several := rapid.Bool().Draw(t, "several")
	event := &Event{Changes: make([]vault.Change, 1)}
	if several {
		event.Changes = make([]vault.Change, 2)
	}
	got := textOf(p.interest.notices(key, subscribed, affiliated, event))
	want := p.model.told(key, subscribed, affiliated, several)
	if !slices.Equal(got, want) {
		t.Fatalf("of %v %q are told, want %q", key, got, want)
	}
}

func TestInterestIsAsItsModelSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := newPair()
		t.Repeat(map[string]func(*rapid.T){
			"arrive": p.arrive, "answer": p.answer, "subscribe": p.subscribe, "end": p.end, "": p.notify,
			"plain": func(t *rapid.T) {
				s, a := drawSender(t), drawAnnounced(t)
				p.ask(t, p.interest.learn(s, CapsHash{}, a, false).Ask)
				p.model.learn(s, CapsHash{}, a, false)
			},
		})
		p.settle(t)
	})
}

// settle has everybody come again and every question answered truly: then all
// that announced a hash and did not lie are known by it; and when they have
// left, nothing is kept but what was verified.
func (p *pair) settle(t *rapid.T) {
	for s, r := range p.model.known {
		for owner := range r.owners {
			arrival := p.interest.arrive(Presence{Sender: s, Owner: owner, Caps: r.caps})
			p.ask(t, arrival.Ask)
		}
	}
	for len(p.asked) > 0 {
		q := p.asked[0]
		p.asked = p.asked[1:]
		truth, hashed := modelTruth[q.Caps.Hash]
		p.model.learn(q.To, q.Caps, truth, hashed)
		p.ask(t, p.interest.learn(q.To, q.Caps, truth, hashed).Ask)
	}
	for s, r := range p.model.known {
		known := p.interest.find(s)
		if known.hash == "" && len(known.unasked) > 0 {
			t.Fatalf("%v was not asked for %v", s, known.unasked)
		}
		if known.hash != "" != r.hashed {
			t.Fatalf("%v is known by hash %q, want %t", s, known.hash, r.hashed)
		}
	}
	for s := range p.model.known {
		p.interest.leave(s.Account, s.Resource)
	}
	if n := p.interest.kept(); n > 0 {
		t.Fatalf("%d things are kept of resources that left", n)
	}
}
