package device

import "pepvault/pep"

// push is a download under way; id "" = none.
type push struct {
	id   string
	next int // chunk
}

// Pushed turns the sync that Ask has just returned into a download with that
// id, which has to be another one each time: its user sends that instead. false
// if Ask asked for something else. The answer goes to Answered or Refused as
// always, and each chunk to [Replica.Chunk].
func (r *Replica) Pushed(id string) (pep.Download, bool) {
	if r.request.Step != Syncing || id == "" {
		return pep.Download{}, false
	}
	r.push = push{id: id}
	return pep.Download{ID: id, Node: r.node, Cursor: r.request.Cursor}, true
}

// Chunk takes in a chunk (PROTOCOL §7) and reports whether it was the next one
// of the download under way: it is answered with an empty result then, else
// with item-not-found.
func (r *Replica) Chunk(c pep.Chunk) bool {
	if r.push.id == "" || c.Download != r.push.id || c.Seq != r.push.next {
		return false
	}
	r.push.next++
	r.page(c.Page)
	r.repeat = false // the next one comes by itself
	if !c.Page.More {
		r.push = push{}
	}
	return true
}

// Stalled says that no chunk of the download under way has come for long, a
// minute say: Ask goes on behind the last one by a sync, which may be Pushed
// again. Nothing happens if no download is under way.
func (r *Replica) Stalled() {
	if r.push.id != "" {
		r.push, r.repeat = push{}, true
	}
}

// Downloading reports whether a download is under way.
func (r *Replica) Downloading() bool { return r.push.id != "" }
