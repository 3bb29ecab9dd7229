package executor

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/drift"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/clusterconfig"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/compare"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/facts"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

const (
	// correctedFor is how long a drift that was put right is told.
	correctedFor = 10 * time.Minute
	// comparedAtOnce bounds what one look compares: after a restart everything is to be compared once.
	comparedAtOnce = 10
	// componentNotFound is the state of an object that is not there, in kstatus' words.
	componentNotFound = "NotFound"
)

// watchedKinds are the kinds of which a change is a hint to look, the most urgent first. Most are watched only once something
// is wanted of the cluster: one that merely stands by costs little.
func watchedKinds() []watch.Kind {
	managed := func(gvk schema.GroupVersionKind) watch.Kind {
		k := watch.Kind{GVK: gvk, Resource: kube.Resource(gvk).Resource, Selector: kube.SelectManaged, Owner: render.LabelOwnerNamespace}
		if !kube.BuiltIn(gvk.Group) {
			k.CRD = k.Resource + "." + gvk.Group
		}
		return k
	}
	deployments := managed(kube.GVKDeployment)
	deployments.Status = true
	conditions := managed(facts.GVKCondition)
	conditions.Status = true
	out := []watch.Kind{
		managed(kube.GVKInstalledOperator), deployments, managed(kube.GVKPolicy), managed(kube.GVKPolicyBinding),
		{GVK: kube.GVKCRD, Resource: kube.Resource(kube.GVKCRD).Resource, Status: true},
		{GVK: kube.GVKNamespace, Resource: kube.Resource(kube.GVKNamespace).Resource, Labels: true},
		conditions,
		{GVK: clusterconfig.GVKConfigMap, Resource: "configmaps", Namespace: kube.SystemNamespace},
		{GVK: clusterconfig.GVKSecret, Resource: "secrets", Namespace: kube.SystemNamespace, Selector: clusterconfig.LabelPullSecret + "=true"},
		{GVK: clusterconfig.GVKProxy, Resource: "proxies", CRD: "proxies.config.openshift.io", Status: true}, // the values in force stand there
	}
	for _, gvk := range ownedKinds() {
		if gvk != kube.GVKDeployment {
			out = append(out, managed(gvk))
		}
	}
	out = watch.Standby(append(out, mirrorKinds()...), kube.GVKInstalledOperator, kube.GVKPolicy, kube.GVKPolicyBinding, kube.GVKCRD, kube.GVKNamespace)
	return append(out, clusterconfig.TokenKinds()...)
}

// changed wakes the namespaces that a change concerns.
func (s *session) changed(c watch.Change) {
	if s.mirrorChanged(c) || s.tokensChanged(c) {
		return
	}
	switch c.GVK {
	case kube.GVKCRD:
		s.definitionChanged(c)
	case kube.GVKPolicy, kube.GVKPolicyBinding:
		s.policyChanged(c)
	case kube.GVKNamespace:
		s.wake(c.Name)
		s.namespaceChanged(c.Name)
		if s.mirrors.Copying() || c.Name == mirror.GlobalCopies {
			s.wakeKnown()
		}
	case clusterconfig.GVKProxy:
		s.surroundingsChanged()
	default:
		s.objectChanged(c)
	}
}

func (s *session) objectChanged(c watch.Change) {
	if c.Namespace == kube.SystemNamespace && (c.GVK == clusterconfig.GVKSecret || c.Name == clusterconfig.ProxyConfigMap) {
		s.surroundingsChanged()
		return
	}
	namespace := cmp.Or(c.Owner, c.Namespace)
	foreign := c.Moved && s.trail.Seen(namespace, c)
	if foreign && (c.GVK == kube.GVKServiceAccount || c.GVK == clusterconfig.GVKSecret) {
		s.around.ForgetNamespace(c.Namespace)
	}
	s.mirrors.ConditionTouched(c)
	if !foreign && c.Moved && c.GVK != kube.GVKDeployment && c.GVK != facts.GVKCondition {
		return // our own write
	}
	switch c.GVK {
	case facts.GVKCondition, kube.GVKServiceAccount:
		s.facts.ForgetNamespace(namespace)
	case certs.GVKSecret:
		s.certificates.Forget(namespace)
	}
	s.wakeOnes(s.groups.Keeper.Touched(c.GVK, c.Namespace, c.Name, c.Mark))
	s.wake(namespace)
}

// surroundingsChanged has every operator look at what the cluster tells all of them.
func (s *session) surroundingsChanged() {
	s.around.Forget()
	for _, p := range s.inbox.All() {
		s.queue.Add(p.Scope.Namespace)
	}
}

func (s *session) definitionChanged(c watch.Change) {
	if c.Gone && s.mirrors.DefinitionGone(c.Name) {
		s.wakeKnown()
	}
	if !c.Moved {
		s.signals.Tell(c.Ref()) // its status, which somebody may wait for
	}
	users := s.facts.CRDChanged(c.Name, c.Version)
	for _, namespace := range users {
		if c.Moved {
			s.trail.Seen(namespace, c)
		}
		s.wake(namespace)
	}
	s.recheckCRDs()
	for _, namespace := range append(s.waitingScopes(), s.awaiting(c.Name)...) {
		s.wake(namespace)
	}
}

