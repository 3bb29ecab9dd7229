package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/ask"
	"github.com/chandler-fleet/chandler/libs/errs"
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

// as returns the client that writes an object of a plan (R-OG-60, R-OG-61).
func (w *work) as(x *kube.Execution, gvk schema.GroupVersionKind) (*kube.Epoch, error) {
	if x.Spec.Account == "" || preflight.Direct(gvk) {
		return w.Client, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := w.scoped[x.Spec.Account]; ok {
		return c, nil
	}
	a, err := kube.ParseAccount(x.Spec.Account)
	if err != nil {
		return nil, err
	}
	c, err := w.Client.As(a)
	if err != nil {
		return nil, err
	}
	w.scoped[x.Spec.Account] = c
	return c, nil
}

// checkAccount: the service account of the operator group must exist (R-IP-42).
func (w *work) checkAccount(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	a, err := w.Account(r.ID)
	if err != nil || a == (kube.Account{}) {
		return nil, err
	}
	found, err := w.Client.Get(ctx, kube.GVKServiceAccount, a.Namespace, a.Name)
	if err != nil || found != nil {
		return nil, err
	}
	return &failure.Failure{
		Class: failure.Conflict, Reason: reasonNoAccount, Quick: true,
		Message: fmt.Sprintf("attenuated service account query failed - please make sure the service account exists. sa=%s operatorgroup=%s/%s",
			a.Name, w.Namespace, w.Wanted.OperatorGroup.Name),
	}, nil
}

// question is a plan as the cluster is asked about it.
func (w *work) question(r scope.Plan) (preflight.Question, error) {
	q := preflight.Question{
		Namespace: w.Namespace, Objects: slices.Concat(r.Objects, w.secrets(r)), Targets: w.Targets(), Managers: map[string]string{},
		KubernetesVersion: w.version, Grant: r.Grant,
	}
	for _, b := range r.Document.Bundles {
		q.Managers[b.CSV] = w.Manager(b.Package)
		q.Leaving = append(q.Leaving, b.CSV)
		if b.Replaces != "" {
			q.Leaving = append(q.Leaving, b.Replaces)
		}
	}
	var err error
	q.Account, err = w.Account(r.ID)
	return q, err
}

// secrets are the Secrets that a plan brings about beside its steps, so that the right to write them can be asked for.
func (w *work) secrets(r scope.Plan) []render.Object {
	var out []render.Object
	for _, name := range slices.Sorted(maps.Keys(r.CSVs)) {
		for _, c := range w.Called(r.CSVs[name]) {
			out = append(out, render.Object{GVK: certs.GVKSecret, Namespace: w.Namespace, Name: c.Secret, Resolving: name, Body: map[string]any{}})
		}
	}
	return out
}

// checkOwners wants no object of the plan to be another operator's, or Chandler's own: it would be taken over, and go with
// whichever of the two goes first.
func (w *work) checkOwners(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	q, err := w.question(r)
	if err != nil {
		return nil, err
	}
	found, err := preflight.Taken(ctx, w.Client, q)
	if err != nil {
		return failure.OfCheck(ctx, err)
	}
	for _, o := range found.Vacant {
		w.Vacant.Note(scope.RefIn(o))
	}
	for _, o := range found.Common {
		w.Vacant.NoteCommon(scope.RefIn(o))
	}
	if len(found.Taken) == 0 {
		return nil, nil //nolint:nilnil // nothing is in the way
	}
	return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonManager, Message: spoken(found.Taken)}, nil
}

// lastCounts reports an object that others may have written by right, and of which no form is anybody's: what is the
// cluster's and no operator owns, such as a definition, or an account that bears another operator's name.
func lastCounts(o render.Object, live *unstructured.Unstructured) bool {
	if preflight.Formed(o) {
		return false
	}
	if o.Namespace == "" {
		return true
	}
	by := kube.OwnerOf(live)
	return render.Shared(o.GVK) && by != kube.Operator{} && by != kube.Operator{Namespace: o.Namespace, Name: o.Resolving}.Label()
}

// checkRights wants every right that the account needs, before the first step, and names all that it lacks (R-IP-41).
// Granting them lets the plan go on, so it is no conflict (R-IP-40).
func (w *work) checkRights(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	q, err := w.question(r)
	if err != nil {
		return nil, err
	}
	missing, err := preflight.Permissions(ctx, w.Client, q)
	if err != nil {
		return failure.OfCheck(ctx, err)
	}
	if len(missing.Missing) == 0 {
		return nil, nil //nolint:nilnil // nothing is in the way
	}
	return &failure.Failure{Class: failure.Transient, Reason: failure.ReasonForbidden, Message: permissions.ForbiddenMessage(missing)}, nil
}

