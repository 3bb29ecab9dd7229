package executor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/groups"
	mirrors "github.com/chandler-fleet/chandler/services/installer/executor/internal/mirror"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
	"github.com/chandler-fleet/chandler/services/installer/group"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// mirrorKinds are watched beside what Chandler manages: the mirrors, the OLMConfig, and OLM itself.
func mirrorKinds() []watch.Kind {
	kind := func(gvk schema.GroupVersionKind, selector, owner string) watch.Kind {
		k := watch.Kind{GVK: gvk, Resource: kube.Resource(gvk).Resource, Selector: selector, Owner: owner}
		k.CRD = k.Resource + "." + gvk.Group
		return k
	}
	out := []watch.Kind{kind(mirror.GVKOLMConfig, "", "")}
	for _, gvk := range mirror.Kinds() {
		out = append(out, kind(gvk, mirror.LabelMirror, mirror.LabelMirror))
	}
	return append(out, watch.Kind{GVK: gvkDeployment, Resource: kube.Resource(gvkDeployment).Resource, Selector: mirror.OLMSelector()})
}

// mirrorChanged takes a change of what mirrorKinds name; false where it concerns something else.
func (s *session) mirrorChanged(c watch.Change) bool {
	switch {
	case c.GVK == gvkDeployment && slices.Contains(mirror.OLMDeployments(), c.Name):
		s.olm.Hint()
		s.wakeKnown()
	case c.GVK == mirror.GVKOLMConfig:
		if c.Moved {
			s.mirrors.ConfigChanged()
			s.wakeKnown()
		}
	case slices.Contains(mirror.Kinds(), c.GVK):
		if home, foreign := s.mirrors.Changed(c); foreign {
			s.wake(home)
		}
	default:
		return false
	}
	return true
}

// mirrorsListed has mirrors written again that are not there though they were written.
func (s *session) mirrorsListed(gvk schema.GroupVersionKind) {
	there := func(namespace, name string) bool {
		found, _ := s.watcher.There(gvk, namespace, name)
		return found
	}
	if s.mirrors.Listed(gvk, there) {
		s.wakeKnown()
	}
}

// policyChanged has an admission policy of ours put right.
func (s *session) policyChanged(c watch.Change) {
	if slices.Contains(kube.Policies(), c.Name) {
		s.policyTouched()
	}
	if c.Gone && s.mirrors.PolicyGone(c.Name) {
		s.wakeKnown()
	}
}

// wake has a namespace looked at, if there is anything to do in it.
func (s *session) wake(namespace string) {
	if _, _, known := s.inbox.Get(namespace); known {
		s.queue.Add(namespace)
	}
}

func (s *session) wakeOnes(namespaces []string) {
	for _, ns := range namespaces {
		s.wake(ns)
	}
}

// namespaceChanged wakes the groups whose targets a namespace may be (R-OG §7.1).
func (s *session) namespaceChanged(name string) {
	for _, p := range s.inbox.All() {
		if p.OperatorGroups == 1 && group.Follows(p.OperatorGroup.Spec, name) {
			s.wake(p.Scope.Namespace)
		}
	}
}

// wakeKnown has every namespace looked at in which there is anything to do.
func (s *session) wakeKnown() {
	for _, p := range s.inbox.All() {
		s.queue.Add(p.Scope.Namespace)
	}
}

// namespaces are those of the cluster by name. At the start of a session they are waited for.
func (s *session) namespaces(ctx context.Context) ([]group.Namespace, error) {
	within, cancel := context.WithTimeout(ctx, namespacesFor)
	defer cancel()
	s.watcher.Await(within, gvkNamespace)
	if labels, ok := s.watcher.Labels(gvkNamespace); ok {
		return groups.Namespaces(labels), nil
	}
	return nil, errs.New(errs.Unavailable, "the namespaces of the cluster could not be listed yet: see that Chandler may list and watch them")
}

