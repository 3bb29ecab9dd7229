package executor_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/test/hubtest"
)

// changes counts requests that change something, but for questions that are asked by POST.
type changes struct {
	mu   sync.Mutex
	list []string
}

func (w *changes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "reviews") {
			w.mu.Lock()
			w.list = append(w.list, r.Method+" "+r.URL.Path)
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestRegisteredTwice: an API server that is registered under a second name stays with the first one. The second says
// which that is, also after the first one's executor stopped, and writes nothing; it may have the cluster once that is
// given back. Who lost it says so, and is not Connected.
func TestRegisteredTwice(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	stop := b.start(b.config("one"))
	epoch := b.heldAbove(t, 0)

	second := b.Hub.Another()
	cfg := second.Config(b.cluster.RESTConfig(), "one")
	cfg.Cluster = "again"
	var wrote changes
	cfg.REST = rest.CopyConfig(cfg.REST)
	cfg.REST.Wrap(wrote.wrap)
	b.start(cfg)
	told := func(h *hubtest.Hub, state, reason, name string) func(context.Context) error {
		return func(ctx context.Context) error {
			r, ok, err := h.ClusterReport(ctx)
			if err != nil || !ok || r.State != state || r.Reason != reason || !strings.Contains(r.Message, name) {
				return fmt.Errorf("report %+v: %w", r, err)
			}
			return nil
		}
	}
	system, err := b.kube.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	must(t, err)
	duplicate := told(second, "Refused", "DuplicateCluster", `(kube-system `+string(system.UID)+
		`) is served as cluster "test" already`)
	await(t, "the second registration to be refused", duplicate)
	must(t, b.state(t.Context(), "Connected", ""))
	stop()
	// A removal of the second registration takes nothing from the first.
	must(t, executor.LetGo(t.Context(), cfg.REST, hubtest.Tenant, second.ClusterID))
	must(t, duplicate(t.Context()))
	if len(wrote.list) > 0 {
		t.Errorf("the second registration wrote: %v", wrote.list)
	}

	stop = b.start(b.config("one"))
	b.heldAbove(t, epoch)
	// Somebody takes the Lease away by hand: whoever of the two is there first has the cluster, and the other one says
	// so.
	lease, err := b.kube.CoordinationV1().Leases("chandler-system").Get(
		t.Context(), "chandler-executor", metav1.GetOptions{})
	must(t, err)
	lease.Annotations["chandler-fleet.io/cluster-id"], lease.Annotations["chandler-fleet.io/cluster"] = hubtest.Tenant+
		"/"+second.ClusterID, "again"
	lease.Annotations["chandler-fleet.io/epoch"] = "1000"
	nobody := ""
	lease.Spec.HolderIdentity = &nobody
	_, err = b.kube.CoordinationV1().Leases("chandler-system").Update(t.Context(), lease, metav1.UpdateOptions{})
	must(t, err)
	await(t, "the first registration to say that it has lost the cluster",
		told(b.Hub, "HeldElsewhere", "DuplicateCluster", `"again"`))
	await(t, "the second registration", told(second, "Connected", "", ""))
	stop()
}

// TestTooOld: a cluster whose API server is too old for the fence is refused in one sentence, and nothing is written
// there.
func TestTooOld(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		if r.URL.Path != "/version" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"major":"1","minor":"27","gitVersion":"v1.27.3"}`)
	}))
	t.Cleanup(server.Close)
	h := newHub(t)
	b := &bed{hub: h, trap: &trap{}}
	b.start(h.Config(&rest.Config{Host: server.URL}, "one"))
	await(t, "the refusal", func(ctx context.Context) error {
		r, ok, err := h.ClusterReport(ctx)
		const want = "Kubernetes v1.27.3 is older than 1.30, the oldest version that Chandler serves: upgrade the " +
			"cluster"
		if err != nil || !ok || r.State != "Refused" || r.Reason != "KubernetesNotSupported" || r.Message != want {
			return fmt.Errorf("report %+v: %w", r, err)
		}
		return nil
	})
}
