package mirror

import (
	"context"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// conditionNote is what is known of the OperatorCondition of an operator, its Role and its RoleBinding.
type conditionNote struct {
	uid  string
	kept bool // all three were written
	// overrides are those that it was written with, if they were known; nil for none.
	overrides      *protocol.Overrides
	overridesKnown bool
	marks          map[schema.GroupVersionKind]uint64 // of what was written
	heard          map[schema.GroupVersionKind]uint64 // what the watch told last while they were written
}

// KeepCondition makes the OperatorCondition of an operator, with the overrides that it is to have, and what lets its
// service accounts write it (R-COND-1). It does so once, and again after somebody else touched one of them, or other
// overrides are wanted; clean is notified of what was written.
func (k *Keeper) KeepCondition(ctx context.Context, i Installed, clean func(*unstructured.Unstructured)) error {
	key := Key{GVK: mirror.GVKOperatorCondition, Namespace: i.Namespace, Name: i.Name}
	n := &conditionNote{
		uid: i.UID, overrides: i.Overrides, overridesKnown: i.OverridesKnown,
		marks: map[schema.GroupVersionKind]uint64{}, heard: map[schema.GroupVersionKind]uint64{},
	}
	k.mu.Lock()
	have := k.conditions[key]
	kept := have != nil && have.kept && have.uid == i.UID &&
		(!i.OverridesKnown || have.overridesKnown && reflect.DeepEqual(have.overrides, i.Overrides))
	if !kept {
		k.conditions[key] = n
	}
	k.mu.Unlock()
	if kept {
		return nil
	}
	err := k.applyCondition(ctx, i, n, clean)
	k.mu.Lock()
	defer k.mu.Unlock()
	n.kept = err == nil
	for gvk, mark := range n.heard {
		n.kept = n.kept && mark == n.marks[gvk]
	}
	return err
}

func (k *Keeper) applyCondition(ctx context.Context, i Installed, n *conditionNote,
	clean func(*unstructured.Unstructured),
) error {
	objects, err := mirror.Condition(i.Namespace, i.Package, i.CSV)
	if err != nil {
		return err
	}
	for _, o := range objects {
		body := &unstructured.Unstructured{Object: o.Body}
		labels := body.GetLabels()
		labels[kube.LabelManaged] = "true"
		body.SetLabels(labels)
		i.own(body.Object)
		if err := k.at("before condition kept"); err != nil {
			return err
		}
		applied, err := k.Client.Apply(ctx, body, manager)
		if err == nil && o.GVK == mirror.GVKOperatorCondition {
			applied, err = k.override(ctx, i, applied)
		}
		if err != nil {
			return err
		}
		clean(applied)
		k.mu.Lock()
		n.marks[o.GVK] = watch.Mark(applied)
		k.mu.Unlock()
		if err := k.at("condition kept"); err != nil {
			return err
		}
	}
	return nil
}

// overrider is the field manager of overrides: those that are not wanted any more go with the next write.
const overrider = "chandler/overrides"

// override has an OperatorCondition say what is to count in the place of the operator (R-COND-6), and take back what it
// said before. Nothing is taken from whoever has set overrides in the cluster: that is a conflict that names them.
func (k *Keeper) override(
	ctx context.Context, i Installed, live *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	wrote := slices.ContainsFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == overrider && e.Operation == metav1.ManagedFieldsOperationApply
	})
	if !i.OverridesKnown || i.Overrides == nil && !wrote {
		return live, nil
	}
	o := &unstructured.Unstructured{Object: mirror.Overrides(i.Namespace, i.Name, i.Overrides).Body}
	o.SetUID(live.GetUID()) // another one of the name is another operator's
	if err := k.at("before overrides"); err != nil {
		return nil, err
	}
	applied, err := k.Client.Make(ctx, o, overrider)
	if err != nil {
		return nil, err
	}
	return applied, k.at("overrides")
}

// ConditionTouched takes a change of an object that may be an operator's OperatorCondition, or its Role or RoleBinding,
// which have its name: what is not as it was written is written again.
func (k *Keeper) ConditionTouched(c watch.Change) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.conditions[Key{GVK: mirror.GVKOperatorCondition, Namespace: c.Namespace, Name: c.Name}]
	switch {
	case n == nil:
	case !n.kept:
		n.heard[c.GVK] = c.Mark
	default:
		if mark, ours := n.marks[c.GVK]; ours && mark != c.Mark {
			n.kept = false
		}
	}
}

// NotifyCopies says in the namespace of an operator that serves all namespaces that it is copied to none of them, once,
// and takes that back where copies are switched on (R-CFG-2). It is said of the mirror, so that nothing is said before
// that is there.
func (k *Keeper) NotifyCopies(ctx context.Context, i Installed, copies mirror.Copies, now time.Time) error {
	k.mu.Lock()
	told := k.events[i.UID]
	shown, known := k.notes[Key{GVK: mirror.GVKCSV, Namespace: i.Namespace, Name: i.Name}]
	k.mu.Unlock()
	if told == copies || copies == mirror.CopiesDisabled && !known {
		return nil
	}
	o := mirror.DisabledEvent(i.Operator, string(shown.uid), now)
	live, err := k.Client.Get(ctx, o.GVK, o.Namespace, o.Name)
	if err != nil {
		return err
	}
	if err := k.at("before copies told"); err != nil {
		return err
	}
	switch {
	case copies == mirror.CopiesDisabled && live == nil:
		i.own(o.Body)
		_, err = k.Client.Apply(ctx, &unstructured.Unstructured{Object: o.Body}, manager)
	case copies != mirror.CopiesDisabled && live != nil && Made(live):
		err = k.Client.Delete(ctx, live)
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.events[i.UID] = copies
	k.mu.Unlock()
	return k.at("copies told")
}
