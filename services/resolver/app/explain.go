package app

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/suggestion"
	"github.com/chandler-fleet/chandler/services/resolver/why"
)

// ExplainSubject is where the resolver answers why a subscription resolves as it does, or why a plan is what it is.
const ExplainSubject = "chandler.rpc.resolver.explain"

// ExplainQuestion names one subscription of a namespace, or one install plan by its id.
type ExplainQuestion struct {
	Tenant       string `json:"tenant"`
	Cluster      string `json:"cluster,omitempty"`
	Namespace    string `json:"namespace,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	Plan         string `json:"plan,omitempty"`
}

// ExplainAnswer is a recorded decision, made again from its recorded input (DESIGN D5), and what would help now.
type ExplainAnswer struct {
	Recorded  Recorded `json:"recorded"`
	Input     string   `json:"input"` // digest of everything consulted
	Semantics string   `json:"semantics"`
	// Agrees says that the decision made again is what was recorded; otherwise Differences say what is not.
	Agrees      bool                `json:"agrees"`
	Differences []decide.Difference `json:"differences,omitempty"`
	// Component is what was made again, its input with it.
	Component resolution.Component `json:"component"`
	// Explanation is the recorded one of a failure; nil where it is not kept any more.
	Explanation *resolution.Explanation `json:"explanation,omitempty"`
	// Suggestions is what would help a failure, found on what holds now, not then.
	Suggestions *suggestion.Answer `json:"advice,omitempty"`
	// Why explains for each bundle of a live plan why it is not a newer one.
	Why []why.Answer `json:"why,omitempty"`
}

// Recorded is what the event says of the decision: an outcome of a subscription, or an install plan.
type Recorded struct {
	Outcome     string                 `json:"outcome"` // Planned, AtLatestKnown, Failed
	CSV         string                 `json:"csv,omitempty"`
	Reason      string                 `json:"reason,omitempty"`
	Explanation string                 `json:"explanation,omitempty"` // its digest
	Plan        string                 `json:"plan,omitempty"`        // id
	PlanName    string                 `json:"planName,omitempty"`
	Digest      string                 `json:"digest,omitempty"` // of the plan
	Bundles     []events.PlannedBundle `json:"bundles,omitempty"`
}

// explain answers a question by resolving the recorded input of the decision again.
func (w *worker) explain(ctx context.Context, question json.RawMessage) (any, error) {
	var q ExplainQuestion
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question")
	}
	if q.Plan != "" {
		return w.explainPlan(ctx, q)
	}
	return w.explainSubscription(ctx, q)
}

func (w *worker) explainSubscription(ctx context.Context, q ExplainQuestion) (*ExplainAnswer, error) {
	scope := resolution.Scope{Cluster: q.Cluster, Namespace: q.Namespace}
	o, err := w.store.History.Outcome(ctx, q.Tenant, scope, q.Subscription)
	if err != nil {
		return nil, err
	}
	if o.Input == "" {
		return nil, errs.New(errs.NotFound, "nothing was decided for subscription %s yet", q.Subscription)
	}
	a := &ExplainAnswer{Input: o.Input, Recorded: Recorded{
		Outcome: o.Kind, CSV: o.CSV, Reason: o.Reason,
		Explanation: o.Explanation, Plan: o.Plan,
	}}
	holds := func(c resolution.Component) bool { return slices.Contains(c.Subscriptions, q.Subscription) }
	if err := w.recompute(ctx, q.Tenant, a, holds); err != nil {
		return nil, err
	}
	if o.Kind == decide.OutcomeFailed {
		if a.Explanation, err = w.store.Documents.Explanation(ctx, q.Tenant, o.Explanation); err != nil {
			return nil, err
		}
		if a.Suggestions, err = w.suggest(ctx, q.Tenant, scope, q.Subscription); err != nil {
			return nil, err
		}
	}
	a.Differences, err = decide.CompareOutcome(o, a.Explanation, q.Subscription, a.Component)
	a.Agrees = len(a.Differences) == 0
	return a, err
}

func (w *worker) explainPlan(ctx context.Context, q ExplainQuestion) (*ExplainAnswer, error) {
	p, err := w.store.History.Plan(ctx, q.Tenant, q.Plan)
	if err != nil {
		return nil, err
	}
	e := p.State.Proposed
	a := &ExplainAnswer{Input: e.Input, Recorded: Recorded{
		Outcome: decide.OutcomePlanned, Plan: e.Plan,
		PlanName: e.Name, Digest: e.Digest, Bundles: e.Bundles,
	}}
	if err := w.recompute(ctx, q.Tenant, a, descriptions(e)...); err != nil {
		return nil, err
	}
	if a.Differences, err = decide.ComparePlan(e, p.Document, a.Component); err != nil {
		return nil, err
	}
	a.Agrees = len(a.Differences) == 0
	if p.State.Live() {
		a.Why, err = w.whyPlanned(ctx, q.Tenant, resolution.Scope{Cluster: e.Cluster, Namespace: e.Namespace},
			e.Bundles)
	}
	return a, err
}

// descriptions are which component a recorded plan may be, the likeliest first: a component of its very bundles, one
// that plans for some of its packages, one that cannot.
func descriptions(e events.InstallPlanProposed) []func(resolution.Component) bool {
	shares := func(c resolution.Component) bool {
		return slices.ContainsFunc(e.Bundles, func(b events.PlannedBundle) bool {
			return slices.Contains(
				c.Packages, b.Package)
		})
	}
	return []func(resolution.Component) bool{
		func(c resolution.Component) bool {
			return slices.EqualFunc(c.Bundles, e.Bundles,
				func(p resolution.Planned, b events.PlannedBundle) bool { return p.CSV == b.CSV })
		},
		func(c resolution.Component) bool { return len(c.Bundles) > 0 && shares(c) },
		shares,
	}
}

// recompute resolves the recorded input of an answer and gives it the component that is asked about, by the first
// description that fits one; none, which differs from whatever was recorded, where the input does not lead to such a
// one.
func (w *worker) recompute(ctx context.Context, tenant string, a *ExplainAnswer,
	mine ...func(resolution.Component) bool,
) error {
	record, err := w.store.Documents.Record(ctx, tenant, a.Input)
	if err != nil {
		return err
	}
	result, err := w.views.Recompute(ctx, tenant, record)
	if err != nil {
		return err
	}
	a.Semantics = result.Semantics
	for _, fits := range mine {
		if i := slices.IndexFunc(result.Components, fits); i >= 0 {
			a.Component = result.Components[i]
			return nil
		}
	}
	return nil
}
