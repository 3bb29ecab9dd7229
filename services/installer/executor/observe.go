package executor

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/condition"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/facts"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

const (
	// grantLag is how long after an operator was made its rights may not be known yet to the API server's
	// authorizer, which follows Roles and bindings by a watch; grantFirst is the first of the waits, which double.
	grantLag   = 10 * time.Second
	grantFirst = 50 * time.Millisecond
	grantLast  = 400 * time.Millisecond
)

// observe takes everything that decides the next phase of a ClusterServiceVersion.
func (w *work) observe(ctx context.Context, m *scope.Operator, deployments []appsv1.Deployment) (csv.Observation, error) {
	_, known := m.Object.GetAnnotations()[render.AnnotationTargetNamespaces]
	own := w.OwnDeployments(m, deployments)
	o := csv.Observation{
		Now: w.Now(), OperatorGroups: w.Wanted.OperatorGroups, TargetsKnown: known,
		FailForward:   w.Wanted.OperatorGroup.Spec.UpgradeStrategy == scope.FailForward || w.Chain.RolledBack(m.Name()),
		DuplicateMode: render.DuplicateMode(m.CSV.Spec.InstallModes),
		Components:    csv.Observe(m.CSV.Spec.Install.Spec.Deployments, own, w.whyUnready(ctx, m, own)),
		Predecessor:   w.neighbour(w.Chain.Predecessor(m.Name())),
		Successor:     w.replacement(m),
		OwnerConflict: w.ownerConflict(m),
		Intersection:  csv.Reason(w.Live.Group.Verdicts[m.Name()].Reason), IntersectionMessage: w.Live.Group.Verdicts[m.Name()].Message,
	}
	if err := render.CheckInstallModes(m.CSV.Spec.InstallModes, w.Namespace, w.Targets()); err != nil {
		o.ModesError = err.Error()
	}
	var err error
	if o.Serving, err = w.servingState(ctx, m, deployments); err != nil {
		return o, err
	}
	if s := m.CSV.Spec.Install.Strategy; s != bundle.StrategyDeployment {
		o.StrategyError = "install strategy " + s + " is unknown"
	}
	if o.InstallError, o.InstallForbidden, err = w.installTrouble(ctx, m); err != nil {
		return o, err
	}
	if !needsRequirements(m.Status.Phase) {
		o.Requirements = m.Status.RequirementStatus
		return o, nil
	}
	rows, err := w.requirements(ctx, m)
	if err != nil {
		return o, err
	}
	o.Requirements = rows
	w.setWaiting(w.Namespace, len(csv.Unmet(rows)) > 0)
	if len(csv.Unmet(rows)) > 0 {
		w.Soon(w.Pause) // what is missing may be nobody's whom we watch
	}
	return o, nil
}

// servingState is the part of an observation that is about webhooks and API services.
func (w *work) servingState(ctx context.Context, m *scope.Operator, deployments []appsv1.Deployment) (csv.Serving, error) {
	var out csv.Serving
	if m.Status.Phase == csv.PhaseInstalling || m.Status.Phase == csv.PhaseFailed {
		_, left, known, err := w.unconverted(ctx, m, deployments)
		if err != nil {
			return out, err
		}
		if len(left) > 0 || !known { // whom it replaces converts until then, and must not go
			out.Waiting = "its CRDs are not converted by it yet"
		}
	}
	if !scope.Serves(m.CSV) {
		return out, nil
	}
	if err := render.CheckServing(m.CSV); err != nil {
		out.InvalidWebhook = err.Error()
		return out, nil //nolint:nilerr // the error is what was asked for
	}
	for _, c := range w.Called(m.CSV) {
		k := w.Live.Certificates[c.Secret]
		out.RotationDue = out.RotationDue || k.Gone || k.Problem(w.Now(), c.Hosts) != "" || k.Due(w.Now())
	}
	if w.ToCall(m) {
		out.Waiting = "webhooks and API services are not in place yet"
		return out, nil
	}
	if m.Status.Phase == csv.PhaseInstalling || m.Status.Phase == csv.PhaseSucceeded || m.Status.Phase == csv.PhaseFailed {
		q := certs.APIs{Client: w.Client, Namespace: w.Namespace, Certificates: w.Live.Certificates, Now: w.Now(), Running: w.Running(m, deployments).Healthy}
		if err := q.Judge(ctx, m.CSV, &out); err != nil {
			return out, err
		}
		if out.Waiting != "" {
			w.Soon(w.Pause) // nothing tells when the API server has asked again
		}
	}
	return out, nil
}

// needsRequirements reports the phases whose rows ask for them (R-CSV §6.3).
func needsRequirements(p csv.Phase) bool {
	return p == csv.PhasePending || p == csv.PhaseSucceeded || p == csv.PhaseFailed
}

