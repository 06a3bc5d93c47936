package lane

// turnBytes is a turn: what an account, and in its turns a device, may send
// before the next one has its own. What is left of an answer counts as short
// when it fits into one.
const turnBytes = 64 << 10

// turns is lane 1: what waits for each device, and whose turn it is.
//
// Accounts take turns by bytes (deficit round robin: each turn adds turnBytes
// to an account's credit, and a chunk goes when the credit pays for it), and so
// do the devices of an account in the turns of that account. So one with thirty
// devices has no more turns than one with a single device; a device has one
// place however much waits for it, and its own chunks keep their order. Devices
// of which only something short is left have a round of their own, which goes
// first, until it is turnBytes ahead of the other: so while both have something
// to send, each sends about half of the bytes.
//
// Nobody starves. Let a chunk be the first of its device, d the greatest number
// of devices of its account that wait beside it at one time, and n that of other
// accounts, M the largest chunk, and k = ⌈Size/turnBytes⌉. Of its own account
// it is taken after at most k·d turns in its own round, a turn being at most
// turnBytes+M: own = k·d·(turnBytes+M) bytes. Until the account could send these
// and the chunk, it had K = ⌈(own+Size)/turnBytes⌉ turns, and each other
// account no more. Besides there are as many bytes of the other round and
// turnBytes+2M more: that is
//
//	2·(own + K·n·(turnBytes+M)) + turnBytes + 2·M
//
// bytes of others, where Size is about true. What the earlier chunks of a device
// or of its account had more than their Size counts like Size of this one.
type turns struct {
	devices     map[string]*device
	accounts    map[string]*account
	short, long round
	lead        int // bytes by which the short round is ahead of the long one
	chunks      int
}

// account is somebody for whose devices something waits.
type account struct {
	name        string
	devices     int
	short, long share
}

// share is the devices of one kind of an account, in the order of their turns.
type share struct {
	queue[*device]
	began  bool // the turn of the first one: its credit was given
	credit int  // bytes that the account may send of this kind
}

// device is one for which something waits.
type device struct {
	name   string
	of     *account
	chunks queue[bulk]
	credit int    // bytes
	in     *share // the one it stands in
}

// round is the shares of one kind, in the order of their turns.
type round struct {
	queue[*share]
	began bool // the turn of the first one: its credit was given
}

// next has the turn go on to the next account.
func (r *round) next() {
	s, _ := r.pop()
	r.push(s)
	r.began = false
}

// next has the turn go on to the next device.
func (s *share) next() {
	d, _ := s.pop()
	s.push(d)
	s.began = false
}

// leave takes the first device of the first account out, and the account with
// its last one. What either has saved up is for what waits, not for what may
// come.
func (r *round) leave() {
	s := r.front()
	s.pop()
	if s.began = false; s.len() == 0 {
		s.credit = 0
		r.pop()
		r.began = false
	}
}

// cost is what a chunk counts before it is made.
func (c *Chunk) cost() int { return max(c.Size, 1) }

// short tells whether what is left with c fits into one turn.
func (c *Chunk) short() bool { return max(c.Size, c.Remaining) <= turnBytes }

// of is the name of who has turns with c.
func (c *Chunk) of() string {
	if c.Account != "" {
		return c.Account
	}
	return "/" + c.For // no account is called so
}

func (t *turns) push(b bulk) {
	if t.devices == nil {
		t.devices, t.accounts = map[string]*device{}, map[string]*account{}
	}
	d := t.devices[b.For]
	if d == nil {
		a := t.accounts[b.of()]
		if a == nil {
			a = &account{name: b.of()}
			t.accounts[a.name] = a
		}
		a.devices++
		d = &device{name: b.For, of: a}
		t.devices[b.For] = d
	}
	d.chunks.push(b)
	t.chunks++
	if d.in == nil {
		t.enter(d)
	}
}

// enter puts d behind all others of the share that its first chunk belongs to,
// and a share that was empty behind all others of its round.
func (t *turns) enter(d *device) {
	r, s := &t.long, &d.of.long
	if head := d.chunks.front(); head.short() {
		r, s = &t.short, &d.of.short
	}
	if s.len() == 0 {
		r.push(s)
	}
	d.in = s
	s.push(d)
}

// take removes the chunk whose turn it is.
func (t *turns) take() (b bulk, ok bool) {
	if t.chunks == 0 {
		return b, false
	}
	r := &t.long
	if t.short.len() > 0 && (t.long.len() == 0 || t.lead < turnBytes) {
		r = &t.short
	}
	for {
		s := r.front()
		if !r.began {
			r.began = true
			s.credit += turnBytes
		}
		d := s.whose()
		head := d.chunks.front()
		if cost := head.cost(); cost <= s.credit {
			s.credit -= cost
			d.credit -= cost
			t.count(r, cost)
			return t.pop(r, d), true
		}
		r.next()
	}
}

// whose is the device whose turn it is within the account.
func (s *share) whose() *device {
	for {
		d := s.front()
		if !s.began {
			s.began = true
			d.credit += turnBytes
		}
		head := d.chunks.front()
		if head.cost() <= d.credit {
			return d
		}
		s.next()
	}
}

// count books bytes of a round; negative: given back. What a round sends while
// the other is empty makes good a lead of the other, and gives none.
func (t *turns) count(r *round, n int) {
	if r == &t.short {
		if t.lead += n; t.long.len() == 0 {
			t.lead = min(t.lead, 0)
		}
		return
	}
	if t.lead -= n; t.short.len() == 0 {
		t.lead = max(t.lead, 0)
	}
}

// pop takes the first chunk of d, whose turn it is in that round.
func (t *turns) pop(r *round, d *device) bulk {
	b, _ := d.chunks.pop()
	b.from, b.share = r, d.in
	t.chunks--
	if d.chunks.len() == 0 {
		r.leave()
		delete(t.devices, d.name)
		if d.of.devices--; d.of.devices == 0 {
			delete(t.accounts, d.of.name)
		}
		return b
	}
	if head := d.chunks.front(); head.short() != (r == &t.short) {
		r.leave()
		t.enter(d)
	}
	return b
}

// made corrects the books when the chunk turns out to have that many bytes.
func (t *turns) made(b *bulk, bytes int) {
	more := bytes - b.cost()
	if d := t.devices[b.For]; d != nil {
		d.credit -= more
	}
	if b.share.len() > 0 {
		b.share.credit -= more
	}
	t.count(b.from, more)
}
