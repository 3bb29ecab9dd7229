package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// History reads what was decided, from the tables or from the log.
type History struct {
	pool *pg.Pool
	log  *eventlog.Log
}

// Outcome reads what was last recorded of one subscription.
func (h *History) Outcome(ctx context.Context, tenant string, scope resolution.Scope, name string) (
	decide.Outcome, error,
) {
	var o decide.Outcome
	var raw json.RawMessage
	err := h.pool.QueryRow(ctx, `select outcome from resolver.subscriptions where tenant = $1 and cluster = $2
		and namespace = $3 and name = $4`,
		tenant, scope.Cluster, scope.Namespace, name).Scan(&raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return o, errs.New(errs.NotFound, "there is no subscription %s in %s/%s", name, scope.Cluster, scope.Namespace)
	}
	if err != nil {
		return o, pg.Err(err)
	}
	err = json.Unmarshal(raw, &o)
	return o, errs.Wrap(errs.Internal, err, "read the outcome of %s", name)
}

// Planned is an install plan with its document; nil where that was collected.
type Planned struct {
	State    installplan.State
	Document *installplan.Document
}

// Plan reads an install plan by its id; one that was collected, from the record.
func (h *History) Plan(ctx context.Context, tenant, id string) (Planned, error) {
	var p Planned
	var state, document []byte
	err := h.pool.QueryRow(ctx, `select p.state, d.document from resolver.plans p
		left join resolver.plan_documents d on d.tenant = p.tenant and d.plan = p.plan
		where p.tenant = $1 and p.plan = $2`, tenant, id).Scan(&state, &document)
	if errors.Is(err, pgx.ErrNoRows) {
		p.State, err = h.recordedPlan(ctx, tenant, id)
		return p, err
	}
	if err != nil {
		return p, pg.Err(err)
	}
	if document != nil {
		p.Document = new(installplan.Document)
		err = json.Unmarshal(document, p.Document)
	}
	return p, errs.Wrap(errs.Internal, errors.Join(err, json.Unmarshal(state, &p.State)), "read install plan %s", id)
}

// recordedPlan folds a plan from its stream; errs.NotFound without one.
func (h *History) recordedPlan(ctx context.Context, tenant, id string) (installplan.State, error) {
	stream := events.StreamID{
		Kind: events.KindInstallPlan, Key: events.Key(tenant, events.KindInstallPlan, id),
		Incarnation: 1,
	}
	life, err := h.log.ReadStream(ctx, h.pool, tenant, stream, 0)
	if err == nil && len(life) == 0 {
		err = errs.New(errs.NotFound, "there is no install plan %s", id)
	}
	if err != nil {
		return installplan.State{}, err
	}
	_, _, state, err := foldPlan(life, math.MaxInt64)
	return state, errs.Wrap(errs.Internal, err, "fold plan %s", id)
}

// Decided is what was recorded of one subscription.
type Decided struct {
	Scope        resolution.Scope
	Subscription string
	Outcome      decide.Outcome
}

// DecisionFilter narrows recorded decisions; an empty cluster or namespace is all.
type DecisionFilter struct{ Tenant, Cluster, Namespace string }

// Last reads at most limit subscriptions behind one, by cluster, namespace and name as the table's key orders
// them, with what was last decided for each.
func (h *History) Last(ctx context.Context, f DecisionFilter, after [3]string, limit int) ([]Decided, error) {
	rows, err := h.pool.Query(ctx, `select cluster, namespace, name, outcome from resolver.subscriptions
		where tenant = $1 and $2 in ('', cluster) and $3 in ('', namespace) and coalesce(outcome ->> 'input', '') <> ''
		  and (cluster, namespace, name) > ($4, $5, $6)
		order by cluster, namespace, name limit $7`,
		f.Tenant, f.Cluster, f.Namespace, after[0], after[1], after[2], limit)
	if err != nil {
		return nil, fmt.Errorf("read recorded decisions: %w", pg.Err(err))
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (x Decided, err error) {
		var outcome json.RawMessage
		if err := r.Scan(&x.Scope.Cluster, &x.Scope.Namespace, &x.Subscription, &outcome); err != nil {
			return x, err
		}
		return x, json.Unmarshal(outcome, &x.Outcome)
	})
	if err != nil {
		return nil, fmt.Errorf("read recorded decisions: %w", pg.Err(err))
	}
	return list, nil
}

// After reads decisions about subscriptions from the log behind a position, and the position up to which the
// log was read; at is that of each decision.
func (h *History) After(ctx context.Context, f DecisionFilter, after events.Position, limit int) (
	list []Decided, at []events.Position, scanned events.Position, err error,
) {
	recorded, scanned, err := h.log.ReadAfter(ctx, h.pool, after, eventlog.Filter{
		Tenant: f.Tenant, Kinds: []events.Kind{events.KindSubscription},
		Types: []events.Type{events.ResolutionFailed{}.EventType(), events.ResolutionSucceeded{}.EventType()},
	}, limit)
	if err != nil {
		return nil, nil, after, err
	}
	for _, e := range recorded {
		x := Decided{}
		if x.Scope.Cluster, x.Scope.Namespace, x.Subscription, err = splitSubject(e.Subject); err != nil {
			return nil, nil, after, err
		}
		if f.Cluster != "" && x.Scope.Cluster != f.Cluster || f.Namespace != "" && x.Scope.Namespace != f.Namespace {
			continue
		}
		switch p := e.Payload.(type) {
		case events.ResolutionFailed:
			x.Outcome = decide.Outcome{
				Kind: decide.OutcomeFailed, Reason: p.Reason, Explanation: p.Explanation,
				Input: p.Input,
			}
		case events.ResolutionSucceeded:
			x.Outcome = decide.Outcome{Kind: p.Outcome, CSV: p.CSV, Plan: p.Plan, Input: p.Input}
		default:
			return nil, nil, after, errs.New(errs.Internal, "%s is no decision about a subscription", e.Type)
		}
		list, at = append(list, x), append(at, e.Position)
	}
	return list, at, scanned, nil
}

// Head is the position of the newest event.
func (h *History) Head(ctx context.Context) (events.Position, error) { return h.log.Head(ctx, h.pool) }
