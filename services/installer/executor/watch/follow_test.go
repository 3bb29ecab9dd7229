package watch_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubewatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
)

func refusal(code int, reason metav1.StatusReason) *apierrors.StatusError {
	if reason == "" {
		reason = map[int]metav1.StatusReason{
			http.StatusGone: metav1.StatusReasonExpired, http.StatusForbidden: metav1.StatusReasonForbidden,
			http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
		}[code]
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code),
		Reason: reason,
	}}
}

// answer is what the server says to one request: it fails, is no API server, lists, or sends events and then ends the
// stream or holds it.
type answer struct {
	fails  int
	page   string
	list   []runtime.Object
	events []kubewatch.Event
	hold   bool
}

// server is an API server that answers the requests for one kind in turn; the last answer is for all that follow.
type server struct {
	t       *testing.T
	answers []answer

	mu    sync.Mutex
	asked []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	a := s.answers[min(len(s.asked), len(s.answers)-1)]
	q := r.URL.Query()
	s.asked = append(s.asked, r.URL.Path+" watch="+q.Get("watch")+" initial="+q.Get("sendInitialEvents")+" from="+
		q.Get("resourceVersion")+" labels="+q.Get("labelSelector")+" continue="+q.Get("continue"))
	s.mu.Unlock()
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	switch {
	case a.fails > 0:
		w.WriteHeader(a.fails)
		s.write(w, mustJSON(s.t, refusal(a.fails, "").Status()))
		return
	case a.page != "":
		s.write(w, []byte(a.page))
		return
	case q.Get("watch") == "":
		items := []any{}
		for _, o := range a.list {
			items = append(items, o)
		}
		s.write(w, mustJSON(s.t, map[string]any{
			"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
			"metadata": map[string]any{"resourceVersion": "10"}, "items": items,
		}))
		return
	}
	for _, e := range a.events {
		raw := mustJSON(s.t, e.Object)
		event := metav1.WatchEvent{Type: string(e.Type), Object: runtime.RawExtension{Raw: raw}}
		s.write(w, append(mustJSON(s.t, event), '\n'))
	}
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	if a.hold {
		<-r.Context().Done()
	}
}

func (s *server) write(w io.Writer, raw []byte) {
	if _, err := w.Write(raw); err != nil {
		s.t.Log(err) // the client has gone
	}
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return raw
}

func at(version int, name string) *metav1.PartialObjectMetadata {
	o := object(namespaces, "", name, nil)
	o.TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	o.ResourceVersion = strconv.Itoa(version)
	return o
}

func said(typ kubewatch.EventType, version int, name string) kubewatch.Event {
	return kubewatch.Event{Type: typ, Object: at(version, name)}
}

// all is the word that everything was reported that exists.
func all(version int) kubewatch.Event {
	o := at(version, "")
	o.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return kubewatch.Event{Type: kubewatch.Bookmark, Object: o}
}

// expired is what an API server says that has forgotten what came since.
func expired() kubewatch.Event {
	return kubewatch.Event{Type: kubewatch.Error, Object: &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
	}}
}

