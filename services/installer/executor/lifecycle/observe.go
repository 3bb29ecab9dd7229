package lifecycle

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/facts"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
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
func (w worker) observe(ctx context.Context, m *scope.Operator, deployments []appsv1.Deployment) (
	csv.Observation, error,
) {
	_, known := m.Object.GetAnnotations()[render.AnnotationTargetNamespaces]
	own := w.OwnDeployments(m, deployments)
	o := csv.Observation{
		Now: w.Env.Now(), OperatorGroups: w.Snapshot.Wanted.OperatorGroups, TargetsKnown: known,
		FailForward: w.Snapshot.Wanted.OperatorGroup.Spec.UpgradeStrategy == scope.FailForward ||
			w.Snapshot.Installed.Chain.RolledBack(m.Name()),
		DuplicateMode:       render.DuplicateMode(m.CSV.Spec.InstallModes),
		Components:          csv.Observe(m.CSV.Spec.Install.Spec.Deployments, own, w.whyUnready(ctx, m, own)),
		Predecessor:         w.neighbour(w.Snapshot.Installed.Chain.Predecessor(m.Name())),
		Successor:           w.replacement(m),
		OwnerConflict:       w.ownerConflict(m),
		Intersection:        csv.Reason(w.Found.Group.Verdicts[m.Name()].Reason),
		IntersectionMessage: w.Found.Group.Verdicts[m.Name()].Message,
	}
	if err := render.CheckInstallModes(m.CSV.Spec.InstallModes, w.Namespace, w.Targets()); err != nil {
		o.ModesError = err.Error()
	}
	var err error
	if o.Serving, err = w.Serving.State(ctx, w.Scope, m, deployments); err != nil {
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
	w.Await(w.Namespace, len(csv.Unmet(rows)) > 0)
	if len(csv.Unmet(rows)) > 0 {
		w.Attempts.Soon(w.Env.Pause) // what is missing may be nobody's whom we watch
	}
	return o, nil
}

// needsRequirements reports the phases whose rows ask for them (R-CSV §6.3).
func needsRequirements(p csv.Phase) bool {
	return p == csv.PhasePending || p == csv.PhaseSucceeded || p == csv.PhaseFailed
}

// installTrouble says why the Deployments of an operator cannot be created: what its plan failed for, or that the
// service account that it is carried out under may not do it. Of the latter the API server is asked at each reconcile,
// so that a right that is granted is noticed (R-CSV-11).
func (w worker) installTrouble(ctx context.Context, m *scope.Operator) (message string, forbidden bool, err error) {
	x := w.Snapshot.Executions.Of(m.Plan)
	if x == nil || x.Status.Message == "" || m.Status.Phase != csv.PhaseInstallReady &&
		m.Status.Phase != csv.PhaseFailed || !stuckAtDeployment(m, x) {
		return "", false, nil
	}
	if x.Status.Phase == protocol.PlanFailed {
		return x.Status.Message, false, nil
	}
	if x.Spec.Account == "" || x.Status.Reason != failure.ReasonForbidden &&
		m.Status.Reason != csv.ReasonInstallComponentFailedNoRetry {
		return "", false, nil
	}
	account, err := kube.ParseAccount(x.Spec.Account)
	if err != nil {
		return "", false, err
	}
	for _, verb := range []string{"create", "patch"} {
		what := authorizationv1.ResourceAttributes{
			Namespace: w.Namespace, Verb: verb, Group: kube.GVKDeployment.Group,
			Resource: kube.Resource(kube.GVKDeployment).Resource,
		}
		allowed, err := w.Env.Client.Allowed(ctx, account, what)
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
			slices.ContainsFunc(m.CSV.Spec.Install.Spec.Deployments,
				func(d bundle.Deployment) bool { return d.Name == s.Name })
	})
}

func (w worker) neighbour(name string) *csv.Neighbour {
	i := slices.IndexFunc(w.Snapshot.Installed.Operators, func(m *scope.Operator) bool { return m.Name() == name })
	if i < 0 {
		return nil
	}
	n := &csv.Neighbour{Name: name, Phase: w.Snapshot.Installed.Operators[i].Status.Phase}
	if c, ok := w.Found.Conditions[name]; ok && !c.Upgradeable {
		n.NotUpgradeable = c.Message
	}
	return n
}

