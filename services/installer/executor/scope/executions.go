package scope

import (
	"fmt"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// Executions are the step logs of the plans and removals of the namespace.
type Executions []*kube.Execution

// Of is the step log of a plan or removal, nil where there is none.
func (e Executions) Of(plan string) *kube.Execution {
	i := slices.IndexFunc(e, func(x *kube.Execution) bool { return x.Spec.Plan == plan })
	if i < 0 {
		return nil
	}
	return e[i]
}

// UnderWay is the execution of a plan that brings a ClusterServiceVersion, has begun and not ended; nil without one.
// The log alone says so: a plan that cannot be read now is under way as well.
func (e Executions) UnderWay(name string) *kube.Execution {
	i := slices.IndexFunc(e, func(x *kube.Execution) bool {
		return x.Status.Begun && !Ended(x) && slices.Contains(x.Spec.Operators, name)
	})
	if i < 0 {
		return nil
	}
	return e[i]
}

// Planned reports a ClusterServiceVersion whose plan is under way: it may be about to be made.
func (e Executions) Planned(name string) bool { return e.UnderWay(name) != nil }

// Removing is the removal of an operator that has begun and not ended, nil without one.
func (e Executions) Removing(csvName string) *kube.Execution {
	i := slices.IndexFunc(e, func(x *kube.Execution) bool {
		return x.Spec.Removal != nil && x.Spec.Removal.CSV == csvName && x.Status.Begun && !Ended(x)
	})
	if i < 0 {
		return nil
	}
	return e[i]
}

// Leaving reports an operator that is being uninstalled: nobody repairs it any more, or gives it anything. While its
// custom resources go it still runs, since it ends their finalizers.
func (e Executions) Leaving(csvName string) bool {
	x := e.Removing(csvName)
	return x != nil && !slices.ContainsFunc(x.Status.Steps, func(s kube.Step) bool {
		return s.Action == protocol.RemovalCustomResources && s.State != kube.StepDone
	})
}

// HasFinalReport reports one that was replaced, and not deleted by somebody.
func (e Executions) HasFinalReport(i protocol.Installed) bool {
	return slices.ContainsFunc(e, func(x *kube.Execution) bool {
		return slices.ContainsFunc(x.Status.Removed, func(c protocol.CSVReport) bool {
			return c.Name == i.CSV &&
				c.Plan == i.Plan
		})
	})
}

// Ended reports a plan or removal that has ended.
func Ended(x *kube.Execution) bool {
	return slices.Contains([]string{protocol.PlanFinished, protocol.PlanFailed, protocol.RemovalRefused},
		x.Status.Phase)
}

// DeferredSteps are the steps of an operator's plan, which has ended, that were left until its Deployments answer.
func (e Executions) DeferredSteps(m *Operator) []*kube.Step { return e.leftSteps(m, true) }

// LateSteps are the steps of an operator's plan, which has ended, that were left since their kinds were not served.
func (e Executions) LateSteps(m *Operator) []*kube.Step { return e.leftSteps(m, false) }

// leftSteps are the steps that the plan of an operator left: those that have the API server call it, or the others.
func (e Executions) leftSteps(m *Operator, callers bool) []*kube.Step {
	x := e.Of(m.Plan)
	if x == nil || !Ended(x) {
		return nil
	}
	var out []*kube.Step
	for n := range x.Status.Steps {
		s := &x.Status.Steps[n]
		calls := s.Group == render.GVKAPIService.Group || s.Group == render.GVKValidatingWebhook.Group
		if s.State == kube.StepLeft && s.Operator == m.Name() && calls == callers {
			out = append(out, s)
		}
	}
	return out
}

// WaitingComponents are the objects of an operator that are left out, with what they wait for.
func (e Executions) WaitingComponents(m *Operator) []protocol.Component {
	var out []protocol.Component
	for _, s := range e.LateSteps(m) {
		out = append(out, protocol.Component{
			ObjectRef: protocol.ObjectRef{Group: s.Group, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name},
			Status:    protocol.ComponentWaiting, Message: WaitsFor(s.Kind, s.Group),
		})
	}
	return out
}

// ConditionsOf are what is out of the ordinary with an operator whatever its phase.
func (e Executions) ConditionsOf(m *Operator) []protocol.Condition {
	var since time.Time
	for _, s := range e.LateSteps(m) {
		if since.IsZero() || s.Time.Before(since) {
			since = s.Time
		}
	}
	return csv.Conditions(e.WaitingComponents(m), since)
}

// WaitsFor says what an object that is left out waits for.
func WaitsFor(kind, group string) string { return fmt.Sprintf("waits for %s (%s)", kind, group) }

// WithWaiting says of the components of an operator which are left out.
func WithWaiting(have, waiting []protocol.Component) []protocol.Component {
	for _, l := range waiting {
		i := slices.IndexFunc(have, func(c protocol.Component) bool {
			return l.Group == c.Group && l.Kind == c.Kind && l.Namespace == c.Namespace && l.Name == c.Name
		})
		if i < 0 {
			have = append(have, l)
			continue
		}
		have[i].Status, have[i].Message = l.Status, l.Message
	}
	return have
}
