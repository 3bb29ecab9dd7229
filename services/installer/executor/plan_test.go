package executor

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// TestAGrantIsAskedBeforeTheFirstStep: a grant that ended while content was fetched and the base was checked begins
// nothing; what has begun goes on whatever its grant says (D6, R-IP-11).
func TestAGrantIsAskedBeforeTheFirstStep(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 9, 20, 0, 0, 0, time.UTC)
	written := errors.New("the log is written")
	env := &scope.Env{Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }, Client: &kube.Epoch{}, Points: func(string) error { return written }}
	w := &work{Scope: scope.New(env, protocol.ScopePlans{}, nil, time.Hour)}
	for name, c := range map[string]struct {
		expires time.Time
		begun   bool
		begins  bool
	}{
		"in time":              {now.Add(time.Second), false, true},
		"too late":             {now, false, false},
		"too late, but it has": {now.Add(-time.Hour), true, true},
	} {
		r := scope.Plan{Plan: protocol.Plan{ID: "p", Grant: protocol.Grant{Expires: c.expires}}}
		x := &kube.Execution{}
		x.Status.Begun = c.begun
		f, err := w.steps(t.Context(), r, x)
		switch {
		case c.begins && (f != nil || !errors.Is(err, written)):
			t.Errorf("%s: it does not begin: %+v, %v", name, f, err)
		case !c.begins && (err != nil || f == nil || f.Reason != failure.ReasonExpired || x.Status.Begun):
			t.Errorf("%s: it begins: %+v, %v", name, f, err)
		}
	}
}

// TestNotesOfAPlanEndWithIt: back-off, choices and waits for definitions of plans that never began are forgotten when
// the hub names these plans no more; those of other plans and namespaces stay (D7).
func TestNotesOfAPlanEndWithIt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 9, 20, 0, 0, 0, time.UTC)
	env := &scope.Env{Now: func() time.Time { return now }}
	s := &session{
		Executor: &Executor{cfg: Config{Now: func() time.Time { return now }, Timing: Timing{Backoff: time.Second, Longest: time.Minute}}},
		retry:    map[string]retryNote{}, unsafe: map[string]string{}, chosen: map[string]string{}, noted: map[string][]string{},
	}
	look := func(namespace string, ids ...string) {
		w := &work{session: s, Scope: scope.New(env, protocol.ScopePlans{Scope: protocol.Scope{Namespace: namespace}}, nil, time.Hour)}
		for _, id := range ids {
			w.Wanted.Plans = append(w.Wanted.Plans, protocol.Plan{ID: id})
		}
		w.release()
		for _, p := range w.Wanted.Plans { // each waits, and for a definition
			w.newlyChosen(p)
			w.noteRetry(p.ID, failure.Failure{Class: failure.Transient, Reason: failure.ReasonForbidden})
			w.holdForCRDs(p.ID, true)
		}
	}
	noted := func(want ...string) {
		t.Helper()
		for what, got := range map[string][]string{
			"back-off": slices.Sorted(maps.Keys(s.retry)), "wait": slices.Sorted(maps.Keys(s.unsafe)), "choices": slices.Sorted(maps.Keys(s.chosen)),
		} {
			if !slices.Equal(got, want) {
				t.Errorf("%s of %v, want %v", what, got, want)
			}
		}
	}
	look("ports", "p1", "p2")
	look("quays", "q1")
	look("ports", "p1", "p2")
	noted("p1", "p2", "q1")
	if n := s.retry["p1"].attempts; n != 2 {
		t.Errorf("a plan that is still named was tried %d times, want 2", n)
	}
	look("ports", "p2") // p1 was superseded
	noted("p2", "q1")
	look("ports")
	noted("q1")
	look("quays")
	noted()
	if len(s.noted) != 0 {
		t.Errorf("namespaces without plans are kept: %v", s.noted)
	}
}
