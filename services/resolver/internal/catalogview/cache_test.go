package catalogview

import (
	"context"
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

func (l *loader) load(k int) func(context.Context) (int, error) {
	return func(context.Context) (int, error) {
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
		if v, err := c.get(t.Context(), k, l.load(k)); err != nil || v != k {
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
	if _, err := c.get(t.Context(), "k", func(context.Context) (int, error) { return 0, away }); !errors.Is(err, away) {
		t.Fatal(err)
	}
	if v, err := c.get(t.Context(), "k", func(context.Context) (int, error) { return 7, nil }); err != nil || v != 7 {
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
			if v, err := c.get(t.Context(), strconv.Itoa(i%10), l.load(i%10)); err != nil || v != i%10 {
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

// TestCacheLoadsForAll: who goes away while it loads takes nothing from those that wait, and who waits can go away.
func TestCacheLoadsForAll(t *testing.T) {
	t.Parallel()
	c := newCache(10, func(string, int) int { return 1 })
	begun, finish := make(chan struct{}), make(chan struct{})
	load := func(ctx context.Context) (int, error) {
		close(begun)
		<-finish
		return 7, ctx.Err()
	}
	ctx, away := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = c.get(ctx, "k", load) })
	<-begun
	away()
	waiting, gone := context.WithCancel(t.Context())
	gone()
	if _, err := c.get(waiting, "k", load); !errors.Is(err, context.Canceled) {
		t.Errorf("who waits no longer gets %v", err)
	}
	close(finish)
	if v, err := c.get(t.Context(), "k", load); err != nil || v != 7 {
		t.Errorf("who waits gets %d, %v", v, err)
	}
	wg.Wait()
}

// TestCacheKeepsNoPanic: what panics is no answer, neither for those that wait nor for those that ask later.
func TestCacheKeepsNoPanic(t *testing.T) {
	t.Parallel()
	for _, inWeight := range []bool{false, true} {
		c := newCache(10, func(string, *int) int {
			if inWeight {
				panic("weight")
			}
			return 1
		})
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is swallowed")
				}
			}()
			_, _ = c.get(t.Context(), "k", func(context.Context) (*int, error) {
				if inWeight {
					return new(int), nil
				}
				panic("load")
			})
		}()
		inWeight = false
		if v, err := c.get(t.Context(), "k", func(context.Context) (*int, error) {
			return new(int),
				nil
		}); err != nil || v == nil || c.total != 1 {
			t.Errorf("after a panic: %v, %v, weight %d", v, err, c.total)
		}
	}
}