// lookForOLM is asked before anything is done in a look: where OLM is at work, nothing is.
func (s *session) lookForOLM(ctx context.Context) error {
	running, changed, err := s.olm.Running(ctx)
	if changed {
		s.reportCluster()
	}
	if err == nil && running != "" {
		err = s.mirrors.StandBack(ctx)
	}
	return err
}

// prepareMirrors makes the definitions and the admission policy before the first plan needs them; where that fails, a
// look at a namespace says so.
func (s *session) prepareMirrors(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-s.inbox.First():
	}
	all := s.inbox.All()
	if len(all) == 0 {
		return
	}
	err := s.lookForOLM(ctx)
	if err == nil && s.olmMessage() == "" {
		err = s.mirrors.Ensure(ctx, all[0].Settings.WithDefaults().Mirror)
	}
	if failure.IsCrash(err) {
		s.end(err)
	}
}

// olmMessage says what stands in the way where OLM is at work, "" otherwise.
func (s *session) olmMessage() string {
	running := s.olm.Known()
	if running == "" {
		return ""
	}
	return "OLM is at work in this cluster, and two masters would undo each other's work. Found: " + running +
		". Scale these Deployments to 0 or remove them, and Chandler goes on by itself"
}

// mirror keeps the objects that show people and tools what is installed (package mirror). It holds up nothing else:
// what cannot be written is told and tried again.
func (w *work) mirror(ctx context.Context) error {
	if w.refused || w.stopped() != nil {
		return nil
	}
	setting := w.plans.Settings.WithDefaults().Mirror
	more, err := w.keepMirrors(ctx, setting)
	if more {
		w.soon(time.Second)
	}
	if err == nil {
		var wait time.Duration
		wait, err = w.mirrors.Retire(ctx, setting, w.cfg.Now())
		w.soon(wait)
	}
	if err == nil || failure.Final(ctx, err) {
		return err
	}
	w.cfg.Log.WarnContext(ctx, "mirrors are tried again", "namespace", w.ns, "error", err)
	w.soon(w.cfg.Timing.Pause)
	return nil
}

func (w *work) keepMirrors(ctx context.Context, setting string) (more bool, err error) {
	if err := w.mirrors.Ensure(ctx, setting); err != nil {
		return false, err
	}
	if setting == events.MirrorNone {
		return w.mirrors.Keep(ctx, w.ns, nil)
	}
	showing, err := w.showing(ctx, setting)
	if err != nil {
		return false, err
	}
	wanted, err := w.shownOperators(showing)
	if err != nil {
		return false, err
	}
	w.mirrors.TellRemoved(w.removedEvents())
	if setting == events.MirrorAll {
		beside, err := w.shownBeside(ctx)
		if err != nil {
			return false, err
		}
		wanted = append(wanted, beside...)
	}
	if w.plans.Settings.WithDefaults().Events == events.EventsOff {
		for i := range wanted {
			wanted[i].Events = nil
		}
	}
	if more, err = w.mirrors.Keep(ctx, w.ns, wanted); err != nil && failure.Final(ctx, err) {
		return more, err
	}
	return more, errors.Join(err, w.tellCopies(ctx, showing))
}

// removedEvents are the Events of operators that were removed, whose mirrors are about to go.
func (w *work) removedEvents() []mirrors.Wanted {
	if w.plans.Settings.WithDefaults().Events == events.EventsOff {
		return nil
	}
	var out []mirrors.Wanted
	for _, c := range w.removed() {
		if c.UID == "" {
			continue
		}
		out = append(out, mirrors.Wanted{
			Key:    mirrors.Key{GVK: mirror.GVKCSV, Namespace: w.ns, Name: c.Name},
			Events: mirror.CSVEvents(c.Name, c.UID, c.Dropped, c.History),
		})
	}
	return out
}

// everybody are the members, and those that are being taken apart: they are shown until they are gone.
func (w *work) everybody() []*member { return slices.Concat(w.members, w.aside) }

