// Package steplog looks after the PlanExecutions of a namespace: the step logs of its plans and removals, the back-off
// of what waits, and what the hub is notified of both.
package steplog

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/webhooks"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// Store remembers what no step log holds: plans that wait before they are begun. Its methods may be called side by
// side.
type Store struct {
	Config

	mu     sync.Mutex
	retry  map[string]retryNote // plans not begun that failed for now, by plan id
	unsafe map[string]string    // namespaces of plans that wait for definitions to change, by plan id
	chosen map[string]string    // what was chosen of obstacles of plans when they were tried last, by plan id
	plans  map[string][]string  // plans of which something may be remembered, by namespace
}

// Config is what a Store needs to know.
type Config struct {
	GrantKey  keys.Accepted
	ClusterID string
	Grace     time.Duration // how long a transient failure lasts before it is reported
	Backoff   time.Duration // first wait after a transient failure, doubled up to Longest
	Longest   time.Duration
	Webhooks  *webhooks.Owners
}

// New returns what a new session knows: nothing.
func New(c Config) *Store {
	return &Store{
		Config: c, retry: map[string]retryNote{}, unsafe: map[string]string{}, chosen: map[string]string{},
		plans: map[string][]string{},
	}
}

// Writer looks after the step logs of one namespace in one reconcile.
type Writer struct {
	*Store
	*scope.Scope
}

// In returns the writer of one reconcile.
func (s *Store) In(sc *scope.Scope) Writer { return Writer{Store: s, Scope: sc} }

// retryNote is the back-off of a plan that has no step log yet.
type retryNote struct {
	attempts int
	since    time.Time
	after    time.Time
	failure  failure.Failure
}

// Wait reports a plan whose back-off still runs, and why it waits.
func (w Writer) Wait(id string, x *kube.Execution) (bool, *failure.Failure) {
	now := w.Env.Now()
	if x == nil {
		w.mu.Lock()
		note, ok := w.retry[id]
		w.mu.Unlock()
		if ok && now.Before(note.after) {
			w.Attempts.Soon(note.after.Sub(now))
			return true, &note.failure
		}
		return false, nil
	}
	if now.Before(x.Status.NotBefore) {
		w.Attempts.Soon(x.Status.NotBefore.Sub(now))
		return true, nil
	}
	return false, nil
}

// noteRetry notes why a plan waits that has no step log yet, and reports whether it waited for something else before.
func (w Writer) noteRetry(id string, f failure.Failure) (news bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	note, ok := w.retry[id]
	if !ok {
		note.since = w.Env.Now()
	}
	news = !ok || note.failure.Reason != f.Reason || note.failure.Message != f.Message
	note.after, note.failure = time.Time{}, f
	if !f.Quick {
		note.attempts++
		wait := w.backoff(note.attempts)
		note.after = w.Env.Now().Add(wait)
		w.Attempts.Soon(wait)
	}
	w.retry[id] = note
	return news
}

// NewlyChosen reports a plan of which approvers have settled obstacles since it was tried last: it is tried at once.
func (w Writer) NewlyChosen(p protocol.Plan) bool {
	now := fmt.Sprint(p.Grant.Choices)
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.chosen[p.ID]
	w.chosen[p.ID] = now
	return was != now && len(p.Grant.Choices) > 0
}

// Forget forgets what is noted of plans that the hub does not name any more, superseded or rejected before they began:
// nobody else would.
func (w Writer) Forget() {
	now := make([]string, len(w.Snapshot.Wanted.Plans))
	for i, p := range w.Snapshot.Wanted.Plans {
		now[i] = p.ID
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range w.plans[w.Namespace] {
		if !slices.Contains(now, id) {
			delete(w.retry, id)
			delete(w.unsafe, id)
			delete(w.chosen, id)
		}
	}
	if len(now) == 0 {
		delete(w.plans, w.Namespace)
		return
	}
	w.plans[w.Namespace] = now
}

// HoldForCRDs notes whether a plan waits for definitions to change.
func (w Writer) HoldForCRDs(plan string, waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if waits {
		w.unsafe[plan] = w.Namespace
		return
	}
	delete(w.unsafe, plan)
}

// Recheck has plans that wait for definitions tried again without regard to their back-off, and returns their
// namespaces.
func (s *Store) Recheck() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.unsafe
	s.unsafe = map[string]string{} // who still waits says so when it is tried
	for plan := range waiting {
		if note, ok := s.retry[plan]; ok {
			note.after = time.Time{}
			s.retry[plan] = note
		}
	}
	return slices.Compact(slices.Sorted(maps.Values(waiting)))
}

// backoff is the wait after the n-th failure in a row.
func (s *Store) backoff(n int) time.Duration {
	d := s.Backoff
	for range n - 1 {
		if d *= 2; d >= s.Longest {
			return s.Longest
		}
	}
	return d
}

// Begun forgets the back-off of a plan that has a step log by now.
func (s *Store) Begun(plan string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.retry, plan)
}
