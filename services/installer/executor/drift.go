package executor

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/cluster"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/drift"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/facts"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/surroundings"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/watch"
)

const (
	// correctedFor is how long a drift that was put right is told.
	correctedFor = 10 * time.Minute
	// comparedAtOnce bounds what one look compares: after a restart everything is to be compared once.
	comparedAtOnce = 10
)

var gvkNamespace = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// watchedKinds are the kinds of which a change is a hint to look, the most urgent first.
func watchedKinds() []watch.Kind {
	managed := func(gvk schema.GroupVersionKind) watch.Kind {
		k := watch.Kind{GVK: gvk, Resource: cluster.Resource(gvk).Resource, Selector: selectManaged, Owner: render.LabelOwnerNamespace}
		if !cluster.BuiltIn(gvk.Group) {
			k.CRD = k.Resource + "." + gvk.Group
		}
		return k
	}
	deployments := managed(gvkDeployment)
	deployments.Status = true
	conditions := managed(facts.GVKCondition)
	conditions.Status = true
	out := []watch.Kind{
		managed(cluster.GVKInstalledOperator), deployments,
		{GVK: gvkCRD, Resource: cluster.Resource(gvkCRD).Resource, Status: true},
		{GVK: gvkNamespace, Resource: cluster.Resource(gvkNamespace).Resource, Labels: true},
		conditions,
		{GVK: surroundings.GVKConfigMap, Resource: "configmaps", Namespace: cluster.SystemNamespace},
		{GVK: surroundings.GVKSecret, Resource: "secrets", Namespace: cluster.SystemNamespace, Selector: surroundings.LabelPullSecret + "=true"},
		{GVK: surroundings.GVKProxy, Resource: "proxies", CRD: "proxies.config.openshift.io"},
	}
	for _, gvk := range ownedKinds() {
		if gvk != gvkDeployment {
			out = append(out, managed(gvk))
		}
	}
	return append(out, mirrorKinds()...)
}

// changed wakes the namespaces that a change concerns.
func (s *session) changed(c watch.Change) {
	if s.mirrorChanged(c) {
		return
	}
	switch c.GVK {
	case gvkCRD:
		s.definitionChanged(c)
	case gvkNamespace:
		s.wake(c.Name)
		s.namespaceChanged(c.Name)
		if s.mirrors.Copying() {
			s.wakeKnown()
		}
	case surroundings.GVKProxy:
		s.surroundingsChanged()
	default:
		if c.Namespace == cluster.SystemNamespace && (c.GVK == surroundings.GVKSecret || c.Name == surroundings.ProxyConfigMap) {
			s.surroundingsChanged()
			return
		}
		namespace := c.Owner
		if namespace == "" {
			namespace = c.Namespace
		}
		foreign := c.Moved && s.trail.Seen(namespace, c)
		if foreign && (c.GVK == gvkAccount || c.GVK == surroundings.GVKSecret) {
			s.around.ForgetNamespace(c.Namespace)
		}
		s.mirrors.ConditionTouched(c)
		if !foreign && c.Moved && c.GVK != gvkDeployment && c.GVK != facts.GVKCondition {
			return // our own write
		}
		switch c.GVK {
		case facts.GVKCondition, gvkAccount:
			s.facts.ForgetNamespace(namespace)
		case certs.GVKSecret:
			s.certificates.Forget(namespace)
		}
		s.wakeOnes(s.groups.Keeper.Touched(c.GVK, c.Namespace, c.Name, c.Mark))
		s.wake(namespace)
	}
}

// surroundingsChanged has every operator look at what the cluster tells all of them.
func (s *session) surroundingsChanged() {
	s.around.Forget()
	for _, p := range s.inbox.All() {
		s.queue.Add(p.Scope.Namespace)
	}
}

func (s *session) definitionChanged(c watch.Change) {
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
	for _, namespace := range s.waitingScopes() {
		s.wake(namespace)
	}
}

// wake has a namespace looked at, if there is anything to do in it.
func (s *session) wake(namespace string) {
	if _, _, known := s.inbox.Get(namespace); known {
		s.queue.Add(namespace)
	}
}

// clean notes an object as Chandler has just left it.
func (s *session) clean(o *unstructured.Unstructured) {
	s.trail.Clean(refOf(o), watch.Mark(o))
}

