package mirror

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

const (
	// retireSoon is after which time definitions are looked at again whose mirrors are being removed; it doubles up to
	// retireLater, since the namespace that a mirror shows may be nobody's any more.
	retireSoon = 2 * time.Second
	// retireLater is after which time those are looked at again that hold objects of somebody else.
	retireLater = 10 * time.Minute
	// retirePage is how many objects of a definition are looked at: one of somebody else's is enough to keep it.
	retirePage = 50
)

// left is what a definition still holds.
type left struct{ ours, others bool }

// Retire removes the definitions of ours that a setting of mirror does not need, once nothing is in them: deleting a
// definition deletes its objects, so that one that holds anything of somebody else's stays. wait is after which time to
// come again; 0 is never.
func (k *Keeper) Retire(ctx context.Context, setting string, now time.Time) (wait time.Duration, err error) {
	k.ensuring.Lock()
	defer k.ensuring.Unlock()
	if k.retired == setting {
		return 0, nil
	}
	if k.retireFor != setting {
		k.retireFor, k.retirePause, k.retireAt = setting, 0, time.Time{}
	}
	if now.Before(k.retireAt) {
		return k.retireAt.Sub(now), nil
	}
	needed := map[string]bool{}
	for _, d := range mirror.CRDs(setting) {
		needed[d.Name] = true
	}
	var holds left
	for _, d := range mirror.CRDs(events.MirrorAll) {
		if needed[d.Name] {
			continue
		}
		l, err := k.retire(ctx, d)
		if err != nil {
			return 0, fmt.Errorf("definition %s: %w", d.Name, err)
		}
		holds = left{holds.ours || l.ours, holds.others || l.others}
	}
	switch {
	case holds.ours:
		k.retirePause = min(max(2*k.retirePause, retireSoon), retireLater)
		wait = k.retirePause
	case holds.others:
		wait = retireLater
	default:
		k.retired, k.retirePause = setting, 0
	}
	k.retireAt = now.Add(wait)
	if setting == events.MirrorNone && !holds.ours {
		err = k.allowIntents(ctx)
	}
	return wait, err
}

// retire removes one definition if it is ours and empty. What Chandler offered in it goes first.
func (k *Keeper) retire(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition) (holds left, err error) {
	found, err := k.Client.Get(ctx, gvkCRD, "", d.Name)
	if err != nil || found == nil || found.GetDeletionTimestamp() != nil || !ours(found) {
		return left{}, err
	}
	for _, v := range d.Spec.Versions {
		if !v.Storage {
			continue
		}
		resource := schema.GroupVersionResource{Group: d.Spec.Group, Version: v.Name, Resource: d.Spec.Names.Plural}
		list, _, err := k.Client.Page(ctx, resource, retirePage, "")
		if err != nil {
			return left{}, err
		}
		for i := range list {
			if err := k.leave(ctx, &list[i], &holds); err != nil {
				return left{}, err
			}
		}
	}
	if holds.ours || holds.others {
		return holds, nil
	}
	if err := k.at("before mirror"); err != nil {
		return left{}, err
	}
	k.mu.Lock()
	k.retiring[d.Name] = true
	k.mu.Unlock()
	if err := k.Client.Delete(ctx, found); err != nil {
		return left{}, err
	}
	return left{}, k.at("mirrored")
}

// leave notes whose an object is. The OLMConfig that Chandler offered, and nobody has changed since, is taken away.
func (k *Keeper) leave(ctx context.Context, o *unstructured.Unstructured, holds *left) error {
	switch {
	case o.GetLabels()[mirror.LabelMirror] != "" && Made(o): // a look at the namespace that it shows removes it
		holds.ours = true
		return nil
	case o.GroupVersionKind() == mirror.GVKOLMConfig && ours(o):
		holds.ours = true
		if err := k.at("before mirror"); err != nil {
			return err
		}
		if err := k.Client.Delete(ctx, o); err != nil {
			return err
		}
		return k.at("mirrored")
	}
	holds.others = true
	return nil
}