// checkCRDs wants every definition to be safe to change (R-CRD). It is asked again with back-off, and at once when a
// definition changes.
func (w *work) checkCRDs(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	q, err := w.question(r)
	if err != nil {
		return nil, err
	}
	q.Vacant = func(o render.Object) bool {
		absent := w.Watcher.Absent(o.GVK, "", o.Name)
		if absent {
			w.Vacant.Note(scope.RefIn(o))
		}
		return absent
	}
	f, err := w.judgeCRDs(ctx, q)
	if f == nil && err == nil || f != nil && f.Reason == reasonUnsafeCRD {
		w.holdForCRDs(r.ID, f != nil)
	}
	return f, err
}

// checkTaken wants the API server to take the definitions of groups that it protects, before the first step: of these it is
// the bundle's author who forgot the approval, as a rule, and an operator would be left half installed.
func (w *work) checkTaken(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	return w.taken(ctx, r, preflight.Protected)
}

// defines reports a definition that is in the cluster.
func (w *work) defines(ctx context.Context, o render.Object) bool {
	live, err := w.Client.Get(ctx, kube.GVKCRD, "", o.Name)
	return err == nil && live != nil
}

// taken asks whether the API server would take the objects of a plan that are asked about.
func (w *work) taken(ctx context.Context, r scope.Plan, asked func(render.Object) bool) (*failure.Failure, error) {
	q, err := w.question(r)
	if err != nil {
		return nil, err
	}
	refused, err := preflight.Refused(ctx, w.Client, q, asked)
	if err != nil {
		return failure.OfCheck(ctx, err)
	}
	if len(refused) == 0 {
		return nil, nil //nolint:nilnil // nothing is in the way
	}
	return &failure.Failure{Class: failure.Conflict, Reason: reasonNotTaken, Message: spoken(refused)}, nil
}

// judgeCRDs says what keeps the definitions of a question from being changed.
func (w *work) judgeCRDs(ctx context.Context, q preflight.Question) (*failure.Failure, error) {
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
	return &failure.Failure{Class: failure.Conflict, Reason: reasonUnsafeCRD, Message: spoken(problems)}, nil
}

