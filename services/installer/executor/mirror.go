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
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
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
	return append(out, watch.Kind{GVK: kube.GVKDeployment, Resource: kube.Resource(kube.GVKDeployment).Resource, Selector: mirror.OLMSelector()})
}

// mirrorChanged takes a change of what mirrorKinds name; false where it concerns something else.
func (s *session) mirrorChanged(c watch.Change) bool {
	switch {
	case c.GVK == kube.GVKDeployment && slices.Contains(mirror.OLMDeployments(), c.Name):
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
	s.watcher.Await(within, kube.GVKNamespace)
	if labels, ok := s.watcher.Labels(kube.GVKNamespace); ok {
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
	if w.RecordBehind || w.Stopped() != nil {
		return nil
	}
	setting := w.Wanted.Settings.WithDefaults().Mirror
	more, err := w.keepMirrors(ctx, setting)
	if more {
		w.Soon(time.Second)
	}
	if err == nil {
		var wait time.Duration
		wait, err = w.mirrors.Retire(ctx, setting, w.Now())
		w.Soon(wait)
	}
	if err == nil || failure.Final(ctx, err) {
		return err
	}
	w.Log.WarnContext(ctx, "mirrors are tried again", "namespace", w.Namespace, "error", err)
	w.Soon(w.Pause)
	return nil
}

func (w *work) keepMirrors(ctx context.Context, setting string) (more bool, err error) {
	if err := w.mirrors.Ensure(ctx, setting); err != nil {
		return false, err
	}
	if setting == events.MirrorNone {
		return w.mirrors.Keep(ctx, w.Namespace, nil)
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
	if w.Wanted.Settings.WithDefaults().Events == events.EventsOff {
		for i := range wanted {
			wanted[i].Events = nil
		}
	}
	if more, err = w.mirrors.Keep(ctx, w.Namespace, wanted); err != nil && failure.Final(ctx, err) {
		return more, err
	}
	return more, errors.Join(err, w.tellCopies(ctx, showing))
}

// removedEvents are the Events of operators that were removed, whose mirrors are about to go.
func (w *work) removedEvents() []mirrors.Wanted {
	if w.Wanted.Settings.WithDefaults().Events == events.EventsOff {
		return nil
	}
	var out []mirrors.Wanted
	for _, c := range w.FinalReports() {
		if c.UID == "" {
			continue
		}
		out = append(out, mirrors.Wanted{
			Key:    mirrors.Key{GVK: mirror.GVKCSV, Namespace: w.Namespace, Name: c.Name},
			Events: mirror.CSVEvents(c.Name, c.UID, c.Dropped, c.History),
		})
	}
	return out
}

// installed is a member as mirrors show it.
func (w *work) installed(m *scope.Operator) mirrors.Installed {
	return mirrors.Installed{UID: string(m.Object.GetUID()), CSV: m.CSV, Operator: mirror.Operator{
		Namespace: w.Namespace, Name: m.Name(), Package: m.Object.GetAnnotations()[scope.AnnotationPackage], Replaces: m.CSV.Spec.Replaces,
		Labels: m.Object.GetLabels(), Status: m.Status,
	}}
}

// showing is how the operators of the namespace are shown.
func (w *work) showing(ctx context.Context, setting string) (mirrors.Showing, error) {
	copies, err := w.mirrors.Copies(ctx, setting == events.MirrorAll, w.Now())
	if err != nil {
		return mirrors.Showing{}, err
	}
	showing := mirrors.Showing{Copies: copies, Now: w.Now(), Manifest: w.manifest}
	if w.Wanted.OperatorGroups == 1 {
		showing.Group = mirror.Group{Name: w.Wanted.OperatorGroup.Name, Targets: w.Targets()}
	}
	var known bool
	if showing.Namespaces, known = w.Watcher.Labels(kube.GVKNamespace); !known && (copies == mirror.CopiesEnabled || showing.Group.Global()) {
		return showing, errs.New(errs.Unavailable, "the namespaces of the cluster are not known yet")
	}
	return showing, nil
}

// shownOperators are the ClusterServiceVersions of the members, and their copies where the cluster asks for them.
func (w *work) shownOperators(showing mirrors.Showing) ([]mirrors.Wanted, error) {
	var out []mirrors.Wanted
	for _, m := range w.Everybody() {
		list, wait, err := showing.Operator(w.installed(m), digest.Digest(m.Object.GetAnnotations()[scope.AnnotationContent]))
		if err != nil {
			return nil, err
		}
		w.Soon(wait)
		out = append(out, list...)
	}
	return out, nil
}

// tellCopies says of operators that serve all namespaces whether they are copied, once what shows them is there (R-CFG-2).
func (w *work) tellCopies(ctx context.Context, showing mirrors.Showing) error {
	if !showing.Group.Global() {
		return nil
	}
	for _, m := range w.Everybody() {
		if err := w.mirrors.TellCopies(ctx, w.installed(m), showing.Copies, showing.Now); err != nil {
			return err
		}
	}
	return nil
}

// manifest is the ClusterServiceVersion of a bundle as its author wrote it.
func (w *work) manifest(ctx context.Context, content digest.Digest) (bundle.CSV, error) {
	c, err := w.Contents.Get(ctx, content)
	if err != nil {
		return bundle.CSV{}, err
	}
	return c.CSV()
}

// shownBeside are the mirrors of what is no operator: subscriptions, plans, the operator group, and all parts of each
// package.
func (w *work) shownBeside(ctx context.Context) ([]mirrors.Wanted, error) {
	now, packages, bundles := w.Now(), map[string]string{}, map[string][]events.PlannedBundle{}
	var installed []mirror.Operator
	for _, m := range w.Operators {
		i := w.installed(m)
		installed = append(installed, i.Operator)
		packages[i.Name] = i.Package
	}
	var untouched []mirror.Plan // approved, and nothing of them was begun
	for _, p := range w.Wanted.Plans {
		var d installplan.Document
		if err := json.Unmarshal(p.Document, &d); err == nil { // otherwise the plan fails for that, and says so
			bundles[p.ID] = d.Bundles
		}
		if w.Execution(p.ID) == nil {
			untouched = append(untouched, mirror.Plan{ID: p.ID, Name: p.Name, Bundles: d.Bundles})
		}
	}
	plans := slices.Concat(mirrors.Plans(w.Executions, bundles, packages), untouched, mirror.Waiting(w.Wanted.Waiting))
	missing := w.missing()
	objects, err := w.shownPackages(ctx, missing)
	if err != nil || missing {
		list, smallErr := mirrors.Small(objects)
		return list, errors.Join(err, smallErr)
	}
	objects = append(objects, mirror.CatalogSources(w.Namespace, w.Wanted.Subscriptions)...)
	known := mirror.Known{Installed: installed, Plans: plans, FailForward: w.Wanted.OperatorGroup.Spec.UpgradeStrategy == scope.FailForward}
	for _, s := range w.Wanted.Subscriptions {
		objects = append(objects, mirror.Subscription(w.Namespace, s, known, now))
	}
	for _, p := range plans {
		objects = append(objects, mirror.InstallPlan(w.Namespace, p, w.Wanted.Subscriptions))
	}
	var report protocol.ScopeReport
	w.tellGroup(&report)
	if report.Group != nil {
		o, err := mirror.OperatorGroup(w.Namespace, w.Wanted.OperatorGroup, *report.Group, now)
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return mirrors.Small(objects)
}

// missing reports that the namespace is not there yet: what shows it must lie elsewhere.
func (w *work) missing() bool {
	labels, known := w.Watcher.Labels(kube.GVKNamespace)
	_, found := labels[w.Namespace]
	return known && !found
}

// shownPackages are the Operators of the members' packages, with the objects of all their versions (R-CSV-62), and of those
// that are subscribed to and not there yet.
func (w *work) shownPackages(ctx context.Context, missing bool) ([]mirror.Object, error) {
	parts := map[string][]protocol.Component{}
	for _, s := range w.Wanted.Subscriptions {
		parts[s.Spec.Package] = nil
		if !missing {
			parts[s.Spec.Package] = []protocol.Component{{ObjectRef: protocol.ObjectRef{
				Group: mirror.GVKSubscription.Group, Version: mirror.GVKSubscription.Version, Kind: mirror.GVKSubscription.Kind, Namespace: w.Namespace, Name: s.Name,
			}}}
		}
	}
	for _, m := range w.Everybody() {
		pkg := m.Object.GetAnnotations()[scope.AnnotationPackage]
		refs, err := w.partsOf(ctx, m)
		if err != nil {
			return nil, err
		}
		list := make([]protocol.Component, len(refs))
		for i, ref := range refs {
			list[i].ObjectRef = ref
		}
		parts[pkg] = append(parts[pkg], scope.WithWaiting(list, w.WaitingComponents(m))...)
	}
	var out []mirror.Object
	for pkg, list := range parts {
		out = append(out, mirror.OperatorOf(w.Namespace, pkg, list, missing, w.Now()))
	}
	return out, nil
}

// partsOf are the objects of a member: its InstalledOperator, and what its bundle renders to. They are rendered once.
func (w *work) partsOf(ctx context.Context, m *scope.Operator) ([]protocol.ObjectRef, error) {
	uid := string(m.Object.GetUID())
	w.mu.Lock()
	refs, known := w.parts[uid]
	w.mu.Unlock()
	if known {
		return refs, nil
	}
	s := scope.RenderTarget{Plan: m.Plan, Bundle: events.PlannedBundle{CSV: m.Name(), Content: m.Object.GetAnnotations()[scope.AnnotationContent]}}
	objects, f := w.ObjectsOf(ctx, s)
	if f != nil {
		return nil, errs.New(errs.Unavailable, "the parts of %s are not known: %s", m.Name(), f.Message)
	}
	for _, o := range objects {
		refs = append(refs, scope.RefIn(o))
	}
	w.mu.Lock()
	w.parts[uid] = refs
	w.mu.Unlock()
	return refs, nil
}

// keepConditions makes for each operator the OperatorCondition that it may write, before its pods start (R-COND-1).
func (w *work) keepConditions(ctx context.Context) error {
	if w.Stopped() != nil || len(w.Operators) == 0 || w.Waits("", scope.PartCondition) {
		return nil
	}
	if err := w.mirrors.Ensure(ctx, w.Wanted.Settings.WithDefaults().Mirror); err != nil {
		return w.Alone(ctx, "", scope.PartCondition, err)
	}
	w.Pace.Succeeded(w.Item("", scope.PartCondition))
	for _, m := range w.Operators {
		if m.Status.Phase == csv.PhaseDeleting || m.Object.GetDeletionTimestamp() != nil || m.Unverified || w.Waits(m.Name(), scope.PartCondition) {
			continue
		}
		if err := w.Alone(ctx, m.Name(), scope.PartCondition, w.mirrors.KeepCondition(ctx, w.installed(m), w.Left)); err != nil {
			return err
		}
	}
	return nil
}
