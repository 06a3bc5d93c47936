package sqlite

import (
	"container/list"
	"sync"
)

// sequence counts the commits of this run that changed something.
type sequence uint64

// cache keeps the committed state of what was used lately, bounded by bytes.
// Each value is valid since a commit and until it is replaced: who reads a
// state of the store as of commit n may use a value that is valid since n or
// longer. Every commit puts or drops each key that it changed.
type cache[K comparable, V interface{ bytes() int }] struct {
	mu    sync.Mutex
	limit int
	size  int
	items map[K]*list.Element
	order *list.List // the latest use in front
	// floor is the highest sequence of a value that is not here any more:
	// about a state before it, the absence of a value proves nothing.
	floor sequence
}

type cached[K comparable, V any] struct {
	key   K
	value V
	since sequence
	size  int
}

func newCache[K comparable, V interface{ bytes() int }](limit int) *cache[K, V] {
	return &cache[K, V]{limit: limit, items: map[K]*list.Element{}, order: list.New()}
}

// get returns the value of key as of commit at, if it is known.
func (c *cache[K, V]) get(key K, at sequence) (value V, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, found := c.items[key]
	if !found {
		return value, false
	}
	item := element.Value.(*cached[K, V])
	if item.since > at {
		return value, false
	}
	c.order.MoveToFront(element)
	return item.value, true
}

// put sets the value that commit at gave to key.
func (c *cache[K, V]) put(key K, value V, at sequence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(key)
	c.insert(key, value, at)
}

// drop says that commit at removed key, or that its value is not known.
func (c *cache[K, V]) drop(key K, at sequence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(key)
	c.floor = max(c.floor, at)
}

// offer takes in a value that was read from the state as of commit at, unless
// a later commit may have changed it.
func (c *cache[K, V]) offer(key K, value V, at sequence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, found := c.items[key]; !found && c.floor <= at {
		c.insert(key, value, at)
	}
}

func (c *cache[K, V]) forget(key K) {
	if element, found := c.items[key]; found {
		c.size -= c.order.Remove(element).(*cached[K, V]).size
		delete(c.items, key)
	}
}

func (c *cache[K, V]) insert(key K, value V, at sequence) {
	item := &cached[K, V]{key: key, value: value, since: at, size: value.bytes()}
	c.items[key] = c.order.PushFront(item)
	c.size += item.size
	for c.size > c.limit && c.order.Len() > 1 {
		oldest := c.order.Back().Value.(*cached[K, V])
		c.forget(oldest.key)
		c.floor = max(c.floor, oldest.since)
	}
}
