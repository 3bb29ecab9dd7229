package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/allowance"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/preflight"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/permissions"
)

// Reasons of what is found before the first step.
const (
	reasonNoAccount = "ServiceAccountNotFound"
	reasonUnsafeCRD = "CRDUpgradeUnsafe"
	reasonNotTaken  = "DefinitionRefused"
)

// checks are what is to be known before the first step, beside what a check of the plan lists in full.
func (w worker) checks() []func(context.Context, scope.Plan) (*failure.Failure, error) {
	upgradeable := func(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
		return w.Conditions.CheckUpgradeable(ctx, w.Scope, r)
	}
	return []func(context.Context, scope.Plan) (*failure.Failure, error){
		w.checkBase, w.checkRemovals, upgradeable,
		w.checkAccount, w.checkOwners,
	}
}

// check asks everything that is to be known before the first step, in order; the first obstacle counts.
func (w worker) check(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	for _, of := range append(w.checks(), w.checkAllowed, w.checkTaken, w.checkShared, w.checkRights, w.checkCRDs) {
		if f, err := of(ctx, r); f != nil || err != nil {
			return f, err
		}
	}
	w.Group.Claim(w.Scope, r)
	return nil, nil //nolint:nilnil // nothing is in the way
}

// checkBase compares what the plan stands on with the cluster, before the first step (DESIGN D6).
func (w worker) checkBase(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	for _, b := range r.Document.Bundles {
		if b.Replaces == "" {
			continue
		}
		found, err := w.Env.Client.Get(ctx, kube.GVKInstalledOperator, w.Namespace, b.Replaces)
		if err != nil {
			return nil, err
		}
		if found == nil {
			return &failure.Failure{
				Class: failure.Conflict, Reason: failure.ReasonBase,
				Message: b.CSV + " is to follow " + b.Replaces + ", which is not installed",
			}, nil
		}
	}
	return nil, nil //nolint:nilnil // neither a failure nor an error: the base is as it was
}

// checkAccount: the service account of the operator group must exist (R-IP-42).
func (w worker) checkAccount(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	a, err := w.account(r.ID)
	if err != nil || a == (kube.Account{}) {
		return nil, err
	}
	found, err := w.Env.Client.Get(ctx, kube.GVKServiceAccount, a.Namespace, a.Name)
	if err != nil || found != nil {
		return nil, err
	}
	return &failure.Failure{
		Class: failure.Conflict, Reason: reasonNoAccount, Quick: true,
		Message: fmt.Sprintf(
			"attenuated service account query failed - please make sure the service account exists. sa=%s "+
				"operatorgroup=%s/%s",
			a.Name, w.Namespace, w.Snapshot.Wanted.OperatorGroup.Name),
	}, nil
}

// account is who carries out a plan (R-OG-60): who it was begun as, else the one that the operator group names now. So
// a group that names another account, or none any more, changes the next plan and nothing that runs (R-OG-64).
func (w worker) account(plan string) (kube.Account, error) {
	if x := w.Snapshot.Executions.Of(plan); x != nil && x.Status.Begun {
		return kube.ParseAccount(x.Spec.Account)
	}
	return w.Snapshot.GroupAccount(), nil
}

// question is a plan as the cluster is asked about it.
func (w worker) question(r scope.Plan) (preflight.Question, error) {
	q := preflight.Question{
		Namespace: w.Namespace, Objects: slices.Concat(r.Objects, w.secrets(r)), Targets: w.Targets(),
		Managers: map[string]string{}, KubernetesVersion: w.Version, Grant: r.Grant,
	}
	for _, b := range r.Document.Bundles {
		q.Managers[b.CSV] = w.Manager(b.Package)
		q.Leaving = append(q.Leaving, b.CSV)
		if b.Replaces != "" {
			q.Leaving = append(q.Leaving, b.Replaces)
		}
	}
	var err error
	q.Account, err = w.account(r.ID)
	return q, err
}

