package kube

import (
	"context"
	"errors"
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
// The answer to a deletion has no resourceVersion, and a write that failed may have been made, or shows that others
// have written. After these the next list is one without.
type Newest struct {
	mu    sync.Mutex
	kinds map[schema.GroupVersionResource]versions
}

// versions are what is known of one kind.
type versions struct {
	heard   uint64 // of a watch
	written uint64 // or listed; 0 while the newest is not known
	unknown int    // how often that was lost
}

// Heard notes the resourceVersion of a change that a watch told of.
func (n *Newest) Heard(of schema.GroupVersionResource, version string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.kinds[of]
	k.heard = max(k.heard, number(version))
	n.set(of, k)
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

// of says what no list may be older than, 0 where that is not known, and how often it was not known before.
func (n *Newest) of(r schema.GroupVersionResource) (version uint64, unknown int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.kinds[r]
	if k.written == 0 {
		return 0, k.unknown
	}
	return max(k.heard, k.written), k.unknown
}

// wrote notes a state of the kind that was written, or listed, by a request that began when the newest had been
// unknown so often.
func (n *Newest) wrote(r schema.GroupVersionResource, version string, unknown int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.kinds[r]
	if k.unknown != unknown {
		return // it may be older than what made it unknown
	}
	k.written = max(k.written, number(version))
	n.set(r, k)
}

// forget says that there is something newer, and that nobody knows its resourceVersion.
func (n *Newest) forget(r schema.GroupVersionResource) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.kinds[r]
	n.set(r, versions{heard: k.heard, unknown: k.unknown + 1})
}

// reset forgets everything: the API server has been restored to an earlier state.
func (n *Newest) reset() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for r, k := range n.kinds {
		n.kinds[r] = versions{unknown: k.unknown + 1}
	}
}

func (n *Newest) set(r schema.GroupVersionResource, k versions) {
	if n.kinds == nil {
		n.kinds = map[schema.GroupVersionResource]versions{}
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
	version, unknown := f.newest.of(f.of)
	if version > 0 {
		at := o
		at.ResourceVersion = strconv.FormatUint(version, 10)
		at.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		list, err := f.ResourceInterface.List(ctx, at)
		if !isAhead(err) || ctx.Err() != nil {
			return list, err
		}
		f.newest.reset()
		_, unknown = f.newest.of(f.of)
	}
	list, err := f.ResourceInterface.List(ctx, o)
	if err == nil {
		f.newest.wrote(f.of, list.GetResourceVersion(), unknown)
	}
	return list, err
}

// isAhead reports that an API server does not come to a resourceVersion that it gave out before. client-go asks it
// again until the time of the request is over, which is then the error.
func isAhead(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsResourceExpired(err) || errors.Is(err, context.DeadlineExceeded)
}

// note notes what a write returned; a trial has written nothing.
func (f fresh) note(o *unstructured.Unstructured, err error, trial []string, unknown int) (
	*unstructured.Unstructured, error,
) {
	switch {
	case len(trial) > 0:
	case err != nil:
		f.newest.forget(f.of)
	default:
		f.newest.wrote(f.of, o.GetResourceVersion(), unknown)
	}
	return o, err
}

// Create implements dynamic.ResourceInterface.
func (f fresh) Create(ctx context.Context, o *unstructured.Unstructured, how metav1.CreateOptions, sub ...string) (
	*unstructured.Unstructured, error,
) {
	_, unknown := f.newest.of(f.of)
	made, err := f.ResourceInterface.Create(ctx, o, how, sub...)
	return f.note(made, err, how.DryRun, unknown)
}

// Update implements dynamic.ResourceInterface.
func (f fresh) Update(ctx context.Context, o *unstructured.Unstructured, how metav1.UpdateOptions, sub ...string) (
	*unstructured.Unstructured, error,
) {
	_, unknown := f.newest.of(f.of)
	updated, err := f.ResourceInterface.Update(ctx, o, how, sub...)
	return f.note(updated, err, how.DryRun, unknown)
}

// UpdateStatus implements dynamic.ResourceInterface.
func (f fresh) UpdateStatus(ctx context.Context, o *unstructured.Unstructured, how metav1.UpdateOptions) (
	*unstructured.Unstructured, error,
) {
	_, unknown := f.newest.of(f.of)
	written, err := f.ResourceInterface.UpdateStatus(ctx, o, how)
	return f.note(written, err, how.DryRun, unknown)
}

// Apply implements dynamic.ResourceInterface.
func (f fresh) Apply(ctx context.Context, name string, o *unstructured.Unstructured, how metav1.ApplyOptions,
	sub ...string,
) (*unstructured.Unstructured, error) {
	_, unknown := f.newest.of(f.of)
	applied, err := f.ResourceInterface.Apply(ctx, name, o, how, sub...)
	return f.note(applied, err, how.DryRun, unknown)
}

// Patch implements dynamic.ResourceInterface.
func (f fresh) Patch(ctx context.Context, name string, typ types.PatchType, data []byte, how metav1.PatchOptions,
	sub ...string,
) (*unstructured.Unstructured, error) {
	_, unknown := f.newest.of(f.of)
	patched, err := f.ResourceInterface.Patch(ctx, name, typ, data, how, sub...)
	return f.note(patched, err, how.DryRun, unknown)
}

// Delete implements dynamic.ResourceInterface.
func (f fresh) Delete(ctx context.Context, name string, how metav1.DeleteOptions, sub ...string) error {
	defer f.newest.forget(f.of) // also where it is not known whether it was done
	return f.ResourceInterface.Delete(ctx, name, how, sub...)
}
