package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/clusterconfig"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/lineage"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/preflight"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/renderlimit"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

const (
	// keptExecutions is how many ended executions stay beside those that are still referred to (R-IP-4).
	keptExecutions = 5
	// removedFor is how long the last words of a replaced ClusterServiceVersion are reported at least.
	removedFor = time.Hour
)

// work is one look at one namespace.
type work struct {
	*session
	ns         string
	plans      protocol.ScopePlans
	refused    bool // the message comes from a record that has gone back
	executions []*kube.Execution
	opened     map[string]ready               // by plan id
	outcomes   map[string]protocol.PlanReport // by plan id
	live       live
	// wanted are the digests, with overlays, of the Deployments that begun plans are about to write, by
	// ClusterServiceVersion.
	wanted  map[string]map[string]string
	slot    *renderlimit.Slot // what operators at rest render to
	vacant  preflight.Vacant  // objects of plans that were not there in this look
	members []*member
	line    lineage.Line // how the members follow each other
	loaded  bool         // members are as the cluster has them
	// deployed are the Deployments as they were read last; nil after a write.
	deployed []appsv1.Deployment
	// aside are those that are being taken apart, which nobody follows any more.
	aside []*member
	// unread are the ClusterServiceVersions that exist and cannot be read, with their plans.
	unread map[string]string
	gone   []protocol.CSVReport
	again  time.Duration
}

// live is what the cluster itself says at the start of a look. Overlays depend on it.
type live struct {
	around clusterconfig.All
	group  liveGroup
	// certificates are those under which operators serve, by name of the Secret.
	certificates map[string]certs.Kept
	// former are CRDs of which a new form keeps something until its operator answers (hold).
	former map[string]certs.Former
	// conditions are what the operators say of upgrades, by ClusterServiceVersion.
	conditions map[string]protocol.OperatorCondition
	// deployments are those that were listed last, by name.
	deployments map[string]*unstructured.Unstructured
	// unready are the Deployments that are not ready, by ClusterServiceVersion and name.
	unready map[string]map[string]protocol.NotReady
	// components are the objects of the operators with their states, by ClusterServiceVersion.
	components map[string][]protocol.Component
}

// reconcile does everything that can be done for one namespace now.
func (s *session) reconcile(ctx context.Context, namespace string) (again time.Duration, err error) {
	plans, behind, known := s.inbox.Get(namespace)
	if !known {
		return s.cfg.Timing.Resync, nil // nobody has said yet what is wanted; a phase depends on it
	}
	if err := s.lookForOLM(ctx); err != nil {
		return 0, err
	}
	w := s.newWork(plans)
	defer w.slot.Release()
	if w.refused, err = s.note(ctx, plans, behind); err != nil {
		return 0, err
	}
	if w.executions, err = s.proven(ctx, namespace); err != nil {
		return 0, err
	}
	if w.resting() {
		if err := w.slot.Acquire(ctx); err != nil {
			return 0, err
		}
	}
	err = failure.Guard(ctx, s.cfg.Log, "namespace "+namespace, func() error { return w.all(ctx) })
	switch {
	case err == nil:
		w.report()
	case !failure.Final(ctx, err):
		w.reportBegun(ctx)
	}
	return w.again, err
}

// proven are the executions of a namespace that the hub granted. Others are left alone, and stand in nobody's way: what
// they say was not asked for.
func (s *session) proven(ctx context.Context, namespace string) ([]*kube.Execution, error) {
	list, unread, err := s.client.Executions(ctx, namespace)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(x *kube.Execution) bool {
		err := x.Proven(s.cfg.GrantKey, s.cfg.ClusterID)
		if err != nil {
			unread = append(unread, err)
		}
		return err != nil
	})
	for _, err := range unread {
		s.cfg.Log.WarnContext(ctx, "PlanExecution is passed over", "namespace", namespace, "error", err)
	}
	return list, nil
}

// newWork is a look that has not begun.
func (s *session) newWork(plans protocol.ScopePlans) *work {
	return &work{
		session: s, ns: plans.Scope.Namespace, plans: plans, wanted: map[string]map[string]string{}, opened: map[string]ready{},
		outcomes: map[string]protocol.PlanReport{}, again: s.cfg.Timing.Resync, slot: s.renders.Slot(),
	}
}

