package executor

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// work is one reconcile of one namespace.
type work struct {
	*session
	*scope.Scope
}

const (
	// keptExecutions is how many ended executions stay beside those that are still referred to (R-IP-4).
	keptExecutions = 5
	// removedFor is how long the last words of a replaced ClusterServiceVersion are reported at least.
	removedFor = time.Hour
)

// reconcile does everything that can be done for one namespace now.
func (s *session) reconcile(ctx context.Context, namespace string) (again time.Duration, err error) {
	plans, behind, known := s.inbox.Get(namespace)
	if !known {
		return s.cfg.Timing.Resync, nil // nobody has said yet what is wanted; a phase depends on it
	}
	if err := s.lookForOLM(ctx); err != nil {
		return 0, err
	}
	w := s.newWork(plans)
	defer w.Slot.Release()
	if w.RecordBehind, err = s.note(ctx, plans, behind); err != nil {
		return 0, err
	}
	if w.Executions, err = s.proven(ctx, namespace); err != nil {
		return 0, err
	}
	if w.Resting() {
		if err := w.Slot.Acquire(ctx); err != nil {
			return 0, err
		}
	}
	err = failure.Guard(ctx, s.cfg.Log, "namespace "+namespace, func() error { return w.all(ctx) })
	switch {
	case err == nil:
		w.report()
	case !failure.Final(ctx, err):
		w.reportBegun(ctx)
	}
	return w.Again(), err
}

// proven are the executions of a namespace that the hub granted. Others are left alone, and stand in nobody's way: what
// they say was not asked for.
func (s *session) proven(ctx context.Context, namespace string) ([]*kube.Execution, error) {
	list, unread, err := s.client.Executions(ctx, namespace)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(x *kube.Execution) bool {
		err := x.Proven(s.cfg.GrantKey, s.cfg.ClusterID)
		if err != nil {
			unread = append(unread, err)
		}
		return err != nil
	})
	for _, err := range unread {
		s.cfg.Log.WarnContext(ctx, "PlanExecution is passed over", "namespace", namespace, "error", err)
	}
	return list, nil
}

// newWork is a reconcile that has not begun.
func (s *session) newWork(plans protocol.ScopePlans) *work {
	return &work{session: s, Scope: scope.New(s.env, plans, s.renders.Slot(), s.cfg.Timing.Resync)}
}

// all makes one look at a namespace. Each stage goes as far as it can now and finds in the cluster what it knows.
func (w *work) all(ctx context.Context) error {
	for _, stage := range []func(context.Context) error{
		w.lookAround, w.lookAtGroup, w.lookAtCertificates, w.collectWanted, w.carryPlans, w.carryRemovals, w.follow, w.bringLate, w.lookAtComponents, w.groupRoles, w.drift, w.mirror, w.prune,
	} {
		if err := stage(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) carryPlans(ctx context.Context) error {
	w.release()
	if !w.Resting() {
		w.Slot.Release() // a plan may take its time
	}
	for _, p := range w.Wanted.Plans {
		if err := w.plan(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// collectWanted notes the Deployments of plans that are begun and not ended, so that a
// ClusterServiceVersion that runs with other ones is seen to need an install.
func (w *work) collectWanted(ctx context.Context) error {
	for _, p := range w.Wanted.Plans {
		x := w.Execution(p.ID)
		if x == nil || !x.Status.Begun || scope.Ended(x) {
			continue
		}
		if r, f := w.Open(ctx, p, x); f == nil {
			overlay.Expect(w.Scope, w.overlays(w.Scope), r)
		}
	}
	return nil
}

// prune removes executions that nobody refers to any more, but the newest few.
func (w *work) prune(ctx context.Context) error {
	var old []*kube.Execution
	for _, x := range w.Executions {
		referred := slices.ContainsFunc(w.Operators, func(m *scope.Operator) bool { return m.Plan == x.Spec.Plan }) ||
			slices.Contains(slices.Collect(maps.Values(w.Unreadable)), x.Spec.Plan) ||
			slices.ContainsFunc(w.Wanted.Plans, func(p protocol.Plan) bool { return p.ID == x.Spec.Plan }) ||
			slices.ContainsFunc(w.Wanted.Removals, func(r protocol.Removal) bool { return r.ID == x.Spec.Plan })
		if scope.Ended(x) && !referred {
			old = append(old, x)
		}
	}
	if len(old) <= keptExecutions {
		return nil
	}
	slices.SortFunc(old, func(a, b *kube.Execution) int {
		if c := a.Status.Ended.Compare(b.Status.Ended); c != 0 {
			return c
		}
		return strings.Compare(a.Spec.Plan, b.Spec.Plan)
	})
	for _, x := range old[:len(old)-keptExecutions] {
		if err := w.Alone(ctx, "", scope.PartLogs, w.Client.Discard(ctx, x)); err != nil {
			return err
		}
	}
	return nil
}