// installed is a member as mirrors show it.
func (w *work) installed(m *member) mirrors.Installed {
	return mirrors.Installed{UID: string(m.object.GetUID()), CSV: m.csv, Operator: mirror.Operator{
		Namespace: w.ns, Name: m.name(), Package: m.object.GetAnnotations()[annotationPackage], Replaces: m.csv.Spec.Replaces,
		Labels: m.object.GetLabels(), Status: m.status,
	}}
}

// showing is how the operators of the namespace are shown.
func (w *work) showing(ctx context.Context, setting string) (mirrors.Showing, error) {
	copies, err := w.mirrors.Copies(ctx, setting == events.MirrorAll, w.cfg.Now())
	if err != nil {
		return mirrors.Showing{}, err
	}
	showing := mirrors.Showing{Copies: copies, Now: w.cfg.Now(), Manifest: w.manifest}
	if w.plans.OperatorGroups == 1 {
		showing.Group = mirror.Group{Name: w.plans.OperatorGroup.Name, Targets: w.targets()}
	}
	var known bool
	if showing.Namespaces, known = w.watcher.Labels(gvkNamespace); !known && (copies == mirror.CopiesEnabled || showing.Group.Global()) {
		return showing, errs.New(errs.Unavailable, "the namespaces of the cluster are not known yet")
	}
	return showing, nil
}

// shownOperators are the ClusterServiceVersions of the members, and their copies where the cluster asks for them.
func (w *work) shownOperators(showing mirrors.Showing) ([]mirrors.Wanted, error) {
	var out []mirrors.Wanted
	for _, m := range w.everybody() {
		list, wait, err := showing.Operator(w.installed(m), digest.Digest(m.object.GetAnnotations()[annotationContent]))
		if err != nil {
			return nil, err
		}
		w.soon(wait)
		out = append(out, list...)
	}
	return out, nil
}

// tellCopies says of operators that serve all namespaces whether they are copied, once what shows them is there (R-CFG-2).
func (w *work) tellCopies(ctx context.Context, showing mirrors.Showing) error {
	if !showing.Group.Global() {
		return nil
	}
	for _, m := range w.everybody() {
		if err := w.mirrors.TellCopies(ctx, w.installed(m), showing.Copies, showing.Now); err != nil {
			return err
		}
	}
	return nil
}

// manifest is the ClusterServiceVersion of a bundle as its author wrote it.
func (w *work) manifest(ctx context.Context, content digest.Digest) (bundle.CSV, error) {
	c, err := w.contents.Get(ctx, content)
	if err != nil {
		return bundle.CSV{}, err
	}
	return c.CSV()
}

