package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/libs/client"
)

// firstWait bounds the wait for all of a list: a proxy that keeps a stream to itself lets nothing through.
const firstWait = 10 * time.Second

// Watches keep lists up to date by watching them at the gateway.
type Watches struct {
	lost    func(error) // is told of every break
	changed chan struct{}
	// firstWait is how long a list is waited for.
	firstWait time.Duration

	mu    sync.Mutex
	feeds map[string]*feed // by path and query
}

// Watching returns a client whose lists are kept up to date until ctx ends: a list that was asked for once is answered
// from memory. lost is told of every break. Lists that the gateway cannot watch are asked for as ever.
func (c *Client) Watching(ctx context.Context, lost func(error)) (*Client, *Watches) {
	w := &Watches{
		changed: make(chan struct{}, 1), feeds: map[string]*feed{}, firstWait: firstWait,
		lost: func(err error) { lost(c.shown(err)) },
	}
	l := *c
	l.watches, l.watching = w, ctx
	return &l, w
}

// Changed has an element when lists have changed since it was taken.
func (w *Watches) Changed() <-chan struct{} { return w.changed }

// Refused says whether the gateway does not watch some of the lists: they have to be asked for.
func (w *Watches) Refused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.feeds {
		if f.refused() {
			return true
		}
	}
	return false
}

// items are what is in a list now; ok is false where the gateway does not watch it.
func (w *Watches) items(ctx context.Context, c *Client, r client.Request) (
	items []json.RawMessage, ok bool, err error,
) {
	r.Query = cloned(r.Query)
	for _, name := range []string{"limit", "sort", "cursor"} { // of pages; a watch has none
		r.Query.Del(name)
	}
	key := r.Path() + "?" + r.Query.Encode()
	w.mu.Lock()
	f := w.feeds[key]
	if f == nil {
		f = &feed{began: make(chan struct{}), objects: map[name]*object{}}
		w.feeds[key] = f
		go w.follow(c, r, f)
	}
	w.mu.Unlock()
	wait := time.NewTimer(w.firstWait)
	defer wait.Stop()
	select {
	case <-f.began:
	case <-wait.C:
		f.unheard()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	return f.state()
}

// follow keeps one list up to date.
func (w *Watches) follow(c *Client, r client.Request, f *feed) {
	err := c.api.Watch(c.watching, r, "", func(change client.Change) error {
		told, err := f.take(change)
		if told {
			w.tell()
		}
		return err
	}, func(err error) {
		if f.unheard() { // the list is asked for, and says for itself what is wrong
			w.tell()
			return
		}
		w.lost(err)
	})
	f.end(c.shown(err))
	w.tell()
}

func (w *Watches) tell() {
	select {
	case w.changed <- struct{}{}:
	default: // nobody has looked since the last time
	}
}

// name tells an object of a list from the others.
type name struct {
	ID        string `json:"id"`
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// object is one of a list; stale says that the gateway may not have it any more.
type object struct {
	at    int // in the order in which they came
	json  json.RawMessage
	stale bool
}

// feed is one list.
type feed struct {
	began chan struct{} // closed when everything was told once, or is not waited for any more

	mu      sync.Mutex
	ready   bool // began is closed
	told    bool // everything, once; until then the list counts as one that is not watched
	objects map[name]*object
	count   int // of all that came
	err     error
}

// take notes a change; told says that what is in the list is complete up to now.
func (f *feed) take(change client.Change) (told bool, err error) {
	var of name
	if err := json.Unmarshal(change.Data, &of); err != nil {
		return false, fmt.Errorf("%s of a watch is not what this version expects: %w", change.Type, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch change.Type {
	case client.Added, client.Modified:
		o := f.objects[of]
		if o == nil {
			f.count++
			o = &object{at: f.count}
			f.objects[of] = o
		}
		o.json, o.stale = slices.Clone(change.Data), false
	case client.Deleted:
		delete(f.objects, of)
	case client.Reset:
		for _, o := range f.objects {
			o.stale = true
		}
	case client.Bookmark:
		for n, o := range f.objects {
			if o.stale {
				delete(f.objects, n)
			}
		}
		f.told = true
		f.begin()
		return true, nil
	}
	return false, nil
}

// begin lets those go on who wait for the list; f.mu is held.
func (f *feed) begin() {
	if !f.ready {
		f.ready = true
		close(f.began)
	}
}

func (f *feed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	f.begin()
}

// unheard lets those go on who wait for a list of which nothing complete was heard; false where something was.
func (f *feed) unheard() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin()
	return !f.told
}

// refused says that the gateway does not watch the list, or not yet.
func (f *feed) refused() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.isRefused()
}

// isRefused is refused; f.mu is held. It is so of the answers of a gateway, or a proxy before it, that does not know
// the watch of a list, of a watch that ended for good, as one of too many objects, and of one that was not heard yet.
func (f *feed) isRefused() bool {
	if f.err == nil {
		return f.ready && !f.told
	}
	var ended *client.WatchEndedError
	return IsStatus(f.err, http.StatusBadRequest) || IsStatus(f.err, http.StatusNotAcceptable) ||
		errors.As(f.err, &ended)
}

// state is what is in the list.
func (f *feed) state() (items []json.RawMessage, ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isRefused() {
		return nil, false, nil
	}
	if f.err != nil {
		return nil, false, f.err
	}
	all := make([]*object, 0, len(f.objects))
	for _, o := range f.objects {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *object) int { return a.at - b.at })
	for _, o := range all {
		items = append(items, o.json)
	}
	return items, true, nil
}
