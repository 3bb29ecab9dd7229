package deferred

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

const group = "monitoring.coreos.com"

func monitor(namespace string) *kube.Step {
	return &kube.Step{
		Group: group, Kind: "ServiceMonitor", Namespace: namespace, Name: "tide", State: kube.StepLeft,
		Operator: "tide.v1", Warnings: []string{"waits"},
	}
}

// TestObjectOf: a step that was left is about one object of its bundle, if that has it still.
func TestObjectOf(t *testing.T) {
	t.Parallel()
	object := func(version, kind, namespace string) render.Object {
		return render.Object{
			GVK: schema.GroupVersionKind{
				Group:   group,
				Version: version,
				Kind:    kind,
			},
			Namespace: namespace,
			Name:      "tide",
		}
	}
	all := []render.Object{
		object("v1", "PrometheusRule", "ports"), object("v1", "ServiceMonitor", "quays"),
		object("v2", "ServiceMonitor", "ports"),
	}
	if o := objectOf(monitor("ports"), all); o != &all[2] {
		t.Errorf("got %v", o)
	}
	if o := objectOf(monitor("piers"), all); o != nil {
		t.Errorf("its bundle has it no more, and yet %v", o)
	}
}

// TestCarriedOut: a step that was left is done in the epoch of who did it, and warns of nothing.
func TestCarriedOut(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 9, 22, 0, 0, 0, time.FixedZone("", 7200))
	s := monitor("ports")
	carriedOut(s, 7, at)
	if s.State != kube.StepDone || s.Epoch != 7 || !s.Time.Equal(at) || s.Time.Location() != time.UTC ||
		s.Warnings != nil {
		t.Errorf("got %+v", s)
	}
}

// TestEstablished: a kind may be served once its definition is established.
func TestEstablished(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]bool{"True": true, "False": false} {
		d := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True"},
			map[string]any{"type": "Established", "status": status},
		}}}}
		if got := established(d); got != want {
			t.Errorf("Established is %s: got %v", status, got)
		}
	}
	if established(&unstructured.Unstructured{Object: map[string]any{}}) {
		t.Error("nobody has said that it is established")
	}
}

// TestReconcile: a namespace waits for the groups of what its plans left, and for nothing where nobody knows whom its
// operators serve. An operator that failed a moment ago is waited for, and not asked about.
func TestReconcile(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 9, 20, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		read  func(*scope.Scope)
		asked bool // Await was called
		want  []string
	}{
		"left":                     {func(*scope.Scope) {}, true, []string{group}},
		"nothing was left":         {func(s *scope.Scope) { s.Snapshot.Executions = nil }, true, nil},
		"its APIs are another's":   {func(s *scope.Scope) { halt(s.Snapshot.Installed.Operators[0]) }, true, nil},
		"no group":                 {func(s *scope.Scope) { s.Found.Group.One = false }, false, nil},
		"the record has gone back": {func(s *scope.Scope) { s.Snapshot.RecordBehind = true }, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := &scope.Env{
				Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
				Pace: pace.New(time.Minute, time.Hour), Stop: func(string) *failure.Failure { return nil },
			}
			sc := scope.New(env, protocol.ScopePlans{Scope: protocol.Scope{Namespace: "ports"}}, nil, time.Hour)
			m := &scope.Operator{Object: &unstructured.Unstructured{Object: map[string]any{}}, Plan: "p"}
			m.Object.SetName("tide.v1")
			m.Status.Phase = csv.PhaseSucceeded
			sc.Snapshot.Installed = scope.InstalledOf([]*scope.Operator{m}, nil)
			sc.Snapshot.Executions = scope.Executions{
				{
					Spec: kube.ExecutionSpec{Plan: "p"},
					Status: kube.ExecutionStatus{
						Begun: true,
						Phase: protocol.PlanFinished,
						Steps: []kube.Step{*monitor("ports")},
					},
				},
			}
			sc.Found.Group.One = true
			env.Pace.Failed(sc.Attempts.Item("tide.v1", scope.PartLate), "no", now)
			c.read(sc)
			asked, got := false, []string(nil)
			s := &Stage{Await: func(_ string, groups []string) { asked, got = true, groups }}
			if _, err := s.Reconcile(t.Context(), sc); err != nil {
				t.Fatal(err)
			}
			if asked != c.asked || !slices.Equal(got, c.want) {
				t.Errorf("waits for %v (%v), want %v (%v)", got, asked, c.want, c.asked)
			}
		})
	}
}

// halt has the phase of an operator say that its APIs are another group's.
func halt(m *scope.Operator) {
	m.Status.Phase, m.Status.Reason = csv.PhaseFailed, operatorgroup.ReasonOwnerConflict
}
