package drift

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/compare"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

const (
	// comparedAtOnce bounds what one reconcile compares: after a restart everything is to be compared once.
	comparedAtOnce = 10
	// componentNotFound is the state of an object that is not there, in kstatus' words.
	componentNotFound = "NotFound"
)

// reconcile compares what others wrote since the last reconcile with what Chandler would write now, and puts it right
// or only reports it, as the cluster's settings say (R-CSV-24). What cannot be put right is reported and tried again.
//
// Without exactly one operator group nobody knows whom the operators serve, and of a record that has gone back nothing
// is believed: then what moved waits.
func (w worker) reconcile(ctx context.Context) error {
	if w.Snapshot.RecordBehind || !w.Found.Group.One {
		return nil
	}
	if w.corrects() {
		for _, ref := range w.Store.uncorrected(w.Namespace) {
			w.Env.Trail.Again(w.Namespace, ref, 0)
		}
	}
	moved := w.Env.Trail.Take(w.Namespace)
	w.Store.forget(w.Namespace, w.Snapshot.Installed.Lives)
	w.Env.Pace.Keep(w.Namespace, w.Snapshot.Installed.Lives)
	// what several operators of the namespace have is compared for each
	left, done := comparedAtOnce, map[protocol.ObjectRef]bool{}
	for _, m := range w.Snapshot.Installed.Operators {
		s, ok := w.Snapshot.TargetAtRest(m)
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

func (w worker) corrects() bool { return corrects(w.Snapshot.Wanted.Settings, w.Stopped() != nil) }

// compareMoved compares what moved of one operator, as long as any are left for this reconcile.
func (w worker) compareMoved(ctx context.Context, m *scope.Operator, s scope.RenderTarget,
	moved map[protocol.ObjectRef]uint64, done map[protocol.ObjectRef]bool, left *int,
) error {
	if len(moved) == 0 {
		return nil
	}
	rendered, f := w.ObjectsOf(ctx, s)
	if f != nil {
		return nil
	}
	for _, o := range rendered {
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
func (w worker) miss(m *scope.Operator, moved map[protocol.ObjectRef]uint64) {
	for _, c := range w.Found.Components[m.Name()] {
		if c.Status == componentNotFound && c.Kind != kube.GVKDeployment.Kind &&
			(w.corrects() || !w.Store.has(w.Namespace, c.ObjectRef)) {
			moved[c.ObjectRef] = 0
		}
	}
}

// due reports an object that moved and may be compared now: what runs of an operator that wants something waits for its
// phase, and what others change over and over for its time.
func (w worker) due(m *scope.Operator, o render.Object) bool {
	if w.Snapshot.LacksRequirements(m) && scope.SortOf(o) != kube.GVKCRD.Kind {
		return false
	}
	waits := w.Attempts.Waits(m.Name(), scope.RefIn(o).String())
	if waits {
		w.Store.undone(w.Namespace, scope.RefIn(o))
	}
	return !waits
}

// compareOne keeps an object of which the comparison fails for a later reconcile.
func (w worker) compareOne(ctx context.Context, m *scope.Operator, s scope.RenderTarget, o render.Object,
	mark uint64,
) error {
	err := w.compare(ctx, m, s, o)
	if err != nil {
		w.Env.Trail.Again(w.Namespace, scope.RefIn(o), mark)
	}
	return w.Attempts.Alone(ctx, m.Name(), scope.RefIn(o).String(), err)
}

// putBack keeps what could not be compared now: while an operator is on its way, its objects are not its last ones; and
// some wait for their time.
func (w worker) putBack(moved map[protocol.ObjectRef]uint64, more bool) {
	resting := !slices.ContainsFunc(w.Snapshot.Installed.Operators,
		func(m *scope.Operator) bool { return !w.Snapshot.AtRest(m) })
	for _, m := range w.Snapshot.Installed.Operators {
		maps.DeleteFunc(moved, func(ref protocol.ObjectRef, mark uint64) bool {
			waits := w.Env.Pace.Wait(w.Attempts.Item(m.Name(), ref.String()), w.Env.Now()) > 0
			if waits {
				w.Env.Trail.Again(w.Namespace, ref, mark)
			}
			return waits
		})
	}
	if len(moved) == 0 || resting && !more {
		return // what is left belongs to no plan's objects, and others look after it
	}
	for ref, mark := range moved {
		w.Env.Trail.Again(w.Namespace, ref, mark)
	}
	if more {
		w.Attempts.Soon(time.Second)
	}
}

// correct writes an object again that differs from what was installed.
func (w worker) correct(ctx context.Context, m *scope.Operator, s scope.RenderTarget, o render.Object,
	found protocol.Drift,
) error {
	written, err := w.Objects.In(w.Scope).Reapply(ctx, s, o)
	if w.Snapshot.Unserved(o.GVK, err) {
		return nil // its kind has gone, and comes back with it
	}
	if err != nil {
		found.Reason = Because(found.Kind, err)
		w.Store.note(w.Namespace, m.Name(), found)
		return err
	}
	if o.GVK == kube.GVKCSV {
		m.Take(written)
	}
	found.Corrected = true
	w.corrected(m, found)
	w.Store.note(w.Namespace, m.Name(), found)
	return nil
}

// compare looks at one object of an operator at rest.
func (w worker) compare(ctx context.Context, m *scope.Operator, s scope.RenderTarget, o render.Object) error {
	if err := w.Conversions.Hold(ctx, w.Scope, s); err != nil {
		return err
	}
	want, err := w.Objects.Overlays(w.Scope).Decorate(w.Namespace, s, o)
	if err != nil {
		return err
	}
	live, err := w.Env.Client.Get(ctx, want.GroupVersionKind(), want.GetNamespace(), want.GetName())
	if err != nil {
		return err
	}
	if live == nil && o.GVK == kube.GVKCSV {
		return nil // whoever deletes the InstalledOperator itself has uninstalled the operator
	}
	if done, err := w.compareShare(ctx, s, o, live, want); done || err != nil {
		return err
	}
	found := protocol.Drift{
		ObjectRef: scope.RefOf(want), Missing: live == nil,
		Since: w.Env.Now().UTC().Truncate(time.Second),
	}
	if live != nil {
		compare.LeaveReplicas(want, live)
		if settled(o, live, want, s.Plan) {
			return w.steady(live)
		}
		would, err := w.Env.Client.WouldApply(ctx, want, w.Manager(s.Bundle.Package))
		if err != nil { // it differs, and what would come of a write is not known
			found.Reason = Because(found.Kind, err)
			w.Store.note(w.Namespace, m.Name(), found)
			return err
		}
		if found.Fields = compare.Fields(would.Object, live.Object); len(found.Fields) == 0 {
			return w.steady(live)
		}
		found.Manager, found.Since = compare.LastManager(live, w.Manager(s.Bundle.Package), found.Since)
	}
	w.Env.Log.InfoContext(ctx, "object differs from what was installed", "object", found.String(), "namespace",
		w.Namespace, "missing", found.Missing, "fields", len(found.Fields), "by", found.Manager)
	if putsRight(w.corrects(), live == nil, o.GVK) {
		return w.correct(ctx, m, s, o, found)
	}
	// It may be what an operator requires.
	w.Facts.ForgetNamespace(w.Namespace)
	w.Attempts.Soon(time.Second)
	w.Store.note(w.Namespace, m.Name(), found)
	return nil
}

// corrected notes that a drift was put right: with others who write the same again and again nobody fights at the speed
// of a watch. What the operator lacked may be there now.
func (w worker) corrected(m *scope.Operator, d protocol.Drift) {
	by := []string{d.Manager}
	for _, f := range d.Fields {
		by = append(by, f.Path)
	}
	text := m.Name() + ": " + d.String() + " is put right and changed again, over and over, by " +
		cmp.Or(d.Manager, "somebody")
	w.Env.Pace.Corrected(w.Attempts.Item(m.Name(), d.ObjectRef.String()), strings.Join(by, " "),
		text+": have that stop, or have it configured in the subscription", w.Env.Now())
	w.Facts.ForgetNamespace(w.Namespace)
	if d.Kind == kube.GVKCRD.Kind {
		w.Facts.ForgetCRD(d.Name)
	}
	if w.Snapshot.LacksRequirements(m) {
		w.Attempts.Soon(time.Second)
	}
}

// steady notes an object that is as it should be.
func (w worker) steady(live *unstructured.Unstructured) error {
	w.Left(live)
	w.Store.remove(w.Namespace, scope.RefOf(live))
	return nil
}

// compareShare compares an object of an operator at rest that another operator holds: no more than the note is to be
// there that the operator has it. Of one that fell to the operator, since who held it is gone, its form is written,
// whatever the cluster's settings say of drift. done is false where the operator holds it.
func (w worker) compareShare(ctx context.Context, s scope.RenderTarget, o render.Object, live,
	want *unstructured.Unstructured,
) (done bool, err error) {
	part, err := overlay.ShareOf(w.Namespace, s, o)
	if err != nil || part == nil {
		return false, err
	}
	holder, err := w.Objects.In(w.Scope).HeldBy(ctx, live, want, *part)
	if err != nil {
		return false, err
	}
	if holder == nil {
		if !fell(live, want, s.Plan) || w.Stopped() != nil {
			return false, nil
		}
		_, err := w.Objects.In(w.Scope).Reapply(ctx, s, o)
		return err == nil, err
	}
	if live == nil {
		return true, nil // its holder makes it again
	}
	if kube.HasShare(live, kube.Share(want, part.Owner)) {
		return true, w.steady(live)
	}
	_, err = w.Objects.In(w.Scope).Reapply(ctx, s, o)
	return err == nil, err
}
