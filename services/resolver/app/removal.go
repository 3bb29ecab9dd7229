package app

import (
	"context"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// removal says who depends on an installed operator, and what is decided once it and its subscriptions are gone.
func (p *previewer) removal(ctx context.Context, question json.RawMessage) (any, error) {
	var q previewapi.RemovalQuestion
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question")
	}
	if err := p.catchUp(ctx); err != nil {
		return nil, err
	}
	l, err := p.store.Scopes.Load(ctx, q.Tenant, resolution.Scope{Cluster: q.Cluster, Namespace: q.Namespace})
	if err != nil {
		return nil, err
	}
	out := previewapi.RemovalPreview{Dependants: l.Dependants(q.CSV)}
	about := previewapi.Question{Tenant: q.Tenant, Cluster: q.Cluster, Namespace: q.Namespace}
	in := q.Cluster + "/" + q.Namespace + "/"
	gone, err := previewapi.NewHypothesis(in+q.CSV, 1, events.CSVRemoved{Reason: "Uninstalled"})
	if err != nil {
		return nil, err
	}
	about.Hypotheses = append(about.Hypotheses, gone)
	for _, name := range q.Subscriptions {
		ends, err := previewapi.NewHypothesis(in+name, 1, events.SubscriptionDeleted{})
		if err != nil {
			return nil, err
		}
		about.Hypotheses = append(about.Hypotheses, ends)
	}
	_, out.After, err = p.previewScope(ctx, about, previewapi.Scope{Cluster: q.Cluster, Namespace: q.Namespace})
	for i := range out.After.Plans {
		// who is asked whether an operator may go does not read the steps of what comes
		out.After.Plans[i].Document = nil
	}
	return out, err
}
