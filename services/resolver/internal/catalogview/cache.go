package catalogview

import (
	"container/list"
	"sync"
)

// cache keeps values by digest up to a total weight; the least recently used go first. What is being
// loaded is loaded once, whoever asks.
type cache[K comparable, V any] struct {
	limit  int
	weight func(K, V) int

	mu      sync.Mutex
	total   int
	entries map[K]*list.Element
	recent  *list.List // of *cached[K, V], most recently used first
}

type cached[K comparable, V any] struct {
	key    K
	once   sync.Once
	value  V
	err    error
	weight int // counted in total; 0 until loaded
}

func newCache[K comparable, V any](limit int, weight func(K, V) int) *cache[K, V] {
	return &cache[K, V]{limit: limit, weight: weight, entries: map[K]*list.Element{}, recent: list.New()}
}

// get returns the value of a key, loading it where it is not there. A failure to load is not kept.
func (c *cache[K, V]) get(key K, load func() (V, error)) (V, error) {
	e := c.entry(key)
	e.once.Do(func() {
		if e.value, e.err = load(); e.err != nil {
			c.drop(key, e)
			return
		}
		c.add(e, c.weight(key, e.value))
	})
	return e.value, e.err
}

func (c *cache[K, V]) entry(key K) *cached[K, V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.entries[key]; el != nil {
		c.recent.MoveToFront(el)
		return el.Value.(*cached[K, V]) //nolint:forcetypeassert // the list holds nothing else
	}
	e := &cached[K, V]{key: key}
	c.entries[key] = c.recent.PushFront(e)
	return e
}

func (c *cache[K, V]) add(e *cached[K, V], weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.entries[e.key]; el == nil || el.Value != any(e) { // evicted while it was loaded
		return
	}
	e.weight = weight
	c.total += weight
	for c.total > c.limit && c.recent.Len() > 1 {
		last := c.recent.Back()
		old := last.Value.(*cached[K, V]) //nolint:forcetypeassert // the list holds nothing else
		c.recent.Remove(last)
		delete(c.entries, old.key)
		c.total -= old.weight
	}
}

func (c *cache[K, V]) drop(key K, e *cached[K, V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.entries[key]; el != nil && el.Value == any(e) {
		c.recent.Remove(el)
		delete(c.entries, key)
	}
}
