package executor_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// trap is a hook that panics at a point while it is set for it.
type trap struct {
	mu sync.Mutex
	at string
}

func (p *trap) set(at string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = at
}

func (p *trap) point(name string) error {
	p.mu.Lock()
	hit := p.at == name
	p.mu.Unlock()
	if hit {
		panic("trap of the test at " + name)
	}
	return nil
}

// looked publishes a scope, and waits for the report of a look that began after that.
func (b *bed) looked(t *testing.T, s protocol.ScopePlans) protocol.ScopeReport {
	t.Helper()
	b.publish(s)
	want := b.scope(s.Scope.Namespace).Position
	var found protocol.ScopeReport
	await(t, "report of a look at the newest message", func(ctx context.Context) error {
		r, ok, err := b.report(ctx, s.Scope.Namespace)
		if err != nil || !ok || r.Seen != want {
			return fmt.Errorf("the report has seen %s, not %s: %w", r.Seen, want, err)
		}
		found = r
		return nil
	})
	return found
}

// testUnread: a ClusterServiceVersion that was edited until it cannot be read, or lost Chandler's label, is not
// gone: what it owns goes on running, and it is reported as removed only when somebody deletes it (R-CSV-52).
func testUnread(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	c := b.finishes(t, ns, p, o.csv())
	s := b.scope(ns)
	s.Plans, s.Installed = nil, []protocol.Installed{{CSV: o.csv(), Content: c.Content, Plan: p.ID}}
	dyn, err := dynamic.NewForConfig(b.asExecutor()) // nobody else may: TestMemory
	must(t, err)
	for what, patch := range map[string]string{
		"unreadable": `{"spec":{"install":{"spec":{"deployments":[{}]}}}}`,
		"unlabelled": `{"metadata":{"labels":{"chandler-fleet.io/managed":null}}}`,
	} {
		_, err = dyn.Resource(installedOperators()).Namespace(ns).Patch(t.Context(), o.csv(), types.MergePatchType,
			[]byte(patch), metav1.PatchOptions{})
		must(t, err)
		r := b.looked(t, s)
		if slices.ContainsFunc(r.CSVs, func(c protocol.CSVReport) bool { return c.Removed }) {
			t.Errorf("%s, it is reported as removed: %+v", what, r.CSVs)
		}
		if _, err := b.kube.AppsV1().Deployments(ns).Get(t.Context(), ns+"-controller",
			metav1.GetOptions{}); err != nil {
			t.Errorf("%s, it lost its Deployment: %v", what, err)
		}
	}
	found, err := dyn.Resource(installedOperators()).Namespace(ns).Get(t.Context(), o.csv(), metav1.GetOptions{})
	must(t, err)
	if found.GetLabels()["chandler-fleet.io/managed"] != "true" {
		t.Error("the lost label is not put back")
	}
	b.deleteCSV(t, ns, o.csv(), s.Installed[0])
}

// testSuperseded: a plan that was begun is reported although the hub, which may have superseded it meanwhile, does
// not name it: under way as well as ended (DESIGN D6).
func testSuperseded(t *testing.T, b *bed, ns string) {
	t.Helper()
	needy := operator{name: ns, version: "1.0.0", requires: "gauges.late-provider.sea.test"}
	p := b.plan(ns, ns, planned{content: needy.content(t)})
	b.want(ns, p)
	b.awaitPlan(ns, p.ID, blocked("RequirementsNotMet"))
	s := b.scope(ns)
	s.Plans = nil
	if r, ok := reportOf(b.looked(t, s), p.ID); !ok || !r.Begun || r.Phase != protocol.PlanBlocked {
		t.Errorf("told of the plan under way: %v, %+v", ok, r)
	}
	provider := operator{name: "late-provider", version: "1.0.0", group: "late-provider.sea.test"}
	q := b.plan("late-provider", "late-provider", planned{content: provider.content(t)})
	b.want("late-provider", q)
	b.finishes(t, "late-provider", q, provider.csv())
	b.want(ns, p)
	b.finishes(t, ns, p, needy.csv())
	if r, ok := reportOf(b.looked(t, s), p.ID); !ok || r.Phase != protocol.PlanFinished || len(r.StepLog) == 0 {
		t.Errorf("told of the ended plan: %v, %+v", ok, r)
	}
}

func reportOf(r protocol.ScopeReport, id string) (protocol.PlanReport, bool) {
	i := slices.IndexFunc(r.Plans, func(p protocol.PlanReport) bool { return p.ID == id })
	if i < 0 {
		return protocol.PlanReport{}, false
	}
	return r.Plans[i], true
}

// testPanic: a panic, in a step or between steps, blocks the plan that met it and ends nothing. The plan goes on
// when it is over, and meanwhile where the object was written before: no step of it is repeated.
func testPanic(t *testing.T, b *bed, ns string) {
	t.Helper()
	defer b.trap.set("")
	for i, point := range []string{"begin", "before apply", "before taken", "applied"} {
		ns := fmt.Sprintf("%s-%d", ns, i)
		o, content := simple(t, ns)
		p := b.plan(ns, ns, content)
		b.trap.set(point)
		b.want(ns, p)
		if i < 2 {
			if r := b.awaitPlan(ns, p.ID, blocked("InternalError")); r.Class != "transient" {
				t.Errorf("at %q: %+v", point, r)
			}
			b.trap.set("")
		}
		b.finishes(t, ns, p, o.csv())
	}
}

// testPanicBegun: a look that ends in an error tells all the same which plans are begun, also one that the hub does
// not name.
func testPanicBegun(t *testing.T, b *bed, ns string) {
	t.Helper()
	defer b.trap.set("")
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	b.trap.set("before phase")
	b.want(ns, p)
	b.awaitPlan(ns, p.ID, blocked("InternalError"))
	s := b.scope(ns)
	s.Plans = nil
	if r, ok := reportOf(b.looked(t, s), p.ID); !ok || !r.Begun {
		t.Errorf("told of the plan under way: %v, %+v", ok, r)
	}
	b.trap.set("")
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
}
