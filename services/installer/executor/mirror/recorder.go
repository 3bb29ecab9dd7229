package mirror

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

const (
	// maxEventAge is how old something may be that is reported: far less than the hour for which an API server keeps
	// Events, so that one which was reported already is still there to be met, and nobody is reported today what
	// happened a week ago.
	maxEventAge = 10 * time.Minute
	// eventBurst and eventPace are client-go's own bounds of what one object tells: 25 Events, and one more every 5
	// minutes.
	eventBurst = 25
	eventPace  = 1. / 300
	// tellObjects is how many objects that bound is remembered for, as client-go has it.
	tellObjects = 4096
	// tellQPS and tellAtOnce keep Events from taking the API server's time while many operators are installed.
	tellQPS    = 20
	tellAtOnce = 20
	// eventQueue bounds what waits to be reported. What is beyond is not told: the objects themselves say how things
	// are.
	eventQueue = 1000
	// tellTries and tellPause are how often an Event is tried, and the wait between.
	tellTries = 3
	tellPause = 2 * time.Second
)

// recorder writes Kubernetes Events, one after the other and beside all else: nothing waits for them, and one that
// cannot be written is left out.
//
// Of client-go's recorder it has the bounds and not the names: that one counts alike Events in memory and names them by
// its clock, so that after a restart all would be reported again. Here an Event is named after what happened
// (mirror.Event), and creating it a second time meets the first one.
type recorder struct {
	Config
	spam  *record.EventSourceObjectSpamFilter
	pace  flowcontrol.RateLimiter
	news  chan struct{}
	pause func(context.Context, time.Duration)

	mu       sync.Mutex
	recorded map[string]time.Time // by name of the Event, when it happened; forgotten when it is too old to be reported
	pending  []telling
}

// telling is an Event on its way.
type telling struct {
	mirror.Event
	about corev1.ObjectReference
}

func newRecorder(c Config) *recorder {
	return &recorder{
		Config: c, recorded: map[string]time.Time{}, news: make(chan struct{}, 1), pause: sleep,
		spam: record.NewEventSourceObjectSpamFilter(tellObjects, eventBurst, eventPace, clock{c.Now}, spamKey),
		pace: flowcontrol.NewTokenBucketRateLimiter(tellQPS, tellAtOnce),
	}
}

// clock tells client-go the time.
type clock struct{ now func() time.Time }

// Now is the time.
func (c clock) Now() time.Time { return c.now() }

// Since is how long ago a time is.
func (c clock) Since(t time.Time) time.Duration { return c.now().Sub(t) }

// spamKey is the object that an Event tells of.
func spamKey(e *corev1.Event) string {
	return e.InvolvedObject.Kind + "/" + e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name + "/" +
		e.Source.Component
}

// sleep waits, or until the context ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// record has Events of an object told that have not been told yet, and are no old stories.
func (t *recorder) record(about corev1.ObjectReference, list []mirror.Event) {
	if len(list) == 0 {
		return
	}
	now := t.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.recorded, func(_ string, at time.Time) bool { return now.Sub(at) > maxEventAge })
	added := false
	for _, e := range list {
		if _, told := t.recorded[e.Name]; told || now.Sub(e.Time) > maxEventAge {
			continue
		}
		t.recorded[e.Name] = e.Time
		if len(t.pending) >= eventQueue || t.spam.Filter(e.Object(about)) {
			t.Log.Debug("an Event is left out: there are too many", "object", about.Kind+" "+about.Namespace+"/"+
				about.Name, "reason", e.Reason)
			continue
		}
		t.pending, added = append(t.pending, telling{e, about}), true
	}
	if !added {
		return
	}
	select {
	case t.news <- struct{}{}:
	default: // it is known already
	}
}

// run writes what is reported until the context ends.
func (t *recorder) run(ctx context.Context) {
	for {
		next, ok := t.next()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-t.news:
			}
			continue
		}
		if t.pace.Wait(ctx) != nil {
			return
		}
		if err := t.write(ctx, next); err != nil && ctx.Err() == nil {
			t.Log.WarnContext(ctx, "an Event is left out: it could not be written", "object",
				next.about.Kind+" "+next.about.Namespace+"/"+next.about.Name,
				"reason", next.Reason, "error", err)
		}
	}
}

func (t *recorder) next() (telling, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pending) == 0 {
		t.pending = nil
		return telling{}, false
	}
	first := t.pending[0]
	t.pending = t.pending[1:]
	return first, true
}

// write tries to write one Event. One that is there already was reported before.
func (t *recorder) write(ctx context.Context, n telling) (err error) {
	for try := range tellTries {
		if try > 0 {
			t.pause(ctx, tellPause)
		}
		err = t.create(ctx, n)
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
			return nil
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsNotFound(err), ctx.Err() != nil:
			// no try helps
			return err
		}
	}
	return err
}

var (
	gvkEvent     = schema.GroupVersionKind{Version: "v1", Kind: "Event"}
	gvkNamespace = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
)

func (t *recorder) create(ctx context.Context, n telling) error {
	about := n.about
	if n.OfNamespace {
		ns, err := t.Client.Get(ctx, gvkNamespace, "", n.about.Namespace)
		if err != nil || ns == nil {
			return err
		}
		about = corev1.ObjectReference{
			APIVersion: "v1", Kind: gvkNamespace.Kind, Name: ns.GetName(), UID: ns.GetUID(),
			ResourceVersion: ns.GetResourceVersion(),
		}
	}
	o := n.Object(about)
	body, err := toObject(o)
	if err != nil {
		return err
	}
	_, err = t.Client.Dynamic.Resource(kube.Resource(gvkEvent)).Namespace(o.Namespace).Create(
		ctx, body, metav1.CreateOptions{FieldManager: manager})
	return err
}

// SendEvents writes the Events of mirrors until the context ends.
func (k *Keeper) SendEvents(ctx context.Context) { k.recorder.run(ctx) }

// record has the Events of a mirror told, as soon as it is there.
func (k *Keeper) record(w Wanted) {
	n, known := k.noteOf(w.Key)
	if !known {
		return
	}
	k.recorder.record(corev1.ObjectReference{
		APIVersion: w.GVK.GroupVersion().String(), Kind: w.GVK.Kind, Namespace: w.Namespace, Name: w.Name, UID: n.uid,
		ResourceVersion: n.version,
	}, w.Events)
}

// NotifyRemoved has the last transitions told of operators that are gone, while what showed them is still known.
func (k *Keeper) NotifyRemoved(list []Wanted) {
	for _, w := range list {
		k.record(w)
	}
}
