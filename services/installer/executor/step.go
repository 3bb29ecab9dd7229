package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/cluster"
)

// Annotations that Chandler puts on what it applies.
const (
	annotationDigest      = "chandler-fleet.io/applied-digest"
	annotationPlan        = "chandler-fleet.io/plan"
	annotationComponent   = "chandler-fleet.io/component"
	annotationContent     = "chandler-fleet.io/content"
	annotationPackage     = "chandler-fleet.io/package"
	annotationTraceParent = "chandler-fleet.io/traceparent"
	annotationUnserved    = "chandler-fleet.io/not-served" // what the bundle declares and does not get
)

// managerPrefix begins every field manager: one for each operator (DESIGN D7).
const managerPrefix = "chandler/"

// maxManager is what the API allows for the name of a field manager.
const maxManager = 128

const (
	// maxBatch is how many steps one write of the log sets about.
	maxBatch = 64
	// parallelWrites is how many of them are written at a time. Most of a write is waiting for the API
	// server's disk; the wait for a CRD to be established is not counted.
	parallelWrites = 4
)

// steps carries out what is not Done, in order, batch by batch. It returns a failure that stands in the
// way of a step, or an error that concerns the log or the session.
func (w *work) steps(ctx context.Context, r ready, x *cluster.Execution) (f *failure, err error) {
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
		if f, err = w.pass(ctx, r.objects[batch[0]], passed); f != nil || err != nil {
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
		if objects[i].GVK.Kind == cluster.GVKCSV.Kind {
			break
		}
	}
	return n - i
}

// sortOf tells apart what must not be set about together (R-IP-20): the ClusterServiceVersion goes alone, since
// the others name it as their owner; accounts and rights need no CRD, so they do not wait for the API
// server to establish one; other kinds may need one; Deployments come after all.
func sortOf(o render.Object) string {
	switch o.GVK.Kind {
	case gvkCRD.Kind, gvkAccount.Kind, "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
		return gvkCRD.Kind
	case cluster.GVKCSV.Kind, gvkDeployment.Kind:
		return o.GVK.Kind
	}
	return ""
}

// batch carries out steps side by side and notes those that are done in memory; the next write of the log
// says so. Of several failures the worst is returned: an error, then what is permanent, then the first.
func (w *work) batch(ctx context.Context, r ready, x *cluster.Execution, batch []int, resumed bool) (*failure, error) {
	type result struct {
		entry   cluster.Step
		failure *failure
		err     error
	}
	results := make([]result, len(batch))
	turns := make(chan struct{}, parallelWrites)
	var running sync.WaitGroup
	for n, i := range batch {
		running.Go(func() {
			err := guard(ctx, w.cfg.Log, "step of plan "+r.Name, func() error {
				results[n].entry, results[n].failure, results[n].err = w.step(ctx, r, x, i, resumed, turns)
				return nil
			})
			if err != nil {
				results[n].entry, results[n].failure, results[n].err = blame(r.objects[i], err)
			}
		})
	}
	running.Wait()
	var worst *failure
	var err error
	for n, i := range batch {
		switch res := results[n]; {
		case res.err != nil:
			err = cmp.Or(err, res.err)
		case res.failure == nil:
			x.Status.Steps[i] = res.entry
		case worst == nil, worst.class != classPermanent && res.failure.class == classPermanent:
			worst = res.failure
		}
	}
	return worst, err
}

// stopped looks at the stop switch as it is now, not as it was when the work began.
func (w *work) stopped() *failure {
	p, _, _ := w.inbox.get(w.ns)
	if !p.Stopped {
		return nil
	}
	return &failure{class: classStopped, reason: reasonStopped, quick: true, message: "effects are stopped"}
}

// take writes into the log that the next batch is set about, and with it that those before are done; past
// the last step it ends the plan. Entries come with the plan's order, so they are only ever appended.
func (w *work) take(ctx context.Context, r ready, x *cluster.Execution) (batch []int, err error) {
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
		s.Steps = append(s.Steps, cluster.Step{
			Index: i + 1, Group: o.GVK.Group, Kind: o.GVK.Kind, Namespace: o.Namespace, Name: o.Name,
			Digest: string(r.document.Steps[i].Digest), State: cluster.StepTaken, Epoch: w.client.Number, Time: now,
		})
	}
	return batch, w.save(ctx, x, "taken")
}