// shownBeside are the mirrors of what is no operator: subscriptions, plans, the operator group, and all parts of each
// package.
func (w *work) shownBeside(ctx context.Context) ([]mirrors.Wanted, error) {
	now, packages, bundles := w.cfg.Now(), map[string]string{}, map[string][]events.PlannedBundle{}
	var installed []mirror.Operator
	for _, m := range w.members {
		i := w.installed(m)
		installed = append(installed, i.Operator)
		packages[i.Name] = i.Package
	}
	var untouched []mirror.Plan // approved, and nothing of them was begun
	for _, p := range w.plans.Plans {
		var d installplan.Document
		if err := json.Unmarshal(p.Document, &d); err == nil { // otherwise the plan fails for that, and says so
			bundles[p.ID] = d.Bundles
		}
		if w.execution(p.ID) == nil {
			untouched = append(untouched, mirror.Plan{ID: p.ID, Name: p.Name, Bundles: d.Bundles})
		}
	}
	plans := slices.Concat(mirrors.Plans(w.executions, bundles, packages), untouched, mirror.Waiting(w.plans.Waiting))
	missing := w.missing()
	objects, err := w.shownPackages(ctx, missing)
	if err != nil || missing {
		list, smallErr := mirrors.Small(objects)
		return list, errors.Join(err, smallErr)
	}
	objects = append(objects, mirror.CatalogSources(w.ns, w.plans.Subscriptions)...)
	known := mirror.Known{Installed: installed, Plans: plans, FailForward: w.plans.OperatorGroup.Spec.UpgradeStrategy == failForward}
	for _, s := range w.plans.Subscriptions {
		objects = append(objects, mirror.Subscription(w.ns, s, known, now))
	}
	for _, p := range plans {
		objects = append(objects, mirror.InstallPlan(w.ns, p, w.plans.Subscriptions))
	}
	var report protocol.ScopeReport
	w.tellGroup(&report)
	if report.Group != nil {
		o, err := mirror.OperatorGroup(w.ns, w.plans.OperatorGroup, *report.Group, now)
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return mirrors.Small(objects)
}

// missing reports that the namespace is not there yet: what shows it must lie elsewhere.
func (w *work) missing() bool {
	labels, known := w.watcher.Labels(gvkNamespace)
	_, found := labels[w.ns]
	return known && !found
}

// shownPackages are the Operators of the members' packages, with the objects of all their versions (R-CSV-62), and of those
// that are subscribed to and not there yet.
func (w *work) shownPackages(ctx context.Context, missing bool) ([]mirror.Object, error) {
	parts := map[string][]protocol.Component{}
	for _, s := range w.plans.Subscriptions {
		parts[s.Spec.Package] = nil
		if !missing {
			parts[s.Spec.Package] = []protocol.Component{{ObjectRef: protocol.ObjectRef{
				Group: mirror.GVKSubscription.Group, Version: mirror.GVKSubscription.Version, Kind: mirror.GVKSubscription.Kind, Namespace: w.ns, Name: s.Name,
			}}}
		}
	}
	for _, m := range w.everybody() {
		pkg := m.object.GetAnnotations()[annotationPackage]
		refs, err := w.partsOf(ctx, m)
		if err != nil {
			return nil, err
		}
		list := make([]protocol.Component, len(refs))
		for i, ref := range refs {
			list[i].ObjectRef = ref
		}
		parts[pkg] = append(parts[pkg], withWaiting(list, w.waitingComponents(m))...)
	}
	var out []mirror.Object
	for pkg, list := range parts {
		out = append(out, mirror.OperatorOf(w.ns, pkg, list, missing, w.cfg.Now()))
	}
	return out, nil
}

// partsOf are the objects of a member: its InstalledOperator, and what its bundle renders to. They are rendered once.
func (w *work) partsOf(ctx context.Context, m *member) ([]protocol.ObjectRef, error) {
	uid := string(m.object.GetUID())
	w.mu.Lock()
	refs, known := w.parts[uid]
	w.mu.Unlock()
	if known {
		return refs, nil
	}
	s := subject{plan: m.plan, bundle: events.PlannedBundle{CSV: m.name(), Content: m.object.GetAnnotations()[annotationContent]}}
	objects, f := w.objectsOf(ctx, s)
	if f != nil {
		return nil, errs.New(errs.Unavailable, "the parts of %s are not known: %s", m.name(), f.Message)
	}
	for _, o := range objects {
		refs = append(refs, refIn(o))
	}
	w.mu.Lock()
	w.parts[uid] = refs
	w.mu.Unlock()
	return refs, nil
}

// keepConditions makes for each operator the OperatorCondition that it may write, before its pods start (R-COND-1).
func (w *work) keepConditions(ctx context.Context) error {
	if w.stopped() != nil || len(w.members) == 0 || w.waits("", partCondition) {
		return nil
	}
	if err := w.mirrors.Ensure(ctx, w.plans.Settings.WithDefaults().Mirror); err != nil {
		return w.alone(ctx, "", partCondition, err)
	}
	w.pace.Succeeded(w.item("", partCondition))
	for _, m := range w.members {
		if m.status.Phase == csv.PhaseDeleting || m.object.GetDeletionTimestamp() != nil || m.doubted || w.waits(m.name(), partCondition) {
			continue
		}
		if err := w.alone(ctx, m.name(), partCondition, w.mirrors.KeepCondition(ctx, w.installed(m), w.clean)); err != nil {
			return err
		}
	}
	return nil
}
