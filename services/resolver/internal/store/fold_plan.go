package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// planFolds folds install plans. The operators of a finished one are expected to be installed.
type planFolds struct {
	dirty     *dirtyScopes
	log       *eventlog.Log
	installed *installedFolds
}

// planRow is a plan as it is stored.
type planRow struct {
	id      string
	version int64
	state   installplan.State
	settled bool // of a row that is new
}

// fold folds an event of a plan. Ends of a plan make its scope dirty; so does a rejection, which
// leaves its subscriptions without one.
func (f *planFolds) fold(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	row, err := f.planByKey(ctx, tx, e)
	if err != nil {
		return err
	}
	if p, ok := e.Payload.(events.InstallPlanProposed); ok {
		row.id = p.Plan
	}
	revived := row.state.Exists() && !row.state.Live()
	if e.Version > row.version {
		if row.state, err = installplan.Evolve(row.state, e.Payload); err != nil {
			return errs.Wrap(errs.Internal, err, "fold %s of %s", e.Type, e.Subject)
		}
		row.version = e.Version
		if err := f.put(ctx, tx, e.Tenant, row); err != nil {
			return err
		}
	}
	p := row.state.Proposed
	scope := scopeOf(e, p.Cluster, p.Namespace)
	switch e.Payload.(type) {
	case events.InstallPlanFinished:
		return errors.Join(f.installed.expect(ctx, tx, e, row), settle(ctx, tx, e.Tenant, scopeIn(p)),
			f.dirty.markOwn(ctx, tx, scope))
	case events.InstallPlanBlocked:
		if slices.Contains(renderingReasons(), row.state.Blocked.Reason) {
			return f.dirty.markOwn(ctx, tx, scope)
		}
	case events.InstallPlanFailed, events.InstallPlanRejected:
		return f.dirty.markOwn(ctx, tx, scope)
	case events.InstallPlanStarted:
		if revived { // it began while it was being superseded: what took its place has to go
			return f.dirty.markOwn(ctx, tx, scope)
		}
	}
	return nil
}

func (f *planFolds) planByKey(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) (planRow, error) {
	var row planRow
	var state json.RawMessage
	err := tx.QueryRow(ctx, `select plan, version, state from resolver.plans where tenant = $1 and key = $2`, e.Tenant,
		e.StreamID.Key).
		Scan(&row.id, &row.version, &state)
	if errors.Is(err, pgx.ErrNoRows) {
		return f.foldFromLog(ctx, tx, e)
	}
	if err != nil {
		return row, fmt.Errorf("read the plan of %s: %w", e.Subject, pg.Err(err))
	}
	err = json.Unmarshal(state, &row.state)
	return row, errs.Wrap(errs.Internal, err, "read the plan of %s", e.Subject)
}

// foldFromLog folds a plan from the log up to an event: it is new, or was collected, and something came late. That is
// rare: a plan that was superseded in the moment in which it began, and of which nothing was heard for long. One that
// was complete was settled, else it would not have been collected.
func (f *planFolds) foldFromLog(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) (row planRow, err error) {
	if e.Version <= 1 {
		return row, nil
	}
	life, err := f.log.ReadStream(ctx, tx, e.Tenant, e.StreamID, 0)
	if err != nil {
		return row, err
	}
	row.id, row.version, row.state, err = foldPlan(life, e.Version-1)
	row.settled = row.state.Phase == installplan.Complete
	return row, errs.Wrap(errs.Internal, err, "fold %s", e.Subject)
}

// foldPlan folds the events of a plan up to a version.
func foldPlan(life []eventlog.Recorded, upTo int64) (id string, version int64, state installplan.State, err error) {
	for _, r := range life {
		if r.Version > upTo {
			break
		}
		if p, ok := r.Payload.(events.InstallPlanProposed); ok {
			id = p.Plan
		}
		if state, err = installplan.Evolve(state, r.Payload); err != nil {
			return id, version, state, err
		}
		version = r.Version
	}
	return id, version, state, nil
}

// putPlan writes a plan.
const putPlan = `insert into resolver.plans (tenant, plan, key, cluster, namespace, generation, version, live, phase,
	state, packages, settled)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
	on conflict (tenant, plan) do update set version = excluded.version, live = excluded.live, phase = excluded.phase,
	state = excluded.state`

// args are those of putPlan.
func (r planRow) args(tenant string) ([]any, error) {
	state, err := encode(r.state)
	p := r.state.Proposed
	return []any{
		tenant, r.id, events.Key(tenant, events.KindInstallPlan, r.id), p.Cluster, p.Namespace, p.Generation,
		r.version, r.state.Live(), string(r.state.Phase), state, packagesPlanned(p.Bundles), r.settled,
	}, err
}

// packagesPlanned are those that a plan installs, sorted, each once.
func packagesPlanned(bundles []events.PlannedBundle) []string {
	out := []string{}
	for _, b := range bundles {
		out = append(out, storable(b.Package))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (f *planFolds) put(ctx context.Context, tx pgx.Tx, tenant string, row planRow) error {
	args, err := row.args(tenant)
	if err != nil {
		return err
	}
	return exec(ctx, tx, putPlan, args...)
}

func scopeIn(p events.InstallPlanProposed) resolution.Scope {
	return resolution.Scope{Cluster: p.Cluster, Namespace: p.Namespace}
}

// settle notes which finished plans of a scope have no dependency any more that lacks a subscription. That is known
// at their end, or when somebody subscribes: a subscription that is deleted later is not generated again, nor when
// the tables are made anew from the log.
//
// A namespace without such a plan costs one look at an index. With one, no more of its subscriptions is read than what
// their names and packages are: every subscription that is added comes here, with the scope's mark held, and may be one
// of thousands.
func settle(ctx context.Context, tx pgx.Tx, tenant string, scope resolution.Scope) error {
	l := Loaded{State: decide.State{Tenant: tenant, Scope: scope}}
	if err := listNow(ctx, tx, &l, &l.Plans, func(r pgx.CollectableRow) (p decide.Plan, err error) {
		var state json.RawMessage
		if err := r.Scan(&p.ID, &state); err != nil {
			return p, err
		}
		return p, json.Unmarshal(state, &p.State)
	}, `select plan, state from resolver.plans where tenant = $1 and cluster = $2 and namespace = $3
		and phase = 'Complete' and not settled order by generation`); err != nil || len(l.Plans) == 0 {
		return err
	}
	if err := listNow(ctx, tx, &l, &l.Subscriptions, func(r pgx.CollectableRow) (sub decide.Subscription, err error) {
		return sub, r.Scan(&sub.Name, &sub.Spec.Package)
	}, `select name, coalesce(spec ->> 'package', '') from resolver.subscriptions
		where tenant = $1 and cluster = $2 and namespace = $3 order by name`); err != nil {
		return err
	}
	for _, p := range decide.Subscribed(l.State) {
		if err := exec(ctx, tx, `update resolver.plans set settled = true where tenant = $1 and plan = $2`, tenant,
			p.ID); err != nil {
			return err
		}
	}
	return nil
}

// listNow is list by itself.
func listNow[T any](ctx context.Context, tx pgx.Tx, l *Loaded, into *[]T, scan pgx.RowToFunc[T], sql string) error {
	b := &pgx.Batch{}
	list(b, l, into, scan, sql)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("look for dependencies without a subscription in %s/%s: %w", l.Scope.Cluster,
			l.Scope.Namespace, pg.Err(err))
	}
	return nil
}
