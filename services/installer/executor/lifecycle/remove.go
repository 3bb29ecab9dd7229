package lifecycle

import (
	"context"
	"slices"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// Why a ClusterServiceVersion is gone (csv.removed.v1).
const (
	removedReplaced = "Replaced"
	removedDeleted  = "Deleted"
)

// removeReplaced ends a replaced ClusterServiceVersion (R-CSV-50, R-CSV-52). Its final report goes into the
// execution of the plan that replaced it first: a crash at any later point finds the object or the report.
func (w worker) removeReplaced(ctx context.Context, m *scope.Operator) error {
	report := m.Report()
	report.Removed, report.RemovedReason = true, removedReplaced
	if err := w.keepReport(ctx, m, report); err != nil {
		return err
	}
	if err := w.Env.Points.At("report kept"); err != nil {
		return err
	}
	if err := w.Remover.RemoveOwned(ctx, w.Scope, m.Name()); err != nil {
		return err
	}
	if err := w.Env.Points.At("orphans removed"); err != nil {
		return err
	}
	if err := w.Env.Client.Delete(ctx, m.Object); err != nil {
		return err
	}
	w.Env.Log.InfoContext(ctx, "replaced ClusterServiceVersion removed", "csv", m.Name(), "namespace", w.Namespace)
	return w.Env.Points.At("removed")
}

func (w worker) keepReport(ctx context.Context, m *scope.Operator, report protocol.CSVReport) error {
	i := slices.IndexFunc(w.Snapshot.Installed.Operators,
		func(o *scope.Operator) bool { return o.CSV.Spec.Replaces == m.Name() })
	if i < 0 {
		return nil
	}
	x := w.Snapshot.Executions.Of(w.Snapshot.Installed.Operators[i].Plan)
	if x == nil || slices.ContainsFunc(x.Status.Removed,
		func(c protocol.CSVReport) bool { return c.UID == report.UID }) {
		return nil
	}
	x.Status.Removed = append(x.Status.Removed, report)
	return (kube.StepLogs{Epoch: w.Env.Client}).Save(ctx, x)
}

// findDeleted notes ClusterServiceVersions that the record holds as installed and that somebody deleted in the
// cluster, and removes what the cluster's garbage collector does not reach.
func (w worker) findDeleted(ctx context.Context) error {
	w.Found.Deleted = nil
	for _, i := range w.Snapshot.Wanted.Installed {
		if w.Snapshot.Installed.Lives(i.CSV) || w.Snapshot.Executions.Planned(i.CSV) ||
			w.Snapshot.Executions.HasFinalReport(i) ||
			w.Snapshot.Executions.Removing(i.CSV) != nil {
			continue
		}
		// What it owns goes only when the object itself is gone: one that lost Chandler's label is not.
		found, err := w.Env.Client.GetServed(ctx, kube.GVKInstalledOperator, w.Namespace, i.CSV)
		if err != nil {
			return err
		}
		if found != nil {
			w.Env.Log.WarnContext(ctx, "InstalledOperator is not followed: it lacks Chandler's label", "name", i.CSV,
				"namespace", w.Namespace)
			continue
		}
		if w.Stopped() == nil {
			if err := w.Remover.RemoveOwned(ctx, w.Scope, i.CSV); err != nil {
				if err := w.Attempts.Alone(ctx, "", scope.PartRemains, err); err != nil {
					return err
				}
				continue
			}
			w.Env.Pace.Succeeded(w.Attempts.Item("", scope.PartRemains))
		}
		w.Found.Deleted = append(w.Found.Deleted, protocol.CSVReport{
			Name: i.CSV, Content: i.Content, Plan: i.Plan, Removed: true,
			RemovedReason: removedDeleted,
		})
	}
	return nil
}
