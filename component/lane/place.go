package lane

// Place is room for one answer. The first call of Small, Bulk or Release uses
// it up; later ones do nothing and return false.
type Place struct {
	w    *Writer
	held int
	used bool // under w.mu
}

// Small queues the answer on lane 0 and gives the reservation back. An answer
// with a place is always taken, also if it is larger than the reservation; false
// only when the stream was ended by Drain.
func (p *Place) Small(b []byte) bool {
	return p.use(func(w *Writer) {
		w.giveBack(p.held)
		w.push(b)
	})
}

// Bulk queues the answer as a chunk on lane 1; the reservation is given back
// when the chunk has been made.
func (p *Place) Bulk(c Chunk) bool {
	return p.use(func(w *Writer) {
		w.bulk.push(bulk{Chunk: c, held: p.held})
		w.stats.BulkBytes += c.Size
		w.stats.BulkChunks++
		w.nudge()
	})
}

// Release gives the reservation back without an answer.
func (p *Place) Release() bool {
	return p.use(func(w *Writer) { w.giveBack(p.held) })
}

func (p *Place) use(how func(*Writer)) bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.used || p.w.phase == closed {
		return false
	}
	p.used = true
	how(p.w)
	return true
}
