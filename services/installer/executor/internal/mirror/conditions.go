package mirror

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/services/installer/executor/internal/cluster"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// KeepCondition makes the OperatorCondition of an operator, and what lets its service accounts write it (R-COND-1).
// It does so once, and again after ForgetCondition; clean is told of what was written.
func (k *Keeper) KeepCondition(ctx context.Context, i Installed, clean func(*unstructured.Unstructured)) error {
	key := Key{GVK: mirror.GVKOperatorCondition, Namespace: i.Namespace, Name: i.Name}
	k.mu.Lock()
	kept := k.conditions[key] == i.UID
	k.conditions[key] = i.UID // before the writes: one that is touched meanwhile is forgotten again
	k.mu.Unlock()
	if kept {
		return nil
	}
	if err := k.applyCondition(ctx, i, clean); err != nil {
		k.ForgetCondition(i.Namespace, i.Name)
		return err
	}
	return nil
}

func (k *Keeper) applyCondition(ctx context.Context, i Installed, clean func(*unstructured.Unstructured)) error {
	objects, err := mirror.Condition(i.Namespace, i.Package, i.CSV)
	if err != nil {
		return err
	}
	for _, o := range objects {
		body := &unstructured.Unstructured{Object: o.Body}
		labels := body.GetLabels()
		labels[cluster.LabelManaged] = "true"
		body.SetLabels(labels)
		i.own(body.Object)
		if err := k.at("before condition kept"); err != nil {
			return err
		}
		applied, err := k.Client.Apply(ctx, body, manager)
		if err != nil {
			return err
		}
		clean(applied)
		if err := k.at("condition kept"); err != nil {
			return err
		}
	}
	return nil
}

// ForgetCondition has the OperatorCondition of an operator made again: somebody touched it, or its Role or RoleBinding,
// which have its name.
func (k *Keeper) ForgetCondition(namespace, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.conditions, Key{GVK: mirror.GVKOperatorCondition, Namespace: namespace, Name: name})
}

// TellCopies says in the namespace of an operator that serves all namespaces that it is copied to none of them, once,
// and takes that back where copies are switched on (R-CFG-2).
func (k *Keeper) TellCopies(ctx context.Context, i Installed, copies mirror.Copies, now time.Time) error {
	k.mu.Lock()
	told := k.events[i.UID]
	k.mu.Unlock()
	if told == copies {
		return nil
	}
	o := mirror.DisabledEvent(i.Operator, i.UID, now)
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
	case copies != mirror.CopiesDisabled && live != nil:
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
