package bundles_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/services/installer/executor/group"
	"github.com/chandler-fleet/chandler/test/hubtest"
	"github.com/chandler-fleet/chandler/test/testcluster"
)

// installLimit bounds one measured install.
const installLimit = 5 * time.Minute

// result is one measured run.
type result struct {
	took     time.Duration
	server   usage // of the API server
	requests int   // of the executor; 0 for the floor
}

// job is one operator to install or to upgrade to.
type job struct {
	ns, csv  string
	replaced string // the operator that it replaces
	plan     protocol.Plan
	roles    []string // that users get for its APIs, by name
}

// jobs makes the plans that install bundles, each in the namespace of its package.
func (s *spoke) jobs(set []entry, which func(entry, testing.TB) bundle.Content) []job {
	s.tb.Helper()
	var out []job
	for _, e := range set {
		c := which(e, s.tb)
		csv, err := c.CSV()
		must(s.tb, err)
		s.serve(e.Package, csv.Spec.InstallModes)
		out = append(out, job{
			ns: e.Package, csv: csv.Name,
			plan: s.Plan(e.Package, e.Package, hubtest.Bundle{Content: c}), roles: rolesOf(csv),
		})
	}
	return out
}

func rolesOf(csv bundle.CSV) (names []string) {
	apis := operatorgroup.APIs(csv)
	for _, o := range group.RolesOf(apis, operatorgroup.Names(apis)) {
		names = append(names, o.Name)
	}
	return names
}

// awaitRoles returns when users have the roles of all APIs. They come after the operators are Succeeded, at the
// executor's leisure, and are a part of what an install costs.
func (s *spoke) awaitRoles(ctx context.Context, jobs []job) error {
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	missing := map[string]bool{}
	for _, j := range jobs {
		for _, name := range j.roles {
			missing[name] = true
		}
	}
	of := metav1.ListOptions{LabelSelector: group.LabelPart + "=" + group.PartAPI}
	w, err := s.kube.RbacV1().ClusterRoles().Watch(ctx, of) // begins with those that are there
	if err != nil {
		return err
	}
	defer w.Stop()
	for len(missing) > 0 {
		e, ok := <-w.ResultChan()
		if !ok {
			return fmt.Errorf("%d roles were not made: %w", len(missing), ctx.Err())
		}
		if o, ok := e.Object.(*rbacv1.ClusterRole); ok {
			delete(missing, o.Name)
		}
	}
	return nil
}

