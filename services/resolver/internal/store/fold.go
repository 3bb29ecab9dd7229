package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Apply folds one event into the tables and makes dirty what it touches. An event of the resolver's own
// that its decision has folded already changes nothing.
func (s *Store) Apply(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	if s.own.knows(e.ID) {
		return nil
	}
	switch p := e.Payload.(type) {
	case events.ClusterRegistered:
		return s.clusterRegistered(ctx, tx, e, p)
	case events.ClusterLabelsChanged:
		return s.clusterLabelled(ctx, tx, e, p.Labels)
	case events.ClusterRemoved:
		return s.clusterRemoved(ctx, tx, e, p.Name)
	case events.ClusterObserved:
		return s.clusterObserved(ctx, tx, e, p.KubernetesVersion)
	case events.CatalogHealthSet:
		return s.healthSet(ctx, tx, e, p)
	case events.ApprovalPolicySet:
		return s.policySet(ctx, tx, e, p)
	case events.ApprovalPolicyDeleted:
		return s.policyDeleted(ctx, tx, e)
	case events.CatalogAdded, events.CatalogChanged, events.CatalogRemoved, events.CatalogRevisionPublished, events.CatalogLoadFailed,
		events.CatalogBundlesFetched:
		return s.applyCatalog(ctx, tx, e)
	case events.OperatorGroupCreated, events.OperatorGroupChanged, events.OperatorGroupDeleted:
		return s.applyGroup(ctx, tx, e)
	case events.OperatorGroupObserved:
		return s.groupObserved(ctx, tx, e, p)
	case events.SubscriptionCreated, events.SubscriptionGenerated, events.SubscriptionChanged, events.SubscriptionDeleted,
		events.SubscriptionRollbackRequested:
		return s.applySubscription(ctx, tx, e)
	case events.SubscriptionMetadataChanged:
		return metadataChanged(ctx, tx, e)
	case events.ResolutionFailed:
		return s.setOutcome(ctx, tx, e, decide.Outcome{Kind: decide.OutcomeFailed, Reason: p.Reason, Explanation: p.Explanation, Input: p.Input})
	case events.ResolutionSucceeded:
		return s.setOutcome(ctx, tx, e, decide.Outcome{Kind: p.Outcome, CSV: p.CSV, Plan: p.Plan, Input: p.Input})
	case events.CSVPhaseChanged:
		return s.csvChanged(ctx, tx, e, p)
	case events.CSVRemoved:
		return s.csvRemoved(ctx, tx, e)
	}
	if e.StreamID.Kind == events.KindInstallPlan {
		return s.applyPlan(ctx, tx, e)
	}
	return errs.New(errs.Internal, "the resolver does not know what to do with %s", e.Type)
}

func exec(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	_, err := tx.Exec(ctx, sql, args...)
	return pg.Err(err)
}

// markAll makes dirty what a query gives as cluster and namespace: one change that touches many places.
func (s *Store) markAll(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, sql string, args ...any) error {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("find scopes made dirty by %s: %w", e.Type, pg.Err(err))
	}
	scopes, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (bus.Scope, error) {
		var cluster, namespace string
		err := r.Scan(&cluster, &namespace)
		return scopeOf(e, cluster, namespace), err
	})
	if err != nil {
		return fmt.Errorf("find scopes made dirty by %s: %w", e.Type, pg.Err(err))
	}
	return s.marks.Mark(ctx, tx, bus.FanOut, scopes...)
}

func (s *Store) applySubscription(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	cluster, namespace, name, err := splitSubject(e.Subject)
	if err != nil {
		return err
	}
	switch p := e.Payload.(type) {
	case events.SubscriptionCreated:
		if err = s.putSubscription(ctx, tx, e, p.Spec, false); err == nil {
			err = settle(ctx, tx, e.Tenant, resolution.Scope{Cluster: cluster, Namespace: namespace})
		}
	case events.SubscriptionGenerated:
		err = s.putSubscription(ctx, tx, e, p.Spec, true)
		if err == nil {
			err = exec(ctx, tx, `update resolver.plans set settled = true where tenant = $1 and plan = $2`, e.Tenant, p.Plan)
		}
	case events.SubscriptionChanged:
		err = s.changeSubscription(ctx, tx, e, p.Spec)
	case events.SubscriptionRollbackRequested:
		err = exec(ctx, tx, `update resolver.subscriptions set rollback_from = $6, rollback_to = $7, version = $8, correlation = $9
			where tenant = $1 and cluster = $2 and namespace = $3 and name = $4 and incarnation = $5 and version < $8`,
			e.Tenant, cluster, namespace, name, e.StreamID.Incarnation, p.From, p.To, e.Version, e.Correlation)
	case events.SubscriptionDeleted:
		err = exec(ctx, tx, `delete from resolver.subscriptions
			where tenant = $1 and cluster = $2 and namespace = $3 and name = $4 and incarnation = $5`,
			e.Tenant, cluster, namespace, name, e.StreamID.Incarnation)
	}
	if err != nil {
		return err
	}
	return s.marks.Mark(ctx, tx, bus.Interactive, scopeOf(e, cluster, namespace))
}

// putSubscription keeps what a decision has written already, and adds when it was created.
func (s *Store) putSubscription(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, spec events.SubscriptionSpec, generated bool) error {
	cluster, namespace, name, err := splitSubject(e.Subject)
	if err != nil {
		return err
	}
	raw, err := encode(spec)
	if err != nil {
		return err
	}
	return exec(ctx, tx, `insert into resolver.subscriptions
		(tenant, cluster, namespace, name, incarnation, version, spec, generated, created, correlation)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		on conflict (tenant, cluster, namespace, name) do update set created = excluded.created`,
		e.Tenant, cluster, namespace, name, e.StreamID.Incarnation, e.Version, raw, generated, e.Position.N, e.Correlation)
}

func (s *Store) changeSubscription(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, spec events.SubscriptionSpec) error {
	cluster, namespace, name, err := splitSubject(e.Subject)
	if err != nil {
		return err
	}
	raw, err := encode(spec)
	if err != nil {
		return err
	}
	return exec(ctx, tx, `update resolver.subscriptions set spec = $6, version = $7, correlation = $8, rollback_from = '', rollback_to = ''
		where tenant = $1 and cluster = $2 and namespace = $3 and name = $4 and incarnation = $5 and version < $7`,
		e.Tenant, cluster, namespace, name, e.StreamID.Incarnation, raw, e.Version, e.Correlation)
}

// metadataChanged keeps the version of the stream, behind which the next outcome stands. Labels and annotations decide
// nothing, so that no scope becomes dirty.
func metadataChanged(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	cluster, namespace, name, err := splitSubject(e.Subject)
	if err != nil {
		return err
	}
	return exec(ctx, tx, `update resolver.subscriptions set version = $6
		where tenant = $1 and cluster = $2 and namespace = $3 and name = $4 and incarnation = $5 and version < $6`,
		e.Tenant, cluster, namespace, name, e.StreamID.Incarnation, e.Version)
}

func (s *Store) setOutcome(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, o decide.Outcome) error {
	cluster, namespace, name, err := splitSubject(e.Subject)
	if err != nil {
		return err
	}
	raw, err := encode(o)
	if err != nil {
		return err
	}
	return exec(ctx, tx, `update resolver.subscriptions set outcome = $6, version = $7
		where tenant = $1 and cluster = $2 and namespace = $3 and name = $4 and incarnation = $5 and version < $7`,
		e.Tenant, cluster, namespace, name, e.StreamID.Incarnation, raw, e.Version)
}
