package pep

import (
	"container/list"
	"slices"
	"strings"
	"time"

	"pepvault/vault"
)

// capabilities knows which features the verified hashes stand for, and what
// is being asked. Only a verified answer gets in: a client that lies about a
// hash changes nothing for others (XEP-0115 §8.1).
type capabilities struct {
	limit   int
	known   map[string]*list.Element // of *capability, by hash
	order   *list.List               // the one used last comes first
	unsaved map[string]struct{}      // hashes

	waiting   map[string]map[*resource]struct{}     // who announced a hash that is not known, by hash
	questions map[vault.Account]map[string]CapsHash // under way, by resource part
}

type capability struct {
	hash string
	can  *features
	used time.Time
}

func newCapabilities(limit int) capabilities {
	return capabilities{
		limit: limit, known: map[string]*list.Element{}, order: list.New(), unsaved: map[string]struct{}{},
		waiting:   map[string]map[*resource]struct{}{},
		questions: map[vault.Account]map[string]CapsHash{},
	}
}

// announcement is what a resource said of itself.
type announcement struct {
	// caps are the hashes of its last presence with any, since the service
	// started.
	caps []CapsHash
	// hash is where can comes from; "" if from an answer of its own.
	hash    string
	can     *features
	unasked []CapsHash // those of caps that it could still be asked for
	due     bool       // it has to be asked for one of unasked
}

const (
	// maxHashes bounds how many hashes of one presence are looked at, and
	// maxHashBytes each one's size: the longest digest in use takes 88 bytes.
	maxHashes    = 8
	maxHashBytes = 2048
	// usedEvery is how exactly the store knows when a hash was last used.
	usedEvery = 24 * time.Hour
)

// announce notes the hashes of a presence and reports whether the resource
// wants to hear of more than before. While none of them is known, what it
// announced before holds, so that it misses nothing that it asked for.
func (i *interest) announce(r *resource, caps []CapsHash) (more bool) {
	caps = usable(caps)
	if len(caps) == 0 {
		return false
	}
	if !slices.Equal(r.caps, caps) {
		i.settle(r)
		r.caps, r.hash = make([]CapsHash, len(caps)), ""
		for n, c := range caps {
			r.caps[n] = CapsHash{Hash: strings.Clone(c.Hash), Node: strings.Clone(c.Node)}
		}
		r.unasked = slices.Clone(r.caps)
		r.changed(i)
	}
	for _, c := range r.caps {
		if can := i.caps.look(c.Hash, i.now()); can != nil {
			return i.resolve(r, c.Hash, can)
		}
	}
	if r.hash != "" {
		return false // known when it came, though not kept since
	}
	for _, c := range r.caps {
		if c.Hash != "" {
			insert(i.caps.waiting, c.Hash, r)
		}
	}
	r.due = len(r.unasked) > 0
	return false
}

func usable(caps []CapsHash) []CapsHash {
	long := func(c CapsHash) bool { return len(c.Hash)+len(c.Node) > maxHashBytes }
	if slices.ContainsFunc(caps, long) {
		caps = slices.DeleteFunc(slices.Clone(caps), long)
	}
	return caps[:min(len(caps), maxHashes)]
}

// settle ends the search for what a resource can do.
func (i *interest) settle(r *resource) {
	for _, c := range r.caps {
		remove(i.caps.waiting, c.Hash, r)
	}
	r.unasked, r.due = nil, false
}

// resolve has a resource do what a verified hash of it stands for.
func (i *interest) resolve(r *resource, hash string, can *features) (more bool) {
	i.settle(r)
	if r.hash != hash {
		r.hash = hash
		r.changed(i)
	}
	return r.set(can)
}

// set changes what a resource can do, and reports whether it wants to hear of
// more than before.
func (r *resource) set(can *features) (more bool) {
	had := r.can
	if had == can {
		return false
	}
	r.can = can
	for owner, greeted := range r.greeted {
		// Of what it does not want any more it misses events: should it want
		// that again, it is new.
		r.greeted[owner] = greeted.both(can)
	}
	return !can.within(had)
}

// ask adds the question that a resource has to be asked now, if any. Where
// another resource of its account is being asked for one of its hashes it waits
// for that answer, unless it has waited already. Nobody waits for a client of
// somebody else, who may keep silent on purpose.
func (i *interest) ask(questions []Question, r *resource, waited bool) []Question {
	account, resource := r.sender.Account, r.sender.Resource
	busy := i.caps.questions[account]
	_, asked := busy[resource]
	if !r.due || asked || len(busy) >= 2*i.perAccount {
		return questions
	}
	if !waited && slices.ContainsFunc(r.unasked, func(c CapsHash) bool { return isAsked(busy, c.Hash) }) {
		return questions
	}
	c := r.unasked[0]
	r.due = false
	if busy == nil {
		busy = map[string]CapsHash{}
		i.caps.questions[account] = busy
	}
	busy[resource] = c
	return append(questions, Question{To: r.sender, Caps: c})
}

