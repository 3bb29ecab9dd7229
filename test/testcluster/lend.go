package testcluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// resetTimeout bounds putting a used cluster back to how it was. It takes a second or two; a cluster that needs longer
// is stopped, and a new one started in its place.
const resetTimeout = 30 * time.Second

// idleClusters are those that a test borrowed and gave back, until another one borrows them or the process ends.
type idleClusters struct {
	mu    sync.Mutex
	open  bool // Main is there to stop what is left
	those []*Cluster
}

var theIdle idleClusters

// Borrow is like [New], but may hand out a cluster with the same options that a former test of this process borrowed.
// Before that, the cluster is put back to how it was after its start: every key that it has stored since is deleted,
// every key that was changed or deleted is written again, and this is proved by a list of all keys, what the API server
// serves, and what it refuses. Otherwise it is stopped and another one started. Needs [Main] or [Run]. A cluster is not
// lent again after a test that failed, or that stopped, paused or restarted it.
func Borrow(t testing.TB, opts ...Options) *Cluster {
	t.Helper()
	c, err := borrow(t, opts)
	if err != nil {
		t.Fatalf("testcluster: %v", err)
	}
	t.Cleanup(func() { giveBack(t, c) })
	return c
}

func borrow(t testing.TB, all []Options) (*Cluster, error) {
	opts, err := prepareForTest(t, all)
	if err != nil {
		return nil, err
	}
	// With the turn of this test, so that no more clusters are busy than tests hold.
	for c := theIdle.take(opts); c != nil; c = theIdle.take(opts) {
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

// keeps says whether a cluster with these options may be used again: the logs of a kept one are to be of one test, and
// a directory that a test has chosen ends with it.
func (i *idleClusters) keeps(opts Options) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.open && !opts.Keep && opts.Dir == ""
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

// take returns the cluster with these options that was used last, or nil.
func (i *idleClusters) take(opts Options) *Cluster {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n, c := range slices.Backward(i.those) {
		if c.plane.opts.Name == opts.Name && c.plane.opts.Nodes == opts.Nodes {
			i.those = slices.Delete(i.those, n, n+1)
			return c
		}
	}
	return nil
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
