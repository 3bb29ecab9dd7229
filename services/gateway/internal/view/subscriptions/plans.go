package subscriptions

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
)

func planEvent(ctx context.Context, f readmodel.Fold) error {
	if p, proposed := f.Payload.(events.InstallPlanProposed); proposed {
		return planProposed(ctx, f, p)
	}
	return planChanged(ctx, f)
}

// planProposed makes every subscription that the plan serves refer to it (R-IP-1).
func planProposed(ctx context.Context, f readmodel.Fold, p events.InstallPlanProposed) error {
	plan, err := installplan.Evolve(installplan.State{}, p)
	if err != nil {
		return err
	}
	cluster, namespace, _, err := f.Scope()
	if err != nil {
		return err
	}
	for _, b := range p.Bundles {
		for _, s := range b.Subscriptions {
			name := s[strings.LastIndex(s, "/")+1:]
			err := updateNamed(ctx, f, cluster, namespace, name,
				`current_csv = $5, plan_id = $6, plan_name = $7, plan_generation = $8, plan_phase = $9,
				plan_event = $10, plan_since = $11, updated = $11, missing_event = '', missing_since = null,
				plan_state = $12`,
				b.CSV, p.Plan, p.Name, p.Generation, string(plan.Phase), f.ID, f.Time, kept(plan))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// kept is a plan as its subscriptions keep it. What it installs is large, and no event of the plan changes it.
func kept(s installplan.State) installplan.State {
	s.Proposed.Bundles = nil
	return s
}

// planChanged folds any later event of a plan. Subscriptions that refer to another plan meanwhile keep nothing of it.
func planChanged(ctx context.Context, f readmodel.Fold) error {
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return err
	}
	var before installplan.State
	err = f.Tx.QueryRow(ctx, `select plan_state from `+f.Table(subscriptions)+
		` where tenant = $1 and cluster = $2 and namespace = $3 and plan_name = $4 limit 1`,
		f.Tenant, cluster, namespace, name).Scan(&before)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	after, err := installplan.Evolve(before, f.Payload)
	if err != nil {
		return err
	}
	set, args := `plan_state = $5`, []any{f.Tenant, cluster, namespace, name, after}
	if !sameShown(before, after) {
		set += `, updated = $7, plan_phase = $8, plan_event = $6, plan_since = $7,
			current_csv = case when $9 then installed_csv else current_csv end,
			missing_event = case when $9 then $6 when $10 then '' else missing_event end,
			missing_since = case when $9 then $7 when $10 then null else missing_since end`
		args = append(args, f.ID, f.Time, shownPhase(after), endedUnbegun(after), after.Begun)
	}
	return f.Exec(ctx, `update `+f.Table(subscriptions)+` set `+set+
		` where tenant = $1 and cluster = $2 and namespace = $3 and plan_name = $4`, args...)
}

// sameShown reports whether an event changed nothing that a subscription shows of its plan.
func sameShown(a, b installplan.State) bool {
	return a.Phase == b.Phase && a.Begun == b.Begun && a.Blocked == b.Blocked && a.Failure == b.Failure &&
		reflect.DeepEqual(a.Approval, b.Approval)
}

// endedUnbegun reports whether a plan ended before it was begun. The subscription has no target then, and waits for a
// plan that is missing (InstallPlanMissing) until resolution has another result or there is another plan (R-SUB-21).
func endedUnbegun(s installplan.State) bool {
	return s.Phase == installplan.Superseded || s.Phase == installplan.Rejected
}

// shownPhase is the phase of a plan as its subscriptions show it; "" where it is not shown. Which plan it was is kept,
// for a start that crossed its end.
func shownPhase(s installplan.State) string {
	if endedUnbegun(s) {
		return ""
	}
	return string(s.Phase)
}
