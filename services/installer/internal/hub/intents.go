package hub

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
)

// What people want, kept for the hub's own judgement of plans (ADR 0034). A plan that was handed out is looked at again
// when any of it changes, whatever the resolver makes of the change.

// intentFolds fold what the hub judges plans by.
type intentFolds struct{ folder }

// policySubject is the beginning of the subject of approval policies; the name follows.
const policySubject = "approval/"

func (f intentFolds) policySet(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.ApprovalPolicySet) error {
	if _, err := tx.Exec(ctx, `insert into installer.approval_policies (tenant, name, spec) values ($1, $2, $3)
		on conflict (tenant, name) do update set spec = excluded.spec`,
		e.Tenant, strings.TrimPrefix(e.Envelope.Subject, policySubject), p.Spec); err != nil {
		return err
	}
	return f.markPlanned(ctx, tx, e, "", "")
}

func (f intentFolds) policyDeleted(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, _ events.ApprovalPolicyDeleted,
) error {
	if _, err := tx.Exec(ctx, `delete from installer.approval_policies where tenant = $1 and name = $2`,
		e.Tenant, strings.TrimPrefix(e.Envelope.Subject, policySubject)); err != nil {
		return err
	}
	return f.markPlanned(ctx, tx, e, "", "")
}

func (f intentFolds) clusterLabelsChanged(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.ClusterLabelsChanged,
) error {
	if _, err := tx.Exec(ctx, `update installer.clusters set labels = $3 where tenant = $1 and cluster_id = $2`,
		e.Tenant, e.StreamID.UUID(), labelsOf(p.Labels)); err != nil {
		return err
	}
	return f.markPlanned(ctx, tx, e, e.Envelope.Subject, "")
}

// labelsOf makes no labels {} and not null.
func labelsOf(labels map[string]string) map[string]string {
	if labels == nil {
		return map[string]string{}
	}
	return labels
}

func (f intentFolds) catalogAdded(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CatalogAdded) error {
	return f.putCatalog(ctx, tx, e, p.Spec, p.Signatures)
}

func (f intentFolds) catalogChanged(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CatalogChanged,
) error {
	return f.putCatalog(ctx, tx, e, p.Spec, p.Signatures)
}

// putCatalog keeps what a catalog's content must be signed with. The row stays when the catalog is removed: a plan from
// it that is there already needs the signatures as before.
func (f intentFolds) putCatalog(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, spec, signatures string) error {
	if _, err := tx.Exec(ctx, `insert into installer.catalogs (tenant, subject, spec, signatures)
		values ($1, $2, $3, $4)
		on conflict (tenant, subject) do update set spec = excluded.spec, signatures = excluded.signatures`,
		e.Tenant, e.Envelope.Subject, spec, signatures); err != nil {
		return err
	}
	if err := f.markPlanned(ctx, tx, e, "", ""); err != nil {
		return err
	}
	return f.markFollowers(ctx, tx, e)
}

// markPlanned marks the scopes with plans that may be handed out; "" is every cluster, and every namespace.
func (f folder) markPlanned(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, cluster, namespace string) error {
	where, args := "", []any{e.Tenant}
	if cluster != "" {
		where, args = where+" and cluster = $2", append(args, cluster)
	}
	if namespace != "" { // of that cluster
		where, args = where+" and namespace = $3", append(args, namespace)
	}
	rows, err := tx.Query(ctx, `select distinct cluster, namespace from installer.plans
		where tenant = $1 and phase = 'Installing' and not coalesce((state ->> 'Begun')::boolean, false)`+where, args...)
	if err != nil {
		return err
	}
	scopes, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (s bus.Scope, err error) {
		s = bus.Scope{Tenant: e.Tenant, Cause: e.ID, TraceParent: e.TraceParent}
		return s, r.Scan(&s.Cluster, &s.Namespace)
	})
	if err != nil {
		return err
	}
	return f.lanes.Mark(ctx, tx, bus.FanOut, scopes...)
}

// groupPlaced takes over a group that a fleet subscription has made.
func (f intentFolds) groupPlaced(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.OperatorGroupPlaced,
) error {
	return f.putGroup(ctx, tx, e, p.Spec)
}

// subscriptionPlaced takes over what a fleet subscription asks for. One that is let go asks for the same.
func (f intentFolds) subscriptionPlaced(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.SubscriptionPlaced,
) error {
	return f.putSubscription(ctx, tx, e, p.Spec, p.Rollback.To)
}