// drift compares what others wrote since the last look with what Chandler would write now, and puts it right or only
// tells of it, as the cluster's settings say (R-CSV-24). What cannot be put right is told and tried again.
//
// Without exactly one operator group nobody knows whom the operators serve, and of a record that has gone back nothing is
// believed: then what moved waits.
func (w *work) drift(ctx context.Context) error {
	if w.RecordBehind || !w.Live.Group.One {
		return nil
	}
	if w.Corrects() {
		for _, ref := range w.uncorrected() {
			w.Trail.Again(w.Namespace, ref, 0)
		}
	}
	moved := w.Trail.Take(w.Namespace)
	w.forgetDrifts()
	left, done := comparedAtOnce, map[protocol.ObjectRef]bool{} // what several operators of the namespace have is compared for each
	for _, m := range w.Operators {
		s, ok := w.TargetAtRest(m)
		if !ok {
			continue
		}
		w.miss(m, moved)
		if err := w.compareMoved(ctx, m, s, moved, done, &left); err != nil {
			return err
		}
	}
	maps.DeleteFunc(moved, func(ref protocol.ObjectRef, _ uint64) bool { return done[ref] })
	w.putBack(moved, left == 0)
	return nil
}

// compareMoved compares what moved of one operator, as long as any are left for this look.
func (w *work) compareMoved(ctx context.Context, m *scope.Operator, s scope.RenderTarget, moved map[protocol.ObjectRef]uint64, done map[protocol.ObjectRef]bool, left *int) error {
	if len(moved) == 0 {
		return nil
	}
	objects, f := w.ObjectsOf(ctx, s)
	if f != nil {
		return nil
	}
	for _, o := range objects {
		mark, ok := moved[scope.RefIn(o)]
		if !ok || *left == 0 || !w.due(m, o) {
			continue
		}
		*left--
		done[scope.RefIn(o)] = true
		if err := w.compareOne(ctx, m, s, o, mark); err != nil {
			return err
		}
	}
	return nil
}

// miss adds the objects of an operator that are not there: of what was deleted while nobody watched there is no news.
// Deployments are the phases' matter.
func (w *work) miss(m *scope.Operator, moved map[protocol.ObjectRef]uint64) {
	for _, c := range w.Live.Components[m.Name()] {
		if c.Status == componentNotFound && c.Kind != kube.GVKDeployment.Kind && (w.Corrects() || !w.drifting(c.ObjectRef)) {
			moved[c.ObjectRef] = 0
		}
	}
}

// drifting reports an object of which a drift is told.
func (w *work) drifting(ref protocol.ObjectRef) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, told := w.drifts[w.Namespace][ref]
	return told
}

// due reports an object that moved and may be compared now: what runs of an operator that wants something waits for its
// phase, and what others change over and over for its time.
func (w *work) due(m *scope.Operator, o render.Object) bool {
	if w.LacksRequirements(m) && scope.SortOf(o) != kube.GVKCRD.Kind {
		return false
	}
	waits := w.Waits(m.Name(), scope.RefIn(o).String())
	if waits {
		w.undone(scope.RefIn(o))
	}
	return !waits
}

// undone has an object told as it is while it waits to be put right once more.
func (w *work) undone(ref protocol.ObjectRef) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d, told := w.drifts[w.Namespace][ref]; told {
		d.Corrected = false
		w.drifts[w.Namespace][ref] = d
	}
}

// compareOne keeps an object of which the comparison fails for a later look.
func (w *work) compareOne(ctx context.Context, m *scope.Operator, s scope.RenderTarget, o render.Object, mark uint64) error {
	err := w.compare(ctx, m, s, o)
	if err != nil {
		w.Trail.Again(w.Namespace, scope.RefIn(o), mark)
	}
	return w.Alone(ctx, m.Name(), scope.RefIn(o).String(), err)
}

// putBack keeps what could not be compared now: while an operator is on its way, its objects are not its last ones; and
// some wait for their time.
func (w *work) putBack(moved map[protocol.ObjectRef]uint64, more bool) {
	resting := !slices.ContainsFunc(w.Operators, func(m *scope.Operator) bool { return !w.AtRest(m) })
	for _, m := range w.Operators {
		maps.DeleteFunc(moved, func(ref protocol.ObjectRef, mark uint64) bool {
			waits := w.Pace.Wait(w.Item(m.Name(), ref.String()), w.Now()) > 0
			if waits {
				w.Trail.Again(w.Namespace, ref, mark)
			}
			return waits
		})
	}
	if len(moved) == 0 || resting && !more {
		return // what is left belongs to no plan's objects, and others look after it
	}
	for ref, mark := range moved {
		w.Trail.Again(w.Namespace, ref, mark)
	}
	if more {
		w.Soon(time.Second)
	}
}

