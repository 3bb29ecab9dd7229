package subscriptions

import (
	"context"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
)

// updatePlan changes the subscriptions that refer to the plan; $5 is the event, $6 its time, arguments count from $7.
func updatePlan(ctx context.Context, f readmodel.Fold, set string, args ...any) error {
	cluster, namespace, name, err := f.Scope()
	if err != nil {
		return err
	}
	return f.Exec(ctx, `update `+f.Table(subscriptions)+` set updated = $6, `+set+
		` where tenant = $1 and cluster = $2 and namespace = $3 and plan_name = $4`,
		append([]any{f.Tenant, cluster, namespace, name, f.ID, f.Time}, args...)...)
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
				`current_csv = $5, plan_id = $6, plan_name = $7, plan_generation = $8, plan_phase = $9, plan_reason = '',
				plan_event = $10, plan_since = $11, updated = $11, missing_event = '', missing_since = null,
				plan_approval = $12, plan_begun = false, plan_expires = null, plan_windows = $13`,
				b.CSV, p.Plan, p.Name, p.Generation, string(plan.Phase), f.ID, f.Time, p.Approval,
				append([]events.WindowGroup{}, p.Windows...))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func planSuperseded(ctx context.Context, f readmodel.Fold, _ events.InstallPlanSuperseded) error {
	return planEnded(ctx, f)
}

func planRejected(ctx context.Context, f readmodel.Fold, _ events.InstallPlanRejected) error {
	return planEnded(ctx, f)
}

// planEnded clears the reference and the target of a plan that ended before it was begun, and resolution runs again
// (R-SUB-21); until that has another result, or another plan is there, the subscription waits for one that is missing
// (InstallPlanMissing). A plan without a phase is not shown; which one it was is kept for a start that crossed this.
func planEnded(ctx context.Context, f readmodel.Fold) error {
	return updatePlan(ctx, f, `plan_phase = '', plan_reason = '', plan_event = $5, plan_since = $6,
		current_csv = installed_csv, missing_event = $5, missing_since = $6`)
}

func planApproved(ctx context.Context, f readmodel.Fold, p events.InstallPlanApproved) error {
	return updatePlan(ctx, f,
		`plan_phase = 'Installing', plan_reason = '', plan_event = $5, plan_since = $6, plan_expires = $7`, p.Expires)
}

func planStarted(ctx context.Context, f readmodel.Fold, _ events.InstallPlanStarted) error {
	return updatePlan(ctx, f,
		`plan_phase = 'Installing', plan_reason = '', plan_event = $5, plan_since = $6, plan_begun = true,
		missing_event = '', missing_since = null`)
}

func planBlocked(ctx context.Context, f readmodel.Fold, p events.InstallPlanBlocked) error {
	return updatePlan(ctx, f, `plan_reason = $7, plan_event = $5, plan_since = $6`, p.Reason)
}

func planFinished(ctx context.Context, f readmodel.Fold, _ events.InstallPlanFinished) error {
	return updatePlan(ctx, f, `plan_phase = 'Complete', plan_reason = '', plan_event = $5, plan_since = $6`)
}

func planFailed(ctx context.Context, f readmodel.Fold, p events.InstallPlanFailed) error {
	return updatePlan(ctx, f, `plan_phase = 'Failed', plan_reason = $7, plan_event = $5, plan_since = $6`, p.Reason)
}
