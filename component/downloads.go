package component

import (
	"sync"
	"time"

	"pepvault/pep"
	"pepvault/vault"
)

// Downloads are the bounds of pushed downloads (PROTOCOL §7).
type Downloads struct {
	// OfAccount bounds those under way of one account, Overall those of all:
	// one takes about 2 KiB beside two places in the writer, however large the
	// vault.
	OfAccount, Overall int
	// AckTimeout is how long one goes on without an acknowledgement.
	AckTimeout time.Duration
}

// downloads are those under way: one of a device and a vault, and so many of an
// account.
type downloads struct {
	bounds Downloads

	mu     sync.Mutex
	closed bool
	n      int
	all    map[vault.Account]map[course]*download // by the account of the device
}

// course is what a device has one download of at a time.
type course struct {
	resource string
	vault    vault.Key
}

func courseOf(req pep.Request, op pep.Download) course {
	return course{req.Sender.Resource, vault.Key{Account: req.Owner, Node: op.Node}}
}

// download begins to send what a device has asked for. It does not block.
func (s *Service) download(req pep.Request, begun pep.DownloadBegun, r *reply) {
	op, _ := req.Op.(pep.Download)
	d := newDownload(s, begun, op.Cursor)
	d.to, d.from = r.stanza.From, r.stanza.To
	d.account = req.Sender.Account
	d.course = courseOf(req, op)
	replaced, err := s.downloads.add(d)
	if err != nil {
		d.alarm.Stop() // which would keep it in memory
		r.fail(err)
		return
	}
	s.meter.Downloads(1)
	if replaced != nil {
		replaced.end()
	}
	r.answer(begun) // before the first chunk
	d.fill()
}

// refuses tells beforehand why add would refuse a download, which spares the
// store a look.
func (ds *downloads) refuses(account vault.Account, c course) error {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return ds.full(account, c)
}

// full tells why there is no room for that download. It needs ds.mu.
func (ds *downloads) full(account vault.Account, c course) error {
	of := ds.all[account]
	switch {
	case ds.closed:
		return overloaded("the service is stopping")
	case of[c] != nil: // whose place it would take
		return nil
	case len(of) >= ds.bounds.OfAccount:
		return overloaded("this account has as many downloads under way as it may")
	case ds.n >= ds.bounds.Overall:
		return overloaded("as many downloads are under way as there may be")
	}
	return nil
}

// add counts a download as under way, in place of another one of the same
// course, or refuses it.
func (ds *downloads) add(d *download) (replaced *download, err error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if err := ds.full(d.account, d.course); err != nil {
		return nil, err
	}
	of := ds.all[d.account]
	if replaced = of[d.course]; replaced == nil {
		ds.n++
	}
	if of == nil {
		of = map[course]*download{}
		ds.all[d.account] = of
	}
	of[d.course] = d
	return replaced, nil
}

// remove takes out a download that has ended, unless another one has its place.
func (ds *downloads) remove(d *download) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	of := ds.all[d.account]
	if of[d.course] != d {
		return
	}
	ds.n--
	if delete(of, d.course); len(of) == 0 {
		delete(ds.all, d.account)
	}
}

// endOf ends the downloads of a resource, all or those of one owner's vaults
// ("" = all).
func (ds *downloads) endOf(account vault.Account, resource string, owner vault.Account) {
	ds.mu.Lock()
	var ended []*download
	for c, d := range ds.all[account] {
		if c.resource == resource && (owner == "" || c.vault.Account == owner) {
			ended = append(ended, d)
		}
	}
	ds.mu.Unlock()
	for _, d := range ended {
		d.end()
	}
}

// endAll ends all downloads; with closing, no other one begins.
func (ds *downloads) endAll(closing bool) {
	ds.mu.Lock()
	ds.closed = ds.closed || closing
	var ended []*download
	for _, of := range ds.all {
		for _, d := range of {
			ended = append(ended, d)
		}
	}
	ds.mu.Unlock()
	for _, d := range ended {
		d.end()
	}
}
