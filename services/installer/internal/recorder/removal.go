package recorder

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// kindRemoval is the kind of installer.messages about operators that are uninstalled.
const kindRemoval = "removal"

// recordRemovals records what a report says of requests to uninstall. It comes before the ends of operators, which end
// their requests, too.
func (w *writer) recordRemovals(ctx context.Context, tx *reportTx, report protocol.ScopeReport) error {
	for _, x := range report.Removals {
		if err := w.recordRemoval(ctx, tx, report, x); err != nil {
			return err
		}
	}
	return nil
}

// recordRemoval records what a report says of one request to uninstall. One that the record does not hold, or holds as
// ended, adds nothing.
func (w *writer) recordRemoval(ctx context.Context, tx *reportTx, report protocol.ScopeReport,
	x protocol.RemovalReport,
) error {
	scope, subject := report.Scope, csvKey(report.Scope, x.CSV)
	head, err := w.c.EventLog.Latest(ctx, tx, scope.Tenant, events.KindCSV, subject)
	if err != nil || !head.Exists() {
		return err
	}
	recs, err := w.c.EventLog.ReadStream(ctx, tx, scope.Tenant, head.ID, 0)
	if err != nil {
		return err
	}
	var state record.Removal
	var asked eventlog.Recorded
	packageName := ""
	for _, e := range recs {
		state = record.EvolveRemoval(state, e.Payload)
		switch p := e.Payload.(type) {
		case events.CSVRemovalRequested, events.CSVRemovalDirected:
			asked = e
		case events.CSVPhaseChanged:
			packageName = p.Package
		}
	}
	if state.ID == "" || state.ID != x.ID {
		return nil
	}
	if err := w.append(ctx, tx, scope.Tenant, head.ID, subject, head.Version, causedBy(asked),
		tx.withinBudget(record.DecideRemoval(state, x))); err != nil {
		return err
	}
	if x.Phase == protocol.PlanFinished {
		if err := saveLeftovers(ctx, tx, report, x, packageName); err != nil {
			return err
		}
	}
	message := x.Message
	if x.Phase == protocol.PlanStarted || x.Phase == protocol.PlanFinished {
		message = ""
	}
	return saveMessage(ctx, tx, scope.Tenant, kindRemoval, subject, message)
}

// saveLeftovers keeps what stayed (R-UNI-7).
func saveLeftovers(ctx context.Context, tx pgx.Tx, report protocol.ScopeReport, x protocol.RemovalReport,
	packageName string,
) error {
	objects := x.Left
	if objects == nil {
		objects = []protocol.Leftover{}
	}
	body, err := json.Marshal(objects)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into installer.leftovers (tenant, cluster_id, namespace, csv, package, removal,
		objects, more, removed)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		on conflict (tenant, cluster_id, namespace, csv) do update set package = excluded.package,
		removal = excluded.removal,
		  objects = excluded.objects, more = excluded.more, removed = excluded.removed`,
		report.Scope.Tenant, report.Scope.ClusterID, report.Scope.Namespace, x.CSV, packageName, x.ID, body, x.Cut,
		report.Reported)
	return err
}

// deleteLeftovers deletes the leftovers of a package: what is there now belongs to an operator that is installed.
func deleteLeftovers(ctx context.Context, tx pgx.Tx, s protocol.Scope, packageName string) error {
	_, err := tx.Exec(ctx, `delete from installer.leftovers where tenant = $1 and cluster_id = $2 and package = $3`,
		s.Tenant, s.ClusterID, packageName)
	return err
}
