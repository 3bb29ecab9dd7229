package watch

import (
	"context"
	"errors"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// pageSize is how many objects one answer to a list holds.
	pageSize = 500
	// streamFor is how long a stream lasts at least, and at most twice as long: the API server ends it then, so that
	// its clients spread over its instances.
	streamFor = 5 * time.Minute
	// retryFirst and retryLast are the waits after failures, which double; each wait is up to twice as long, so that
	// many watches do not come back at one moment. What worked for the longest of them begins with the first again.
	retryFirst = 200 * time.Millisecond
	retryLast  = 30 * time.Second
	// shortStream is a time in which a stream that ended was of no use.
	shortStream = time.Second
)

// follower follows one kind. What it knows outlives a stream, so that the next one goes on where the last one ended.
type follower struct {
	source Source
	store  *store
	// version is the resourceVersion up to which everything was reported; "" while everything has to be listed.
	version string
	// listing is what was there since a stream began that tells first what exists; nil after that.
	listing map[key]bool
	// paged is set where the API server does not tell in a stream what exists.
	paged bool
}

// run follows until ctx ends. A failure tells nothing: what was known stays so until a whole list does not show it.
func (f *follower) run(ctx context.Context) {
	for wait := retryFirst; ctx.Err() == nil; {
		began := time.Now()
		err := f.round(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && time.Since(began) >= shortStream:
			wait = retryFirst
			continue // it ended as it was to end
		case lostPlace(err):
			f.version = ""
		}
		if time.Since(began) >= retryLast {
			wait = retryFirst
		}
		f.pause(ctx, wait)
		wait = min(2*wait, retryLast)
	}
}

func (f *follower) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(kwait.Jitter(d, 1))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// lostPlace reports a failure after which nothing is certain of what came since the last event. Nobody having answered,
// and an API server that has too much to do, is none; whatever else it answers counts as one.
func lostPlace(err error) bool {
	if _, answered := errors.AsType[*apierrors.StatusError](err); answered {
		return !apierrors.IsTooManyRequests(err)
	}
	return errors.Is(err, errNoEvent)
}

// round makes one list where one is due, and follows one stream to its end, which is no error where it is in order.
func (f *follower) round(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seconds := int64(kwait.Jitter(streamFor, 1).Seconds())
	o := metav1.ListOptions{
		LabelSelector: f.store.kind.Selector, Watch: true, AllowWatchBookmarks: true,
		TimeoutSeconds: &seconds,
	}
	f.listing = nil
	if f.version == "" && f.paged {
		if err := f.list(ctx); err != nil {
			return err
		}
	}
	if o.ResourceVersion = f.version; f.version == "" {
		yes := true
		o.SendInitialEvents, o.ResourceVersionMatch = &yes, metav1.ResourceVersionMatchNotOlderThan
		f.listing = map[key]bool{}
	}
	s, err := f.source.Watch(ctx, f.store.kind, o)
	if err != nil {
		f.paged = f.paged || f.listing != nil && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err))
		return err
	}
	defer func() { _ = s.Close() }() // nothing is written to it
	for {
		typ, m, err := s.Next()
		if errors.Is(err, io.EOF) && f.listing == nil {
			return nil
		}
		if err != nil {
			return err
		}
		f.take(typ, m)
	}
}

// list reads everything at once, and takes what is not there to be gone.
func (f *follower) list(ctx context.Context) error {
	there := map[key]bool{}
	o := metav1.ListOptions{LabelSelector: f.store.kind.Selector, Limit: pageSize}
	for {
		page, err := f.source.List(ctx, f.store.kind, o)
		if err != nil {
			return err
		}
		for i := range page.Items {
			there[keyOf(&page.Items[i])] = true
			f.store.put(&page.Items[i])
		}
		if o.Continue = page.Continue; o.Continue == "" {
			f.store.whole(there)
			f.version = page.ResourceVersion
			return nil
		}
	}
}

// take takes an event. While the API server tells what exists, only its word that this was all gives a place to go on
// from.
func (f *follower) take(typ watch.EventType, m *metav1.PartialObjectMetadata) {
	switch typ {
	case watch.Added, watch.Modified:
		if f.listing != nil {
			f.listing[keyOf(m)] = true
		}
		f.store.put(m)
	case watch.Deleted:
		if f.listing != nil {
			delete(f.listing, keyOf(m))
		}
		f.store.remove(m)
	case watch.Bookmark:
		if f.listing != nil && m.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			f.store.whole(f.listing)
			f.listing = nil
		}
	case watch.Error: // Next returns it as one
		return
	default: // one of a later Kubernetes
		return
	}
	if f.listing == nil && m.ResourceVersion != "" {
		f.version = m.ResourceVersion
	}
}
