package watch

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// retry is how long a reflector waits after failures. Each wait is up to twice as long as it says, so that many do not
// come back at one moment.
var retry = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 8, Cap: 30 * time.Second}

// follow follows the kind of a store until ctx ends. A failure changes nothing that is known until a whole list does
// not show it; it is not logged either, since who needs the cluster meets it, too.
func follow(ctx context.Context, c metadata.Interface, s *store) {
	var silent klog.Logger
	ctx = klog.NewContext(ctx, silent)
	of := c.Resource(s.kind.GVK.GroupVersion().WithResource(s.kind.Resource)).Namespace(s.kind.Namespace)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = s.kind.Selector
			if o.ResourceVersion == "0" { // any state, however old: what is missing in it may be there
				o.ResourceVersion = ""
			}
			l, err := of.List(ctx, o)
			if err != nil {
				return nil, err
			}
			return l, s.within(o.Continue != "", len(l.Items))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = s.kind.Selector
			w, err := of.Watch(ctx, o)
			if err != nil || o.SendInitialEvents == nil || !*o.SendInitialEvents {
				return w, err
			}
			n := 0
			return watch.Filter(w, func(e watch.Event) (watch.Event, bool) { // a list in the form of events
				if e.Type == watch.Added {
					n++
				}
				return e, n <= s.most || e.Type != watch.Added
			}), nil
		},
	}
	cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, c), &metav1.PartialObjectMetadata{}, sink{s},
		cache.ReflectorOptions{
			Logger: &silent, Name: s.kind.Resource, Backoff: &retry, Clock: ending{ctx: ctx},
		}).RunWithContext(ctx)
}

// within counts the objects of a list over its pages, and ends one that does not end.
func (s *store) within(goesOn bool, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !goesOn {
		s.paged = 0
	}
	if s.paged += n; s.paged > s.most {
		return errs.New(errs.TooLarge, "more than %d %s: they are not watched", s.most, s.kind.Resource)
	}
	return nil
}

// room reports whether an object can be remembered beside those that are.
func (s *store) room(k key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.entries[k]
	return known || len(s.entries) < s.most
}

// ending is a clock on which a wait is over when ctx ends: a reflector whose API server is away would otherwise keep
// the end of a watch up.
type ending struct {
	clock.RealClock
	ctx context.Context //nolint:containedctx // clock.Clock knows none
}

// After implements clock.Clock.
func (e ending) After(d time.Duration) <-chan time.Time {
	over := make(chan time.Time, 1)
	ctx, cancel := context.WithTimeout(e.ctx, d)
	context.AfterFunc(ctx, func() {
		cancel()
		over <- e.Now()
	})
	return over
}

// sink is a store as a reflector fills it.
type sink struct{ *store }

// Add implements cache.ReflectorStore.
func (s sink) Add(o any) error {
	m, err := metadataOf(o)
	if err == nil && s.room(keyOf(m)) {
		s.put(m)
	}
	return err
}

// Update implements cache.ReflectorStore.
func (s sink) Update(o any) error { return s.Add(o) }

// Delete implements cache.ReflectorStore.
func (s sink) Delete(o any) error {
	m, err := metadataOf(o)
	if err == nil {
		s.remove(m)
	}
	return err
}

// Replace implements cache.ReflectorStore.
func (s sink) Replace(all []any, version string) error {
	there := make(map[key]bool, len(all))
	for _, o := range all {
		m, err := metadataOf(o)
		if err != nil {
			return err
		}
		there[keyOf(m)] = true
		s.put(m)
	}
	s.whole(there, version)
	return nil
}

// Resync implements cache.ReflectorStore.
func (sink) Resync() error { return nil }

func metadataOf(o any) (*metav1.PartialObjectMetadata, error) {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("%T is not metadata", o) //nolint:err113 // the reflector drops it
	}
	return m, nil
}
