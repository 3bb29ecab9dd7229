package hub

import (
	"context"
	"crypto"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// removalRequested keeps a request to uninstall until it is refused, or the operator is gone.
func (f folder) removalRequested(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CSVRemovalRequested,
) error {
	s, err := parseSubject(e.Envelope.Subject)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `insert into installer.removals (tenant, cluster, namespace, csv, removal, crds, plan,
		dependants, epoch, position)
		values ($1, $2, $3, $4, $5, coalesce($6, '{}'::text[]), $7, coalesce($8, '{}'::text[]), $9, $10)
		on conflict (tenant, cluster, namespace, csv) do update set removal = excluded.removal,
		crds = excluded.crds, plan = excluded.plan,
		  dependants = excluded.dependants,
		  epoch = excluded.epoch, position = excluded.position`,
		e.Tenant, s.cluster, s.namespace, s.name, p.Removal, p.CRDs, p.Plan, p.Dependants, e.Position.Epoch,
		e.Position.N); err != nil {
		return err
	}
	return f.mark(ctx, tx, bus.Interactive, e, s.cluster, s.namespace)
}

// leavingFolds are what fleet subscriptions do where clusters leave them, as if a person had.
type leavingFolds struct{ folder }

func (l leavingFolds) subscriptionRemoved(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, _ events.SubscriptionRemoved,
) error {
	return l.subscriptionDeleted(ctx, tx, e, events.SubscriptionDeleted{})
}

func (l leavingFolds) removalDirected(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CSVRemovalDirected,
) error {
	return l.removalRequested(ctx, tx, e, p.Request())
}

func (f folder) removalRefused(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CSVRemovalRefused,
) error {
	s, err := parseSubject(e.Envelope.Subject)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `delete from installer.removals where tenant = $1 and cluster = $2 and namespace = $3
		and csv = $4 and removal = $5`,
		e.Tenant, s.cluster, s.namespace, s.name, p.Removal); err != nil {
		return err
	}
	return f.mark(ctx, tx, bus.Interactive, e, s.cluster, s.namespace)
}

// fillRemovals adds removals with their grants, signed by the key.
func fillRemovals(ctx context.Context, tx pgx.Tx, w *wanted, now time.Time, key crypto.Signer) error {
	m := &w.message
	rows, err := tx.Query(ctx, `select removal, csv, crds, plan, nullif(dependants, '{}') from installer.removals
		where tenant = $1 and cluster = $2 and namespace = $3
		order by epoch, position`, m.Scope.Tenant, m.Scope.Cluster, m.Scope.Namespace)
	if err != nil {
		return err
	}
	m.Removals, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (x protocol.Removal, err error) {
		return x, r.Scan(&x.ID, &x.CSV, &x.CRDs, &x.Plan, &x.Dependants)
	})
	if err != nil {
		return err
	}
	for i, r := range m.Removals {
		if m.Removals[i], err = r.Granted(m.Scope.ClusterID, m.Scope.Namespace, now.Add(GrantTTL),
			key); err != nil {
			return errs.Wrap(errs.Internal, err, "sign the grant of removal %s", r.ID)
		}
		w.wakeAt(now.Add(GrantTTL / 2))
	}
	return nil
}