// secrets are the Secrets that a plan brings about beside its steps, so that the right to write them can be asked for.
func (w worker) secrets(r scope.Plan) []render.Object {
	var out []render.Object
	for _, name := range slices.Sorted(maps.Keys(r.CSVs)) {
		for _, c := range w.Called(r.CSVs[name]) {
			out = append(out, render.Object{
				GVK: certs.GVKSecret, Namespace: w.Namespace, Name: c.Secret,
				Resolving: name, Body: map[string]any{},
			})
		}
	}
	return out
}

// checkOwners wants no object of the plan to be another operator's, or Chandler's own: it would be taken over, and go
// with whichever of the two goes first.
func (w worker) checkOwners(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	q, err := w.question(r)
	if err != nil {
		return nil, err
	}
	found, err := preflight.Taken(ctx, w.Env.Client, q)
	if err != nil {
		return failure.OfCheck(ctx, err)
	}
	for _, o := range found.Vacant {
		w.Found.Vacant.Note(scope.RefIn(o))
	}
	for _, o := range found.Common {
		w.Found.Vacant.NoteCommon(scope.RefIn(o))
	}
	if len(found.Taken) == 0 {
		return nil, nil //nolint:nilnil // nothing is in the way
	}
	return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonManager, Message: joined(found.Taken)}, nil
}

// checkRights wants every right that the account needs, before the first step, and names all that it lacks (R-IP-41).
// Granting them lets the plan go on, so it is no conflict (R-IP-40).
func (w worker) checkRights(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	q, err := w.question(r)
	if err != nil {
		return nil, err
	}
	missing, err := preflight.Permissions(ctx, w.Env.Client, q)
	if err != nil {
		return failure.OfCheck(ctx, err)
	}
	if len(missing.Missing) == 0 {
		return nil, nil //nolint:nilnil // nothing is in the way
	}
	return &failure.Failure{
		Class: failure.Transient, Reason: failure.ReasonForbidden,
		Message: permissions.ForbiddenMessage(missing),
	}, nil
}

// checkCRDs wants every definition to be safe to change (R-CRD). It is asked again with back-off, and at once when a
// definition changes.
func (w worker) checkCRDs(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	q, err := w.question(r)
	if err != nil {
		return nil, err
	}
	q.Vacant = func(o render.Object) bool {
		absent := w.Env.Watcher.Absent(o.GVK, "", o.Name)
		if absent {
			w.Found.Vacant.Note(scope.RefIn(o))
		}
		return absent
	}
	f, err := w.judgeCRDs(ctx, q)
	if f == nil && err == nil || f != nil && f.Reason == reasonUnsafeCRD {
		w.Logs.In(w.Scope).HoldForCRDs(r.ID, f != nil)
	}
	return f, err
}

// checkTaken wants the API server to take the definitions of groups that it protects, before the first step: of these
// it is the bundle's author who forgot the approval, as a rule, and an operator would be left half installed.
func (w worker) checkTaken(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	return w.taken(ctx, r, preflight.Protected)
}

// defines reports a definition that is in the cluster.
func (w worker) defines(ctx context.Context, o render.Object) bool {
	live, err := w.Env.Client.Get(ctx, kube.GVKCRD, "", o.Name)
	return err == nil && live != nil
}

// taken asks whether the API server would take the objects of a plan that are asked about.
func (w worker) taken(ctx context.Context, r scope.Plan, asked func(render.Object) bool) (*failure.Failure, error) {
	q, err := w.question(r)
	if err != nil {
		return nil, err
	}
	refused, err := preflight.Refused(ctx, w.Env.Client, q, asked)
	if err != nil {
		return failure.OfCheck(ctx, err)
	}
	if len(refused) == 0 {
		return nil, nil //nolint:nilnil // nothing is in the way
	}
	return &failure.Failure{Class: failure.Conflict, Reason: reasonNotTaken, Message: joined(refused)}, nil
}

