package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// box is an API server that takes Events, and answers each request with the next status of answers, 201 after the last.
type box struct {
	answers []int
	posted  chan corev1.Event
	t       *testing.T
}

func (b *box) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	status := http.StatusCreated
	if len(b.answers) > 0 {
		status, b.answers = b.answers[0], b.answers[1:]
	}
	var e corev1.Event
	var answer any = map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status,
		"reason": reasons[status],
	}
	switch r.Method {
	case http.MethodGet:
		status = http.StatusOK
		answer = map[string]any{
			"kind": "Namespace", "apiVersion": "v1",
			"metadata": map[string]any{"name": "ops", "uid": "uid-of-ops"},
		}
	default:
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			b.t.Error(err)
		}
		if status == http.StatusCreated {
			answer = e
		}
		defer func() { b.posted <- e }()
	}
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		b.t.Error(err)
	}
}

var reasons = map[int]string{
	http.StatusConflict: "AlreadyExists", http.StatusForbidden: "Forbidden",
	http.StatusInternalServerError: "InternalError",
}

var eventTime = time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)

// tells starts a recorder before the box.
func (b *box) tells(t *testing.T) *recorder {
	t.Helper()
	b.t, b.posted = t, make(chan corev1.Event, 100)
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	objects, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	out := newRecorder(Config{
		Client: &kube.Epoch{Dynamic: objects}, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return eventTime.Add(time.Minute) },
	})
	out.pause = func(context.Context, time.Duration) {}
	return out
}

func (b *box) run(t *testing.T, recorder *recorder) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		recorder.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// happened are n transitions of an operator.
func happened(n int, at time.Time) []mirror.Event {
	var list []protocol.Transition
	for i := range n {
		list = append(list, protocol.Transition{Phase: "Pending", Reason: fmt.Sprint("R", i), Time: at})
	}
	return mirror.CSVEvents("tide.v1", "uid", 0, list)
}

var tide = corev1.ObjectReference{
	APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion",
	Namespace: "ops", Name: "tide.v1", UID: "shown", ResourceVersion: "7",
}

// TestReported: R-CSV-5: each thing that happened is reported once, of the object that shows it; what is old is not.
func TestReported(t *testing.T) {
	t.Parallel()
	var b box
	recorder := b.tells(t)
	recorder.record(tide, happened(1, eventTime.Add(-maxEventAge)))
	list := happened(2, eventTime)
	recorder.record(tide, list[:1])
	recorder.record(tide, list)
	b.run(t, recorder)
	for i, want := range list {
		got := <-b.posted
		if got.Name != want.Name || got.Reason != fmt.Sprint("R", i) || got.InvolvedObject != tide {
			t.Errorf("told %d: %+v", i, got)
		}
	}
	of := list[0]
	of.Name, of.OfNamespace = "tide.of-namespace", true
	recorder.record(tide, []mirror.Event{of})
	if got := <-b.posted; got.Namespace != "default" || got.InvolvedObject.Kind != "Namespace" ||
		got.InvolvedObject.UID != "uid-of-ops" {
		t.Errorf("told of the namespace: %+v", got)
	}
}

// TestNotReported: an Event that is there already, or that is refused, is not tried again, one that failed is, within
// bounds; what comes after is reported in any case.
func TestNotReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []int
		tries   int
	}{
		"there already": {[]int{http.StatusConflict}, 1},
		"forbidden":     {[]int{http.StatusForbidden}, 1},
		"failed once":   {[]int{http.StatusInternalServerError}, 2},
		"fails for ever": {[]int{
			http.StatusInternalServerError, http.StatusInternalServerError,
			http.StatusInternalServerError,
		}, tellTries},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := box{answers: c.answers}
			recorder := b.tells(t)
			recorder.record(tide, happened(2, eventTime))
			b.run(t, recorder)
			for range c.tries {
				if got := <-b.posted; got.Reason != "R0" {
					t.Errorf("tried %s", got.Reason)
				}
			}
			if got := <-b.posted; got.Reason != "R1" {
				t.Errorf("then %s", got.Reason)
			}
		})
	}
}

// TestToldWithinBounds: an object that goes round without end does not fill the cluster with Events.
func TestToldWithinBounds(t *testing.T) {
	t.Parallel()
	var b box
	recorder := b.tells(t)
	recorder.record(tide, happened(eventBurst+10, eventTime))
	if got := len(recorder.pending); got != eventBurst {
		t.Errorf("%d Events of one object are told at once, %d are allowed", got, eventBurst)
	}
	other := tide
	other.Name = "buoy.v1"
	recorder.record(other, mirror.CSVEvents("buoy.v1", "uid", 0,
		[]protocol.Transition{{Phase: "Pending", Reason: "R", Time: eventTime}}))
	if got := len(recorder.pending); got != eventBurst+1 {
		t.Error("another object is bounded by it, too")
	}
}
