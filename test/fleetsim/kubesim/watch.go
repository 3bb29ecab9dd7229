package kubesim

import (
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// stream is one watch.
type stream struct {
	w      http.ResponseWriter
	r      *http.Request
	q      *request
	chosen func(*unstructured.Unstructured) bool
}

// watch tells of changes until the client ends it.
func (c *Cluster) watch(w http.ResponseWriter, r *http.Request, q *request) {
	chosen, err := selector(r.URL.Query())
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	s := stream{w: w, r: r, q: q, chosen: chosen}
	from := r.URL.Query().Get("resourceVersion")
	whole := r.URL.Query().Get("sendInitialEvents") == "true" || from == "" || from == "0"
	c.mu.Lock()
	after, err := strconv.ParseUint(from, 10, 64)
	var first []change
	if whole {
		for _, at := range q.keys() {
			first = append(first, change{typ: watch.Added, object: q.byKey[at]})
		}
		after = c.version
	} else if err != nil || after < q.dropped {
		c.mu.Unlock()
		fail(w, apierrors.NewResourceExpired("too old resource version"))
		return
	}
	version := c.version
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	s.tell(first)
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		s.bookmark(version)
	}
	s.flush()
	s.follow(c, after)
}

// follow tells of the changes behind a version.
func (s *stream) follow(c *Cluster, after uint64) {
	for {
		c.mu.Lock()
		news := s.q.news
		var some []change
		for _, one := range s.q.history {
			if one.version > after {
				some = append(some, one)
			}
		}
		lost := after < s.q.dropped
		c.mu.Unlock()
		if lost { // the client lists anew
			return
		}
		if len(some) > 0 {
			s.tell(some)
			s.flush()
			after = some[len(some)-1].version
		}
		select {
		case <-news:
		case <-s.r.Context().Done():
			return
		}
	}
}

func (s *stream) tell(some []change) {
	for _, one := range some {
		o := decode(one.object)
		if s.q.at.namespace != "" && o.GetNamespace() != s.q.at.namespace {
			continue
		}
		if !s.chosen(o) {
			if one.typ != watch.Modified {
				continue
			}
			one.typ = watch.Deleted // it may have been chosen before
		}
		s.event(one.typ, shown(s.r, s.q, o.Object))
	}
}

// bookmark says that all that was there has been told of.
func (s *stream) bookmark(version uint64) {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(s.q.gvk(s.q.version))
	o.SetResourceVersion(versionText(version))
	o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	s.event(watch.Bookmark, shown(s.r, s.q, o.Object))
}

func (s *stream) event(typ watch.EventType, o map[string]any) {
	_, _ = s.w.Write(append(encode(map[string]any{"type": typ, "object": o}), '\n')) // the client may be gone
}

func (s *stream) flush() {
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}
