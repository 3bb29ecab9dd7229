package executor_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/test/internal/chaos"
)

// TestFaultsAtEveryStep: each request of an install, an upgrade and a removal meets a fault at its first try and at
// some later ones. Whatever the fault, it ends with the same histories and objects as without, by itself, and no step
// that is recorded as done runs again (R-IP-40, R-IP-44, DESIGN D7). Each fault is a life of an operator: a run takes
// half of them, some of each sort, and make chaos all.
func TestFaultsAtEveryStep(t *testing.T) {
	t.Parallel()
	faults := slices.Concat(
		chaos.Some(t, 2,
			refuses("fault-409", http.StatusConflict, metav1.StatusReasonConflict),
			refuses("fault-429", http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests),
			refuses("fault-500", http.StatusInternalServerError, metav1.StatusReasonInternalError),
			refuses("fault-503", http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable),
			refuses("fault-504", http.StatusGatewayTimeout, metav1.StatusReasonTimeout)),
		chaos.Some(t, 2, cuts("fault-cut"), loses("fault-lost"), tears("fault-torn")),
		chaos.Some(t, 1, hangs("fault-hung"), drags("fault-slow", 300*time.Millisecond)),
	)
	b := newBed(t)
	p := newProxy(t, b.cluster.RESTConfig(), faults...)
	l := &ledger{done: map[string]bool{}}
	cfg := b.config("one")
	cfg.REST = l.config(p.config())
	cfg.REST.Timeout = 1500 * time.Millisecond
	cfg.Timing.Pause = 300 * time.Millisecond // what is tried again comes often, and its waits add up
	b.start(cfg)
	names := []string{"undisturbed"}
	for _, f := range faults {
		names = append(names, f.name)
	}
	got := b.lives(t, names...)
	for _, f := range faults {
		if diff := cmp.Diff(got["undisturbed"], got[f.name]); diff != "" {
			t.Errorf("%s (-undisturbed +got):\n%s", f.name, diff)
		}
		hits := p.hits(f.name)
		for _, verb := range []string{http.MethodPatch, http.MethodGet, http.MethodPut, http.MethodDelete} {
			if !slices.ContainsFunc(hits, func(h string) bool { return strings.HasPrefix(h, verb+" ") }) {
				t.Errorf("%s: no %s met the fault, among %d requests", f.name, verb, len(hits))
			}
		}
		t.Logf("%s befell %d requests", f.name, len(hits))
	}
	if len(l.again) > 0 {
		t.Errorf("steps that were recorded as done ran again: %v", l.again)
	}
}

// TestHalfOpenConnections: connections that are dead without having ended hold nobody up for ever, in the middle of a
// plan or at rest.
func TestHalfOpenConnections(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	r := newRelay(t, b.cluster.RESTConfig())
	cfg := b.config("one")
	cfg.REST = r.config(cfg.REST)
	cfg.REST.Timeout = 2 * time.Second
	var applied atomic.Int32
	cfg.Hook = func(point string) error {
		if point == "applied" {
			if applied.Add(1) == 3 && r.freeze() == 0 {
				t.Error("no connection was open")
			}
		}
		return nil
	}
	b.start(cfg)
	o, content := simple(t, "tide")
	p := b.plan("tide", "tide", content)
	b.want("tide", p)
	b.finishes(t, "tide", p, o.csv())
	if applied.Load() < 3 {
		t.Error("no connection was frozen in the middle of the plan")
	}
	b.want("tide")
	if r.freeze() == 0 {
		t.Error("no connection was open")
	}
	must(t, b.kube.AppsV1().Deployments("tide").Delete(t.Context(), "tide-controller", metav1.DeleteOptions{}))
	await(t, "the Deployment", func(ctx context.Context) error {
		_, err := b.kube.AppsV1().Deployments("tide").Get(ctx, "tide-controller", metav1.GetOptions{})
		return err
	})
}

// restartsAt are the points of a life at which the API server crashes.
var restartsAt = []int32{20, 60, 100, 140, 180}

// TestAPIServerRestarts: the API server crashes at several points of an install and an upgrade; in make test at two of
// them, since each start costs as much as an operator's life.
func TestAPIServerRestarts(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	l := &ledger{done: map[string]bool{}}
	cfg := b.config("one")
	cfg.REST = l.config(cfg.REST)
	points := make(chan string)
	var passed atomic.Int32
	crashes := chaos.Some(t, 2, restartsAt...)
	cfg.Hook = func(point string) error {
		if slices.Contains(crashes, passed.Add(1)) {
			select {
			case points <- point:
			default: // one restart at a time
			}
		}
		return nil
	}
	restarts := 0
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-points:
				if err := b.cluster.RestartAPIServer(t.Context()); err != nil {
					t.Error(err)
					return
				}
				restarts++
			case <-ctx.Done():
				return
			}
		}
	}()
	b.start(cfg)
	b.life(t, "tide")
	cancel()
	<-done
	if restarts == 0 {
		t.Error("the API server was not restarted")
	}
	if len(l.again) > 0 {
		t.Errorf("steps that were recorded as done ran again: %v", l.again)
	}
	t.Logf("%d restarts", restarts)
}