func refOf(o *unstructured.Unstructured) protocol.ObjectRef {
	gvk := o.GroupVersionKind()
	return protocol.ObjectRef{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// drift compares what others wrote since the last look with what Chandler would write now, and puts it right or only
// tells of it, as the cluster's settings say (R-CSV-24). What cannot be put right is told and tried again.
func (w *work) drift(ctx context.Context) error {
	if w.corrects() {
		for _, ref := range w.uncorrected() {
			w.trail.Again(w.ns, ref, 0)
		}
	}
	moved := w.trail.Take(w.ns)
	w.forgetDrifts()
	left := comparedAtOnce
	for _, m := range w.members {
		s, ok := w.subject(m)
		if len(moved) == 0 || !ok || !w.atRest(m) {
			continue
		}
		objects, f := w.objectsOf(ctx, s)
		if f != nil {
			continue
		}
		for _, o := range objects {
			mark, ok := moved[refIn(o)]
			if !ok || left == 0 {
				continue
			}
			left--
			delete(moved, refIn(o))
			if err := w.compareOne(ctx, m, s, o, mark); err != nil {
				return err
			}
		}
	}
	w.putBack(moved, left == 0)
	return nil
}

// compareOne keeps an object of which the comparison fails for the next look.
func (w *work) compareOne(ctx context.Context, m *member, s subject, o render.Object, mark uint64) error {
	err := w.compare(ctx, m, s, o)
	if err == nil || final(ctx, err) {
		return err
	}
	w.cfg.Log.WarnContext(ctx, "drift is looked at again", "object", o.String(), "namespace", w.ns, "error", err)
	w.trail.Again(w.ns, refIn(o), mark)
	w.soon(errorPause)
	return nil
}

// putBack keeps what could not be compared now: while an operator is on its way, its objects are not its last ones.
func (w *work) putBack(moved map[protocol.ObjectRef]uint64, more bool) {
	resting := !slices.ContainsFunc(w.members, func(m *member) bool { return !w.atRest(m) })
	if len(moved) == 0 || resting && !more {
		return // what is left belongs to no plan's objects, and others look after it
	}
	for ref, mark := range moved {
		w.trail.Again(w.ns, ref, mark)
	}
	if more {
		w.soon(time.Second)
	}
}

// refIn is the name under which a rendered object stands in the cluster.
func refIn(o render.Object) protocol.ObjectRef {
	gvk := o.GVK
	if gvk == cluster.GVKCSV {
		gvk = cluster.GVKInstalledOperator
	}
	return protocol.ObjectRef{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: o.Namespace, Name: o.Name}
}

func (w *work) corrects() bool {
	return w.plans.Settings.WithDefaults().Drift == events.DriftCorrect && w.stopped() == nil
}

// compare looks at one object of an operator at rest.
func (w *work) compare(ctx context.Context, m *member, s subject, o render.Object) error {
	want, err := w.dress(s, o)
	if err != nil {
		return err
	}
	live, err := w.client.Get(ctx, want.GroupVersionKind(), want.GetNamespace(), want.GetName())
	if err != nil {
		return err
	}
	if live == nil && o.GVK == cluster.GVKCSV {
		return nil // whoever deletes the InstalledOperator itself has uninstalled the operator
	}
	found := protocol.Drift{ObjectRef: refOf(want), Missing: live == nil, Since: w.cfg.Now().UTC().Truncate(time.Second)}
	if live != nil {
		if live.GetAnnotations()[annotationPlan] != s.plan && o.Namespace == "" || drift.Holds(want.Object, live.Object) {
			return w.steady(live) // of a shared object the one who wrote it last is the owner of its body
		}
		would, err := w.client.WouldApply(ctx, want, w.manager(s.bundle.Package))
		if err != nil {
			return err
		}
		if found.Fields = drift.Fields(would.Object, live.Object); len(found.Fields) == 0 {
			return w.steady(live)
		}
		found.Manager, found.Since = lastManager(live, w.manager(s.bundle.Package), found.Since)
	}
	w.cfg.Log.InfoContext(ctx, "object differs from what was installed", "object", found.String(), "namespace", w.ns, "missing", found.Missing, "fields", len(found.Fields), "by", found.Manager)
	if w.corrects() {
		written, err := w.reapply(ctx, s, o)
		if err != nil {
			w.noteDrift(m, found)
			return err
		}
		if o.GVK == cluster.GVKCSV {
			m.object = written
		}
		found.Corrected = true
	} else { // it may be what an operator requires
		w.facts.ForgetNamespace(w.ns)
		w.soon(time.Second)
	}
	w.noteDrift(m, found)
	return nil
}

// steady notes an object that is as it should be.
func (w *work) steady(live *unstructured.Unstructured) error {
	w.clean(live)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.drifts[w.ns], refOf(live))
	return nil
}

// drifted is one drift with the operator that it concerns.
type drifted struct {
	protocol.Drift
	operator string
}

func (w *work) noteDrift(m *member, d protocol.Drift) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drifts[w.ns] == nil {
		w.drifts[w.ns] = map[protocol.ObjectRef]drifted{}
	}
	w.drifts[w.ns][d.ObjectRef] = drifted{Drift: d, operator: m.name()}
}

// forgetDrifts forgets what was told of operators that are gone.
func (w *work) forgetDrifts() {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.drifts[w.ns], func(_ protocol.ObjectRef, d drifted) bool { return !w.lives(d.operator) })
}

// uncorrected are the drifts of the namespace that were only told.
func (w *work) uncorrected() []protocol.ObjectRef {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []protocol.ObjectRef
	for ref, d := range w.drifts[w.ns] {
		if !d.Corrected {
			out = append(out, ref)
		}
	}
	return out
}

// driftOf is what is told of an operator, by object.
func (w *work) driftOf(name string) []protocol.Drift {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []protocol.Drift
	for ref, d := range w.drifts[w.ns] {
		if d.operator != name {
			continue
		}
		if age := w.cfg.Now().Sub(d.Since); d.Corrected && age > correctedFor {
			delete(w.drifts[w.ns], ref)
			continue
		}
		out = append(out, d.Drift)
	}
	slices.SortFunc(out, func(a, b protocol.Drift) int { return strings.Compare(a.Group+a.String(), b.Group+b.String()) })
	return out
}

// lastManager names who wrote an object last beside Chandler and Kubernetes, and when; since where nobody is known.
func lastManager(live *unstructured.Unstructured, own string, since time.Time) (string, time.Time) {
	name, at := "", time.Time{}
	for _, f := range live.GetManagedFields() {
		if f.Subresource == "" && f.Manager != own && f.Manager != watch.KubernetesManager && f.Time != nil && !f.Time.Time.Before(at) {
			name, at = f.Manager, f.Time.UTC()
		}
	}
	if name == "" {
		return "", since
	}
	return name, at
}
