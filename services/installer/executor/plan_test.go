package executor

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// TestAGrantIsAskedBeforeTheFirstStep: a grant that ended while content was fetched and the base was checked begins
// nothing; what has begun goes on whatever its grant says (D6, R-IP-11).
func TestAGrantIsAskedBeforeTheFirstStep(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 9, 20, 0, 0, 0, time.UTC)
	written := errors.New("the log is written")
	w := &work{session: &session{Executor: &Executor{cfg: Config{
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
	}, points: func(string) error { return written }}}}
	for name, c := range map[string]struct {
		expires time.Time
		begun   bool
		begins  bool
	}{
		"in time":              {now.Add(time.Second), false, true},
		"too late":             {now, false, false},
		"too late, but it has": {now.Add(-time.Hour), true, true},
	} {
		r := ready{Plan: protocol.Plan{ID: "p", Grant: protocol.Grant{Expires: c.expires}}}
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
	s := &session{
		Executor: &Executor{cfg: Config{Now: func() time.Time { return now }, Timing: Timing{Backoff: time.Second, Longest: time.Minute}}},
		retry:    map[string]retryNote{}, unsafe: map[string]string{}, chosen: map[string]string{}, noted: map[string][]string{},
	}
	look := func(namespace string, ids ...string) {
		w := &work{session: s, ns: namespace, again: time.Hour}
		for _, id := range ids {
			w.plans.Plans = append(w.plans.Plans, protocol.Plan{ID: id})
		}
		w.release()
		for _, p := range w.plans.Plans { // each waits, and for a definition
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

// TestAPlanIsUnderWayByItsLog: whether a plan is under way says its log alone. One that is not opened freezes its
// operators, and no removal begins beside it unless it is stuck (R-IP-11, R-CSV-50, R-UNI-1).
func TestAPlanIsUnderWayByItsLog(t *testing.T) {
	t.Parallel()
	two := &member{object: &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "tide.v2"}}}, plan: "p"}
	left := func(gvk schema.GroupVersionKind) []kube.Step {
		return []kube.Step{{State: kube.StepLeft, Operator: "tide.v2", Group: gvk.Group, Kind: gvk.Kind}}
	}
	monitor := schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}
	for name, c := range map[string]struct {
		status                          kube.ExecutionStatus
		listed, opened                  bool
		planned, frozen, toCall, aborts bool
	}{
		"opened, not begun":  {kube.ExecutionStatus{}, true, true, false, false, false, false},
		"begun":              {kube.ExecutionStatus{Begun: true, Phase: protocol.PlanStarted}, true, true, true, false, true, false},
		"begun, not opened":  {kube.ExecutionStatus{Begun: true, Phase: protocol.PlanStarted}, true, false, true, true, false, false},
		"begun, withheld":    {kube.ExecutionStatus{Begun: true, Phase: protocol.PlanStarted}, false, false, true, true, false, true},
		"begun and blocked":  {kube.ExecutionStatus{Begun: true, Phase: protocol.PlanBlocked}, true, true, true, false, true, true},
		"finished":           {kube.ExecutionStatus{Begun: true, Phase: protocol.PlanFinished}, true, false, false, false, false, false},
		"failed":             {kube.ExecutionStatus{Begun: true, Phase: protocol.PlanFailed}, true, false, false, false, false, false},
		"finished, one left": {kube.ExecutionStatus{Begun: true, Phase: protocol.PlanFinished, Steps: left(render.GVKValidatingWebhook)}, true, false, false, false, true, false},
		"one for its kind":   {kube.ExecutionStatus{Begun: true, Phase: protocol.PlanFinished, Steps: left(monitor)}, true, false, false, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := &kube.Execution{Spec: kube.ExecutionSpec{Plan: "p", Operators: []string{"tide.v2"}}, Status: c.status}
			w := &work{executions: []*kube.Execution{x}, opened: map[string]ready{}}
			if c.listed {
				w.plans.Plans = []protocol.Plan{{ID: "p"}}
			}
			if c.opened {
				w.opened["p"] = ready{objects: []render.Object{{GVK: render.GVKValidatingWebhook, Name: "hook", Resolving: "tide.v2"}}}
			}
			if got := w.planned("tide.v2"); got != c.planned || w.planned("tide.v1") {
				t.Errorf("planned: %v, want %v; of another one %v", got, c.planned, w.planned("tide.v1"))
			}
			if got := w.frozen(two); got != c.frozen {
				t.Errorf("frozen: %v, want %v", got, c.frozen)
			}
			if got := w.toCall(two); got != c.toCall {
				t.Errorf("has yet to tell the API server: %v, want %v", got, c.toCall)
			}
			refused := w.busy(protocol.Removal{CSV: "tide.v2"}) != nil
			if want := c.planned && !c.aborts; refused != want {
				t.Errorf("its removal waits: %v, want %v", refused, want)
			}
		})
	}
}
