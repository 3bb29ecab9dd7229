package app

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// KeptPlans is the store's, Retention the least that may be set, for tests of the whole.
const (
	KeptPlans = store.KeptPlans
	Retention = service.LeastRetention
)

// Settle sets how long what a catalog's change touches waits for further changes.
func (a *App) Settle(d time.Duration) { a.lanes.Settle = d }

// Wake lets the workers look for dirty scopes at once.
func (a *App) Wake() { a.lanes.Wake() }

// Sample looks at a whole night's sample.
func (a *App) Sample(ctx context.Context, night time.Time) error {
	return (&sampler{worker: a.worker, now: func() time.Time { return night }}).turn(ctx, sampleSize)
}

// Sweep collects as of now, with the shortest retention that may be set.
func (a *App) Sweep(ctx context.Context, now time.Time) error {
	return a.SweepBy(ctx, service.Retention{Keep: Retention}, now)
}

// SweepBy collects as of now by a retention.
func (a *App) SweepBy(ctx context.Context, r service.Retention, now time.Time) error {
	return (&collector{worker: a.worker, retention: r, now: func() time.Time { return now }}).sweep(ctx)
}

// Recompute makes a recorded decision again from its stored input and says in what it differs; decided is false for
// other events.
func (a *App) Recompute(ctx context.Context, e eventlog.Recorded) (
	differences []decide.Difference, decided bool, err error,
) {
	switch p := e.Payload.(type) {
	case events.InstallPlanProposed:
		plan, err := a.worker.store.History.Plan(ctx, e.Tenant, p.Plan)
		if err != nil {
			return nil, true, err
		}
		answer := ExplainAnswer{Input: p.Input}
		err = a.worker.recompute(ctx, e.Tenant, &answer,
			func(c resolution.Component) bool { return c.Name == p.Component })
		if err != nil {
			return nil, true, err
		}
		differences, err = decide.ComparePlan(p, plan.Document, answer.Component)
		return differences, true, err
	case events.ResolutionSucceeded:
		differences, err = a.outcomeAgain(ctx, e, decide.Outcome{
			Kind: p.Outcome, CSV: p.CSV, Plan: p.Plan,
			Input: p.Input,
		})
		return differences, true, err
	case events.ResolutionFailed:
		differences, err = a.outcomeAgain(ctx, e, decide.Outcome{
			Kind: decide.OutcomeFailed, Reason: p.Reason,
			Explanation: p.Explanation, Input: p.Input,
		})
		return differences, true, err
	}
	return nil, false, nil
}

func (a *App) outcomeAgain(ctx context.Context, e eventlog.Recorded, o decide.Outcome) ([]decide.Difference, error) {
	sub := e.Subject[strings.LastIndex(e.Subject, "/")+1:]
	answer := ExplainAnswer{Input: o.Input}
	if err := a.worker.recompute(ctx, e.Tenant, &answer,
		func(c resolution.Component) bool { return slices.Contains(c.Subscriptions, sub) }); err != nil {
		return nil, err
	}
	var explained *resolution.Explanation
	var err error
	if o.Explanation != "" {
		if explained, err = a.worker.store.Documents.Explanation(ctx, e.Tenant, o.Explanation); err != nil {
			return nil, err
		}
	}
	return decide.CompareOutcome(o, explained, sub, answer.Component)
}

// Rendering has plans rendered as another release does.
func (a *App) Rendering(v *render.Versions) { a.worker.rendering = v }

// Making is what rebuilds make of the tables.
func (a *App) Making() projection.Making { return a.rebuilds.Makings[0] }