// judgeCRDs says what keeps the definitions of a question from being changed.
func (w worker) judgeCRDs(ctx context.Context, q preflight.Question) (*failure.Failure, error) {
	verdicts, err := w.definitions(ctx, q)
	if err != nil {
		return failure.OfCheck(ctx, err)
	}
	var problems []string
	for _, v := range verdicts {
		if v.InTheWay() {
			problems = append(problems, v.Problems...)
		}
	}
	if len(problems) == 0 {
		return nil, nil //nolint:nilnil // nothing is in the way
	}
	return &failure.Failure{Class: failure.Conflict, Reason: reasonUnsafeCRD, Message: joined(problems)}, nil
}

// recheck judges a definition that came since the plan was looked at.
func (w worker) recheck(ctx context.Context, r scope.Plan, o render.Object) (*failure.Failure, error) {
	if o.GVK != kube.GVKCRD {
		return nil, nil //nolint:nilnil // who may write the others is said when they are applied
	}
	q, err := w.question(r)
	if err != nil {
		return nil, err
	}
	q.Objects = []render.Object{o}
	return w.judgeCRDs(ctx, q)
}

// judges waits for its turn to judge the definitions of a plan, and returns what gives it to the next: one check may
// hold many objects in memory (crd.Budget).
func (w worker) judges(ctx context.Context) (done func(), err error) {
	select {
	case w.judging <- struct{}{}:
		return func() { <-w.judging }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (w worker) definitions(ctx context.Context, q preflight.Question) ([]protocol.CRDVerdict, error) {
	done, err := w.judges(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return preflight.Definitions(ctx, w.Env.Client, q)
}

// maxProblems is how many problems a block names; the check of the plan lists them all (P13).
const maxProblems = 8

func joined(problems []string) string {
	if n := len(problems) - maxProblems; n > 0 {
		return strings.Join(problems[:maxProblems], "; ") + fmt.Sprintf("; and %d more", n)
	}
	return strings.Join(problems, "; ")
}

// checkShared wants a person to have chosen where an object of the plan is another operator's in another form.
func (w worker) checkShared(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	found, err := w.Objects.In(w.Scope).Findings(ctx, r)
	if err != nil {
		return failure.OfCheck(ctx, err)
	}
	var texts []string
	for _, f := range found {
		if f.Choice == "" {
			texts = append(texts, failure.ChoiceNeededError{SharedObject: f}.Error())
		}
	}
	if len(texts) == 0 {
		return nil, nil //nolint:nilnil // nothing is in the way
	}
	return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonShared, Message: joined(texts)}, nil
}

// checkAllowed wants an administrator's word where a bundle would give the cluster away (DESIGN D10). It is asked
// before the first step, whoever approved what: a policy that approves by itself allows nothing.
func (w worker) checkAllowed(_ context.Context, r scope.Plan) (*failure.Failure, error) {
	found, err := allowance.Of(r.Document.Bundles, r.Objects, r.Grant.Choices)
	if err != nil {
		return nil, err
	}
	missing := allowance.Missing(found)
	if missing == "" {
		return nil, nil //nolint:nilnil // nothing is in the way
	}
	return &failure.Failure{Class: failure.Conflict, Reason: events.AllowanceNeeded, Message: missing}, nil
}

// checkRemovals: nothing is installed over what is being removed, or follows it.
func (w worker) checkRemovals(_ context.Context, r scope.Plan) (*failure.Failure, error) {
	for _, b := range r.Document.Bundles {
		for _, name := range []string{b.CSV, b.Replaces} {
			if x := w.Snapshot.Executions.Removing(name); x != nil {
				return &failure.Failure{
					Class: failure.Conflict, Reason: failure.ReasonUninstalling, Quick: true,
					Message: name + " is being uninstalled (removal " + x.Spec.Plan +
						"): the plan goes on when that has ended",
				}, nil
			}
		}
	}
	return nil, nil //nolint:nilnil // nothing is in the way
}