func follow(t *testing.T, s *server) *told {
	t.Helper()
	s.t = t
	api := httptest.NewServer(s)
	t.Cleanup(api.Close)
	c, err := metadata.NewForConfig(&rest.Config{Host: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	r := newTold()
	run(t, watch.New(c, []watch.Kind{{GVK: namespaces, Resource: "namespaces", Selector: "team=sea"}}, r.change))
	return r
}

func gone(name string) func(watch.Change) bool {
	return func(c watch.Change) bool { return c.Name == name && c.Gone }
}

func there(name string) func(watch.Change) bool {
	return func(c watch.Change) bool { return c.Name == name && !c.Gone }
}

// TestStream: a stream that tells first what exists is followed in one request, and the next one goes on behind the
// last word of it: nothing is reported twice, and nothing is missed.
func TestStream(t *testing.T) {
	t.Parallel()
	s := &server{answers: []answer{
		{events: []kubewatch.Event{
			said(kubewatch.Added, 7, "a"), said(kubewatch.Added, 3, "b"), all(8),
			said(kubewatch.Deleted, 9, "b"),
		}},
		{events: []kubewatch.Event{said(kubewatch.Added, 12, "c")}, hold: true},
	}}
	r := follow(t, s)
	r.await(t, "what came while nobody listened", there("c"))
	r.await(t, "what went", gone("b"))
	want := []string{
		"/api/v1/namespaces watch=true initial=true from= labels=team=sea continue=",
		"/api/v1/namespaces watch=true initial= from=9 labels=team=sea continue=",
	}
	if got := s.requests(); !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
	if r.count(there("a")) != 1 || r.count(gone("a")) != 0 {
		t.Errorf("told: %+v", r.list)
	}
}

// TestExpired: where the API server has forgotten what came since, everything is reported anew: what went meanwhile is
// gone.
func TestExpired(t *testing.T) {
	t.Parallel()
	for name, forgot := range map[string]answer{
		"in the stream": {events: []kubewatch.Event{expired()}},
		"at once":       {fails: http.StatusGone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{answers: []answer{
				{events: []kubewatch.Event{said(kubewatch.Added, 1, "a"), said(kubewatch.Added, 2, "b"), all(5)}},
				forgot,
				{
					events: []kubewatch.Event{said(kubewatch.Added, 2, "b"), said(kubewatch.Added, 8, "c"), all(9)},
					hold:   true,
				},
			}}
			r := follow(t, s)
			r.await(t, "what went while nobody listened", gone("a"))
			if r.count(gone("b"))+r.count(gone("c")) != 0 || r.count(there("b")) != 1 {
				t.Errorf("told: %+v", r.list)
			}
		})
	}
}

// TestBroken: a stream that breaks off before it has told everything tells nothing as gone, nor does a refusal.
func TestBroken(t *testing.T) {
	t.Parallel()
	s := &server{answers: []answer{
		{events: []kubewatch.Event{said(kubewatch.Added, 1, "a"), said(kubewatch.Added, 2, "b"), all(5), expired()}},
		{events: []kubewatch.Event{said(kubewatch.Added, 1, "a")}},
		{fails: http.StatusForbidden}, // and the list that is asked for instead
		{fails: http.StatusForbidden},
		{events: []kubewatch.Event{
			said(kubewatch.Added, 1, "a"), said(kubewatch.Added, 2, "b"),
			said(kubewatch.Added, 6, "c"), all(7),
		}, hold: true},
	}}
	r := follow(t, s)
	r.await(t, "what came meanwhile", there("c"))
	for _, name := range []string{"a", "b", "c"} {
		if r.count(gone(name)) != 0 {
			t.Errorf("%s is told as gone", name)
		}
	}
	for _, q := range s.requests()[:3] {
		if !strings.Contains(q, "watch=true initial=true") {
			t.Errorf("asked for %q though not everything was told", q)
		}
	}
}

// TestPaged: an API server that does not tell in a stream what exists is asked for a list, and then followed from
// there.
func TestPaged(t *testing.T) {
	t.Parallel()
	s := &server{answers: []answer{
		{fails: http.StatusUnprocessableEntity},
		{list: []runtime.Object{at(1, "a"), at(2, "b")}},
		{events: []kubewatch.Event{said(kubewatch.Deleted, 11, "a")}, hold: true},
	}}
	r := follow(t, s)
	r.await(t, "what went, and at which version", func(c watch.Change) bool { return gone("a")(c) && c.At == "11" })
	want := []string{
		"/api/v1/namespaces watch=true initial=true from= labels=team=sea continue=",
		"/api/v1/namespaces watch= initial= from= labels=team=sea continue=",
		"/api/v1/namespaces watch=true initial= from=10 labels=team=sea continue=",
	}
	if got := s.requests(); !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}

// TestNoEvents: what answers without being an API server is asked again, and tells nothing.
func TestNoEvents(t *testing.T) {
	t.Parallel()
	s := &server{answers: []answer{
		{page: "<html>sign in first"},
		{page: "<html>sign in first"},
		{events: []kubewatch.Event{said(kubewatch.Added, 1, "a"), all(5)}, hold: true},
	}}
	r := follow(t, s)
	r.await(t, "what is there", there("a"))
	if len(r.list) != 1 {
		t.Errorf("told: %+v", r.list)
	}
}
