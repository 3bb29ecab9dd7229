package testcluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// resetTimeout bounds putting a used cluster back to how it was. It takes a second or two; a cluster that needs longer is
// stopped, and a new one started in its place.
const resetTimeout = 30 * time.Second

// idleClusters are those that a test borrowed and gave back, until another one borrows them or the process ends.
type idleClusters struct {
	mu    sync.Mutex
	open  bool // Main is there to stop what is left
	those []*Cluster
}

var theIdle idleClusters

// Borrow is like [New], but may hand out a cluster that a former test of this process borrowed. It is put back to how it
// was after its start before: every key that it has stored since is deleted, every key that was changed or deleted is
// written again, and this is proved by a list of all keys, what the API server serves, and what it refuses. Else it is
// stopped and another one started. Needs [Main]; a test that failed, stopped, paused or restarted its cluster is its last.
func Borrow(t testing.TB) *Cluster {
	t.Helper()
	c, err := borrow(t)
	if err != nil {
		t.Fatalf("testcluster: %v", err)
	}
	t.Cleanup(func() { giveBack(t, c) })
	return c
}

func borrow(t testing.TB) (*Cluster, error) {
	opts, err := prepareForTest(t, nil)
	if err != nil {
		return nil, err
	}
	// With the turn of this test, so that no more clusters are busy than tests hold.
	for c := theIdle.take(); c != nil; c = theIdle.take() {
		began := time.Now()
		err := c.plane.reset(t.Context())
		if err == nil {
			t.Logf("a used cluster was put back to its start in %s", time.Since(began).Round(time.Millisecond))
			return c, errors.Join(c.plane.member.Hold(opts.member.Holder), opts.member.Remove(false))
		}
		t.Logf("a used cluster is not taken: %v", err)
		if err := c.Stop(); err != nil {
			t.Logf("testcluster: %v", err)
		}
	}
	c, err := Start(t.Context(), opts)
	if err != nil || !theIdle.keeps(opts) {
		return c, err
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if c.plane.before, err = c.plane.settled(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func giveBack(t testing.TB, c *Cluster) {
	if t.Failed() || c.plane.before == nil || c.plane.spoiled.Load() || c.plane.failure() != nil || !theIdle.put(c) {
		stopForTest(t, c)
	}
}

// keeps says whether a cluster with these options may be used again: the logs of a kept one are to be of one test.
func (i *idleClusters) keeps(opts Options) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.open && !opts.Keep
}

// put takes a cluster that nobody holds any longer.
func (i *idleClusters) put(c *Cluster) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.open || c.plane.member.Hold("") != nil {
		return false
	}
	i.those = append(i.those, c)
	return true
}

// take returns the cluster that was used last, or nil.
func (i *idleClusters) take() *Cluster {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.those) == 0 {
		return nil
	}
	c := i.those[len(i.those)-1]
	i.those = i.those[:len(i.those)-1]
	return c
}

func (i *idleClusters) start() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.open = true
}

// stop ends those that are left, and takes no more.
func (i *idleClusters) stop() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.open = false
	var errs []error
	for _, c := range i.those {
		errs = append(errs, c.Stop())
	}
	i.those = nil
	return errors.Join(errs...)
}

// stopForTest ends a cluster at the end of its test, and tells where its logs are or how to keep them.
func stopForTest(t testing.TB, c *Cluster) {
	if c.plane.opts.Keep {
		t.Logf("files of cluster %s are kept in %s", c.Name(), c.Dir())
	} else if t.Failed() {
		t.Logf("to keep the logs of cluster %s, set %s=1", c.Name(), keepVariable)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("testcluster: %v", err)
	}
}

// failure tells of components that ended by themselves.
func (p *plane) failure() error {
	var errs []error
	for _, process := range slices.Backward(p.processes) {
		errs = append(errs, process.Failure())
	}
	return errors.Join(errs...)
}
