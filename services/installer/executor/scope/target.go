package scope

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// RenderTarget is the operator whose objects are rendered, decorated and written.
type RenderTarget struct {
	Plan, Component, TraceParent string
	Bundle                       events.PlannedBundle
	Rendering                    string // rules by which its objects are rendered
	CSV                          bundle.CSV
	Config                       json.RawMessage       // of its subscription
	UID                          string                // of its InstalledOperator; "" while that is not written
	Log                          *kube.ExecutionStatus // of its plan, which has ended; nil where that does not matter
}

// Target is a plan's view of one of its operators.
func (r Plan) Target(x *kube.Execution, name string) (RenderTarget, error) {
	i := slices.IndexFunc(r.Document.Bundles, func(b events.PlannedBundle) bool { return b.CSV == name })
	if i < 0 {
		return RenderTarget{}, fmt.Errorf("plan %s has no bundle %s", r.Name, name)
	}
	s := RenderTarget{
		Plan: r.ID, Component: r.Component, TraceParent: r.TraceParent, Bundle: r.Document.Bundles[i],
		CSV: r.CSVs[name], Config: r.Configs[name], Rendering: r.Document.Rendering,
	}
	if x == nil {
		return s, nil
	}
	for _, step := range x.Status.Steps {
		if step.Kind == kube.GVKCSV.Kind && step.Name == name && step.State == kube.StepDone {
			s.UID = step.UID
		}
	}
	return s, nil
}

// Wrote reports an object that the operator's plan brought into the cluster. What a plan did not come to write, because
// it failed or has yet to, nothing else writes: webhooks with nobody behind them, or what its account may not write.
func (s RenderTarget) Wrote(o render.Object) bool {
	return s.Log == nil || s.Log.Wrote(o.GVK.Group, o.GVK.Kind, o.Namespace, o.Name)
}

// Target is the view of an operator at rest, as its plan left it; false while that is under way or forgotten.
func (s *Snapshot) Target(m *Operator) (RenderTarget, bool) {
	x := s.Executions.Of(m.Plan)
	if x == nil || !Ended(x) || m.Unverified {
		return RenderTarget{}, false
	}
	a := m.Object.GetAnnotations()
	b := events.PlannedBundle{
		CSV: m.Name(), Package: a[AnnotationPackage], Version: m.CSV.Spec.Version,
		Content: a[AnnotationContent], Replaces: m.CSV.Spec.Replaces, Reason: a[AnnotationReason],
	}
	return RenderTarget{
		Plan: m.Plan, Component: x.Spec.Component, TraceParent: a[AnnotationTraceParent], Bundle: b, CSV: m.CSV,
		Config: s.configNow(m.Name(), x.Spec.Configs[m.Name()]), UID: string(m.Object.GetUID()), Log: &x.Status,
		Rendering: a[AnnotationRendering],
	}, true
}

// TargetAtRest is Target of an operator that no plan is about to change.
func (s *Snapshot) TargetAtRest(m *Operator) (RenderTarget, bool) {
	t, ok := s.Target(m)
	return t, ok && (s.AtRest(m) || s.LacksRequirements(m))
}

// configNow is what the subscription of an operator configures now, else what its plan was made with (R-SUB-14).
func (s *Snapshot) configNow(name string, planned json.RawMessage) json.RawMessage {
	i := slices.IndexFunc(s.Wanted.Installed, func(i protocol.Installed) bool { return i.CSV == name })
	if i < 0 || len(s.Wanted.Installed[i].Config) == 0 {
		return planned
	}
	return s.Wanted.Installed[i].Config
}
