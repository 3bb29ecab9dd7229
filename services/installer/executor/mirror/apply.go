package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

func (w worker) reconcile(ctx context.Context) error {
	if w.Snapshot.RecordBehind || w.Stopped() != nil {
		return nil
	}
	setting := w.Snapshot.Wanted.Settings.WithDefaults().Mirror
	more, err := w.keepMirrors(ctx, setting)
	if more {
		w.Attempts.Soon(time.Second)
	}
	if err == nil {
		var wait time.Duration
		wait, err = w.Keeper.Retire(ctx, setting, w.Env.Now())
		w.Attempts.Soon(wait)
	}
	if err == nil || failure.Final(ctx, err) {
		return err
	}
	w.Env.Log.WarnContext(ctx, "mirrors are tried again", "namespace", w.Namespace, "error", err)
	w.Attempts.Soon(w.Env.Pause)
	return nil
}

func (w worker) keepMirrors(ctx context.Context, setting string) (more bool, err error) {
	if err := w.Keeper.Ensure(ctx, setting); err != nil {
		return false, err
	}
	if setting == events.MirrorNone {
		return w.Keeper.Keep(ctx, w.Namespace, nil)
	}
	showing, err := w.showing(ctx)
	if err != nil {
		return false, err
	}
	wanted, err := w.shownOperators(showing)
	if err != nil {
		return false, err
	}
	w.Keeper.NotifyRemoved(w.removedEvents())
	if setting == events.MirrorAll {
		beside, err := w.shownBeside(ctx)
		if err != nil {
			return false, err
		}
		wanted = append(wanted, beside...)
	}
	if w.Snapshot.Wanted.Settings.WithDefaults().Events == events.EventsOff {
		for i := range wanted {
			wanted[i].Events = nil
		}
	}
	if more, err = w.Keeper.Keep(ctx, w.Namespace, wanted); err != nil && failure.Final(ctx, err) {
		return more, err
	}
	return more, errors.Join(err, w.notifyCopies(ctx, showing))
}

// removedEvents are the Events of operators that were removed, whose mirrors are about to go.
func (w worker) removedEvents() []Wanted {
	if w.Snapshot.Wanted.Settings.WithDefaults().Events == events.EventsOff {
		return nil
	}
	var out []Wanted
	for _, c := range w.Snapshot.FinalReports(w.Env.Now()) {
		if c.UID == "" {
			continue
		}
		out = append(out, Wanted{
			Key:    Key{GVK: mirror.GVKCSV, Namespace: w.Namespace, Name: c.Name},
			Events: mirror.CSVEvents(c.Name, c.UID, c.Dropped, c.History),
		})
	}
	return out
}

// showing is how the operators of the namespace are shown.
func (w worker) showing(ctx context.Context) (Showing, error) {
	copies, err := w.Keeper.Copies(ctx, w.Snapshot.Wanted.Settings, w.Env.Now())
	if err != nil {
		return Showing{}, err
	}
	showing := Showing{Copies: copies, Now: w.Env.Now(), Manifest: w.manifest}
	if w.Snapshot.Wanted.OperatorGroups == 1 {
		showing.Group = mirror.Group{Name: w.Snapshot.Wanted.OperatorGroup.Name, Targets: w.Targets()}
	}
	var known bool
	if showing.Namespaces, known = w.Env.Watcher.Labels(kube.GVKNamespace); !known &&
		(copies == mirror.CopiesEnabled || showing.Group.Global()) {
		return showing, errs.New(errs.Unavailable, "the namespaces of the cluster are not known yet")
	}
	return showing, nil
}

// shownOperators are the ClusterServiceVersions of the operators, and their copies where the cluster asks for them.
func (w worker) shownOperators(showing Showing) ([]Wanted, error) {
	var out []Wanted
	for _, m := range w.Snapshot.Installed.Everybody() {
		list, wait, err := showing.Operator(InstalledOf(w.Scope, m),
			digest.Digest(m.Object.GetAnnotations()[scope.AnnotationContent]))
		if err != nil {
			return nil, err
		}
		w.Attempts.Soon(wait)
		out = append(out, list...)
	}
	return out, nil
}

// notifyCopies says of operators that serve all namespaces whether they are copied, once what shows them is there
// (R-CFG-2).
func (w worker) notifyCopies(ctx context.Context, showing Showing) error {
	if !showing.Group.Global() {
		return nil
	}
	for _, m := range w.Snapshot.Installed.Everybody() {
		if err := w.Keeper.NotifyCopies(ctx, InstalledOf(w.Scope, m), showing.Copies, showing.Now); err != nil {
			return err
		}
	}
	return nil
}

