package catalogview

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// loadTimeout bounds one load. Reading and unpacking the largest published document takes less than a second.
const loadTimeout = time.Minute

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
	loaded chan struct{} // closed when value or err is there
	value  V
	err    error
	weight int // counted in total; 0 until loaded
}

func newCache[K comparable, V any](limit int, weight func(K, V) int) *cache[K, V] {
	return &cache[K, V]{limit: limit, weight: weight, entries: map[K]*list.Element{}, recent: list.New()}
}

// get returns the value of a key, loading it where it is not there. A failure to load is not kept. A load is for all
// that ask meanwhile: it goes on when the first of them goes away. Who waits for another's goes away with ctx.
func (c *cache[K, V]) get(ctx context.Context, key K, load func(context.Context) (V, error)) (V, error) {
	e, first := c.entry(key)
	if first {
		c.load(ctx, e, load)
	}
	select {
	case <-e.loaded:
		return e.value, e.err
	case <-ctx.Done():
		var none V
		return none, errs.Wrap(errs.Unavailable, context.Cause(ctx), "wait for what another request reads")
	}
}

// load fills an entry. What does not come back, since it panics, leaves no value that others would take for an answer.
func (c *cache[K, V]) load(ctx context.Context, e *cached[K, V], load func(context.Context) (V, error)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
	defer cancel()
	e.err = errs.New(errs.Internal, "reading %s ended in a panic", fmt.Sprint(e.key))
	defer func() {
		if e.err != nil {
			c.drop(e)
		}
		close(e.loaded)
	}()
	value, err := load(ctx)
	if err == nil {
		c.add(e, c.weight(e.key, value))
	}
	e.value, e.err = value, err
}

// entry returns that of a key, and whether it is new and thereby the caller's to load.
func (c *cache[K, V]) entry(key K) (e *cached[K, V], first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.entries[key]; el != nil {
		c.recent.MoveToFront(el)
		return el.Value.(*cached[K, V]), false //nolint:forcetypeassert // the list holds nothing else
	}
	e = &cached[K, V]{key: key, loaded: make(chan struct{})}
	c.entries[key] = c.recent.PushFront(e)
	return e, true
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

func (c *cache[K, V]) drop(e *cached[K, V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.entries[e.key]; el != nil && el.Value == any(e) {
		c.recent.Remove(el)
		delete(c.entries, e.key)
		c.total -= e.weight
	}
}