// installTrouble says why the Deployments of a member cannot be created: what its plan failed for, or that the service
// account that it is carried out under may not do it. Of the latter the API server is asked at each look, so that a
// right that is granted is noticed (R-CSV-11).
func (w *work) installTrouble(ctx context.Context, m *scope.Operator) (message string, forbidden bool, err error) {
	x := w.Execution(m.Plan)
	if x == nil || x.Status.Message == "" || m.Status.Phase != csv.PhaseInstallReady && m.Status.Phase != csv.PhaseFailed || !stuckAtDeployment(m, x) {
		return "", false, nil
	}
	if x.Status.Phase == protocol.PlanFailed {
		return x.Status.Message, false, nil
	}
	if x.Spec.Account == "" || x.Status.Reason != failure.ReasonForbidden && m.Status.Reason != csv.ReasonInstallComponentFailedNoRetry {
		return "", false, nil
	}
	account, err := kube.ParseAccount(x.Spec.Account)
	if err != nil {
		return "", false, err
	}
	for _, verb := range []string{"create", "patch"} {
		what := authorizationv1.ResourceAttributes{Namespace: w.Namespace, Verb: verb, Group: kube.GVKDeployment.Group, Resource: kube.Resource(kube.GVKDeployment).Resource}
		allowed, err := w.Client.Allowed(ctx, account, what)
		if err != nil {
			return "", false, err
		}
		if !allowed {
			return x.Status.Message, true, nil
		}
	}
	return "", false, nil
}

// stuckAtDeployment reports a plan that has set about a Deployment of the member and is not done with it.
func stuckAtDeployment(m *scope.Operator, x *kube.Execution) bool {
	return slices.ContainsFunc(x.Status.Steps, func(s kube.Step) bool {
		return s.State == kube.StepTaken && s.Kind == kube.GVKDeployment.Kind &&
			slices.ContainsFunc(m.CSV.Spec.Install.Spec.Deployments, func(d bundle.Deployment) bool { return d.Name == s.Name })
	})
}

func (w *work) neighbour(name string) *csv.Neighbour {
	i := slices.IndexFunc(w.Operators, func(m *scope.Operator) bool { return m.Name() == name })
	if i < 0 {
		return nil
	}
	n := &csv.Neighbour{Name: name, Phase: w.Operators[i].Status.Phase}
	if c, ok := w.Live.Conditions[name]; ok && !c.Upgradeable {
		n.NotUpgradeable = c.Message
	}
	return n
}

// ownerConflict names another member, outside the chain of replacements, that owns one of the same APIs.
func (w *work) ownerConflict(m *scope.Operator) string {
	for _, other := range w.Operators {
		if w.Chain.Related(m.Name(), other.Name()) {
			continue
		}
		theirs := ownedAPIs(other)
		for _, api := range ownedAPIs(m) {
			if slices.Contains(theirs, api) {
				return "owner conflict: " + other.Name() + " owns " + api + ", too"
			}
		}
	}
	return ""
}

// ownedAPIs names the CRDs and the API services that a member owns.
func ownedAPIs(m *scope.Operator) []string {
	var out []string
	for _, d := range m.CSV.Spec.CRDs.Owned {
		out = append(out, d.Name)
	}
	for _, d := range m.CSV.Spec.APIServices.Owned {
		out = append(out, csv.APIServiceName(d))
	}
	return out
}

// requirements checks what a member requires (R-CSV §6.4). One that lacked nothing a short while ago is not checked
// again.
func (w *work) requirements(ctx context.Context, m *scope.Operator) ([]csv.Requirement, error) {
	question := facts.Operator{
		Namespace: w.Namespace, UID: string(m.Object.GetUID()), Generation: m.Object.GetGeneration(), Targets: facts.JoinTargets(w.served(m.Name())),
	}
	if rows, ok := w.facts.Met(question); ok {
		return rows, nil
	}
	turn := w.facts.Turn()
	rows, err := w.checkRequirements(ctx, m, question)
	if err != nil {
		return nil, err
	}
	for wait := grantFirst; wait <= grantLast && w.justGranted(m, rows); wait *= 2 {
		pause(ctx, wait)
		if rows, err = w.checkRequirements(ctx, m, question); err != nil {
			return nil, err
		}
	}
	if len(csv.Unmet(rows)) == 0 {
		w.facts.SetMet(turn, question, rows)
	}
	return rows, nil
}

// served are the targets in which an operator is to have its rights: those that exist and that it may be given. Others are
// a condition of the operator group, and hold up no operator.
func (w *work) served(operator string) []string {
	return slices.DeleteFunc(w.Live.Group.Limits.Told(operator, w.Targets()), func(ns string) bool {
		return ns != "" && ns != w.Namespace && !slices.Contains(w.Live.Group.Served, ns)
	})
}

// justGranted reports an operator that lacks nothing but rights, which may have been given a moment ago.
func (w *work) justGranted(m *scope.Operator, rows []csv.Requirement) bool {
	unmet := csv.Unmet(rows)
	return len(unmet) > 0 && w.Now().Sub(m.Object.GetCreationTimestamp().Time) < grantLag &&
		!slices.ContainsFunc(unmet, func(r csv.Requirement) bool { return len(r.Dependents) == 0 })
}

