package app

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/internal/catalogview"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/why"
)

// WhySubject is where the resolver answers why an operator is what it is, and not a newer one.
const WhySubject = "chandler.rpc.resolver.why"

// WhyQuestion names an operator of a namespace by its ClusterServiceVersion, its subscription or its package.
type WhyQuestion struct {
	Tenant    string `json:"tenant"`
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Operator  string `json:"operator"`
}

// why answers from what holds now. The answer is a why.Answer.
func (w *worker) why(ctx context.Context, question json.RawMessage) (any, error) {
	var q WhyQuestion
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question")
	}
	f, view, err := w.facts(ctx, q.Tenant, resolution.Scope{Cluster: q.Cluster, Namespace: q.Namespace})
	if err != nil {
		return nil, err
	}
	l, ok := why.Operator(f, q.Operator)
	if err := view.Err(); err != nil {
		return nil, err
	}
	if !ok {
		return nil, errs.New(errs.NotFound, "there is no operator, subscription or package %s in %s/%s", q.Operator,
			q.Cluster, q.Namespace)
	}
	return l, nil
}

// whyPlanned explains the bundles of a live plan; none where the namespace resolves to others by now.
func (w *worker) whyPlanned(ctx context.Context, tenant string, scope resolution.Scope,
	bundles []events.PlannedBundle,
) ([]why.Answer, error) {
	f, view, err := w.facts(ctx, tenant, scope)
	if err != nil {
		return nil, err
	}
	var out []why.Answer
	for _, c := range f.Result.Components {
		if slices.EqualFunc(c.Bundles, bundles,
			func(p resolution.Planned, b events.PlannedBundle) bool { return p.CSV == b.CSV }) {
			out = append(out, why.Plan(f, c)...)
		}
	}
	return out, view.Err()
}

// facts are those of a scope as it is now. The view answers later questions of the answers, too: its Err is to be
// asked when these are made.
func (w *worker) facts(ctx context.Context, tenant string, scope resolution.Scope) (
	why.Facts, *catalogview.View, error,
) {
	l, err := w.store.Scopes.Load(ctx, tenant, scope)
	if err != nil {
		return why.Facts{}, nil, err
	}
	c, err := w.evaluate(ctx, l)
	if err != nil {
		return why.Facts{}, nil, err
	}
	view := w.views.View(ctx, tenant, pinned(visible(l.Catalogs), l.Subscriptions))
	return why.Facts{
		State: l.State, Input: l.Input(view), Result: c.result, Verdicts: c.verdicts, Now: time.Now(),
		Stop: ended(ctx),
	}, view, nil
}

// ended asks whether nobody waits any more.
func ended(ctx context.Context) func() bool { return func() bool { return ctx.Err() != nil } }
