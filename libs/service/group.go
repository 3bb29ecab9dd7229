package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"
)

// Part is one long-running piece of a service. Run returns when ctx ends, nil when it is done for
// good, and an error when the service cannot go on without it.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

// Group runs parts together. Parts start in order; when ctx ends or a part fails, they stop in
// reverse order, each one waited for before the next is stopped.
type Group struct {
	Parts []Part
	Drain time.Duration // bound of the whole stop; DefaultDrain when zero
	Log   *slog.Logger  // slog.Default when nil
}

// Add appends a part.
func (g *Group) Add(name string, run func(ctx context.Context) error) {
	g.Parts = append(g.Parts, Part{Name: name, Run: run})
}

type running struct {
	name string
	stop context.CancelFunc
	done chan struct{}
	err  error // readable once done is closed
}

// Run runs the parts until ctx ends or one fails, then stops them. It returns the first failure,
// and names the parts that did not stop within Drain.
func (g *Group) Run(ctx context.Context) error {
	failed := make(chan *running, len(g.Parts))
	started := make([]*running, 0, len(g.Parts))
	for _, p := range g.Parts {
		started = append(started, g.start(ctx, p, failed))
	}
	var first error
	ended := 0
	for ended < len(started) && first == nil && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case r := <-failed:
			ended++
			first = r.err
		}
	}
	return errors.Join(first, g.stop(started, first != nil))
}

// start gives the part a context that keeps ctx's values and ends only by the ordered stop.
func (g *Group) start(ctx context.Context, p Part, ended chan<- *running) *running {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &running{name: p.Name, stop: cancel, done: make(chan struct{})}
	go func() {
		defer func() {
			close(r.done)
			ended <- r
		}()
		r.err = runPart(own, p)
	}()
	return r
}

func runPart(ctx context.Context, p Part) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s: panic: %v\n%s", p.Name, v, debug.Stack())
		}
	}()
	err = p.Run(ctx)
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("%s: %w", p.Name, err)
}

// stop cancels in reverse order. After one failure the others' errors are only logged: they are its echo.
func (g *Group) stop(started []*running, failed bool) error {
	bound := g.Drain
	if bound <= 0 {
		bound = DefaultDrain
	}
	timer := time.NewTimer(bound)
	defer timer.Stop()
	var all []error
	expired := false
	for _, r := range slices.Backward(started) {
		r.stop()
		if expired = expired || !waitFor(r.done, timer.C); expired {
			select {
			case <-r.done:
			default:
				all = append(all, fmt.Errorf("%s did not stop within %s", r.name, bound))
				continue
			}
		}
		if r.err != nil && failed {
			g.log().Debug("part ended", "part", r.name, "error", r.err)
		} else if r.err != nil {
			all = append(all, r.err)
		}
	}
	return errors.Join(all...)
}

func waitFor(done <-chan struct{}, bound <-chan time.Time) bool {
	select {
	case <-done:
		return true
	case <-bound:
		return false
	}
}

func (g *Group) log() *slog.Logger {
	if g.Log == nil {
		return slog.Default()
	}
	return g.Log
}