// isAsked reports whether one of the questions under way is about a hash.
func isAsked(busy map[string]CapsHash, hash string) bool {
	for _, c := range busy {
		if hash != "" && c.Hash == hash {
			return true
		}
	}
	return false
}

// answered ends a question, and reports whether there was that one.
func (i *interest) answered(s Sender, c CapsHash) bool {
	busy := i.caps.questions[s.Account]
	if asked, ok := busy[s.Resource]; !ok || asked != c {
		return false
	}
	delete(busy, s.Resource)
	if len(busy) == 0 {
		delete(i.caps.questions, s.Account)
	}
	return true
}

// next lists what has to be asked after the end of a question: everybody who
// waited for that hash, each for itself so that one silent client delays the
// others no more than once, and what the account had no room for.
func (i *interest) next(s Sender, c CapsHash) []Question {
	var questions []Question
	for _, r := range inOrder(i.caps.waiting[c.Hash]) {
		questions = i.ask(questions, r, true)
	}
	var due []*resource
	for _, r := range i.accounts[s.Account] {
		if r.due {
			due = append(due, r)
		}
	}
	byArrival(due)
	for _, r := range due {
		questions = i.ask(questions, r, false)
	}
	return questions
}

func inOrder(set map[*resource]struct{}) []*resource {
	list := make([]*resource, 0, len(set))
	for r := range set {
		list = append(list, r)
	}
	byArrival(list)
	return list
}

func (i *interest) learn(s Sender, c CapsHash, a Announced, verified bool) (out Learned) {
	can, whole := newFeatures(a)
	i.mu.Lock()
	defer i.mu.Unlock()
	ended := i.answered(s, c)
	r := i.find(s)
	switch {
	case c.Hash != "" && verified && whole:
		can = i.caps.keep(c.Hash, can, i.now())
		i.hurry()
		for _, r := range inOrder(i.caps.waiting[c.Hash]) {
			if i.resolve(r, c.Hash, can) {
				out.Greet = append(out.Greet, r.sender)
			}
		}
	case r == nil:
	case c == CapsHash{}:
		// What it announced since outlives an answer that may be older.
		if r.hash == "" || len(r.caps) == 0 && !r.can.same(can) {
			out.Greet = i.own(r, can)
		}
	case r.hash == "" && slices.Contains(r.caps, c):
		r.unasked = slices.DeleteFunc(r.unasked, func(u CapsHash) bool { return u == c })
		r.due = len(r.unasked) > 0
		out.Greet = i.own(r, can)
	}
	if ended {
		out.Ask = i.next(s, c)
	}
	return out
}

// own has a resource do what it answered for itself.
func (i *interest) own(r *resource, can *features) (greet []Sender) {
	if r.hash != "" {
		r.hash = ""
		r.changed(i)
	}
	if r.set(can) {
		greet = []Sender{r.sender}
	}
	return greet
}

func (i *interest) unknown(s Sender, c CapsHash) (out Learned) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.answered(s, c) {
		return out
	}
	if r := i.find(s); r != nil {
		if n := slices.Index(r.unasked, c); n >= 0 {
			r.unasked = append(slices.Delete(r.unasked, n, n+1), c)
		}
	}
	out.Ask = i.next(s, c)
	return out
}

// look returns what a hash stands for, which is used at that time; nil if
// that is not known.
func (c *capabilities) look(hash string, now time.Time) *features {
	e, ok := c.known[hash]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	known := e.Value.(*capability)
	if now.Sub(known.used) >= usedEvery {
		c.touched(hash)
	}
	known.used = now
	return known.can
}

// keep notes what a hash stands for, in the place of the one that was not
// used for longest if there are too many. If it is known already, it stays
// as it is.
func (c *capabilities) keep(hash string, can *features, now time.Time) *features {
	if known := c.look(hash, now); known != nil {
		return known
	}
	hash = strings.Clone(hash)
	c.known[hash] = c.order.PushFront(&capability{hash: hash, can: can, used: now})
	c.touched(hash)
	c.trim()
	return can
}

// trim forgets what is too much.
func (c *capabilities) trim() {
	for len(c.known) > c.limit {
		last := c.order.Remove(c.order.Back()).(*capability)
		delete(c.known, last.hash)
		c.touched(last.hash)
	}
}

// touched notes that what is stored of a hash is not true any more. What
// finds no room is put right at the next start.
func (c *capabilities) touched(hash string) {
	if _, noted := c.unsaved[hash]; noted || len(c.unsaved) < unsavedLimit {
		c.unsaved[hash] = struct{}{}
	}
}
