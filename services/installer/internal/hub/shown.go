package hub

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// What is told to clusters that mirror everything, to be shown there and for nothing else.

// foldOutcome keeps why a subscription does not resolve; reason is "" where it does.
func (h *Hub) foldOutcome(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, s subject, reason string) error {
	tag, err := tx.Exec(ctx, `update installer.subscriptions set failed = $5, failed_since = case when $5 = '' then null else $6::timestamptz end
		where tenant = $1 and cluster = $2 and namespace = $3 and name = $4 and failed <> $5`, e.Tenant, s.cluster, s.namespace, s.name, reason, e.Time)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	return h.markMirrored(ctx, tx, e, s)
}

// markMirrored marks a scope if its cluster mirrors everything.
func (h *Hub) markMirrored(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, s subject) error {
	var mirrored bool
	err := tx.QueryRow(ctx, `select exists (select from installer.clusters where tenant = $1 and name = $2 and not removed and settings ->> 'mirror' = $3)`,
		e.Tenant, s.cluster, events.MirrorAll).Scan(&mirrored)
	if err != nil || !mirrored {
		return err
	}
	return h.mark(ctx, tx, bus.FanOut, e, s.cluster, s.namespace)
}

// markFollowers marks the scopes with a subscription that may name a catalog, in clusters that mirror everything.
func (h *Hub) markFollowers(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	rows, err := tx.Query(ctx, `select distinct s.cluster, s.namespace from installer.subscriptions s
		join installer.clusters k on k.tenant = s.tenant and k.name = s.cluster and not k.removed and k.settings ->> 'mirror' = $3
		where s.tenant = $1 and s.spec ->> 'catalog' = substring($2 from '[^/]*$')`, e.Tenant, e.Envelope.Subject, events.MirrorAll)
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
	return h.lanes.Mark(ctx, tx, bus.FanOut, scopes...)
}

// fillSubscriptions tells subscriptions where they are to be shown in the cluster. The catalog of one is that of its
// namespace in the cluster, else the hub's of that name.
func fillSubscriptions(ctx context.Context, tx pgx.Tx, m *protocol.ScopePlans) error {
	if m.Settings.Mirror != events.MirrorAll {
		return nil
	}
	rows, err := tx.Query(ctx, `select s.name, s.spec, s.failed, s.failed_since, c.priority, c.state, c.reason from installer.subscriptions s
		left join lateral (select c.priority, c.state, c.reason from catalog_api.catalogs c
			where c.tenant = s.tenant and not c.disabled and c.visibility_cluster in ('', s.cluster) and c.visibility_namespace in ('', s.namespace)
			and c.name in (s.spec ->> 'catalog', s.cluster || '/' || coalesce(s.spec ->> 'catalogNamespace', '') || '/' || (s.spec ->> 'catalog'))
			order by c.name = s.spec ->> 'catalog' limit 1) c on true
		where s.tenant = $1 and s.cluster = $2 and s.namespace = $3 and s.spec <> '{}' order by s.name`,
		m.Scope.Tenant, m.Scope.Cluster, m.Scope.Namespace)
	if err != nil {
		return err
	}
	m.Subscriptions, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (s protocol.Subscription, err error) {
		var since *time.Time
		var priority *int
		var state, reason *string
		if err := r.Scan(&s.Name, &s.Spec, &s.Failed, &since, &priority, &state, &reason); err != nil {
			return s, err
		}
		s.Spec.Config = ""
		if since != nil {
			s.FailedSince = since.UTC()
		}
		if state != nil && priority != nil && reason != nil {
			s.Catalog = &protocol.CatalogState{Priority: *priority, State: *state, Reason: *reason}
		}
		return s, nil
	})
	return err
}

// fillWaiting tells plans that may not be carried out yet, where subscriptions are told, oldest first.
func fillWaiting(ctx context.Context, tx pgx.Tx, m *protocol.ScopePlans, now time.Time) error {
	if m.Settings.Mirror != events.MirrorAll {
		return nil
	}
	rows, err := tx.Query(ctx, selectPlan+` where p.tenant = $1 and p.cluster = $2 and p.namespace = $3 and p.phase = any ($4)
		order by p.epoch, p.position`, m.Scope.Tenant, m.Scope.Cluster, m.Scope.Namespace,
		[]string{string(installplan.RequiresApproval), string(installplan.Installing)})
	if err != nil {
		return err
	}
	plans, err := pgx.CollectRows(rows, scanPlan)
	if err != nil {
		return err
	}
	for _, p := range plans {
		if !p.state.Executable(now) {
			m.Waiting = append(m.Waiting, waiting(p, now))
		}
	}
	return nil
}

// waiting says what a plan waits for. One whose approval expired before its first step waits for approval again.
func waiting(p planRow, now time.Time) protocol.WaitingPlan {
	w := protocol.WaitingPlan{ID: p.id, Name: p.name, Bundles: p.state.Proposed.Bundles}
	if p.state.PhaseAt(now) == installplan.RequiresApproval {
		return w
	}
	w.Approved, w.Message = true, "it waits for its maintenance window"
	if opens, ok := p.state.NextOpening(now); ok {
		w.Message += ", which opens at " + opens.UTC().Format(time.RFC3339)
	}
	return w
}
