package executor

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// Annotations that Chandler puts on what it applies.
const (
	annotationDigest      = "chandler-fleet.io/applied-digest"
	annotationDressed     = "chandler-fleet.io/dressed-digest" // with the overlays, where a kind has some
	annotationPlan        = "chandler-fleet.io/plan"
	annotationComponent   = "chandler-fleet.io/component"
	annotationContent     = "chandler-fleet.io/content"
	annotationPackage     = kube.AnnotationPackage
	annotationReason      = "chandler-fleet.io/reason" // why the plan brings it (events.PlannedBundle)
	annotationTraceParent = "chandler-fleet.io/traceparent"
)

const (
	// maxBatch is how many steps one write of the log sets about.
	maxBatch = 64
	// parallelWrites is how many steps of all plans are written at a time. Most of a write is waiting for the API
	// server's disk; the wait for a CRD to be established is not counted.
	parallelWrites = 12
	// lateFor is how long after an object was made it may be one that came between the look before a plan and its step: other
	// managers of older ones have edited what was Chandler's.
	lateFor = 10 * time.Minute
)

// steps carries out what is not Done, in order, batch by batch. It returns a failure that stands in the
// way of a step, or an error that concerns the log or the session.
func (w *work) steps(ctx context.Context, r ready, x *kube.Execution) (f *failure.Failure, err error) {
	passed := map[string]bool{} // gates, by ClusterServiceVersion
	batch, resumed := x.Status.Taken(), true
	if len(batch) == 0 {
		if !x.Status.Begun && r.Grant.Expired(w.cfg.Now()) { // while content was fetched and the base was checked
			return expired(r.Grant), nil
		}
		if batch, err = w.take(ctx, r, x); err != nil {
			return nil, err
		}
		resumed = false
	}
	for len(batch) > 0 {
		if f, err = w.pass(ctx, r, x, r.objects[batch[0]], passed); f != nil || err != nil {
			return f, err
		}
		if f, err = w.batch(ctx, r, x, batch, resumed); f != nil || err != nil {
			return f, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if f = w.stopped(); f != nil && len(x.Status.Steps) < len(r.objects) {
			return f, w.save(ctx, x, "stopped")
		}
		if batch, err = w.take(ctx, r, x); err != nil {
			return nil, err
		}
		resumed = false
	}
	return nil, nil //nolint:nilnil // nothing is in the way: every step is done
}

// following returns how many steps from i on may be set about together: neighbours of one sort, of one
// ClusterServiceVersion.
func following(objects []render.Object, i int) int {
	n := i
	for n < len(objects) && n-i < maxBatch && objects[n].Resolving == objects[i].Resolving && sortOf(objects[n]) == sortOf(objects[i]) {
		n++
		if objects[i].GVK.Kind == kube.GVKCSV.Kind {
			break
		}
	}
	return n - i
}

// sortOf tells apart what must not be set about together (R-IP-20): the ClusterServiceVersion goes alone, since
// the others name it as their owner; accounts and rights need no CRD, so they do not wait for the API
// server to establish one; other kinds may need one; Deployments come after all, and what calls them after these.
func sortOf(o render.Object) string {
	switch o.GVK.Kind {
	case gvkCRD.Kind, gvkAccount.Kind, "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
		return gvkCRD.Kind
	case kube.GVKCSV.Kind, gvkDeployment.Kind:
		return o.GVK.Kind
	}
	if render.Calls(o.GVK) {
		return render.GVKAPIService.Kind
	}
	return ""
}

func binds(o render.Object) bool {
	return o.GVK.Kind == "RoleBinding" || o.GVK.Kind == "ClusterRoleBinding"
}

// batch carries out steps side by side and notes those that are done in memory; the next write of the log
// says so. Of several failures the worst is returned: an error, then what is permanent, then the first.
//
// An account that may not bind just any role binds those that exist: under one, bindings wait for the roles (R-OG-60).
func (w *work) batch(ctx context.Context, r ready, x *kube.Execution, batch []int, resumed bool) (*failure.Failure, error) {
	type result struct {
		entry   kube.Step
		failure *failure.Failure
		err     error
	}
	results := make([]result, len(batch))
	carry := func(n, i int) {
		err := failure.Guard(ctx, w.cfg.Log, "step of plan "+r.Name, func() error {
			results[n].entry, results[n].failure, results[n].err = w.step(ctx, r, x, i, resumed)
			return nil
		})
		if err != nil {
			results[n].failure, results[n].err = failure.OfStep(r.objects[i], err)
		}
	}
	for _, last := range []bool{false, true} {
		var running sync.WaitGroup
		for n, i := range batch {
			if x.Status.Steps[i].State == kube.StepTaken && (x.Spec.Account != "" && binds(r.objects[i])) == last {
				running.Go(func() { carry(n, i) })
			}
		}
		running.Wait()
	}
	w.deployed = nil
	var worst *failure.Failure
	var err error
	for n, i := range batch {
		switch res := results[n]; {
		case x.Status.Steps[i].State == kube.StepLeft:
		case res.err != nil:
			err = cmp.Or(err, res.err)
		case res.failure == nil:
			x.Status.Steps[i] = res.entry
		case worst == nil, worst.Class != failure.Permanent && res.failure.Class == failure.Permanent:
			worst = res.failure
		}
	}
	return worst, err
}

// stopped looks at the stop switch as it is now, not as it was when the work began, and whether OLM is at work.
func (w *work) stopped() *failure.Failure {
	if message := w.olmMessage(); message != "" {
		return &failure.Failure{Class: failure.Stopped, Reason: failure.ReasonOLM, Quick: true, Message: message}
	}
	p, _, _ := w.inbox.Get(w.ns)
	if !p.Stopped {
		return nil
	}
	return &failure.Failure{Class: failure.Stopped, Reason: failure.ReasonStopped, Quick: true, Message: "effects are stopped"}
}

// take writes into the log that the next batch is set about, and with it that those before are done; past
// the last step it ends the plan. Entries come with the plan's order, so they are only ever appended.
func (w *work) take(ctx context.Context, r ready, x *kube.Execution) (batch []int, err error) {
	s := &x.Status
	now := w.cfg.Now().UTC()
	s.Phase, s.Class, s.Reason, s.Message, s.Attempts = protocol.PlanStarted, "", "", "", 0
	if !s.Begun {
		s.Begun, s.Started = true, now
	}
	from := len(s.Steps)
	if from == len(r.objects) {
		s.Phase, s.Ended = protocol.PlanFinished, now
		return nil, w.save(ctx, x, "finished")
	}
	for i := from; i < from+following(r.objects, from); i++ {
		o := r.objects[i]
		batch = append(batch, i)
		s.Steps = append(s.Steps, kube.Step{
			Index: i + 1, Group: o.GVK.Group, Kind: o.GVK.Kind, Namespace: o.Namespace, Name: o.Name,
			Digest: string(r.document.Steps[i].Digest), State: kube.StepTaken, Epoch: w.client.Number, Time: now,
		})
	}
	return batch, w.save(ctx, x, "taken")
}

func (w *work) save(ctx context.Context, x *kube.Execution, point string) error {
	if err := w.points.At("before " + point); err != nil {
		return err
	}
	if err := w.client.Save(ctx, x); err != nil {
		return err
	}
	return w.points.At(point)
}

// step applies one object in its turn and returns its entry of the log as done.
func (w *work) step(ctx context.Context, r ready, x *kube.Execution, i int, resumed bool) (kube.Step, *failure.Failure, error) {
	o, entry := r.objects[i], x.Status.Steps[i]
	s, err := r.subject(x, o.Resolving)
	if err != nil {
		f, err := failure.OfStep(o, err)
		return entry, f, err
	}
	body, err := w.dress(s, o)
	if err != nil {
		f, err := failure.OfStep(o, err)
		return entry, f, err
	}
	ctx, warnings := kube.GatherWarnings(ctx)
	as, err := w.as(x, o.GVK)
	if err != nil {
		f, err := failure.OfStep(o, err)
		return entry, f, err
	}
	part, err := w.shareIn(s, o)
	if err != nil {
		f, err := failure.OfStep(o, err)
		return entry, f, err
	}
	if part != nil {
		part.grant = r.Grant
	}
	news, stop := w.signals.Listen(refOf(body))
	defer stop()
	write := writing{body: body, as: as, manager: w.manager(s.bundle.Package), part: part, resumed: resumed}
	applied, found, f, err := w.turn(ctx, write)
	if kube.IsTaken(err) && w.vacant.Fill(refOf(body)) { // it came meanwhile, and is one that was there from now on
		if f, err = w.recheck(ctx, r, o); f == nil && err == nil {
			applied, found, f, err = w.turn(ctx, write)
		}
	}
	if f != nil {
		return entry, f, nil
	}
	if w.unserved(o.GVK, err) {
		return leave(entry, o), nil, nil
	}
	if err == nil && o.GVK.Kind == gvkCRD.Kind {
		if applied, err = w.client.AwaitEstablished(ctx, applied, news); err == nil {
			w.facts.NoteCRD(applied)
		}
	}
	if err != nil {
		f, err := failure.OfStep(o, err)
		return entry, f, err
	}
	entry.Warnings = warnings.List()
	entry.State, entry.UID, entry.Found, entry.Epoch, entry.Time = kube.StepDone, string(applied.GetUID()), found, w.client.Number, w.cfg.Now().UTC()
	return entry, nil, nil
}

// writing is an object as its step writes it.
type writing struct {
	body    *unstructured.Unstructured
	as      *kube.Epoch // who writes
	manager string
	part    *share // nil where nobody else can have the object
	resumed bool   // after a crash
}

// turn waits for the step's turn, honours the stop switch, and puts the object.
func (w *work) turn(ctx context.Context, o writing) (applied *unstructured.Unstructured, found bool, f *failure.Failure, err error) {
	w.turns <- struct{}{}
	defer func() { <-w.turns }()
	if f := w.stopped(); f != nil {
		return nil, false, f, nil
	}
	applied, found, err = w.put(ctx, o)
	return applied, found, nil, err
}

// put applies an object. After a crash it looks first: what already carries the step's digest is not
// written again.
func (w *work) put(ctx context.Context, o writing) (applied *unstructured.Unstructured, found bool, err error) {
	body := o.body
	if o.resumed {
		live, err := w.client.Get(ctx, body.GroupVersionKind(), body.GetNamespace(), body.GetName())
		if err != nil {
			return nil, false, err
		}
		if live != nil && sameOrigin(live.GetAnnotations(), body.GetAnnotations()) {
			if w.cfg.Now().Sub(live.GetCreationTimestamp().Time) < lateFor {
				err = w.adoptLate(ctx, live, o.manager)
			}
			return live, true, err
		}
	}
	vacant := !o.resumed && w.vacant.Has(refOf(body))
	switch {
	case vacant:
		applied, err = w.applying(func() (*unstructured.Unstructured, error) { return o.as.Make(ctx, body, o.manager) })
		if err == nil {
			err = w.adoptLate(ctx, applied, o.manager)
		}
	case o.part != nil:
		applied, err = w.putShared(ctx, o.as, body, *o.part)
	default:
		if err = w.adopt(ctx, body); err == nil {
			applied, err = w.applying(func() (*unstructured.Unstructured, error) { return o.as.Apply(ctx, body, o.manager) })
		}
	}
	if err != nil {
		return nil, false, err
	}
	w.clean(applied)
	if body.GetKind() == kube.GVKInstalledOperator.Kind {
		w.loaded = false // it goes alone, so nobody else reads this now
	}
	return applied, false, w.points.At("applied")
}

// adoptLate marks an object that somebody else made between the look before the plan and the step, just as the step would
// have it. A crash before the mark leaves the step to be looked at again.
func (w *work) adoptLate(ctx context.Context, o *unstructured.Unstructured, manager string) error {
	if kube.Adopted(o) || !kube.CameFirst(o, manager) {
		return nil
	}
	return w.points.Between("adopt", func() error { return w.client.Adopt(ctx, o.GroupVersionKind(), o) })
}

// moving reports whether operators of the namespace are on their way, and not held up.
func (w *work) moving() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(w.outcomes)), func(r protocol.PlanReport) bool { return r.Phase == protocol.PlanStarted }) ||
		slices.ContainsFunc(w.members, func(m *member) bool {
			return m.status.Phase == csv.PhaseInstallReady || m.status.Phase == csv.PhaseInstalling
		})
}