func (w *work) checkRequirements(ctx context.Context, m *scope.Operator, of facts.Operator) ([]csv.Requirement, error) {
	f, err := w.facts.Collect(ctx, facts.Question{
		Operator: of, Spec: m.CSV.Spec, Targets: w.served(m.Name()),
		CameFirst: func(owner string) bool { return w.cameFirst(m, owner) },
		Foreign:   func(owners []metav1.OwnerReference) string { return w.foreignOwner(m, owners) },
	})
	if err != nil {
		return nil, err
	}
	f.KubernetesVersion = w.version
	return csv.Check(m.CSV.Spec, f), nil
}

// noteRequirements writes rows that changed though the phase stays: who waits is to see for what.
func (w *work) noteRequirements(ctx context.Context, m *scope.Operator, o csv.Observation) error {
	if reflect.DeepEqual(o.Requirements, m.Status.RequirementStatus) {
		return nil
	}
	if err := w.Points.At("before requirements"); err != nil {
		return err
	}
	next := m.Status
	next.RequirementStatus = o.Requirements
	if err := w.saveStatus(ctx, m, next); err != nil {
		return err
	}
	return w.Points.At("requirements")
}

// cameFirst reports whether owner (namespace/name) is another operator of the namespace that was there before m: who
// comes second has to wait, and does no harm to the first.
func (w *work) cameFirst(m *scope.Operator, owner string) bool {
	ns, name, ok := strings.Cut(owner, "/")
	return ok && ns == w.Namespace && w.Chain.CameFirst(name, m.Name())
}

// foreignOwner names an owner outside the member's chain of replacements, "" where one of the chain is among them.
func (w *work) foreignOwner(m *scope.Operator, owners []metav1.OwnerReference) string {
	foreign := ""
	for _, owner := range owners {
		if owner.Kind != kube.GVKInstalledOperator.Kind {
			continue
		}
		if foreign = w.foreign(m, owner.Name); foreign == "" {
			return ""
		}
	}
	return foreign
}

// foreign returns name unless it is the member or of its chain. A name that is gone is nobody's.
func (w *work) foreign(m *scope.Operator, name string) string {
	if w.Chain.Apart(m.Name(), name) {
		return name
	}
	return ""
}

// lookAtConditions reads what the operators of the namespace say of their upgrades, and puts it into the status of
// their OperatorConditions (R-COND-8).
func (w *work) lookAtConditions(ctx context.Context) error {
	objects, err := w.facts.Conditions(ctx, w.Namespace)
	if err != nil {
		return err
	}
	w.Live.Conditions = make(map[string]protocol.OperatorCondition, len(w.Operators))
	for _, m := range w.Operators {
		found, err := w.syncCondition(ctx, objects[m.Name()])
		if err != nil {
			return err
		}
		w.Live.Conditions[m.Name()] = condition.Decide(found)
	}
	return nil
}

// syncCondition reads one OperatorCondition and writes its status where that is behind; nil in, nil out.
func (w *work) syncCondition(ctx context.Context, o *unstructured.Unstructured) (*condition.Object, error) {
	if o == nil {
		return nil, nil //nolint:nilnil // an operator that says nothing is an answer (R-COND-7)
	}
	found, err := facts.ParseCondition(o)
	if err != nil {
		return nil, err
	}
	status, changed := condition.Sync(*found)
	if !changed || w.Stopped() != nil {
		return found, nil
	}
	next, err := facts.WithConditions(o, status)
	if err != nil {
		return nil, err
	}
	if err := w.Points.At("before condition"); err != nil {
		return nil, err
	}
	if _, err := w.Client.UpdateStatus(ctx, next); err != nil {
		return nil, err
	}
	w.facts.ForgetNamespace(w.Namespace)
	return found, w.Points.At("condition")
}

// checkUpgradeable refuses to begin a plan that replaces an operator which does not let itself be upgraded, as it says
// at this moment (R-COND-3). Once begun, the new one waits in Pending instead.
func (w *work) checkUpgradeable(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	for _, b := range r.Document.Bundles {
		if b.Replaces == "" {
			continue
		}
		o, err := w.Client.Get(ctx, facts.GVKCondition, w.Namespace, b.Replaces)
		if err != nil {
			return nil, err
		}
		found, err := w.syncCondition(ctx, o)
		if err != nil {
			return nil, err
		}
		if c := condition.Decide(found); !c.Upgradeable {
			return &failure.Failure{
				Class: failure.Conflict, Reason: string(csv.ReasonOperatorConditionNotUpgradeable), Quick: true,
				Message: b.Replaces + ": operator is not upgradeable: " + c.Message,
			}, nil
		}
	}
	return nil, nil //nolint:nilnil // nothing is in the way
}
