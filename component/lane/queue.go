package lane

// queue is first in, first out; what was taken may be put back in front.
type queue[T any] struct {
	ring  []T
	first int
	n     int
}

// keepSlots is the size up to which an empty queue keeps its ring.
const keepSlots = 1024

func (q *queue[T]) len() int { return q.n }

func (q *queue[T]) push(v T) {
	q.grow()
	q.ring[(q.first+q.n)%len(q.ring)] = v
	q.n++
}

func (q *queue[T]) pushFront(v T) {
	q.grow()
	q.first = (q.first + len(q.ring) - 1) % len(q.ring)
	q.ring[q.first] = v
	q.n++
}

func (q *queue[T]) pop() (v T, ok bool) {
	if q.n == 0 {
		return v, false
	}
	var none T
	v, q.ring[q.first] = q.ring[q.first], none
	q.first = (q.first + 1) % len(q.ring)
	q.n--
	if q.n == 0 && len(q.ring) > keepSlots {
		q.ring, q.first = nil, 0
	}
	return v, true
}

// front is the next one, which stays.
func (q *queue[T]) front() T { return q.ring[q.first] }

func (q *queue[T]) grow() {
	if q.n < len(q.ring) {
		return
	}
	ring := make([]T, max(2, 2*len(q.ring)))
	n := copy(ring, q.ring[q.first:])
	copy(ring[n:], q.ring[:q.first])
	q.ring, q.first = ring, 0
}
