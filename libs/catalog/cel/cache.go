package cel

import "sync"

// maxKept bounds what is kept of each kind. A rule takes some 7 KB; published catalogs have a handful, repeated
// in each of their bundles.
const maxKept = 128

// rules and patterns are kept for the process: making them takes some hundred times as long as asking them,
// and which are kept changes no answer.
var (
	rules    = &cache[*Rule]{made: map[string]*Rule{}}
	patterns = &cache[*pattern]{made: map[string]*pattern{}}
)

// cache keeps the newest of what was made of texts.
type cache[V any] struct {
	mu    sync.Mutex
	made  map[string]V
	order []string // oldest first
}

// get returns what was made of a text, making it where it is not there. A fault is not kept.
func (c *cache[V]) get(text string, makeOf func(string) (V, error)) (V, error) {
	if v, ok := c.find(text); ok {
		return v, nil
	}
	v, err := makeOf(text)
	if err != nil {
		return v, err
	}
	return c.keep(text, v), nil
}

func (c *cache[V]) find(text string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.made[text]
	return v, ok
}

// keep returns what is kept: v, or what somebody else made meanwhile.
func (c *cache[V]) keep(text string, v V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, ok := c.made[text]; ok {
		return other
	}
	if len(c.order) == maxKept {
		delete(c.made, c.order[0])
		c.order = c.order[1:]
	}
	c.made[text], c.order = v, append(c.order, text)
	return v
}
