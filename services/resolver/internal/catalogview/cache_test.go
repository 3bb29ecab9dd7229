package catalogview

import (
	"errors"
	"strconv"
	"sync"
	"testing"
)

// load counts how often a value is loaded.
type loader struct {
	mu sync.Mutex
	n  map[int]int
}

func (l *loader) load(k int) func() (int, error) {
	return func() (int, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.n[k]++
		return k, nil
	}
}

// TestCacheIsBounded: beyond its weight the least recently used go.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := newCache(3, func(int, int) int { return 1 })
	l := &loader{n: map[int]int{}}
	for _, k := range []int{1, 2, 3, 1, 4, 1, 2} { // 2 goes when 4 comes, 3 when 2 comes back
		if v, err := c.get(k, l.load(k)); err != nil || v != k {
			t.Fatalf("get %d: %d, %v", k, v, err)
		}
	}
	for k, want := range map[int]int{1: 1, 2: 2, 3: 1, 4: 1} {
		if l.n[k] != want {
			t.Errorf("%d was loaded %d times, want %d", k, l.n[k], want)
		}
	}
	if c.total != 3 || len(c.entries) != 3 || c.recent.Len() != 3 {
		t.Errorf("weight %d, %d entries, %d in order", c.total, len(c.entries), c.recent.Len())
	}
}

// TestCacheKeepsNoFailure: what could not be loaded is asked for again.
func TestCacheKeepsNoFailure(t *testing.T) {
	t.Parallel()
	c := newCache(10, func(string, int) int { return 1 })
	away := errors.New("away")
	if _, err := c.get("k", func() (int, error) { return 0, away }); !errors.Is(err, away) {
		t.Fatal(err)
	}
	if v, err := c.get("k", func() (int, error) { return 7, nil }); err != nil || v != 7 {
		t.Errorf("got %d, %v", v, err)
	}
}

// TestCacheLoadsOnce: many that ask at once wait for one load, and weights stay true.
func TestCacheLoadsOnce(t *testing.T) {
	t.Parallel()
	c := newCache(1000, func(string, int) int { return 1 })
	l := &loader{n: map[int]int{}}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			if v, err := c.get(strconv.Itoa(i%10), l.load(i%10)); err != nil || v != i%10 {
				t.Errorf("got %d, %v", v, err)
			}
		})
	}
	wg.Wait()
	for k, n := range l.n {
		if n != 1 {
			t.Errorf("%d was loaded %d times", k, n)
		}
	}
	if c.total != 10 {
		t.Errorf("weight %d, want 10", c.total)
	}
}
