package kube

import (
	"context"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Newest is the newest resourceVersion that the executor knows of each kind: of what it wrote, and of what a watch
// said. Lists ask for no older state. An API server answers a list without a resourceVersion from its cache, too, but
// first waits until the cache has caught up with all that etcd has written, of whatever kind: up to 100 ms where others
// write.
//
// What a deletion comes to has no resourceVersion that the executor is told. After one, the next list is one without.
type Newest struct {
	mu    sync.Mutex
	kinds map[schema.GroupVersionResource]newest
}

type newest struct {
	version   uint64 // 0 while it is not known
	deletions int
}

// Heard notes the resourceVersion of an object that a watch told of, "" of one that is gone.
func (n *Newest) Heard(of schema.GroupVersionResource, version string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if k, ok := n.kinds[of]; ok && k.version > 0 { // else a deletion may be newer
		k.version = max(k.version, number(version))
		n.kinds[of] = k
	}
}

// number of a resourceVersion, 0 where it is none. It is opaque to clients: one that is no number, or does not grow,
// makes a list wait or be asked again, and no more.
func number(version string) uint64 {
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return v
}

func (n *Newest) of(r schema.GroupVersionResource) newest {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kinds[r]
}

// wrote notes a state of the kind that was written, or listed, since so many deletions were asked for.
func (n *Newest) wrote(r schema.GroupVersionResource, version string, deletions int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.kinds[r]
	if k.deletions != deletions {
		return // it may be older than one of them
	}
	k.version = max(k.version, number(version))
	n.set(r, k)
}

func (n *Newest) forget(r schema.GroupVersionResource) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.set(r, newest{deletions: n.kinds[r].deletions + 1})
}

func (n *Newest) set(r schema.GroupVersionResource, k newest) {
	if n.kinds == nil {
		n.kinds = map[schema.GroupVersionResource]newest{}
	}
	n.kinds[r] = k
}

// fresh are the objects of a kind, with a note of what is newest of it.
type fresh struct {
	dynamic.ResourceInterface
	of     schema.GroupVersionResource
	newest *Newest
}

// List implements dynamic.ResourceInterface.
func (f fresh) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if o.ResourceVersion != "" || o.Limit > 0 || o.Continue != "" {
		return f.ResourceInterface.List(ctx, o)
	}
	known := f.newest.of(f.of)
	if known.version > 0 {
		at := o
		at.ResourceVersion = strconv.FormatUint(known.version, 10)
		at.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		list, err := f.ResourceInterface.List(ctx, at)
		if err == nil || apierrors.IsNotFound(err) || ctx.Err() != nil {
			return list, err
		}
		f.newest.forget(f.of) // the API server may have been restored to an earlier state
		known = f.newest.of(f.of)
	}
	list, err := f.ResourceInterface.List(ctx, o)
	if err == nil {
		f.newest.wrote(f.of, list.GetResourceVersion(), known.deletions)
	}
	return list, err
}

// note notes what a write returned; a trial has written nothing.
func (f fresh) note(o *unstructured.Unstructured, err error, trial []string, deletions int) (
	*unstructured.Unstructured, error,
) {
	if err == nil && o != nil && len(trial) == 0 {
		f.newest.wrote(f.of, o.GetResourceVersion(), deletions)
	}
	return o, err
}

// Create implements dynamic.ResourceInterface.
func (f fresh) Create(ctx context.Context, o *unstructured.Unstructured, how metav1.CreateOptions, sub ...string) (
	*unstructured.Unstructured, error,
) {
	deletions := f.newest.of(f.of).deletions
	made, err := f.ResourceInterface.Create(ctx, o, how, sub...)
	return f.note(made, err, how.DryRun, deletions)
}

// Update implements dynamic.ResourceInterface.
func (f fresh) Update(ctx context.Context, o *unstructured.Unstructured, how metav1.UpdateOptions, sub ...string) (
	*unstructured.Unstructured, error,
) {
	deletions := f.newest.of(f.of).deletions
	updated, err := f.ResourceInterface.Update(ctx, o, how, sub...)
	return f.note(updated, err, how.DryRun, deletions)
}

// UpdateStatus implements dynamic.ResourceInterface.
func (f fresh) UpdateStatus(ctx context.Context, o *unstructured.Unstructured, how metav1.UpdateOptions) (
	*unstructured.Unstructured, error,
) {
	deletions := f.newest.of(f.of).deletions
	written, err := f.ResourceInterface.UpdateStatus(ctx, o, how)
	return f.note(written, err, how.DryRun, deletions)
}

// Apply implements dynamic.ResourceInterface.
func (f fresh) Apply(ctx context.Context, name string, o *unstructured.Unstructured, how metav1.ApplyOptions,
	sub ...string,
) (*unstructured.Unstructured, error) {
	deletions := f.newest.of(f.of).deletions
	applied, err := f.ResourceInterface.Apply(ctx, name, o, how, sub...)
	return f.note(applied, err, how.DryRun, deletions)
}

// Patch implements dynamic.ResourceInterface.
func (f fresh) Patch(ctx context.Context, name string, typ types.PatchType, data []byte, how metav1.PatchOptions,
	sub ...string,
) (*unstructured.Unstructured, error) {
	deletions := f.newest.of(f.of).deletions
	patched, err := f.ResourceInterface.Patch(ctx, name, typ, data, how, sub...)
	return f.note(patched, err, how.DryRun, deletions)
}

// Delete implements dynamic.ResourceInterface.
func (f fresh) Delete(ctx context.Context, name string, how metav1.DeleteOptions, sub ...string) error {
	defer f.newest.forget(f.of) // also where it is not known whether it was done
	return f.ResourceInterface.Delete(ctx, name, how, sub...)
}
