package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/test/internal/chaos"
	"github.com/chandler-fleet/chandler/test/stack"
)

// thorough is set by make chaos: faults last as long as they may in production, and those that take minutes are tried,
// too.
var thorough = chaos.All()

// brief is how much shorter a fault lasts in make test.
const brief = 10

// lasting is how long a fault lasts.
func lasting(d time.Duration) time.Duration {
	if thorough {
		return d
	}
	return d / brief
}

// fault is something that happens to a running system.
type fault struct {
	name string
	// long is a fault that only make chaos tries.
	long bool
	// before makes ready what do needs, before portals write; it may skip the fault.
	before func(*world)
	do     func(*world)
}

// tried does each fault while portals write, and checks afterwards that it cost time and nothing else: every
// acknowledged write is in the log once, no plan ran that nobody approved, and what was wanted is installed.
func (w *world) tried(faults []fault) {
	w.t.Helper()
	w.record = w.database()
	for i, f := range faults {
		if !w.t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			if f.long && !thorough {
				t.Skip("a long one: make chaos")
			}
			if f.before != nil {
				f.before(w.in(t))
			}
			w.in(t).survives(fmt.Sprintf("f%d", i), f.do)
		}) {
			return // what comes next would find a system that has not recovered
		}
	}
}

// Portals that write during a fault.
const (
	portals     = 2
	portalPause = 500 * time.Millisecond
)

// portalNamespaces is how many namespaces a portal makes. Each is an install on a real cluster, which goes on to cost
// the cluster and the services something until the test ends.
func portalNamespaces() int {
	if thorough {
		return 2
	}
	return 1
}

// survives is one fault.
func (w *world) survives(prefix string, do func(*world)) {
	w.t.Helper()
	j := newJournal(w.t)
	ctx, stop := context.WithCancel(w.ctx)
	var writing sync.WaitGroup
	all := make([]*portal, portals)
	harmed := *w
	var abandon context.CancelFunc
	harmed.ctx, abandon = context.WithCancel(w.ctx)
	defer writing.Wait() // where the fault ends the test, nobody writes on
	defer abandon()
	defer stop()
	for i := range all {
		name := fmt.Sprintf("%s-p%d", prefix, i)
		w.addCatalog(name, example(w.t))
		all[i] = &portal{
			w: &harmed, client: stack.NewClient(w.Stack.URL(), w.Client.Token), prefix: name, catalog: name,
			most: portalNamespaces(), pause: portalPause, journal: j,
		}
		writing.Go(func() { all[i].write(ctx) })
	}
	do(w)
	ended := time.Now()
	stop()
	writing.Wait()
	written := time.Now()
	for _, name := range stack.Services {
		w.must(w.Stack.Ready(w.ctx, name))
	}
	for _, p := range all {
		for _, ns := range p.subjects {
			w.succeeded(ns, "lighthouse.v1.2.0")
		}
	}
	w.t.Logf("%s; writes go through %s after the end of the fault, everything is installed %s after it", j,
		written.Sub(ended).Round(time.Millisecond), time.Since(ended).Round(time.Millisecond))
	j.compare(w)
	w.authorised()
}

// during lets a fault last.
func (w *world) during(d time.Duration) { w.pause(lasting(d)) }

// pause waits, or ends with the test.
func (w *world) pause(d time.Duration) {
	select {
	case <-w.ctx.Done():
	case <-time.After(d):
	}
}

// repeatedly does something again and again for a time.
func (w *world) repeatedly(d, pause time.Duration, do func()) {
	deadline := time.Now().Add(lasting(d))
	for time.Now().Before(deadline) && w.ctx.Err() == nil {
		do()
		w.pause(pause)
	}
}
