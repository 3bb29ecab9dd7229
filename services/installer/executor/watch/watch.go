package watch

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// turn is how long a kind's first list holds the next kind's back: after a restart the API server is not asked for
// everything at once, and one kind that cannot be listed does not hide the others.
const turn = 2 * time.Second

// KubernetesManager is the field manager of Kubernetes' own controllers, which count the revisions of a Deployment in
// an annotation.
const KubernetesManager = "kube-controller-manager"

// definitions is the kind that says which other kinds are served.
var definitions = schema.GroupVersionKind{
	Group: "apiextensions.k8s.io", Version: "v1",
	Kind: "CustomResourceDefinition",
}

// Kind is a kind to watch.
type Kind struct {
	GVK       schema.GroupVersionKind
	Resource  string // plural
	Namespace string // "" for all
	Selector  string // by labels; "" for all objects
	// CRD names the definition that must exist before the kind is asked for; "" for what is always served.
	CRD string
	// Owner is a label whose value comes with each change.
	Owner string
	// Labels keeps all labels for Watch.Labels.
	Labels bool
	// Annotations is a label: the annotations of objects that have it are kept for Watch.Annotations.
	Annotations string
	// Status tells a change of status, too.
	Status bool
	// Later has the kind asked for from Watch.Demand on only.
	Later bool
}

// Standby puts all kinds off until something is wanted of the cluster, but those that are always watched.
func Standby(kinds []Kind, always ...schema.GroupVersionKind) []Kind {
	for i := range kinds {
		kinds[i].Later = !slices.Contains(always, kinds[i].GVK)
	}
	return kinds
}

// Change is one object that was made, changed or removed, as far as the watch sees it.
type Change struct {
	GVK       schema.GroupVersionKind
	Namespace string
	Name      string
	UID       string
	Owner     string
	// Mark is as Mark returns it, 0 for one that is gone.
	Mark uint64
	// Moved is unset where no more than the status changed.
	Moved bool
	Gone  bool
	// Version is the resourceVersion, "" of one that is gone.
	Version string
	// At is the resourceVersion at which the watch saw it: that of the deletion, or of the list that it is missing in,
	// for one that is gone.
	At string
}

// Watch watches the kinds of one cluster.
type Watch struct {
	// Listed, where it is set before Run, is notified of a kind each time that all of it was listed: what nobody told
	// of by then, and There does not know, is not there. It must not block.
	Listed func(schema.GroupVersionKind)

	client metadata.Interface
	stores []*store
	crds   *store        // nil where definitions are not watched
	served chan struct{} // a definition came or went, or Demand was called

	demanded atomic.Bool
}

// New returns a watch of the kinds, which are asked for in this order. changed must not block.
func New(client metadata.Interface, kinds []Kind, changed func(Change)) *Watch {
	w := &Watch{client: client, served: make(chan struct{}, 1)}
	for _, k := range kinds {
		notify := changed
		if k.GVK == definitions {
			notify = func(c Change) {
				w.rethink()
				changed(c)
			}
		}
		s := newStore(k, notify)
		if k.GVK == definitions {
			w.crds = s
		}
		w.stores = append(w.stores, s)
	}
	return w
}

// Demand has the kinds watched, too, that are watched later. It may be called often.
func (w *Watch) Demand() {
	if !w.demanded.Swap(true) {
		w.rethink()
	}
}

// rethink has Run look again at which kinds are wanted.
func (w *Watch) rethink() {
	select {
	case w.served <- struct{}{}:
	default: // it is about to
	}
}

// Labels returns the labels of the objects of a cluster-scoped kind by name; false while they are not known.
func (w *Watch) Labels(gvk schema.GroupVersionKind) (map[string]map[string]string, bool) {
	for _, s := range w.stores {
		if s.kind.GVK == gvk {
			return s.labels()
		}
	}
	return nil, false
}

