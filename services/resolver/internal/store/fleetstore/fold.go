package fleetstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/libs/fleet/rolloutstore"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// schema holds the tables of rollouts here.
const schema = "resolver"

// Folds folds fleet subscriptions, rollouts, and what comes of what they asked. Each change that a fleet
// subscription looks at makes it due.
type Folds struct{}

// Facts are the events that a rollout believes, where it caused them.
func Facts() []events.Payload {
	return []events.Payload{
		events.ResolutionFailed{},
		events.ResolutionSucceeded{},
		events.InstallPlanFailed{},
		events.InstallPlanRejected{},
		events.InstallPlanProposed{},
		events.CSVPhaseChanged{},
		events.CSVRemoved{},
	}
}

// Set takes in what is wanted.
func (f *Folds) Set(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.FleetSubscriptionSet) error {
	spec, err := json.Marshal(p.Spec)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode fleet subscription %s", p.Name)
	}
	return exec(ctx, tx, `insert into resolver.fleet_subscriptions as f (tenant, name, incarnation, version, spec)
		values ($1, $2, $3, $4, $5) on conflict (tenant, name) do update set incarnation = excluded.incarnation,
		version = excluded.version, spec = excluded.spec, deleted = false, due = true`,
		e.Tenant, p.Name, e.StreamID.Incarnation, e.Version, spec)
}

// Deleted takes in that it is wanted no more.
func (f *Folds) Deleted(ctx context.Context, tx pgx.Tx, e eventlog.Recorded,
	_ events.FleetSubscriptionDeleted,
) error {
	return exec(ctx, tx, `update resolver.fleet_subscriptions set deleted = true, due = true, version = $3
		where tenant = $1 and name = $2`, e.Tenant, e.Subject, e.Version)
}

// Rollout folds an event of a rollout. One that the controller's decision has folded changes nothing. The row of the
// fleet subscription goes first, as in a decision: whoever took it last would wait for the other in a ring.
func (f *Folds) Rollout(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	if err := due(ctx, tx, e.Tenant, fleetOf(e.Subject)); err != nil {
		return err
	}
	return foldRollout(ctx, tx, e)
}

// Subscription makes a fleet subscription due of whose subscriptions a person made, changed or deleted one.
func (f *Folds) Subscription(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	return due(ctx, tx, e.Tenant, e.Subject[strings.LastIndex(e.Subject, "/")+1:])
}

// due has a fleet subscription looked at.
func due(ctx context.Context, tx pgx.Tx, tenant, name string) error {
	return exec(ctx, tx, `update resolver.fleet_subscriptions set due = true where tenant = $1 and name = $2`, tenant,
		name)
}

// foldRollout folds an event of a rollout, from the log or from the decision that appends it.
func foldRollout(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	if err := rolloutstore.Fold(ctx, tx, schema, e); err != nil {
		return err
	}
	p, ok := e.Payload.(events.RolloutClusterDirected)
	if !ok {
		return nil
	}
	fleet, number, err := rolloutstore.Subject(e.Subject)
	if err != nil {
		return err
	}
	if err := count(ctx, tx, e.Envelope, events.BudgetChanged, p.Cluster); err != nil {
		return err
	}
	return exec(ctx, tx, `insert into resolver.directives (tenant, directive, fleet, number, cluster)
		values ($1, $2, $3, $4, $5) on conflict do nothing`, e.Tenant, p.Directive, fleet, number, p.Cluster)
}

// fleetOf is the fleet subscription of a rollout's subject.
func fleetOf(subject string) string {
	fleet, _, err := rolloutstore.Subject(subject)
	if err != nil {
		return ""
	}
	return fleet
}

// clusterOf is the cluster of a subscription's subject.
func clusterOf(subject string) string {
	cluster, _, _ := strings.Cut(subject, "/")
	return cluster
}

// Clusters makes all fleet subscriptions due: any of them may choose the cluster, or wait for it. Also those that are
// due already: one that is being decided about is held, and to pass it over would be to leave it with a decision that
// has not seen this.
func (f *Folds) Clusters(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	switch p := e.Payload.(type) {
	case events.ClusterRegistered:
		if err := setState(ctx, tx, e, stateRegistered); err != nil {
			return err
		}
	case events.ClusterObserved:
		if err := setState(ctx, tx, e, p.State); err != nil {
			return err
		}
	}
	return exec(ctx, tx, `update resolver.fleet_subscriptions set due = true where tenant = $1`, e.Tenant)
}

// States of clusters that the fleet distinguishes.
const (
	stateRegistered = "Registered"
	stateConnected  = "Connected"
)

func setState(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, state string) error {
	return exec(ctx, tx, `update resolver.clusters set state = $3 where tenant = $1 and name = $2 and state <> $3`,
		e.Tenant, e.Subject, state)
}

// Catalog makes the fleet subscriptions due that follow the catalog, as Clusters does.
func (f *Folds) Catalog(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	return exec(ctx, tx, `update resolver.fleet_subscriptions set due = true where tenant = $1
		and spec ->> 'catalog' = $2`, e.Tenant, e.Subject)
}

// Fact takes in what came of a directive. Most events were caused by none.
func (f *Folds) Fact(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	if _, proposed := e.Payload.(events.InstallPlanProposed); proposed {
		return exec(ctx, tx, `update resolver.directives set plan = $3 where tenant = $1 and directive = $2`, e.Tenant,
			e.Correlation, e.StreamID.Key.String())
	}
	var plan string // what people say of a plan has a correlation of its own
	if e.StreamID.Kind == events.KindInstallPlan {
		plan = e.StreamID.Key.String()
	}
	var fleet string
	var target json.RawMessage
	var before rollout.Seen
	err := tx.QueryRow(ctx, `select d.directive, d.fleet, d.outcome, d.reason, d.content, d.cause, r.started -> 'target'
		from resolver.directives d join resolver.rollouts r on r.tenant = d.tenant and r.fleet = d.fleet
		  and r.number = d.number
		where d.tenant = $1 and (d.directive = $2 or d.plan = $3 and $3 <> '')`, e.Tenant, e.Correlation, plan).
		Scan(&before.Directive, &fleet, &before.Outcome, &before.Reason, &before.Content, &before.Cause, &target)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find what %s was caused by: %w", e.ID, pg.Err(err))
	}
	var t events.RolloutTarget
	if err := json.Unmarshal(target, &t); err != nil {
		return errs.Wrap(errs.Internal, err, "read the target of directive %s", before.Directive)
	}
	after := before.With(t, rollout.Fact{ID: e.ID, Correlation: before.Directive, Payload: e.Payload})
	if after == before {
		return nil
	}
	if err := exec(ctx, tx, `update resolver.directives set outcome = $3, reason = $4, content = $5, cause = $6
		where tenant = $1 and directive = $2`, e.Tenant, before.Directive, after.Outcome, after.Reason, after.Content,
		after.Cause); err != nil {
		return err
	}
	return due(ctx, tx, e.Tenant, fleet)
}