// manifest is the ClusterServiceVersion of a bundle as its author wrote it.
func (w worker) manifest(ctx context.Context, content digest.Digest) (bundle.CSV, error) {
	c, err := w.Env.Contents.Get(ctx, content)
	if err != nil {
		return bundle.CSV{}, err
	}
	return c.CSV()
}

// shownBeside are the mirrors of what is no operator: subscriptions, plans, the operator group, and all parts of each
// package.
func (w worker) shownBeside(ctx context.Context) ([]Wanted, error) {
	now, packages, bundles := w.Env.Now(), map[string]string{}, map[string][]events.PlannedBundle{}
	var installed []mirror.Operator
	for _, m := range w.Snapshot.Installed.Operators {
		i := InstalledOf(w.Scope, m)
		installed = append(installed, i.Operator)
		packages[i.Name] = i.Package
	}
	var untouched []mirror.Plan // approved, and nothing of them was begun
	for _, p := range w.Snapshot.Wanted.Plans {
		var d installplan.Document
		if err := json.Unmarshal(p.Document, &d); err == nil { // otherwise the plan fails for that, and says so
			bundles[p.ID] = d.Bundles
		}
		if w.Snapshot.Executions.Of(p.ID) == nil {
			untouched = append(untouched, mirror.Plan{ID: p.ID, Name: p.Name, Bundles: d.Bundles})
		}
	}
	plans := slices.Concat(Plans(w.Snapshot.Executions, bundles, packages), untouched,
		mirror.Waiting(w.Snapshot.Wanted.Waiting))
	missing := w.missing()
	objects, err := w.shownPackages(ctx, missing)
	if err != nil || missing {
		list, smallErr := Small(objects)
		return list, errors.Join(err, smallErr)
	}
	objects = append(objects, mirror.CatalogSources(w.Namespace, w.Snapshot.Wanted.Subscriptions)...)
	known := mirror.Known{
		Installed: installed, Plans: plans,
		FailForward: w.Snapshot.Wanted.OperatorGroup.Spec.UpgradeStrategy == scope.FailForward,
	}
	for _, s := range w.Snapshot.Wanted.Subscriptions {
		objects = append(objects, mirror.Subscription(w.Namespace, s, known, now))
	}
	for _, p := range plans {
		objects = append(objects, mirror.InstallPlan(w.Namespace, p, w.Snapshot.Wanted.Subscriptions))
	}
	if g := w.GroupReport(w.Scope); g != nil {
		o, err := mirror.OperatorGroup(w.Namespace, w.Snapshot.Wanted.OperatorGroup, *g, now)
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return Small(objects)
}

// missing reports that the namespace is not there yet: what shows it must lie elsewhere.
func (w worker) missing() bool {
	labels, known := w.Env.Watcher.Labels(kube.GVKNamespace)
	_, found := labels[w.Namespace]
	return known && !found
}

// shownPackages are the Operators of the operators' packages, with the objects of all their versions (R-CSV-62), and of
// those that are subscribed to and not there yet.
func (w worker) shownPackages(ctx context.Context, missing bool) ([]mirror.Object, error) {
	parts := map[string][]protocol.Component{}
	for _, s := range w.Snapshot.Wanted.Subscriptions {
		parts[s.Spec.Package] = nil
		if !missing {
			parts[s.Spec.Package] = []protocol.Component{{ObjectRef: protocol.ObjectRef{
				Group: mirror.GVKSubscription.Group, Version: mirror.GVKSubscription.Version,
				Kind: mirror.GVKSubscription.Kind, Namespace: w.Namespace, Name: s.Name,
			}}}
		}
	}
	for _, m := range w.Snapshot.Installed.Everybody() {
		pkg := m.Object.GetAnnotations()[scope.AnnotationPackage]
		refs, err := w.Env.Parts.Of(ctx, w.Scope, m)
		if err != nil {
			return nil, err
		}
		list := make([]protocol.Component, len(refs))
		for i, ref := range refs {
			list[i].ObjectRef = ref
		}
		parts[pkg] = append(parts[pkg], scope.WithWaiting(list, w.Snapshot.Executions.WaitingComponents(m))...)
	}
	var out []mirror.Object
	for pkg, list := range parts {
		out = append(out, mirror.OperatorOf(w.Namespace, pkg, list, missing, w.Env.Now()))
	}
	return out, nil
}
