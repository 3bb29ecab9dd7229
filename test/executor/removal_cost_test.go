package executor_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// requests counts what an executor asks of its cluster, but for the renewal of its lease.
type requests struct {
	mu   sync.Mutex
	made []string
}

func (r *requests) count(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(q *http.Request) (*http.Response, error) {
			if !strings.Contains(q.URL.Path, "/leases/") {
				r.mu.Lock()
				r.made = append(r.made, q.Method+" "+q.URL.RequestURI())
				r.mu.Unlock()
			}
			return next.RoundTrip(q)
		})
	})
	return config
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(q *http.Request) (*http.Response, error) { return r(q) }

// during returns what is asked while something is done.
func (r *requests) during(do func()) []string {
	r.mu.Lock()
	r.made = nil
	r.mu.Unlock()
	do()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.made
}

// neighbours are other installed operators: an InstalledOperator with a description of so many bytes, and definitions.
type neighbours struct {
	*bed
	made int
}

const neighbourNamespace = "neighbours"

// atLeast makes as many as are missing.
func (n *neighbours) atLeast(tb testing.TB, count, bytes, definitions int) {
	tb.Helper()
	dyn, err := dynamic.NewForConfig(func() *rest.Config {
		c := n.asExecutor()
		c.QPS, c.Burst = 500, 500
		return c
	}())
	must(tb, err)
	var all errgroup.Group
	all.SetLimit(8)
	for ; n.made < count; n.made++ {
		o := operator{
			name: fmt.Sprintf("neighbour%d", n.made), version: "1.0.0",
			group: fmt.Sprintf("n%d.sea.test", n.made),
		}
		all.Go(func() error {
			for d := range definitions {
				if err := create(tb.Context(), dyn, fmt.Sprintf(crdManifest, fmt.Sprintf("d%d.%s", d, o.group)),
					func(u *unstructured.Unstructured) {
						u.SetLabels(map[string]string{"chandler-fleet.io/managed": "true"})
					}); err != nil {
					return err
				}
			}
			return create(tb.Context(), dyn, o.manifest(), func(u *unstructured.Unstructured) {
				u.SetAPIVersion("chandler-fleet.io/v1")
				u.SetKind("InstalledOperator")
				u.SetNamespace(neighbourNamespace)
				u.SetLabels(map[string]string{"chandler-fleet.io/managed": "true"})
				must(tb, unstructured.SetNestedField(u.Object, strings.Repeat("x", bytes), "spec", "description"))
			})
		})
	}
	must(tb, all.Wait())
}

func create(ctx context.Context, dyn dynamic.Interface, manifest string,
	change func(*unstructured.Unstructured),
) error {
	o := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		return err
	}
	if err := o.UnmarshalJSON(raw); err != nil {
		return err
	}
	change(o)
	resource := installedOperators()
	if o.GetKind() != "InstalledOperator" {
		resource = crds
	}
	client := dyn.Resource(resource)
	if o.GetNamespace() == "" {
		_, err = client.Create(ctx, o, metav1.CreateOptions{})
		return err
	}
	_, err = client.Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{})
	return err
}

// quiet is a bed with one operator, and an executor that does nothing unless it is asked or told.
func quiet(tb testing.TB) (*bed, *requests, operator) {
	tb.Helper()
	b := newBed(tb)
	counted := &requests{}
	cfg := b.Config(counted.count(b.cluster.RESTConfig()), "one")
	cfg.Timing.Resync, cfg.Timing.Reread = time.Hour, time.Hour
	b.start(cfg)
	o := operator{name: "tide", version: "1.0.0", group: "tide.sea.test"}
	b.namespace(tb, neighbourNamespace)
	b.want("ops", b.plan("ops", uuid.NewString(), planned{content: o.content(tb)}))
	b.awaitCSV("ops", o.csv(), reached("Succeeded"))
	return b, counted, o
}

// shows asks what a removal of the operator would do.
func (b *bed) shows(tb testing.TB, o operator) (p protocol.RemovalPlan) {
	tb.Helper()
	q := protocol.RemovalQuestion{Namespace: "ops", CSV: o.csv(), CRDs: []string{"*"}}
	must(tb, b.Ask(tb.Context(), protocol.RPCRemoval, q, &p))
	return p
}

// TestRemovalAsksAboutItsOwn: what it takes to plan a removal does not grow with the other operators of the cluster
// (R-UNI-1).
func TestRemovalAsksAboutItsOwn(t *testing.T) {
	t.Parallel()
	b, counted, o := quiet(t)
	others := &neighbours{bed: b}
	var asked [][]string
	for _, n := range []int{5, 50} {
		others.atLeast(t, n, 10, 0)
		b.shows(t, o) // what the others bring and need is known from then on
		asked = append(asked, least(func() []string {
			return counted.during(func() {
				if p := b.shows(t, o); len(p.Steps) == 0 || p.CSV != o.csv() {
					t.Errorf("the plan is %+v", p)
				}
			})
		}))
	}
	if len(asked[0]) != len(asked[1]) || len(asked[0]) == 0 {
		t.Errorf("with 5 others %d questions, with 50 %d:\n%s", len(asked[0]), len(asked[1]),
			strings.Join(asked[1], "\n"))
	}
	for _, q := range asked[1] {
		if strings.Contains(q, "installedoperators") && strings.Contains(q, neighbourNamespace) {
			t.Errorf("an operator that has nothing to do with it was read: %s", q)
		}
	}
}

// least is the shortest of a few answers: what an executor does beside may come into one.
func least(do func() []string) []string {
	best := do()
	for range 4 {
		if next := do(); len(next) < len(best) {
			best = next
		}
	}
	return best
}

// BenchmarkRemovalPlan is how long it takes to say what a removal would do in a cluster of 200 operators with two
// definitions each, and as much text as published ones have.
func BenchmarkRemovalPlan(b *testing.B) {
	bed, counted, o := quiet(b)
	(&neighbours{bed: bed}).atLeast(b, 200, 100<<10, 2)
	begin := time.Now()
	bed.shows(b, o)
	b.ReportMetric(float64(time.Since(begin).Milliseconds()), "first-ms")
	n := 0
	b.ResetTimer()
	for b.Loop() {
		n += len(counted.during(func() { bed.shows(b, o) }))
	}
	b.ReportMetric(float64(n)/float64(b.N), "requests/op")
}