// approve publishes the plans at once and waits until every operator is Succeeded, and what they replace is gone.
func (s *spoke) approve(ctx context.Context, jobs []job) (time.Duration, error) {
	began := time.Now()
	for _, j := range jobs {
		s.Want(j.ns, j.plan)
	}
	for _, j := range jobs {
		if err := s.board.await(ctx, j.ns, installLimit, succeeded(j.csv)); err != nil {
			return 0, err
		}
	}
	for _, j := range jobs {
		if j.replaced == "" {
			continue
		}
		if err := s.board.await(ctx, j.ns, installLimit, gone(j.replaced)); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// measured runs an install between two readings of the meters. What the executor does once, such as defining the kinds
// of OLM, is over then: it has reported of the namespaces.
func (s *spoke) measured(jobs []job) result {
	s.tb.Helper()
	for _, j := range jobs {
		must(s.tb, s.board.await(s.tb.Context(), j.ns, installLimit, reported))
	}
	before, requests := settled(s.tb, s.kube), s.traffic.count()
	took, err := s.approve(s.tb.Context(), jobs)
	must(s.tb, err)
	must(s.tb, s.awaitRoles(s.tb.Context(), jobs))
	spent := s.traffic.count() - requests
	return result{took: took, server: settled(s.tb, s.kube).minus(before), requests: spent}
}

// measureChandler installs the heads of a set on an API server of its own.
func measureChandler(b *testing.B, set []entry) result {
	b.Helper()
	s := newSpoke(b, hubtest.New(b))
	s.start(executor.Timing{})
	r := s.measured(s.jobs(set, entry.head))
	b.Logf("%d operators: %s; %d requests of the executor: %s", len(set), r.took.Round(time.Millisecond), r.requests,
		s.traffic.tally())
	b.Logf("of all clients: %s", r.server.requests)
	s.end()
	return r
}

// measureFloor applies the same objects on an API server of its own.
func measureFloor(b *testing.B, set []entry) result {
	b.Helper()
	c := testcluster.New(b)
	kube, err := kubernetes.NewForConfig(c.RESTConfig())
	must(b, err)
	f, err := newFloor(c.RESTConfig())
	must(b, err)
	s := &spoke{tb: b, kube: kube, cluster: c}
	s.labelNodes()
	objects := rendered(b, set, entry.head)
	before := settled(b, kube)
	began := time.Now()
	must(b, f.install(b.Context(), objects))
	r := result{took: time.Since(began), server: settled(b, kube).minus(before)}
	b.Logf("floor of %d operators, %d objects: %s", len(set), len(objects), r.took.Round(time.Millisecond))
	b.Logf("of all clients: %s", r.server.requests)
	must(b, c.Stop())
	return r
}

func rendered(tb testing.TB, set []entry, which func(entry, testing.TB) bundle.Content) []render.Object {
	tb.Helper()
	var out []render.Object
	for _, e := range set {
		out = append(out, hubtest.Objects(tb, e.Package, hubtest.Bundle{Content: which(e, tb)})...)
	}
	return out
}

// BenchmarkInstall brings operators of the install set to Succeeded at once, each run on a fresh API server, beside
// the floor. Times are from the publishing of the approved plans to the last report of Succeeded.
func BenchmarkInstall(b *testing.B) {
	set := installSet(b)
	for _, n := range []int{1, 10, 50} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				report(b, measureChandler(b, set[:n]), measureFloor(b, set[:n]), n)
			}
		})
	}
}

// report gives the figures of one run, and leaves the benchmark's own time out: it is mostly that of the clusters.
func report(b *testing.B, chandler, floor result, n int) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(chandler.took.Seconds(), "s")
	b.ReportMetric(floor.took.Seconds(), "floor-s")
	b.ReportMetric(chandler.took.Seconds()/floor.took.Seconds(), "x-floor")
	b.ReportMetric(chandler.server.cpu, "api-cpu-s")
	b.ReportMetric(floor.server.cpu, "floor-api-cpu-s")
	b.ReportMetric(chandler.server.cpu/floor.server.cpu, "x-floor-cpu")
	b.ReportMetric(chandler.server.resident/1e6, "api-MB")
	b.ReportMetric(float64(chandler.requests)/float64(n), "requests/operator")
}

// BenchmarkInstallSpread brings the same fifty operators to five API servers, ten on each.
func BenchmarkInstallSpread(b *testing.B) {
	const servers = 5
	set := installSet(b)
	part := len(set) / servers
	for b.Loop() {
		chandler := measureSpread(b, slices.Collect(slices.Chunk(set, part)))
		floor := measureFloorSpread(b, slices.Collect(slices.Chunk(set, part)))
		report(b, chandler, floor, len(set))
	}
}

func measureSpread(b *testing.B, parts [][]entry) result {
	b.Helper()
	hub := hubtest.New(b)
	spokes := make([]*spoke, 0, len(parts))
	all := make([][]job, 0, len(parts))
	for _, part := range parts {
		s := newSpoke(b, hub.Another())
		s.start(executor.Timing{})
		spokes, all = append(spokes, s), append(all, s.jobs(part, entry.head))
	}
	before, requests := totals(b, spokes), requestsOf(spokes)
	began := time.Now()
	g, ctx := errgroup.WithContext(b.Context())
	for i, s := range spokes {
		g.Go(func() error {
			_, err := s.approve(ctx, all[i])
			return err
		})
	}
	must(b, g.Wait())
	took := time.Since(began)
	for i, s := range spokes {
		must(b, s.awaitRoles(b.Context(), all[i]))
	}
	r := result{took: took, server: totals(b, spokes).minus(before), requests: requestsOf(spokes) - requests}
	for _, s := range spokes {
		s.end()
	}
	return r
}