// correct writes an object again that differs from what was installed.
func (w *work) correct(ctx context.Context, m *scope.Operator, s scope.RenderTarget, o render.Object, found protocol.Drift) error {
	written, err := w.objects.In(w.Scope).Reapply(ctx, s, o)
	if w.Unserved(o.GVK, err) {
		return nil // its kind has gone, and comes back with it
	}
	if err != nil {
		found.Reason = drift.Because(found.Kind, err)
		w.noteDrift(m, found)
		return err
	}
	if o.GVK == kube.GVKCSV {
		m.Take(written)
	}
	found.Corrected = true
	w.corrected(m, found)
	w.noteDrift(m, found)
	return nil
}

// compare looks at one object of an operator at rest.
func (w *work) compare(ctx context.Context, m *scope.Operator, s scope.RenderTarget, o render.Object) error {
	if err := w.hold(ctx, s); err != nil {
		return err
	}
	want, err := w.overlays(w.Scope).Decorate(w.Namespace, s, o)
	if err != nil {
		return err
	}
	live, err := w.Client.Get(ctx, want.GroupVersionKind(), want.GetNamespace(), want.GetName())
	if err != nil {
		return err
	}
	if live == nil && o.GVK == kube.GVKCSV {
		return nil // whoever deletes the InstalledOperator itself has uninstalled the operator
	}
	if done, err := w.compareShare(ctx, s, o, live, want); done || err != nil {
		return err
	}
	found := protocol.Drift{ObjectRef: scope.RefOf(want), Missing: live == nil, Since: w.Now().UTC().Truncate(time.Second)}
	if live != nil {
		compare.LeaveReplicas(want, live)
		if live.GetAnnotations()[scope.AnnotationPlan] != s.Plan && lastCounts(o, live) || compare.Holds(want.Object, live.Object) {
			return w.steady(live) // of these the one who wrote it last is the owner of its body
		}
		would, err := w.Client.WouldApply(ctx, want, w.Manager(s.Bundle.Package))
		if err != nil { // it differs, and what would come of a write is not known
			found.Reason = drift.Because(found.Kind, err)
			w.noteDrift(m, found)
			return err
		}
		if found.Fields = compare.Fields(would.Object, live.Object); len(found.Fields) == 0 {
			return w.steady(live)
		}
		found.Manager, found.Since = compare.LastManager(live, w.Manager(s.Bundle.Package), found.Since)
	}
	w.Log.InfoContext(ctx, "object differs from what was installed", "object", found.String(), "namespace", w.Namespace, "missing", found.Missing, "fields", len(found.Fields), "by", found.Manager)
	// A Deployment that is gone is the phases' matter: put right here, it would have been away without a phase that says so.
	if w.Corrects() && (live != nil || o.GVK != kube.GVKDeployment) {
		return w.correct(ctx, m, s, o, found)
	}
	// It may be what an operator requires.
	w.facts.ForgetNamespace(w.Namespace)
	w.Soon(time.Second)
	w.noteDrift(m, found)
	return nil
}

// corrected notes that a drift was put right: with others who write the same again and again nobody fights at the speed
// of a watch. What the operator lacked may be there now.
func (w *work) corrected(m *scope.Operator, d protocol.Drift) {
	by := []string{d.Manager}
	for _, f := range d.Fields {
		by = append(by, f.Path)
	}
	text := m.Name() + ": " + d.String() + " is put right and changed again, over and over, by " + cmp.Or(d.Manager, "somebody")
	w.Pace.Corrected(w.Item(m.Name(), d.ObjectRef.String()), strings.Join(by, " "), text+": have that stop, or have it configured in the subscription", w.Now())
	w.facts.ForgetNamespace(w.Namespace)
	if d.Kind == kube.GVKCRD.Kind {
		w.facts.ForgetCRD(d.Name)
	}
	if w.LacksRequirements(m) {
		w.Soon(time.Second)
	}
}

// steady notes an object that is as it should be.
func (w *work) steady(live *unstructured.Unstructured) error {
	w.Left(live)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.drifts[w.Namespace], scope.RefOf(live))
	return nil
}

// uncorrected are the drifts of the namespace that were only told.
func (w *work) uncorrected() []protocol.ObjectRef {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []protocol.ObjectRef
	for ref, d := range w.drifts[w.Namespace] {
		if !d.Corrected {
			out = append(out, ref)
		}
	}
	return out
}

// carryOn writes the Deployments of an operator again that is waiting for them while they are gone, or to look otherwise by
// now: it would wait five minutes in vain. Otherwise the API server calls it once it answers.
func (w *work) carryOn(ctx context.Context, m *scope.Operator) (bool, error) {
	deployments, err := w.ReadDeployments(ctx)
	if err != nil {
		return false, err
	}
	there := csv.Observe(m.CSV.Spec.Install.Spec.Deployments, w.OwnDeployments(m, deployments), nil).Applied
	if !there && m.Status.Phase == csv.PhaseInstalling && !w.Planned(m.Name()) {
		return w.repair(ctx, m)
	}
	return w.takeOver(ctx, m)
}
