package lane

// batch is what goes out in one write: stanzas of lane 0 and refusals behind
// them, or one of bulk, a ping behind it, or a ping alone.
type batch struct {
	stanzas [][]byte
	small   int    // how many of them are of lane 0
	refused int    // and how many behind those are refusals
	bulk    int    // 1: the first one is bulk
	ping    uint64 // its name; 0: none
	bytes   []byte // the stanzas one behind the other
	buffer  []byte // kept for the next batch
}

// batchQueued takes what goes into one batch from lane 0 and of the refusals;
// false if that is nothing. bulkGoes tells whether a stanza of bulk could go.
func (w *Writer) batchQueued(b *batch, bulkGoes bool) bool {
	size := 0
	if !w.refusals.due() {
		size = b.take(&w.small, 0, w.opts.BatchBytes)
		b.small = len(b.stanzas)
		w.refusals.passed(size)
	}
	if w.small.len() == 0 && w.refusals.before(bulkGoes, w.opts.BatchBytes) || w.refusals.due() {
		more := b.take(&w.refusals.queue, size, w.opts.BatchBytes) - size
		b.refused = len(b.stanzas) - b.small
		w.refusals.took(more)
	}
	return len(b.stanzas) > 0
}

// take adds what of q fits into a batch that has so many bytes, at least one
// stanza if it has none, and returns the bytes it has then.
func (b *batch) take(q *queue[[]byte], size, most int) int {
	for q.len() > 0 {
		n := len(q.front())
		if size > 0 && size+n > most {
			break
		}
		size += n
		s, _ := q.pop()
		b.stanzas = append(b.stanzas, s)
	}
	return size
}

// join puts the stanzas one behind the other; one alone is not copied.
func (b *batch) join(size int) {
	if len(b.stanzas) == 1 {
		b.bytes = b.stanzas[0]
		return
	}
	if b.buffer == nil {
		b.buffer = make([]byte, 0, size)
	}
	b.buffer = b.buffer[:0]
	for _, s := range b.stanzas {
		b.buffer = append(b.buffer, s...)
	}
	b.bytes = b.buffer
}