func requestsOf(spokes []*spoke) (n int) {
	for _, s := range spokes {
		n += s.traffic.count()
	}
	return n
}

func totals(tb testing.TB, spokes []*spoke) (sum usage) {
	tb.Helper()
	for _, s := range spokes {
		sum = sum.plus(settled(tb, s.kube))
	}
	return sum
}

func measureFloorSpread(b *testing.B, parts [][]entry) result {
	b.Helper()
	spokes := make([]*spoke, 0, len(parts))
	loops := make([]*floor, 0, len(parts))
	for range parts {
		c := testcluster.New(b)
		kube, err := kubernetes.NewForConfig(c.RESTConfig())
		must(b, err)
		f, err := newFloor(c.RESTConfig())
		must(b, err)
		s := &spoke{tb: b, kube: kube, cluster: c, stop: func() {}}
		s.labelNodes()
		spokes, loops = append(spokes, s), append(loops, f)
	}
	before := totals(b, spokes)
	began := time.Now()
	g, ctx := errgroup.WithContext(b.Context())
	for i, f := range loops {
		objects := rendered(b, parts[i], entry.head)
		g.Go(func() error { return f.install(ctx, objects) })
	}
	must(b, g.Wait())
	r := result{took: time.Since(began), server: totals(b, spokes).minus(before)}
	for _, s := range spokes {
		s.end()
	}
	return r
}

// BenchmarkUpgrade brings twenty installed operators to their next version at once, beside a floor that applies the
// new objects over the old ones.
func BenchmarkUpgrade(b *testing.B) {
	set := installSet(b)
	set = slices.DeleteFunc(set, func(e entry) bool { return !e.Upgrade })
	for b.Loop() {
		report(b, measureUpgrade(b, set), measureFloorUpgrade(b, set), len(set))
	}
}

func measureUpgrade(b *testing.B, set []entry) result {
	b.Helper()
	s := newSpoke(b, hubtest.New(b))
	s.start(executor.Timing{})
	old := s.jobs(set, entry.previous)
	_, err := s.approve(b.Context(), old)
	must(b, err)
	var next []job
	for i, e := range set {
		c := e.head(b)
		csv, err := c.CSV()
		must(b, err)
		p := s.Plan(e.Package, e.Package, hubtest.Bundle{Content: c, Replaces: old[i].csv})
		next = append(next, job{ns: e.Package, csv: csv.Name, replaced: old[i].csv, plan: p, roles: rolesOf(csv)})
	}
	r := s.measured(next)
	b.Logf("upgrade of %d operators: %s; %d requests", len(set), r.took.Round(time.Millisecond), r.requests)
	s.end()
	return r
}

func measureFloorUpgrade(b *testing.B, set []entry) result {
	b.Helper()
	c := testcluster.New(b)
	kube, err := kubernetes.NewForConfig(c.RESTConfig())
	must(b, err)
	f, err := newFloor(c.RESTConfig())
	must(b, err)
	s := &spoke{tb: b, kube: kube, cluster: c}
	s.labelNodes()
	must(b, f.install(b.Context(), rendered(b, set, entry.previous)))
	objects := rendered(b, set, entry.head)
	before := settled(b, kube)
	began := time.Now()
	must(b, f.install(b.Context(), objects))
	r := result{took: time.Since(began), server: settled(b, kube).minus(before)}
	b.Logf("floor of the upgrade of %d operators: %s", len(set), r.took.Round(time.Millisecond))
	must(b, c.Stop())
	return r
}
