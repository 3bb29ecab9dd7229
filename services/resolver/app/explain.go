package app

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// ExplainSubject is where the resolver answers why a subscription resolves as it does.
const ExplainSubject = "chandler.ask.resolver.explain"

// ExplainQuestion names one subscription.
type ExplainQuestion struct {
	Tenant       string `json:"tenant"`
	Cluster      string `json:"cluster"`
	Namespace    string `json:"namespace"`
	Subscription string `json:"subscription"`
}

// ExplainAnswer is the recorded decision, made again from its recorded input.
type ExplainAnswer struct {
	Input     string            `json:"input"` // digest of everything consulted
	Semantics string            `json:"semantics"`
	Component resolve.Component `json:"component"`
}

// explain answers a question by resolving the recorded input of the subscription's last decision again.
func (w *worker) explain(ctx context.Context, question json.RawMessage) (any, error) {
	var q ExplainQuestion
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question")
	}
	scope := resolve.Scope{Cluster: q.Cluster, Namespace: q.Namespace}
	outcome, err := w.store.Subscription(ctx, q.Tenant, scope, q.Subscription)
	if err != nil {
		return nil, err
	}
	if outcome.Input == "" {
		return nil, errs.New(errs.NotFound, "nothing was decided for subscription %s yet", q.Subscription)
	}
	record, err := w.store.Record(ctx, q.Tenant, outcome.Input)
	if err != nil {
		return nil, err
	}
	view := w.views.Replay(ctx, q.Tenant, record)
	result := resolve.Resolve(record.Input(view))
	if err := view.Err(); err != nil {
		return nil, err
	}
	for _, c := range result.Components {
		if slices.Contains(c.Subscriptions, q.Subscription) {
			return ExplainAnswer{Input: outcome.Input, Semantics: result.Semantics, Component: c}, nil
		}
	}
	return nil, errs.New(errs.Internal, "the recorded input of subscription %s does not hold it", q.Subscription)
}
