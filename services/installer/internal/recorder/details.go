package recorder

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// recordHealth stores the details of one operator, and gives the events about its condition, readiness and drift.
func (w *writer) recordHealth(ctx context.Context, tx pgx.Tx, report protocol.ScopeReport, c protocol.CSVReport,
	s record.CSV,
) ([]events.Payload, record.CSV, error) {
	if s.Removed || c.Removed {
		return nil, s, deleteDetails(ctx, tx, report.Scope, c.Name)
	}
	var settings events.ClusterSettings
	err := tx.QueryRow(ctx, `select settings from installer.clusters where tenant = $1 and cluster_id = $2`,
		report.Scope.Tenant, report.Scope.ClusterID).Scan(&settings)
	if err != nil {
		return nil, s, err
	}
	payloads, next, err := record.DecideHealth(s, c, settings.WithDefaults().Drift, w.c.Now())
	if err != nil {
		return nil, s, err
	}
	for _, p := range payloads {
		if d, is := p.(events.CSVDrifted); is {
			if err := saveDrift(ctx, tx, report.Scope.Tenant, d.Diff, c.Drift); err != nil {
				return nil, s, err
			}
		}
	}
	return payloads, next, saveDetails(ctx, tx, report.Scope, c, w.c.Now())
}

// saveDrift keeps the differences that a csv.drifted event names; DriftCollector removes them by the retention.
func saveDrift(ctx context.Context, tx pgx.Tx, tenant, sum string, list []protocol.Drift) error {
	body, err := record.DriftBody(list)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into installer.drifts as d (tenant, digest, body) values ($1, $2, $3)
		on conflict (tenant, digest) do update set created = now()`, tenant, sum, body)
	return err
}

// saveDetails writes only what differs from what is kept.
func saveDetails(ctx context.Context, tx pgx.Tx, s protocol.Scope, c protocol.CSVReport, now time.Time) error {
	condition, err := orNull(c.Condition)
	if err != nil {
		return err
	}
	drift, err := list(c.Drift)
	if err != nil {
		return err
	}
	components, err := list(c.Components)
	if err != nil {
		return err
	}
	unready, err := list(c.NotReady)
	if err != nil {
		return err
	}
	conditions, err := list(c.Conditions)
	if err != nil {
		return err
	}
	cut, err := leftOut(c.Cut)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into installer.operator_details as d
			(tenant, cluster_id, namespace, name, requirements, condition, drift, components, cut, updated, not_ready,
			conditions)
		values ($1, $2, $3, $4, $5::text::json, $6::text::json, $7::text::json, $8::text::json, $9::text::json, $10,
		$11::text::json, $12::text::json)
		on conflict (tenant, cluster_id, namespace, name) do update set requirements = excluded.requirements,
		condition = excluded.condition,
			drift = excluded.drift, components = excluded.components, cut = excluded.cut,
			not_ready = excluded.not_ready, conditions = excluded.conditions,
			updated = excluded.updated
		where (d.requirements::text, d.condition::text, d.drift::text, d.components::text, d.cut::text,
		d.not_ready::text, d.conditions::text)
			is distinct from (excluded.requirements::text, excluded.condition::text, excluded.drift::text,
			excluded.components::text, excluded.cut::text, excluded.not_ready::text,
				excluded.conditions::text)`,
		s.Tenant, s.ClusterID, s.Namespace, c.Name, requirements(c.Requirements), condition, drift, components, cut,
		now, unready, conditions)
	return err
}

func deleteDetails(ctx context.Context, tx pgx.Tx, s protocol.Scope, name string) error {
	_, err := tx.Exec(ctx, `delete from installer.operator_details where tenant = $1 and cluster_id = $2
		and namespace = $3 and name = $4`,
		s.Tenant, s.ClusterID, s.Namespace, name)
	return err
}

// requirements are rows of the check, encoded again: what else a report calls so is left out, since people read it as
// such.
func requirements(raw json.RawMessage) any {
	var rows []csv.Requirement
	if len(raw) == 0 || json.Unmarshal(raw, &rows) != nil {
		return nil
	}
	out, err := json.Marshal(rows)
	if err != nil {
		return nil
	}
	return string(out)
}

func orNull(c *protocol.OperatorCondition) (any, error) {
	if c == nil {
		return nil, nil
	}
	raw, err := json.Marshal(c)
	return string(raw), errs.Wrap(errs.Internal, err, "encode a condition")
}

// leftOut is null where a report is whole.
func leftOut(c protocol.Cut) (any, error) {
	if c == (protocol.Cut{}) {
		return nil, nil
	}
	raw, err := json.Marshal(c)
	return string(raw), errs.Wrap(errs.Internal, err, "encode what is left out")
}

// list is the JSON of a list, [] for none.
func list[T any](items []T) (string, error) {
	if items == nil {
		items = []T{}
	}
	raw, err := json.Marshal(items)
	return string(raw), errs.Wrap(errs.Internal, err, "encode details")
}