func (w *work) save(ctx context.Context, x *cluster.Execution, point string) error {
	if err := w.at("before " + point); err != nil {
		return err
	}
	if err := w.client.Save(ctx, x); err != nil {
		return err
	}
	return w.at(point)
}

// step applies one object in its turn and returns its entry of the log as done.
func (w *work) step(ctx context.Context, r ready, x *cluster.Execution, i int, resumed bool, turns chan struct{}) (cluster.Step, *failure, error) {
	o, entry := r.objects[i], x.Status.Steps[i]
	body, err := w.dress(r, x, o, entry.Digest)
	if err != nil {
		return blame(o, err)
	}
	applied, found, f, err := w.turn(ctx, body, w.manager(r.packageOf(o.Resolving)), resumed, turns)
	if f != nil {
		return entry, f, nil
	}
	if err == nil && o.GVK.Kind == gvkCRD.Kind {
		err = w.client.AwaitEstablished(ctx, applied)
		w.facts.forget(o.Name)
	}
	if err != nil {
		return blame(o, err)
	}
	entry.State, entry.UID, entry.Found, entry.Epoch, entry.Time = cluster.StepDone, string(applied.GetUID()), found, w.client.Number, w.cfg.Now().UTC()
	return entry, nil, nil
}

// turn waits for the step's turn, honours the stop switch, and puts the object.
func (w *work) turn(ctx context.Context, body *unstructured.Unstructured, manager string, resumed bool, turns chan struct{}) (applied *unstructured.Unstructured, found bool, f *failure, err error) {
	turns <- struct{}{}
	defer func() { <-turns }()
	if f := w.stopped(); f != nil {
		return nil, false, f, nil
	}
	applied, found, err = w.put(ctx, body, manager, resumed)
	return applied, found, nil, err
}

// put applies an object. After a crash it looks first: what already carries the step's digest is not
// written again.
func (w *work) put(ctx context.Context, body *unstructured.Unstructured, manager string, resumed bool) (applied *unstructured.Unstructured, found bool, err error) {
	if resumed {
		live, err := w.client.Get(ctx, body.GroupVersionKind(), body.GetNamespace(), body.GetName())
		if err != nil {
			return nil, false, err
		}
		if live != nil && live.GetAnnotations()[annotationDigest] == body.GetAnnotations()[annotationDigest] &&
			live.GetAnnotations()[annotationPlan] == body.GetAnnotations()[annotationPlan] {
			return live, true, nil
		}
	}
	if err := w.at("before apply"); err != nil {
		return nil, false, err
	}
	applied, err = w.client.Apply(ctx, body, manager)
	if err != nil {
		return nil, false, err
	}
	return applied, false, w.at("applied")
}

// dress adds to a rendered object what only the cluster and the plan know.
func (w *work) dress(r ready, x *cluster.Execution, o render.Object, stepDigest string) (*unstructured.Unstructured, error) {
	body := &unstructured.Unstructured{Object: o.Clone().Body}
	labels := body.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[cluster.LabelManaged] = "true"
	body.SetLabels(labels)
	extra := map[string]string{annotationDigest: stepDigest, annotationPlan: r.ID, annotationComponent: r.Component}
	if o.GVK.Kind == cluster.GVKCSV.Kind {
		if err := r.dressCSV(body, extra); err != nil {
			return nil, err
		}
	}
	annotations := body.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for k, v := range extra {
		if v != "" {
			annotations[k] = v
		}
	}
	body.SetAnnotations(annotations)
	return body, w.own(x, o, body)
}

// dressCSV says in a ClusterServiceVersion where it comes from and what it does not get, and makes
// spec.replaces the installed one that the plan follows, from which a range may have skipped.
func (r ready) dressCSV(body *unstructured.Unstructured, annotations map[string]string) error {
	i := slices.IndexFunc(r.document.Bundles, func(b events.PlannedBundle) bool { return b.CSV == body.GetName() })
	if i < 0 {
		return fmt.Errorf("plan %s has no bundle %s", r.Name, body.GetName())
	}
	m, err := parseMember(body)
	if err != nil {
		return err
	}
	b := r.document.Bundles[i]
	annotations[annotationContent], annotations[annotationPackage], annotations[annotationTraceParent] = b.Content, b.Package, r.TraceParent
	annotations[annotationUnserved] = strings.Join(render.Unserved(m.csv), ", ")
	if b.Replaces == "" {
		return nil
	}
	return unstructured.SetNestedField(body.Object, b.Replaces, "spec", "replaces")
}

