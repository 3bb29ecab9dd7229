package rerender_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/renderlimit"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/objects"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/rerender"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// contents counts how often bundles are asked for; none is to be had.
type contents struct{ asked int }

func (c *contents) Get(context.Context, digest.Digest) (bundle.Content, error) {
	c.asked++
	return bundle.Content{}, errs.New(errs.Unavailable, "the hub is away")
}

// TestReconcile: R-IP-23: an operator at rest is rendered anew where the inputs of its overlays changed, and not
// otherwise. One whose bundle is not to be had stays as it is and is tried again.
func TestReconcile(t *testing.T) {
	t.Parallel()
	const pause = 7 * time.Second
	for name, c := range map[string]struct {
		phase    csv.Phase
		group    bool
		stopped  bool
		rendered bool // under the inputs of now
		gone     bool // the rules that it was rendered by
		asked    int
	}{
		"other inputs":                 {phase: csv.PhaseSucceeded, group: true, asked: 1},
		"rules that are not here":      {phase: csv.PhaseSucceeded, group: true, gone: true},
		"the same inputs":              {phase: csv.PhaseSucceeded, group: true, rendered: true},
		"it is on its way":             {phase: csv.PhasePending, group: true},
		"the stop switch":              {phase: csv.PhaseSucceeded, group: true, stopped: true},
		"no group says whom it serves": {phase: csv.PhaseSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := &contents{}
			env := &scope.Env{
				Log: slog.New(
					slog.DiscardHandler,
				),
				Now:       time.Now,
				Pace:      pace.New(time.Second, time.Minute),
				Pause:     pause,
				Contents:  from,
				Rendering: render.Known,
				Rendered:  scope.NewRenderedStates(),
				Stop: func(string) *failure.Failure {
					if c.stopped {
						return &failure.Failure{Reason: failure.ReasonStopped}
					}
					return nil
				},
			}
			sc := scope.New(env, protocol.ScopePlans{Scope: protocol.Scope{Namespace: "ports"}},
				renderlimit.New(1).Slot(), time.Hour)
			m := &scope.Operator{
				Object: &unstructured.Unstructured{
					Object: map[string]any{},
				},
				Plan:   "p",
				Status: csv.Status{Phase: c.phase},
			}
			m.Object.SetName("tide.v1")
			m.Object.SetAnnotations(map[string]string{scope.AnnotationRendering: render.Semantics})
			if c.gone {
				m.Object.SetAnnotations(map[string]string{scope.AnnotationRendering: "chandler.render.v0"})
			}
			sc.Snapshot.Installed = scope.InstalledOf([]*scope.Operator{m}, nil)
			sc.Snapshot.Executions = scope.Executions{{
				Spec:   kube.ExecutionSpec{Plan: "p", Operators: []string{"tide.v1"}},
				Status: kube.ExecutionStatus{Begun: true, Phase: protocol.PlanFinished},
			}}
			sc.Found.Group.One = c.group
			none := func(*scope.Scope) overlay.Set { return nil }
			if c.rendered {
				target, _ := sc.Snapshot.Target(m)
				inputs, err := none(sc).Inputs(target)
				if err != nil {
					t.Fatal(err)
				}
				sc.SetRenderedState(m, scope.RenderedState{Inputs: inputs})
			}
			s := &rerender.Stage{Objects: objects.New(none, nil, nil)}
			if _, err := s.Reconcile(t.Context(), sc); err != nil {
				t.Fatal(err)
			}
			if from.asked != c.asked {
				t.Errorf("bundles were asked for %d times, want %d", from.asked, c.asked)
			}
			if again := sc.Attempts.Again(); (again == pause) != (c.asked > 0) {
				t.Errorf("reconciled again after %s", again)
			}
		})
	}
}