// replacement is what replaces an operator; one that is there and cannot be read may be that.
func (w worker) replacement(m *scope.Operator) *csv.Neighbour {
	if s := w.neighbour(w.Snapshot.Installed.Chain.Successor(m.Name())); s != nil ||
		len(w.Snapshot.Installed.Unreadable) == 0 {
		return s
	}
	if m.Status.Phase != csv.PhaseReplacing {
		return nil
	}
	return &csv.Neighbour{Name: slices.Sorted(maps.Keys(w.Snapshot.Installed.Unreadable))[0]}
}

// ownerConflict names another member, outside the chain of replacements, that owns one of the same APIs.
func (w worker) ownerConflict(m *scope.Operator) string {
	for _, other := range w.Snapshot.Installed.Operators {
		if w.Snapshot.Installed.Chain.Related(m.Name(), other.Name()) {
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
func (w worker) requirements(ctx context.Context, m *scope.Operator) ([]csv.Requirement, error) {
	question := facts.Operator{
		Namespace: w.Namespace, UID: string(m.Object.GetUID()), Generation: m.Object.GetGeneration(),
		Targets: facts.JoinTargets(w.served(m.Name())),
	}
	if rows, ok := w.Facts.Met(question); ok {
		return rows, nil
	}
	turn := w.Facts.Turn()
	rows, err := w.checkRequirements(ctx, m, question)
	if err != nil {
		return nil, err
	}
	for wait := grantFirst; wait <= grantLast && w.justGranted(m, rows); wait *= 2 {
		pace.Sleep(ctx, wait)
		if rows, err = w.checkRequirements(ctx, m, question); err != nil {
			return nil, err
		}
	}
	if len(csv.Unmet(rows)) == 0 {
		w.Facts.SetMet(turn, question, rows)
	}
	return rows, nil
}

// served are the targets in which an operator is to have its rights: those that exist and that it may be given. Others
// are a condition of the operator group, and hold up no operator.
func (w worker) served(operator string) []string {
	return slices.DeleteFunc(w.Found.Group.Limits.Targets(operator, w.Targets()), func(ns string) bool {
		return ns != "" && ns != w.Namespace && !slices.Contains(w.Found.Group.Served, ns)
	})
}

// justGranted reports an operator that lacks nothing but rights, which may have been given a moment ago.
func (w worker) justGranted(m *scope.Operator, rows []csv.Requirement) bool {
	unmet := csv.Unmet(rows)
	return len(unmet) > 0 && w.Env.Now().Sub(m.Object.GetCreationTimestamp().Time) < grantLag &&
		!slices.ContainsFunc(unmet, func(r csv.Requirement) bool { return len(r.Dependents) == 0 })
}

func (w worker) checkRequirements(ctx context.Context, m *scope.Operator, of facts.Operator) (
	[]csv.Requirement, error,
) {
	f, err := w.Facts.Collect(ctx, facts.Question{
		Operator: of, Spec: m.CSV.Spec, Targets: w.served(m.Name()),
		CameFirst: func(owner string) bool { return w.cameFirst(m, owner) },
		Foreign:   func(owners []metav1.OwnerReference) string { return w.foreignOwner(m, owners) },
	})
	if err != nil {
		return nil, err
	}
	f.KubernetesVersion = w.Version
	return csv.Check(m.CSV.Spec, f), nil
}

// cameFirst reports whether owner (namespace/name) is another operator of the namespace that was there before m: who
// comes second has to wait, and does no harm to the first.
func (w worker) cameFirst(m *scope.Operator, owner string) bool {
	ns, name, ok := strings.Cut(owner, "/")
	return ok && ns == w.Namespace && w.Snapshot.Installed.Chain.CameFirst(name, m.Name())
}

// foreignOwner names an owner outside the member's chain of replacements, "" where one of the chain is among them.
func (w worker) foreignOwner(m *scope.Operator, owners []metav1.OwnerReference) string {
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
func (w worker) foreign(m *scope.Operator, name string) string {
	if w.Snapshot.Installed.Chain.Apart(m.Name(), name) {
		return name
	}
	return ""
}