// recheck judges a definition that came since the plan was looked at.
func (w *work) recheck(ctx context.Context, r scope.Plan, o render.Object) (*failure.Failure, error) {
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

// judges waits for its turn to judge the definitions of a plan, and returns what gives it to the next: one check may hold
// many objects in memory (crd.Budget).
func (s *session) judges(ctx context.Context) (done func(), err error) {
	select {
	case s.judging <- struct{}{}:
		return func() { <-s.judging }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *session) definitions(ctx context.Context, q preflight.Question) ([]protocol.CRDVerdict, error) {
	done, err := s.judges(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return preflight.Definitions(ctx, s.client, q)
}

// maxProblems is how many problems a block names; the check of the plan lists them all (P13).
const maxProblems = 8

func spoken(problems []string) string {
	if n := len(problems) - maxProblems; n > 0 {
		return strings.Join(problems[:maxProblems], "; ") + fmt.Sprintf("; and %d more", n)
	}
	return strings.Join(problems, "; ")
}

// holdForCRDs notes whether a plan waits for definitions to change.
func (w *work) holdForCRDs(plan string, waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if waits {
		w.unsafe[plan] = w.Namespace
		return
	}
	delete(w.unsafe, plan)
}

// recheckCRDs has plans that wait for definitions looked at again, without regard to their back-off.
func (s *session) recheckCRDs() {
	s.mu.Lock()
	waiting := s.unsafe
	s.unsafe = map[string]string{} // who still waits says so when it is looked at
	for plan := range waiting {
		if note, ok := s.retry[plan]; ok {
			note.after = time.Time{}
			s.retry[plan] = note
		}
	}
	s.mu.Unlock()
	for _, ns := range waiting {
		s.queue.Add(ns)
	}
}

// answers are the questions that the holder of the cluster answers (protocol.AskPrefix).
func (s *session) answers() map[string]ask.Answer {
	return map[string]ask.Answer{protocol.AskCheckPlan: s.answerCheck, protocol.AskRemoval: s.answerRemoval}
}

// answer answers questions while the cluster is held.
func (s *session) answer(ctx context.Context) {
	answers := s.answers()
	choose := func(subject string) (ask.Answer, bool) {
		fn, ok := answers[subject[strings.LastIndex(subject, ".")+1:]]
		return fn, ok
	}
	filter := protocol.AskFilter(s.cfg.Tenant, s.cfg.ClusterID)
	for ctx.Err() == nil {
		if err := ask.ServeAll(ctx, s.cfg.JetStream.Conn(), s.cfg.Log, filter, choose); err != nil && ctx.Err() == nil {
			s.cfg.Log.WarnContext(ctx, "questions are not answered for now", "error", err)
			pause(ctx, errorPause)
		}
	}
}

// answerCheck says what would stand in the way of a plan now: everything, not the first thing only.
func (s *session) answerCheck(ctx context.Context, raw json.RawMessage) (any, error) {
	var q protocol.PlanQuestion
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question")
	}
	of := protocol.Scope{Tenant: s.cfg.Tenant, Cluster: s.cfg.Cluster, ClusterID: s.cfg.ClusterID, Namespace: q.Namespace}
	known, _, _ := s.inbox.Get(q.Namespace)
	w := s.newWork(protocol.ScopePlans{Scope: of, OperatorGroups: q.OperatorGroups, OperatorGroup: q.OperatorGroup, Installed: known.Installed})
	var err error
	if w.Executions, err = s.proven(ctx, q.Namespace); err != nil {
		return nil, err
	}
	for _, look := range []func(context.Context) error{w.lookAtGroup, w.Load} {
		if err := look(ctx); err != nil {
			return nil, err
		}
	}
	return w.checkAll(ctx, q.Plan)
}

// checkAll gathers everything that check would meet one by one; of a plan that was begun, what its log says.
func (w *work) checkAll(ctx context.Context, p protocol.Plan) (protocol.PlanCheck, error) {
	if x := w.Execution(p.ID); x != nil && x.Status.Begun {
		return w.begunCheck(ctx, p, x)
	}
	var obstacles []protocol.Obstacle
	note := func(f *failure.Failure) {
		if f != nil {
			f = w.withOwner(ctx, f)
			obstacles = append(obstacles, protocol.Obstacle{Class: f.Class, Reason: f.Reason, Message: f.Message})
		}
	}
	note(w.CheckGroup())
	r, f := w.Open(ctx, p, w.Execution(p.ID))
	if f != nil {
		note(f)
		return protocol.PlanCheck{Account: w.GroupAccount().User(), Obstacles: obstacles}, nil
	}
	all := func(ctx context.Context, r scope.Plan) (*failure.Failure, error) { // of one that is there the verdict says more
		return w.taken(ctx, r, func(o render.Object) bool {
			return preflight.Protected(o) || preflight.Definition(o) && !w.defines(ctx, o)
		})
	}
	for _, of := range append(w.checks(), all) {
		f, err := of(ctx, r)
		if err != nil {
			return protocol.PlanCheck{}, err
		}
		note(f)
	}
	refusals, err := w.hooks.Try(ctx, r.Objects)
	if err != nil {
		return protocol.PlanCheck{}, err
	}
	for _, x := range refusals {
		f := failure.Classify(x.Err)
		f.Message = x.Object + ": " + f.Message
		note(&f)
	}
	q, err := w.question(r)
	if err != nil {
		return protocol.PlanCheck{}, err
	}
	done, err := w.judges(ctx)
	if err != nil {
		return protocol.PlanCheck{}, err
	}
	defer done()
	out, err := preflight.Check(ctx, w.Client, q)
	if err == nil {
		out.Shared, err = w.objects.In(w.Scope).Findings(ctx, r)
	}
	out.Obstacles = append(obstacles, out.Obstacles...)
	return out, err
}

// begunCheck says of a plan that has begun what keeps it from going on. What a person may settle came since it was looked
// at, and is looked at as it is now.
func (w *work) begunCheck(ctx context.Context, p protocol.Plan, x *kube.Execution) (out protocol.PlanCheck, err error) {
	out.Account = x.Spec.Account
	s := x.Status
	if s.Phase != protocol.PlanBlocked && s.Phase != protocol.PlanFailed {
		return out, nil
	}
	out.Obstacles = []protocol.Obstacle{{Class: s.Class, Reason: s.Reason, Message: s.Message}}
	r, f := w.Open(ctx, p, x)
	if f != nil || s.Reason != failure.ReasonShared && s.Reason != reasonUnsafeCRD {
		return out, nil
	}
	q, err := w.question(r)
	if err != nil {
		return out, err
	}
	q.Objects = nil
	for _, i := range s.Taken() {
		q.Objects = append(q.Objects, r.Objects[i])
		found, err := w.objects.In(w.Scope).Finding(ctx, r, r.Objects[i])
		if err != nil {
			return out, err
		}
		if found != nil {
			out.Shared = append(out.Shared, *found)
		}
	}
	out.Obstacles = nil
	out.CRDs, err = w.definitions(ctx, q)
	return out, err
}
