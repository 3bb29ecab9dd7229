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
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// subscriptionFolds folds subscriptions.
type subscriptionFolds struct{ dirty *dirtyScopes }

// eventOf is an event as decide folds it.
func eventOf(e eventlog.Recorded) decide.Event {
	return decide.Event{
		Subject: e.Subject, Incarnation: e.StreamID.Incarnation, Version: e.Version, Created: e.Position.N,
		Correlation: e.Correlation, Payload: e.Payload,
	}
}

// fold folds an event of a subscription. What a person asks for makes the scope dirty, at once; labels and
// outcomes do not.
func (f *subscriptionFolds) fold(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	cluster, namespace, name, err := splitSubject(e.Subject)
	if err != nil {
		return err
	}
	scope := resolution.Scope{Cluster: cluster, Namespace: namespace}
	before, err := readSubscription(ctx, tx, e.Tenant, scope, name)
	if err != nil {
		return err
	}
	if after := decide.EvolveSubscription(before, eventOf(e)); after != before {
		if err := putSubscription(ctx, tx, e, scope, before, after); err != nil {
			return err
		}
	}
	switch p := e.Payload.(type) {
	case events.SubscriptionReleased: // what was asked last holds
		return nil
	case events.SubscriptionMetadataChanged, events.ResolutionFailed, events.ResolutionSucceeded:
		return nil
	case events.SubscriptionCreated, events.SubscriptionPlaced:
		err = settle(ctx, tx, e.Tenant, scope)
	case events.SubscriptionGenerated:
		err = exec(ctx, tx, `update resolver.plans set settled = true where tenant = $1 and plan = $2`, e.Tenant,
			p.Plan)
	}
	if err != nil {
		return err
	}
	return f.dirty.markOwn(ctx, tx, scopeOf(e, cluster, namespace))
}

// readSubscription reads the row of a subscription; nil without one.
func readSubscription(ctx context.Context, tx pgx.Tx, tenant string, scope resolution.Scope, name string) (
	*decide.Subscription, error,
) {
	sub := decide.Subscription{Name: name}
	var spec, outcome, target json.RawMessage
	err := tx.QueryRow(ctx, `select incarnation, version, spec, created, correlation, installed_csv, outcome,
		rollback_from, rollback_to, owner, target
		from resolver.subscriptions where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
		tenant, scope.Cluster, scope.Namespace, name).
		Scan(&sub.Incarnation, &sub.Version, &spec, &sub.Created, &sub.Correlation, &sub.InstalledCSV, &outcome,
			&sub.Rollback.From, &sub.Rollback.To, &sub.Owner, &target)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read subscription %s of %s/%s: %w", name, scope.Cluster, scope.Namespace, pg.Err(err))
	}
	err = errors.Join(json.Unmarshal(spec, &sub.Spec), json.Unmarshal(outcome, &sub.Outcome),
		json.Unmarshal(target, &sub.Target))
	return &sub, errs.Wrap(errs.Internal, err, "read subscription %s of %s/%s", name, scope.Cluster, scope.Namespace)
}

// putSubscription writes what an event made of a row. A decision may write the row meanwhile, and further: its
// version guards it.
func putSubscription(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, scope resolution.Scope, before, after *decide.Subscription,
) error {
	key := []any{e.Tenant, scope.Cluster, scope.Namespace}
	if after == nil {
		return exec(ctx, tx, `delete from resolver.subscriptions
			where tenant = $1 and cluster = $2 and namespace = $3 and name = $4 and incarnation = $5`,
			append(key, before.Name, before.Incarnation)...)
	}
	if before != nil && before.Incarnation == after.Incarnation && before.Version == after.Version {
		return exec(ctx, tx, `update resolver.subscriptions set created = $6
			where tenant = $1 and cluster = $2 and namespace = $3 and name = $4 and incarnation = $5`,
			append(key, after.Name, after.Incarnation, after.Created)...)
	}
	args, err := subscriptionArgs(after)
	if err != nil {
		return err
	}
	_, generated := e.Payload.(events.SubscriptionGenerated)
	return exec(ctx, tx, putSubscriptionRow+` on conflict (tenant, cluster, namespace, name) do update
		set incarnation = excluded.incarnation, version = excluded.version, spec = excluded.spec,
		created = excluded.created, correlation = excluded.correlation,
		  installed_csv = excluded.installed_csv, outcome = excluded.outcome,
		  rollback_from = excluded.rollback_from, rollback_to = excluded.rollback_to, owner = excluded.owner,
		  target = excluded.target
		where (s.incarnation, s.version) < (excluded.incarnation, excluded.version)`, append(append(key, generated), args...)...)
}

// putSubscriptionRow inserts a row of tenant, cluster, namespace, whether it was generated, and subscriptionArgs.
const putSubscriptionRow = `insert into resolver.subscriptions as s
	(tenant, cluster, namespace, generated, name, incarnation, version, spec, created, correlation,
	  installed_csv, outcome, rollback_from, rollback_to, owner, target)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`

func subscriptionArgs(s *decide.Subscription) ([]any, error) {
	spec, err := encode(s.Spec)
	if err != nil {
		return nil, err
	}
	outcome, err := encode(s.Outcome)
	if err != nil {
		return nil, err
	}
	target := json.RawMessage(`{}`)
	if s.Target.CSV != "" {
		if target, err = encode(s.Target); err != nil {
			return nil, err
		}
	}
	return []any{
		s.Name, s.Incarnation, s.Version, spec, s.Created, s.Correlation, s.InstalledCSV, outcome, s.Rollback.From,
		s.Rollback.To, s.Owner, target,
	}, nil
}