// Annotations returns those annotations of an object of a cluster-scoped kind that an operator group may have set; none
// of an object without the label that the kind names.
func (w *Watch) Annotations(gvk schema.GroupVersionKind, name string) map[string]string {
	for _, s := range w.stores {
		if s.kind.GVK == gvk {
			return s.annotations(name)
		}
	}
	return nil
}

// There reports whether an object is known to exist, and whether it is about to be removed. One that is not known may
// exist all the same: a watch is a little behind, and sees only what its kind's selector selects.
func (w *Watch) There(gvk schema.GroupVersionKind, namespace, name string) (there, leaving bool) {
	for _, s := range w.stores {
		if s.kind.GVK != gvk {
			continue
		}
		s.mu.Lock()
		e, ok := s.entries[key{namespace, name}]
		s.mu.Unlock()
		if ok {
			return true, e.leaving
		}
	}
	return false, false
}

// Absent reports that the objects of a kind were listed, and that none of the name was among them or was notified of
// since. It is as much of a hint as There: one may have been made since, and a watch that has lost its rights stays
// behind. Whoever acts on it must notice that it was not so. Of kinds of which a selector chooses it says nothing.
func (w *Watch) Absent(gvk schema.GroupVersionKind, namespace, name string) bool {
	for _, s := range w.stores {
		if s.kind.GVK == gvk && s.kind.Namespace == "" && s.kind.Selector == "" {
			return s.wasListed() && !s.holds(key{namespace, name})
		}
	}
	return false
}

// Await waits until the objects of a kind were listed once, or ctx ends. A kind that is not watched is not waited for.
func (w *Watch) Await(ctx context.Context, gvk schema.GroupVersionKind) {
	for _, s := range w.stores {
		if s.kind.GVK != gvk {
			continue
		}
		select {
		case <-s.synced:
		case <-ctx.Done():
		}
	}
}

// Run watches until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	stops := map[*store]context.CancelFunc{}
	for _, s := range w.stores {
		s.listed = w.Listed
	}
	for {
		for _, s := range w.stores {
			stop, runs := stops[s]
			switch wanted := w.wanted(s); {
			case wanted && !runs:
				one, stop := context.WithCancel(ctx)
				stops[s] = stop
				running.Go(func() { follow(one, w.client, s) })
				await(ctx, s.synced)
			case !wanted && runs:
				stop()
				delete(stops, s)
			}
		}
		select {
		case <-ctx.Done():
			for _, stop := range stops {
				stop()
			}
			return
		case <-w.served:
		}
	}
}

func (w *Watch) wanted(s *store) bool {
	if s.kind.Later && !w.demanded.Load() {
		return false
	}
	return s.kind.CRD == "" || w.crds != nil && w.crds.has(s.kind.CRD)
}

func await(ctx context.Context, synced <-chan struct{}) {
	t := time.NewTimer(turn)
	defer t.Stop()
	select {
	case <-synced:
	case <-t.C:
	case <-ctx.Done():
	}
}

// Mark tells versions of an object apart in what people and controllers write: it stays the same when only the status
// changes, where the kind counts generations.
func Mark(o metav1.Object) uint64 {
	h := fnv.New64a()
	write := func(parts ...string) {
		for _, p := range parts {
			_, _ = h.Write([]byte(p)) // never fails
			_, _ = h.Write([]byte{0})
		}
	}
	write(string(o.GetUID()))
	if o.GetGeneration() == 0 {
		write(o.GetResourceVersion())
		return h.Sum64()
	}
	var generation [8]byte
	binary.LittleEndian.PutUint64(generation[:], uint64(o.GetGeneration()))
	write(string(generation[:]))
	for _, f := range o.GetManagedFields() {
		if f.Subresource != "" || f.Manager == KubernetesManager {
			continue
		}
		at := ""
		if f.Time != nil {
			at = f.Time.UTC().Format(time.RFC3339)
		}
		write(f.Manager, string(f.Operation), at)
		if f.FieldsV1 != nil {
			write(f.FieldsV1.GetRawString())
		}
	}
	return h.Sum64()
}