// sameOrigin reports an object that was written by the step that would write it, under the same overlays.
func sameOrigin(live, want map[string]string) bool {
	return live[annotationDigest] == want[annotationDigest] && live[annotationDressed] == want[annotationDressed] && live[annotationPlan] == want[annotationPlan]
}

func refOf(o *unstructured.Unstructured) protocol.ObjectRef {
	gvk := o.GroupVersionKind()
	return protocol.ObjectRef{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// refIn is the name under which a rendered object stands in the cluster.
func refIn(o render.Object) protocol.ObjectRef {
	gvk := o.GVK
	if gvk == kube.GVKCSV {
		gvk = kube.GVKInstalledOperator
	}
	return protocol.ObjectRef{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: o.Namespace, Name: o.Name}
}

// pass asks the gate once for each ClusterServiceVersion.
func (w *work) pass(ctx context.Context, r ready, x *kube.Execution, o render.Object, passed map[string]bool) (*failure.Failure, error) {
	kind := sortOf(o)
	if passed[kind+o.Resolving] && !render.Calls(o.GVK) { // what is called is asked of each batch
		return nil, nil //nolint:nilnil // it was asked
	}
	passed[kind+o.Resolving] = true
	switch {
	case o.GVK == gvkCRD:
		return w.passCRDs(ctx, r, x, o.Resolving)
	case o.GVK == gvkDeployment:
		return w.gate(ctx, r, x, o.Resolving)
	case render.Calls(o.GVK):
		return w.passCallers(ctx, r, x, o.Resolving)
	}
	return nil, nil //nolint:nilnil // nothing is in the way
}

// gate holds the Deployments back until the ClusterServiceVersion's requirements are met (R-CSV-20) and the
// one that it replaces has stepped back (R-CSV-51).
func (w *work) gate(ctx context.Context, r ready, x *kube.Execution, name string) (*failure.Failure, error) {
	if err := w.follow(ctx); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(w.members, func(m *member) bool { return m.object.GetName() == name })
	if i < 0 {
		return w.lost(ctx, name)
	}
	m := w.members[i]
	w.setWaiting(w.ns, !settled(m.status.Phase))
	if settled(m.status.Phase) {
		s, err := r.subject(x, name)
		if err != nil {
			return nil, err
		}
		f, err := w.prepare(ctx, s)
		w.want(r) // an overlay may have changed
		return f, err
	}
	f := &failure.Failure{Class: failure.Transient, Reason: string(m.status.Reason), Message: m.status.Message, Quick: true}
	if m.status.Phase == csv.PhaseFailed { // nothing but a change by somebody ends it
		f.Class = failure.Conflict
	}
	if m.status.Phase == csv.PhasePending && m.status.Reason == csv.ReasonRequirementsUnknown {
		f.Reason, f.Message = failure.ReasonPredecessor, name+" waits for the ClusterServiceVersion that it replaces"
	}
	return f, nil
}

// manager names the field manager of an operator of the namespace.
func (w *work) manager(packageName string) string { return kube.Manager(w.ns, packageName) }