// all makes one look at a namespace. Each stage goes as far as it can now and finds in the cluster what it knows.
func (w *work) all(ctx context.Context) error {
	for _, stage := range []func(context.Context) error{
		w.lookAround, w.lookAtGroup, w.lookAtCertificates, w.collectWanted, w.carryPlans, w.carryRemovals, w.follow, w.bringLate, w.lookAtComponents, w.groupRoles, w.drift, w.mirror, w.prune,
	} {
		if err := stage(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) carryPlans(ctx context.Context) error {
	w.release()
	if !w.resting() {
		w.slot.Release() // a plan may take its time
	}
	for _, p := range w.plans.Plans {
		if err := w.plan(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) soon(d time.Duration) {
	if d > 0 && d < w.again {
		w.again = d
	}
}

func (w *work) execution(plan string) *kube.Execution {
	i := slices.IndexFunc(w.executions, func(x *kube.Execution) bool { return x.Spec.Plan == plan })
	if i < 0 {
		return nil
	}
	return w.executions[i]
}

// ready is a plan with everything that its steps need.
type ready struct {
	protocol.Plan
	document installplan.Document
	objects  []render.Object
	csvs     map[string]bundle.CSV // of its bundles, by name
}

// open reads and checks a plan, once for a look: its digest, before it is begun the operator group that it
// stands on, then what rendering gives against its steps. A plan that was begun goes on with the
// configurations that it was begun with.
func (w *work) open(ctx context.Context, p protocol.Plan, x *kube.Execution) (ready, *failure.Failure) {
	if r, ok := w.opened[p.ID]; ok {
		return r, nil
	}
	r, f := w.parse(p)
	if f != nil {
		return r, f
	}
	switch {
	case x != nil && x.Status.Begun:
		r.Configs = x.Spec.Configs
	case !w.standsOn(r.document.Base.OperatorGroup):
		return r, &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonBase, Quick: true, Message: "the operator group is another one than the plan was made for"}
	}
	for _, b := range r.document.Bundles {
		objects, f := w.render(ctx, b, r.Configs[b.CSV])
		if f != nil {
			return r, f
		}
		r.objects = append(r.objects, objects...)
	}
	if f := r.compare(); f != nil {
		return r, f
	}
	for _, o := range r.objects {
		if o.GVK != kube.GVKCSV {
			continue
		}
		m, err := parseMember(&unstructured.Unstructured{Object: o.Body})
		if err != nil {
			f := failure.OfContent(err)
			return r, &f
		}
		r.csvs[o.Name] = m.csv
	}
	w.opened[p.ID] = r
	return r, nil
}

// standsOn compares the operator group with the one of a plan's base; a plan that names none stands on any.
func (w *work) standsOn(want string) bool {
	if want == "" {
		return true
	}
	g := w.plans.OperatorGroup
	have, err := installplan.BaseFacts{OperatorGroup: installplan.GroupFacts{Name: g.Name, Spec: g.Spec}}.Base()
	return err == nil && have.OperatorGroup == want
}

func (w *work) parse(p protocol.Plan) (ready, *failure.Failure) {
	r := ready{Plan: p, csvs: map[string]bundle.CSV{}}
	got, err := digest.JSON(installplan.DocumentType, p.Document)
	if err != nil || string(got) != p.Digest {
		return r, &failure.Failure{Class: failure.Permanent, Reason: failure.ReasonDigest, Message: "the plan's document has digest " + string(got) + ", not " + p.Digest}
	}
	if err := json.Unmarshal(p.Document, &r.document); err != nil {
		return r, &failure.Failure{Class: failure.Permanent, Reason: failure.ReasonDigest, Message: err.Error()}
	}
	return r, nil
}

func (w *work) render(ctx context.Context, b events.PlannedBundle, config json.RawMessage) ([]render.Object, *failure.Failure) {
	var objects []render.Object
	err := failure.Guard(ctx, w.cfg.Log, "render of "+b.CSV, func() error {
		content, err := w.contents.Get(ctx, digest.Digest(b.Content))
		if err != nil {
			return err
		}
		objects, err = render.Render(render.Input{Content: content, Namespace: w.ns, Config: config})
		return err
	})
	if err == nil {
		return objects, nil
	}
	f := failure.OfContent(errs.Wrap(errs.KindOf(err), err, "bundle %s", b.CSV))
	return nil, &f
}

// objectsOf renders an operator at rest, or takes what was rendered for its plan in this look; what its plan did not
// write is none of it.
func (w *work) objectsOf(ctx context.Context, s subject) ([]render.Object, *failure.Failure) {
	other := func(o render.Object) bool { return o.Resolving != s.bundle.CSV || !s.wrote(o) }
	if r, ok := w.opened[s.plan]; ok && bytes.Equal(r.Configs[s.bundle.CSV], s.config) {
		return slices.DeleteFunc(slices.Clone(r.objects), other), nil
	}
	key := s.bundle.Content + string(s.config)
	objects, ok := w.slot.Find(key)
	if !ok {
		if err := w.slot.Acquire(ctx); err != nil {
			f := failure.OwnObject(err)
			return nil, &f
		}
		var f *failure.Failure
		if objects, f = w.render(ctx, s.bundle, s.config); f != nil {
			return nil, f
		}
		w.slot.Keep(key, objects)
	}
	return slices.DeleteFunc(slices.Clone(objects), other), nil
}

// rendered are the objects of an operator that its plan has written, under way or ended; false while they are not known.
func (w *work) rendered(ctx context.Context, m *member) (s subject, objects []render.Object, known bool) {
	x := w.underWay(m.name())
	if x == nil {
		s, known = w.subject(m)
		if !known {
			return s, nil, false
		}
		objects, f := w.objectsOf(ctx, s)
		return s, objects, f == nil
	}
	r, known := w.opened[x.Spec.Plan]
	if !known {
		return s, nil, false
	}
	s, err := r.subject(x, m.name())
	return s, slices.DeleteFunc(slices.Clone(r.objects), func(o render.Object) bool {
		return o.Resolving != m.name() || !x.Status.Wrote(o.GVK.Group, o.GVK.Kind, o.Namespace, o.Name)
	}), err == nil
}

// compare refuses a plan whose steps are not what rendering gives here.
func (r ready) compare() *failure.Failure {
	mismatch := func(text string) *failure.Failure {
		return &failure.Failure{Class: failure.Permanent, Reason: failure.ReasonDigest, Message: text}
	}
	if len(r.objects) != len(r.document.Steps) {
		return mismatch("the plan has a different number of steps than its bundles give")
	}
	for i, o := range r.objects {
		s := r.document.Steps[i]
		d, err := o.Digest()
		if err != nil {
			return mismatch(err.Error())
		}
		if s.Group != o.GVK.Group || s.Version != o.GVK.Version || s.Kind != o.GVK.Kind || s.Namespace != o.Namespace || s.Name != o.Name || s.Digest != d {
			return mismatch("step " + s.Kind + " " + s.Name + " is not what its bundle gives: " + o.String() + " with digest " + string(d))
		}
	}
	return nil
}

// collectWanted notes the Deployments of plans that are begun and not ended, so that a
// ClusterServiceVersion that runs with other ones is seen to need an install.
func (w *work) collectWanted(ctx context.Context) error {
	for _, p := range w.plans.Plans {
		x := w.execution(p.ID)
		if x == nil || !x.Status.Begun || ended(x) {
			continue
		}
		if r, f := w.open(ctx, p, x); f == nil {
			w.want(r)
		}
	}
	return nil
}

// want notes them. An object that cannot be dressed now is met again by its step, which says why.
func (w *work) want(r ready) {
	for _, o := range r.objects {
		if o.GVK != gvkDeployment {
			continue
		}
		s, err := r.subject(nil, o.Resolving)
		if err != nil {
			continue
		}
		_, dressed, err := w.lay(s, o)
		if err != nil {
			continue
		}
		if w.wanted[o.Resolving] == nil {
			w.wanted[o.Resolving] = map[string]string{}
		}
		w.wanted[o.Resolving][o.Name] = dressed
	}
}

func ended(x *kube.Execution) bool {
	return slices.Contains([]string{protocol.PlanFinished, protocol.PlanFailed, protocol.RemovalRefused}, x.Status.Phase)
}

// prune removes executions that nobody refers to any more, but the newest few.
func (w *work) prune(ctx context.Context) error {
	var old []*kube.Execution
	for _, x := range w.executions {
		referred := slices.ContainsFunc(w.members, func(m *member) bool { return m.plan == x.Spec.Plan }) ||
			slices.Contains(slices.Collect(maps.Values(w.unread)), x.Spec.Plan) ||
			slices.ContainsFunc(w.plans.Plans, func(p protocol.Plan) bool { return p.ID == x.Spec.Plan }) ||
			slices.ContainsFunc(w.plans.Removals, func(r protocol.Removal) bool { return r.ID == x.Spec.Plan })
		if ended(x) && !referred {
			old = append(old, x)
		}
	}
	if len(old) <= keptExecutions {
		return nil
	}
	slices.SortFunc(old, func(a, b *kube.Execution) int {
		if c := a.Status.Ended.Compare(b.Status.Ended); c != 0 {
			return c
		}
		return strings.Compare(a.Spec.Plan, b.Spec.Plan)
	})
	for _, x := range old[:len(old)-keptExecutions] {
		if err := w.alone(ctx, "", partLogs, w.client.Discard(ctx, x)); err != nil {
			return err
		}
	}
	return nil
}
