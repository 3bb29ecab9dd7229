package plan

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// reasonNotServing is why a plan waits before the steps that have the API server call its operator.
const reasonNotServing = "DeploymentNotReady"

// pass asks the gate before a batch of steps, once for each ClusterServiceVersion. wait says that the phases of the
// operators are to be reconciled first.
func (w worker) pass(ctx context.Context, r *run, o render.Object) (wait bool, f *failure.Failure, err error) {
	gate := scope.SortOf(o) + o.Resolving
	if r.passed[gate] && !render.Calls(o.GVK) { // what is called is asked of each batch
		return false, nil, nil
	}
	if needsPhase(o) && !r.reconciled {
		r.reconciled, r.waits = true, "the phase of "+o.Resolving
		return true, nil, nil
	}
	r.reconciled = false
	r.passed[gate] = true
	switch {
	case o.GVK == kube.GVKCRD:
		t, err := r.Target(r.log, o.Resolving)
		if err != nil {
			return false, nil, err
		}
		f, err = w.Serving.CertifyConversion(ctx, w.Scope, t)
		return false, f, err
	case o.GVK == kube.GVKDeployment:
		f, err = w.passDeployments(ctx, r, o.Resolving)
	case render.Calls(o.GVK):
		f, err = w.passCallers(ctx, r, o.Resolving)
	}
	return false, f, err
}

// needsPhase reports steps that depend on the phase of their operator.
func needsPhase(o render.Object) bool { return o.GVK == kube.GVKDeployment || render.Calls(o.GVK) }

// passDeployments holds the Deployments back until the ClusterServiceVersion's requirements are met (R-CSV-20) and the
// one that it replaces has stepped back (R-CSV-51).
func (w worker) passDeployments(ctx context.Context, r *run, name string) (*failure.Failure, error) {
	m := w.Snapshot.Installed.Operator(name)
	if m == nil {
		return w.lost(ctx, name)
	}
	w.Await(w.Namespace, !scope.MayDeploy(m.Status.Phase))
	if !scope.MayDeploy(m.Status.Phase) {
		return notYet(m), nil
	}
	t, err := r.Target(r.log, name)
	if err != nil {
		return nil, err
	}
	_, f, err := w.Serving.Certify(ctx, w.Scope, t)
	overlay.Expect(w.Scope, w.Objects.Overlays(w.Scope), r.Plan) // an overlay may have changed
	return f, err
}

// notYet is why the Deployments of an operator are not written in its phase.
func notYet(m *scope.Operator) *failure.Failure {
	f := &failure.Failure{
		Class: failure.Transient, Reason: string(m.Status.Reason), Message: m.Status.Message,
		Quick: true,
	}
	if m.Status.Phase == csv.PhaseFailed { // nothing but a change by somebody ends it
		f.Class = failure.Conflict
	}
	if m.Status.Phase == csv.PhasePending && m.Status.Reason == csv.ReasonRequirementsUnknown {
		f.Reason, f.Message = failure.ReasonPredecessor, m.Name()+
			" waits for the ClusterServiceVersion that it replaces"
	}
	return f
}

// passCallers holds back what has the API server call an operator until its Deployments answer: a webhook that fails
// closed would refuse what it is about, at an upgrade even what the running version allows. Where they do not become
// ready in the time for an install, the plan ends without, so that another version can follow; the steps that are left
// are carried out when the operator has recovered (package deferred).
func (w worker) passCallers(ctx context.Context, r *run, name string) (*failure.Failure, error) {
	m := w.Snapshot.Installed.Operator(name)
	if m == nil {
		return w.lost(ctx, name)
	}
	deployments, err := w.ReadDeployments(ctx)
	if err != nil {
		return nil, err
	}
	c := w.Running(m, deployments)
	switch {
	case c.Healthy:
		return nil, nil //nolint:nilnil // the way is free
	case m.Status.Phase != csv.PhaseFailed:
		return &failure.Failure{Class: failure.Transient, Reason: reasonNotServing, Message: c.Message, Quick: true},
			nil
	}
	for n := range r.log.Status.Steps {
		if s := &r.log.Status.Steps[n]; s.State == kube.StepTaken && r.Objects[n].Resolving == name &&
			render.Calls(r.Objects[n].GVK) {
			s.State, s.Operator, s.Warnings = kube.StepLeft, name,
				[]string{"not written: what it has the API server call does not answer (" + c.Message +
					"); it is written when that does"}
		}
	}
	return nil, nil //nolint:nilnil // it had its time
}

// lost is what becomes of a plan whose operator is not followed any more: one that is gone was removed by somebody, and
// what is left of the plan cannot bring it back; another plan can.
func (w worker) lost(ctx context.Context, name string) (*failure.Failure, error) {
	found, err := w.Env.Client.GetServed(ctx, kube.GVKInstalledOperator, w.Namespace, name)
	switch {
	case err != nil:
		return nil, err
	case found != nil:
		return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonBase, Message: "ClusterServiceVersion " +
			name + " was changed and cannot be followed any more"}, nil
	}
	return &failure.Failure{Class: failure.Permanent, Reason: failure.ReasonBase, Message: "ClusterServiceVersion " +
		name + " was removed while its plan ran"}, nil
}
