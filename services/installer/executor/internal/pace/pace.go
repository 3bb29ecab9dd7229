// Package pace bounds how often the same is tried: against somebody who undoes it, or while it fails.
package pace

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// Patience is how often the same correction is made at once; from then on each waits twice as long as the one
	// before.
	Patience = 3
	// window is how long a correction counts.
	window = 10 * time.Minute
	// first and longestContested are the waits after corrections that were undone. New is reported those after tries
	// that failed.
	first            = time.Second
	longestContested = 5 * time.Minute
	// maxNote bounds the text of one Item.
	maxNote = 512
)

// Item is something that is kept for an operator of a namespace: one of its objects, or a part of its care.
type Item struct {
	Namespace string
	Operator  string // ClusterServiceVersion; "" for what all operators of the namespace share
	What      string
}

// Pace bounds how often the same is tried against somebody who undoes or refuses it, and remembers what to tell of it.
// Its methods may be called side by side.
type Pace struct {
	failing time.Duration // the first wait after a try that failed
	longest time.Duration // and the longest
	mu      sync.Mutex
	entries map[Item]entry
}

type entry struct {
	count  int
	by     string // of corrections: who undid what
	text   string
	failed bool
	last   time.Time
	after  time.Time // nothing is tried before
}

// New returns one that remembers nothing, with the first and the longest wait after a try that failed.
func New(failing, longest time.Duration) *Pace {
	return &Pace{failing: failing, longest: longest, entries: map[Item]entry{}}
}

// Wait is how long an item is still to be left alone; zero where it may be tried.
func (p *Pace) Wait(i Item, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.entries[i].after.Sub(now))
}

// Failed notes a try that failed, and returns how long to wait. While that wait lasts, more failures change nothing.
func (p *Pace) Failed(i Item, text string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[i]
	if !e.failed {
		e = entry{failed: true}
	}
	if wait := e.after.Sub(now); wait > 0 {
		return wait
	}
	e.count++
	wait := double(e.count, p.failing, p.longest)
	e.text, e.last, e.after = cut(text), now, now.Add(wait)
	p.entries[i] = e
	return wait
}

// Succeeded forgets the failures of an item.
func (p *Pace) Succeeded(i Item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries[i].failed {
		delete(p.entries, i)
	}
}

// Corrected notes a correction; by says who had changed which fields. One that others undo again and again is made
// less and less often.
func (p *Pace) Corrected(i Item, by, text string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[i]
	if e.failed || e.by != by || now.Sub(e.last) > window {
		e = entry{by: by}
	}
	e.count++
	e.text, e.last = cut(text), now
	if e.count >= Patience {
		e.after = now.Add(double(e.count-Patience+1, first, longestContested))
	}
	p.entries[i] = e
}

// Notes are the texts, sorted, of what failed more than once in a namespace or is contested.
func (p *Pace) Notes(namespace string, now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for i, e := range p.entries {
		lasts := e.failed && e.count > 1 || !e.failed && e.count > Patience && now.Sub(e.last) <= window
		if i.Namespace == namespace && lasts {
			out = append(out, e.text)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Keep forgets operators of a namespace that are gone.
func (p *Pace) Keep(namespace string, lives func(operator string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.entries, func(i Item, _ entry) bool {
		return i.Namespace == namespace && i.Operator != "" && !lives(i.Operator)
	})
}

// double is the n-th wait, n from 1.
func double(n int, first, longest time.Duration) time.Duration {
	d := first
	for range n - 1 {
		if d *= 2; d >= longest {
			return longest
		}
	}
	return d
}

func cut(text string) string {
	if len(text) <= maxNote {
		return text
	}
	return strings.ToValidUTF8(text[:maxNote], "") + "…"
}

// Sleep waits for d, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
