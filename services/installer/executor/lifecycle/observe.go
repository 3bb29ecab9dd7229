package lifecycle

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
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
	own, installed := w.OwnDeployments(m, deployments), w.Snapshot.Installed
	o := csv.Observation{
		Now: w.Env.Now(), OperatorGroups: w.Snapshot.Wanted.OperatorGroups, TargetsKnown: known,
		FailForward: w.Snapshot.Wanted.OperatorGroup.Spec.UpgradeStrategy == scope.FailForward ||
			installed.Chain.RolledBack(m.Name()),
		DuplicateMode:       render.DuplicateMode(m.CSV.Spec.InstallModes),
		Components:          csv.Observe(m.CSV.Spec.Install.Spec.Deployments, own, w.whyUnready(ctx, m, own)),
		Predecessor:         neighbour(installed, w.Found.Conditions, installed.Chain.Predecessor(m.Name())),
		Successor:           replacement(installed, w.Found.Conditions, m),
		OwnerConflict:       ownerConflict(installed, m),
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

// installTrouble says why the Deployments of an operator cannot be created: what its plan failed for, or that the
// service account that it is carried out under may not do it. Of the latter the API server is asked at each reconcile,
// so that a right that is granted is noticed (R-CSV-11).
func (w worker) installTrouble(ctx context.Context, m *scope.Operator) (message string, forbidden bool, err error) {
	x := w.Snapshot.Executions.Of(m.Plan)
	message, ask := installFailure(m, x)
	if !ask {
		return message, false, nil
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

// requirements checks what a member requires (R-CSV §6.4). One that lacked nothing a short while ago is not checked
// again.
func (w worker) requirements(ctx context.Context, m *scope.Operator) ([]csv.Requirement, error) {
	question := facts.Operator{
		Namespace: w.Namespace, UID: string(m.Object.GetUID()), Generation: m.Object.GetGeneration(),
		Targets: facts.JoinTargets(served(w.Found.Group, w.Namespace, m.Name())),
	}
	if rows, ok := w.Facts.Met(question); ok {
		return rows, nil
	}
	turn := w.Facts.Turn()
	rows, err := w.checkRequirements(ctx, m, question)
	if err != nil {
		return nil, err
	}
	for wait := grantFirst; wait <= grantLast && justGranted(m, rows, w.Env.Now()); wait *= 2 {
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

func (w worker) checkRequirements(ctx context.Context, m *scope.Operator, of facts.Operator) (
	[]csv.Requirement, error,
) {
	f, err := w.Facts.Collect(ctx, facts.Question{
		Operator: of, Spec: m.CSV.Spec, Targets: served(w.Found.Group, w.Namespace, m.Name()),
		CameFirst: func(owner string) bool { return cameFirst(w.Snapshot.Installed.Chain, w.Namespace, m, owner) },
		Foreign: func(owners []metav1.OwnerReference) string {
			return foreignOwner(w.Snapshot.Installed.Chain, m, owners)
		},
	})
	if err != nil {
		return nil, err
	}
	f.KubernetesVersion = w.Version
	return csv.Check(m.CSV.Spec, f), nil
}
