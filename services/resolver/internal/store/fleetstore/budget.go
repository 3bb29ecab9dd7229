package fleetstore

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/budget"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/fleet"
)

// loadBudget reads what the tenant may have changed still. Decisions of the tenant go one after the other from here on,
// so that two replicas do not both spend what is left: what one of them changes is counted in the transaction that
// changes it.
func loadBudget(ctx context.Context, tx pgx.Tx, s *fleet.State, now time.Time) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`,
		"fleet-budget/"+s.Tenant); err != nil {
		return err
	}
	changed, leaving := budget.DefaultChanged, budget.DefaultLeaving
	err := tx.QueryRow(ctx, `select changed, leaving from resolver.fleet_budgets where tenant = $1`, s.Tenant).
		Scan(&changed, &leaving)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	since := now.Add(-budget.Window)
	var moreChanged, moreLeaving []budget.Allowance
	rows, err := tx.Query(ctx, `select changed, leaving, at from resolver.fleet_allowances where tenant = $1 and at > $2`,
		s.Tenant, since)
	if err != nil {
		return err
	}
	var ofChanged, ofLeaving int
	var at time.Time
	if _, err = pgx.ForEachRow(rows, []any{&ofChanged, &ofLeaving, &at}, func() error {
		moreChanged = append(moreChanged, budget.Allowance{More: ofChanged, At: at})
		moreLeaving = append(moreLeaving, budget.Allowance{More: ofLeaving, At: at})
		return nil
	}); err != nil {
		return err
	}
	s.Changed = budget.Budget{Limit: budget.Raised(changed, moreChanged, now), Changes: map[string]time.Time{}}
	s.Leaves = budget.Budget{Limit: budget.Raised(leaving, moreLeaving, now), Changes: map[string]time.Time{}}
	rows, err = tx.Query(ctx, `select kind, cluster, max(at) from resolver.fleet_changes where tenant = $1 and at > $2
		group by kind, cluster`, s.Tenant, since)
	if err != nil {
		return err
	}
	var kind, cluster string
	_, err = pgx.ForEachRow(rows, []any{&kind, &cluster, &at}, func() error {
		if kind == events.BudgetLeaving {
			s.Leaves.Changes[cluster] = at
		} else {
			s.Changed.Changes[cluster] = at
		}
		return nil
	})
	return err
}

// count counts a cluster that was changed or let go of, by the event that says so: once, however often it is folded.
func count(ctx context.Context, tx pgx.Tx, e events.Envelope, kind, cluster string) error {
	return exec(ctx, tx, `insert into resolver.fleet_changes (tenant, event, kind, cluster, at)
		values ($1, $2, $3, $4, $5) on conflict do nothing`, e.Tenant, e.ID, kind, cluster, e.Time)
}

// BudgetSet takes in the bounds of a tenant. What is held back may go on: the rows of fleet subscriptions go first, as
// in every fold.
func (f *Folds) BudgetSet(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.FleetBudgetSet) error {
	if err := dueHeld(ctx, tx, e.Tenant); err != nil {
		return err
	}
	return exec(ctx, tx, `insert into resolver.fleet_budgets (tenant, changed, leaving) values ($1, $2, $3)
		on conflict (tenant) do update set changed = excluded.changed, leaving = excluded.leaving`, e.Tenant, p.Changed,
		p.Leaving)
}

// BudgetAllowed takes in what a person allowed beyond them.
func (f *Folds) BudgetAllowed(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.FleetBudgetAllowed) error {
	if err := dueHeld(ctx, tx, e.Tenant); err != nil {
		return err
	}
	return exec(ctx, tx, `insert into resolver.fleet_allowances (tenant, event, changed, leaving, at)
		values ($1, $2, $3, $4, $5) on conflict do nothing`, e.Tenant, e.ID, p.Changed, p.Leaving, e.Time)
}

func dueHeld(ctx context.Context, tx pgx.Tx, tenant string) error {
	return exec(ctx, tx, `update resolver.fleet_subscriptions set due = true where tenant = $1 and held is not null`,
		tenant)
}

// Released counts a cluster that a fleet subscription let go of.
func (f *Folds) Released(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	return count(ctx, tx, e.Envelope, events.BudgetLeaving, clusterOf(e.Subject))
}

// hold says once that clusters are held back, when that begins, and keeps how many they are.
func (w writer) hold(ctx context.Context, now *fleet.Held) error {
	if now != nil && !now.Same(w.s.Held) {
		if err := w.exhausted(ctx, *now); err != nil {
			return err
		}
	}
	var held json.RawMessage
	if now != nil {
		var err error
		if held, err = json.Marshal(now); err != nil {
			return errs.Wrap(errs.Internal, err, "encode what fleet subscription %s holds back", w.s.Name)
		}
	}
	return exec(ctx, w.tx, `update resolver.fleet_subscriptions set held = $3 where tenant = $1 and name = $2
		and held is distinct from $3`, w.s.Tenant, w.s.Name, held)
}

func (w writer) exhausted(ctx context.Context, h fleet.Held) error {
	head, err := w.log.Latest(ctx, w.tx, w.s.Tenant, events.KindFleetBudget, events.FleetBudgetSubject)
	if err != nil {
		return err
	}
	stream, version := head.ID, head.Version
	if !head.Exists() {
		stream, version = head.Create(), 0
	}
	_, err = w.log.Append(ctx, w.tx, w.meta("", ""), stream, events.FleetBudgetSubject, version,
		events.FleetBudgetExhausted{
			FleetSubscription: w.s.Name, Rollout: h.Rollout, Of: h.Of, Limit: h.Limit, Used: h.Used, Held: h.Held,
			Until: h.Until,
		})
	return pg.Err(err)
}
