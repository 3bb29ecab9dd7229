package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// Decided is what was recorded of one subscription.
type Decided struct {
	Scope        resolve.Scope
	Subscription string
	Outcome      decide.Outcome
}

// Decisions narrows recorded decisions; an empty cluster or namespace is all.
type Decisions struct{ Tenant, Cluster, Namespace string }

// LastDecisions reads at most limit subscriptions behind one, by cluster, namespace and name, with what was last
// decided for each.
func (s *Store) LastDecisions(ctx context.Context, d Decisions, after [3]string, limit int) ([]Decided, error) {
	rows, err := s.pool.Query(ctx, `select cluster, namespace, name, outcome from resolver.subscriptions
		where tenant = $1 and $2 in ('', cluster) and $3 in ('', namespace) and coalesce(outcome ->> 'input', '') <> ''
		  and (cluster collate "C", namespace collate "C", name collate "C") > ($4, $5, $6)
		order by cluster collate "C", namespace collate "C", name collate "C" limit $7`,
		d.Tenant, d.Cluster, d.Namespace, after[0], after[1], after[2], limit)
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

// DecisionsAfter reads decisions about subscriptions from the log behind a position, and the position up to which the
// log was looked at; at is that of each decision.
func (s *Store) DecisionsAfter(ctx context.Context, d Decisions, after events.Position, limit int) (list []Decided, at []events.Position, scanned events.Position, err error) {
	recorded, scanned, err := s.log.ReadAfter(ctx, s.pool, after, eventlog.Filter{
		Tenant: d.Tenant, Kinds: []events.Kind{events.KindSubscription},
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
		if d.Cluster != "" && x.Scope.Cluster != d.Cluster || d.Namespace != "" && x.Scope.Namespace != d.Namespace {
			continue
		}
		switch p := e.Payload.(type) {
		case events.ResolutionFailed:
			x.Outcome = decide.Outcome{Kind: decide.OutcomeFailed, Reason: p.Reason, Explanation: p.Explanation, Input: p.Input}
		case events.ResolutionSucceeded:
			x.Outcome = decide.Outcome{Kind: p.Outcome, CSV: p.CSV, Plan: p.Plan, Input: p.Input}
		default:
			return nil, nil, after, errs.New(errs.Internal, "%s is no decision about a subscription", e.Type)
		}
		list, at = append(list, x), append(at, e.Position)
	}
	return list, at, scanned, nil
}

// Checkpoint is how far a consumer has read the log.
func (s *Store) Checkpoint(ctx context.Context, consumer string) (at events.Position, err error) {
	err = s.pool.QueryRow(ctx, `select epoch, position from eventlog.checkpoints where consumer = $1 and tenant = $2`, consumer, events.AllTenants).Scan(&at.Epoch, &at.N)
	if errors.Is(err, pgx.ErrNoRows) { // it has not begun
		return at, nil
	}
	if err != nil {
		return at, fmt.Errorf("read the checkpoint of %s: %w", consumer, pg.Err(err))
	}
	return at, nil
}

// LogHead is the position of the newest event.
func (s *Store) LogHead(ctx context.Context) (events.Position, error) { return s.log.Head(ctx, s.pool) }
