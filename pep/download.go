package pep

import (
	"context"
	"math"

	"pepvault/vault"
)

// Download asks for what changed in a vault since a cursor, as Sync does, in
// chunks that the service sends by itself (PROTOCOL §7).
type Download struct {
	ID     string // chosen by the device, another one each time
	Node   string
	Cursor string // "" or NoCursor: the device holds nothing
	// ChunkBytes bounds the changes of a chunk, if it holds more than one.
	// Window bounds the chunks that the device has not acknowledged. 0 is the
	// service's bound, which holds in any case.
	ChunkBytes, Window int
}

// DownloadBegun answers Download: chunks follow.
type DownloadBegun struct {
	ID string
	// Records is how many are to come, Bytes about what they take: as things
	// stand, and without removals. They are for people, and for turns.
	Records            int
	Bytes              int64
	ChunkBytes, Window int // what holds
	// Reset and Fork are those of the first chunk, as things stand.
	Reset vault.Reset
	Fork  vault.Revision
	// Read reads the chunk that follows a cursor, that of the request or of the
	// chunk before, from the state and the rights of that moment: the page that
	// a Sync with this cursor would get. What became of the vault meanwhile,
	// that page says. Its error is one that Engine.Do could have given.
	Read func(cursor string) (SyncPage, error)
}

func (DownloadBegun) answer() {}

// Chunk is one of a download: a page that comes unasked. Owner, Node and
// Records of the page do not travel with it; More is false on the last.
type Chunk struct {
	Download string // Download.ID
	Seq      int    // from 0
	Page     SyncPage
}

func (e *Engine) download(ctx context.Context, req Request, op Download, done func(Outcome)) error {
	key := vault.Key{Account: req.Owner, Node: op.Node}
	begun := DownloadBegun{
		ID: op.ID, ChunkBytes: within(op.ChunkBytes, e.chunk), Window: within(op.Window, e.window),
	}
	ctx, asked := context.WithoutCancel(ctx), ctx
	begun.Read = func(cursor string) (SyncPage, error) { return e.readChunk(ctx, req, key, cursor, begun.ChunkBytes) }
	return e.inOneHistory(asked, req, key, op.Cursor, func() error {
		return e.ordered(asked, key, func(v vault.View) (Outcome, error) {
			p, err := e.place(v, req, key, op.Cursor)
			if err != nil {
				return Outcome{}, err
			}
			begun.Reset, begun.Fork = p.head.Reset, p.head.Fork
			begun.Records, begun.Bytes, err = toCome(v, p)
			return Outcome{Answer: begun}, err
		}, done)
	})
}

// within is what a device asked for, as far as a bound allows.
func within(asked, bound int) int {
	if asked <= 0 {
		return bound
	}
	return min(asked, bound)
}

// toCome counts the records behind a place, and estimates their bytes.
func toCome(v vault.View, p place) (records int, bytes int64, err error) {
	if p.absent || p.state.Records == 0 {
		return 0, 0, nil
	}
	held, err := v.Rank(p.state.Key, p.from.Revision+1)
	records = p.state.Records - held
	return records, p.state.Cost * int64(records) / int64(p.state.Records), err
}

// readChunk is a page of a sync with a bound of its own.
func (e *Engine) readChunk(ctx context.Context, req Request, key vault.Key, cursor string, bytes int) (page SyncPage, err error) {
	limit := vault.PageLimit{Records: math.MaxInt32, Cost: min(bytes, e.answer)}
	err = e.inOneHistory(ctx, req, key, cursor, func() error {
		return e.store.View(ctx, func(v vault.View) error {
			p, err := e.place(v, req, key, cursor)
			if err != nil || p.absent {
				page = p.head
				return err
			}
			limit.GoneAbove = p.from.Pass.Start
			page, err = e.readChanges(v, p, limit)
			return err
		})
	})
	return page, err
}
