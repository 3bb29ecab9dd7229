package uninstall

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/side"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/removal"
)

// parallelDeletes is how many objects are deleted at a time.
const parallelDeletes = 4

// Remover act in a cluster; At is called before and after each effect. Everything can be done again.
type Remover struct {
	Client *kube.Epoch
	At     func(point string) error
}

// Delete deletes exactly the objects that were looked at, a few at a time.
func (h Remover) Delete(ctx context.Context, steps []kube.Step) error {
	found := make([]error, len(steps))
	side.Each(len(steps), parallelDeletes, func(n int) { found[n] = h.delete(ctx, stub(steps[n])) })
	return errors.Join(found...)
}

func (h Remover) delete(ctx context.Context, o *unstructured.Unstructured) error {
	if err := h.At("before delete"); err != nil {
		return err
	}
	if err := h.Client.Remove(ctx, o); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return h.At("deleted")
}

// stub is an object of which only the identity is known.
func stub(s kube.Step) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: s.Group, Version: s.Version, Kind: s.Kind})
	o.SetNamespace(s.Namespace)
	o.SetName(s.Name)
	o.SetUID(types.UID(s.UID))
	return o
}

// Remaining looks which of the objects that were deleted are still there.
func (h Remover) Remaining(ctx context.Context, steps []kube.Step) (Waiting, error) {
	var left Waiting
	for _, s := range steps {
		live, err := h.Client.Get(ctx, stub(s).GroupVersionKind(), s.Namespace, s.Name)
		if err != nil {
			return left, err
		}
		if live != nil && string(live.GetUID()) == s.UID {
			left.note(s.Kind, live)
		}
	}
	return left, nil
}

// Empty deletes every object of definitions, and says which are still there: those that wait for their finalizers.
func (h Remover) Empty(ctx context.Context, definitions []kube.Step) (Waiting, error) {
	var left Waiting
	for _, d := range definitions {
		if err := h.At("before custom resources"); err != nil {
			return left, err
		}
		if err := empty(ctx, h.Client, d.Name, &left); err != nil {
			return left, err
		}
	}
	return left, h.At("custom resources")
}

// Sweep deletes what names an operator as its owner and came since it was looked at, and says what does not go. What
// another installed operator brought, too, is that one's from then on.
func (h Remover) Sweep(ctx context.Context, q Question) (Waiting, error) {
	var left Waiting
	own := kube.Operator{Namespace: q.Namespace, Name: q.CSV}
	if q.Named {
		// first: what another operator that goes hands over until then is found below, and after that nothing is handed
		// over
		if err := h.forgo(ctx, q, own); err != nil {
			return left, err
		}
	}
	objects, err := owned(ctx, h.Client, q)
	if err != nil {
		return left, err
	}
	for i := range objects {
		r, meta := objects[i].ref, objects[i].meta
		if meta.DeletionTimestamp != nil {
			left.note(r.Kind, meta)
			continue
		}
		if kept, err := h.leave(ctx, own, objects[i]); kept || err != nil {
			if err != nil {
				return left, err
			}
			continue
		}
		if err := h.delete(ctx, objects[i].whole()); err != nil {
			return left, err
		}
	}
	return left, nil
}

// leave gives a shared object to another operator that is installed and named by it; false where there is none.
func (h Remover) leave(ctx context.Context, own kube.Operator, o object) (bool, error) {
	heir, err := h.Client.Heir(ctx, own, o.meta)
	if err != nil || heir == nil {
		return false, err
	}
	if err := h.At("before hand over"); err != nil {
		return true, err
	}
	if err := h.Client.HandOver(ctx, o.gvk(), o.meta, own, heir); err != nil {
		return true, err
	}
	return true, h.At("handed over")
}

// forgo takes the operator's name off shared objects that are others'.
func (h Remover) forgo(ctx context.Context, q Question, own kube.Operator) error {
	packageName := ""
	o, err := h.Client.Get(ctx, kube.GVKInstalledOperator, q.Namespace, q.CSV)
	if err != nil {
		return err
	}
	if o != nil {
		packageName = o.GetAnnotations()[kube.AnnotationPackage]
	}
	objects, err := joined(ctx, h.Client, q, packageName)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := h.Client.HandOver(ctx, o.gvk(), o.meta, own, nil); err != nil {
			return err
		}
	}
	return nil
}

// Spare parts definitions that are to go: an operator that was installed since may own one, which then stays.
func (h Remover) Spare(ctx context.Context, q Question, steps []kube.Step) (
	doomed []kube.Step, spared []protocol.Leftover, err error,
) {
	now, err := Find(ctx, h.Client, Question{
		Namespace: q.Namespace, CSV: q.CSV, CRDs: []string{removal.All},
		Operators: q.Operators,
	})
	if err != nil {
		return nil, nil, err
	}
	for _, s := range steps {
		i := slices.IndexFunc(now.Plan.Stays, func(l protocol.Leftover) bool {
			return l.Kind == s.Kind &&
				l.Name == s.Name
		})
		if i < 0 {
			doomed = append(doomed, s)
			continue
		}
		spared = append(spared, now.Plan.Stays[i])
	}
	return doomed, spared, nil
}

// FilterCurrent keeps of what is to go what removing the operator would remove now, too: the log says what was looked
// at, and is no reason by itself to delete anything.
func (h Remover) FilterCurrent(ctx context.Context, q Question, steps []kube.Step) ([]kube.Step, error) {
	asked := q.CRDs
	if len(asked) > 0 { // one that is gone by now is no mistake of who asked for it
		q.CRDs = []string{removal.All}
	}
	now, err := Find(ctx, h.Client, q)
	if err != nil {
		return nil, err
	}
	return now.of(steps, asked), nil
}
