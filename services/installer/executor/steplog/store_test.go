package steplog

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// TestNotesOfAPlanEndWithIt: back-off, choices and waits for definitions of plans that never began are forgotten when
// the hub names these plans no more; those of other plans and namespaces stay (D7).
func TestNotesOfAPlanEndWithIt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 9, 20, 0, 0, 0, time.UTC)
	env := &scope.Env{Now: func() time.Time { return now }}
	s := New(Config{Backoff: time.Second, Longest: time.Minute})
	reconcile := func(namespace string, ids ...string) {
		w := s.In(scope.New(env, protocol.ScopePlans{Scope: protocol.Scope{Namespace: namespace}}, nil, time.Hour))
		for _, id := range ids {
			w.Snapshot.Wanted.Plans = append(w.Snapshot.Wanted.Plans, protocol.Plan{ID: id})
		}
		w.Forget()
		for _, p := range w.Snapshot.Wanted.Plans { // each waits, and for a definition
			w.NewlyChosen(p)
			w.noteRetry(p.ID, failure.Failure{Class: failure.Transient, Reason: failure.ReasonForbidden})
			w.HoldForCRDs(p.ID, true)
		}
	}
	noted := func(want ...string) {
		t.Helper()
		for what, got := range map[string][]string{
			"back-off": slices.Sorted(maps.Keys(s.retry)), "wait": slices.Sorted(maps.Keys(s.unsafe)),
			"choices": slices.Sorted(maps.Keys(s.chosen)),
		} {
			if !slices.Equal(got, want) {
				t.Errorf("%s of %v, want %v", what, got, want)
			}
		}
	}
	reconcile("ports", "p1", "p2")
	reconcile("quays", "q1")
	reconcile("ports", "p1", "p2")
	noted("p1", "p2", "q1")
	if n := s.retry["p1"].attempts; n != 2 {
		t.Errorf("a plan that is still named was tried %d times, want 2", n)
	}
	reconcile("ports", "p2") // p1 was superseded
	noted("p2", "q1")
	reconcile("ports")
	noted("q1")
	reconcile("quays")
	noted()
	if len(s.plans) != 0 {
		t.Errorf("namespaces without plans are kept: %v", s.plans)
	}
}