// own makes the ClusterServiceVersion the owner of what lies in its namespace, so that the cluster removes
// it with it, even without Chandler (R-IP-23, R-CSV-52).
func (w *work) own(x *cluster.Execution, o render.Object, body *unstructured.Unstructured) error {
	if o.Namespace != w.ns || o.GVK.Kind == cluster.GVKCSV.Kind {
		return nil
	}
	uid := ""
	for _, s := range x.Status.Steps {
		if s.Kind == cluster.GVKCSV.Kind && s.Name == o.Resolving && s.State == cluster.StepDone {
			uid = s.UID
		}
	}
	if uid == "" {
		return fmt.Errorf("%s comes before its ClusterServiceVersion %s", o, o.Resolving)
	}
	setOwner(body, o.Resolving, uid)
	return nil
}

func setOwner(body *unstructured.Unstructured, csvName, uid string) {
	meta, ok := body.Object["metadata"].(map[string]any)
	if !ok {
		return
	}
	meta["ownerReferences"] = []any{map[string]any{
		"apiVersion": cluster.GVKCSV.GroupVersion().String(), "kind": cluster.GVKCSV.Kind, "name": csvName, "uid": uid,
		"blockOwnerDeletion": false, "controller": false,
	}}
}

// pass asks the gate once for each ClusterServiceVersion.
func (w *work) pass(ctx context.Context, o render.Object, passed map[string]bool) (*failure, error) {
	if o.GVK.Kind != "Deployment" || passed[o.Resolving] {
		return nil, nil //nolint:nilnil // nothing is in the way
	}
	passed[o.Resolving] = true
	return w.gate(ctx, o.Resolving)
}

// gate holds the Deployments back until the ClusterServiceVersion's requirements are met (R-CSV-20) and the
// one that it replaces has stepped back (R-CSV-51).
func (w *work) gate(ctx context.Context, name string) (*failure, error) {
	if err := w.follow(ctx); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(w.members, func(m *member) bool { return m.object.GetName() == name })
	if i < 0 && w.lives(name) {
		return &failure{class: classConflict, reason: reasonBase, message: "ClusterServiceVersion " + name + " was changed and cannot be read any more"}, nil
	}
	if i < 0 {
		return &failure{class: classConflict, reason: reasonBase, message: "ClusterServiceVersion " + name + " was removed while its plan runs"}, nil
	}
	m := w.members[i]
	w.setWaiting(w.ns, !settled(m.status.Phase))
	if settled(m.status.Phase) {
		return nil, nil //nolint:nilnil // the way is free
	}
	f := &failure{class: classTransient, reason: string(m.status.Reason), message: m.status.Message, quick: true}
	if m.status.Phase == csv.PhasePending && m.status.Reason == csv.ReasonRequirementsUnknown {
		f.reason, f.message = reasonPredecessor, name+" waits for the ClusterServiceVersion that it replaces"
	}
	return f, nil
}

// manager names the field manager of an operator: its package in its namespace. Both stay the same from
// version to version; the set of operators that are planned together does not, and two namespaces
// under one name would take the fields of shared objects from each other.
func (w *work) manager(packageName string) string {
	m := managerPrefix + w.ns + "/" + packageName
	if len(m) > maxManager {
		short := digest.Bytes([]byte(m)).Short()
		m = m[:maxManager-len(short)] + short
	}
	return m
}

// packageOf is the package of one of the plan's ClusterServiceVersions.
func (r ready) packageOf(csvName string) string {
	for _, b := range r.document.Bundles {
		if b.CSV == csvName {
			return b.Package
		}
	}
	return ""
}

// blame sorts an error of a step: what ends the session stays an error.
func blame(o render.Object, err error) (cluster.Step, *failure, error) {
	if isCrash(err) || cluster.IsFenced(err) || errors.Is(err, context.Canceled) {
		return cluster.Step{}, nil, err
	}
	f := classify(err)
	f.message = o.String() + ": " + f.message
	return cluster.Step{}, &f, nil
}
