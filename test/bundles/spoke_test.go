package bundles_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/test/hubtest"
	"github.com/chandler-fleet/chandler/test/testcluster"
)

// spoke is a cluster with an executor, and what the hub wants of it.
type spoke struct {
	*hubtest.Hub
	tb      testing.TB
	cluster *testcluster.Cluster
	kube    kubernetes.Interface
	traffic *traffic // of the executor
	board   *board
	stop    func() // ends the executor
}

// newSpoke starts an API server of its own; the executor is not started yet.
func newSpoke(tb testing.TB, hub *hubtest.Hub) *spoke {
	tb.Helper()
	c := testcluster.New(tb)
	kube, err := kubernetes.NewForConfig(c.RESTConfig())
	must(tb, err)
	s := &spoke{Hub: hub, tb: tb, cluster: c, kube: kube, traffic: &traffic{}, board: newBoard(), stop: func() {}}
	tb.Cleanup(hub.Listen(s.board.take))
	s.labelNodes()
	return s
}

// labelNodes gives the nodes the label by which one of the operators chooses them.
func (s *spoke) labelNodes() {
	s.tb.Helper()
	ctx := s.tb.Context()
	nodes, err := s.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	must(s.tb, err)
	patch := []byte(`{"metadata":{"labels":{"node-role.kubernetes.io/master":""}}}`)
	for _, n := range nodes.Items {
		_, err := s.kube.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		must(s.tb, err)
	}
}

// start runs the executor with its own timing or that of production, and returns when it holds the cluster.
func (s *spoke) start(timing executor.Timing) {
	s.tb.Helper()
	cfg := s.Config(s.traffic.config(s.cluster.RESTConfig()), "one")
	cfg.Timing = timing
	if _, measuring := s.tb.(*testing.B); measuring {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	e, err := executor.New(cfg)
	must(s.tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.tb.Errorf("executor: %v", err)
		}
	})
	s.tb.Cleanup(s.stop)
	hubtest.Await(s.tb, "the executor", func(ctx context.Context) error {
		r, ok, err := s.ClusterReport(ctx)
		if err == nil && (!ok || r.State != "Connected") {
			err = fmt.Errorf("report %+v", r)
		}
		return err
	})
}

// end stops the executor and the API server, before the test ends.
func (s *spoke) end() {
	s.tb.Helper()
	s.stop()
	must(s.tb, s.cluster.Stop())
}

// serve publishes a group that the operator supports: its own namespace if it can be, else all.
func (s *spoke) serve(ns string, modes []bundle.InstallMode) {
	scope := s.Scope(ns)
	scope.OperatorGroup.Spec = groupFor(ns, modes)
	s.Publish(scope)
}

func groupFor(ns string, modes []bundle.InstallMode) events.OperatorGroupSpec {
	if render.CheckInstallModes(modes, ns, []string{ns}) == nil {
		return events.OperatorGroupSpec{TargetNamespaces: []string{ns}}
	}
	return events.OperatorGroupSpec{}
}

// board knows the last report of each namespace and wakes those who wait for it.
type board struct {
	mu      sync.Mutex
	last    map[string]protocol.ScopeReport
	changed chan struct{}
}

func newBoard() *board {
	return &board{last: map[string]protocol.ScopeReport{}, changed: make(chan struct{})}
}

func (b *board) take(r protocol.ScopeReport) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last[r.Scope.Namespace] = r
	close(b.changed)
	b.changed = make(chan struct{})
}

// look returns the report of a namespace, and a channel that is closed when any report comes after it.
func (b *board) look(ns string) (protocol.ScopeReport, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last[ns], b.changed
}

// errNotYet is what a condition says of a report that does not hold what it wants.
var errNotYet = errors.New("not yet")

// await waits until the report of a namespace satisfies the condition. It returns the reason of the last look, and
// the report, when it does not within the limit.
func (b *board) await(ctx context.Context, ns string, limit time.Duration, ok func(protocol.ScopeReport) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		r, changed := b.look(ns)
		err := ok(r)
		if err == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("namespace %s after %s: %w; last report: plans %+v, operators %+v, removals %+v", ns,
				limit, err, brief(r.Plans), r.CSVs, r.Removals)
		}
	}
}

// brief leaves the step logs out.
func brief(plans []protocol.PlanReport) []protocol.PlanReport {
	out := make([]protocol.PlanReport, 0, len(plans))
	for _, p := range plans {
		p.StepLog = nil
		out = append(out, p)
	}
	return out
}

// reported is true of any report.
func reported(r protocol.ScopeReport) error {
	if r.Scope.Namespace == "" {
		return fmt.Errorf("there is no report: %w", errNotYet)
	}
	return nil
}

// succeeded is true of a report in which the operator is in phase Succeeded.
func succeeded(csv string) func(protocol.ScopeReport) error {
	return func(r protocol.ScopeReport) error {
		for _, c := range r.CSVs {
			if c.Name == csv && !c.Removed && hubtest.Reached("Succeeded")(c) {
				return nil
			}
		}
		return fmt.Errorf("%s is not Succeeded: %w", csv, errNotYet)
	}
}

// gone is true of a report in which the operator was removed.
func gone(csv string) func(protocol.ScopeReport) error {
	return func(r protocol.ScopeReport) error {
		for _, c := range r.CSVs {
			if c.Name == csv && c.Removed {
				return nil
			}
		}
		return fmt.Errorf("%s is not removed: %w", csv, errNotYet)
	}
}
