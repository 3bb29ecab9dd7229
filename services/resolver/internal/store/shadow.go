package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Decided is what was recorded of one subscription.
type Decided struct {
	Scope        resolution.Scope
	Subscription string
	Outcome      decide.Outcome
}

// Decisions narrows recorded decisions; an empty cluster or namespace is all.
type Decisions struct{ Tenant, Cluster, Namespace string }

// LastDecisions reads at most limit subscriptions behind one, by cluster, namespace and name as the table's key orders
// them, with what was last decided for each.
func (s *Store) LastDecisions(ctx context.Context, d Decisions, after [3]string, limit int) ([]Decided, error) {
	rows, err := s.pool.Query(ctx, `select cluster, namespace, name, outcome from resolver.subscriptions
		where tenant = $1 and $2 in ('', cluster) and $3 in ('', namespace) and coalesce(outcome ->> 'input', '') <> ''
		  and (cluster, namespace, name) > ($4, $5, $6)
		order by cluster, namespace, name limit $7`,
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
func (s *Store) DecisionsAfter(ctx context.Context, d Decisions, after events.Position, limit int) (
	list []Decided, at []events.Position, scanned events.Position, err error,
) {
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

// Known refuses hypotheses that would be answered "nothing changes" because what they are about is not there: a catalog
// that is misspelt, disabled or not offered to the cluster and namespace that the question is narrowed to, a revision
// that is not stored, an operator that is not installed. field is the place in the question.
func (s *Store) Known(ctx context.Context, tenant string, narrow previewapi.Scope, field string,
	list []previewapi.Hypothesis,
) error {
	for _, h := range list {
		p, err := h.Payload()
		if err != nil {
			return err
		}
		switch p := p.(type) {
		case events.CatalogRevisionPublished:
			err = cmp.Or(s.knownCatalog(ctx, tenant, narrow, field, h.Subject, enabled(h.Subject, list)),
				s.knownRevision(ctx, tenant, field, p.Revision))
		case events.CatalogChanged, events.CatalogRemoved:
			err = s.knownCatalog(ctx, tenant, narrow, field, h.Subject, true)
		case events.CSVRemoved:
			err = s.knownOperator(ctx, tenant, field, h.Subject)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enabled says whether a catalog is supposed to be enabled.
func enabled(subject string, list []previewapi.Hypothesis) bool {
	return slices.ContainsFunc(list, func(h previewapi.Hypothesis) bool {
		p, err := h.Payload()
		change, is := p.(events.CatalogChanged)
		return err == nil && is && h.Subject == subject && !change.Disabled
	})
}

// knownCatalog wants a catalog to be there and to be offered; evenDisabled is for what is said of one that is not.
func (s *Store) knownCatalog(ctx context.Context, tenant string, narrow previewapi.Scope, field, subject string,
	evenDisabled bool,
) error {
	var disabled bool
	var cluster, namespace string
	err := s.pool.QueryRow(ctx, `select disabled, visibility_cluster, visibility_namespace from resolver.catalogs
		where tenant = $1 and subject = $2`, tenant, subject).
		Scan(&disabled, &cluster, &namespace)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return errs.New(errs.NotFound, "there is no catalog %s", subject).At(field, "catalog-known")
	case err != nil:
		return fmt.Errorf("read catalog %s: %w", subject, pg.Err(err))
	case disabled && !evenDisabled:
		return errs.New(errs.Unprocessable, "catalog %s is disabled", subject).At(field, "catalog-offered")
	case !offered(cluster, narrow.Cluster), !offered(namespace, narrow.Namespace):
		return errs.New(errs.Unprocessable, "catalog %s is visible in %s/%s alone, which the question leaves out",
			subject, cluster, cmp.Or(namespace, "*")).
			At(field, "catalog-offered")
	}
	return nil
}

// offered says whether what a catalog is offered to may be what a question is narrowed to; "" is all.
func offered(to, narrow string) bool { return to == "" || narrow == "" || to == narrow }

func (s *Store) knownRevision(ctx context.Context, tenant, field, revision string) error {
	return s.exists(ctx, errs.New(errs.NotFound, "catalog revision %s is not stored, or is empty", revision).At(
		field, "revision-known"),
		`select exists (select from catalog_api.revision_packages where tenant = $1 and revision = $2)`, tenant,
		revision)
}

func (s *Store) knownOperator(ctx context.Context, tenant, field, subject string) error {
	cluster, namespace, name, err := splitSubject(subject)
	if err != nil {
		return err
	}
	return s.exists(ctx, errs.New(errs.NotFound, "no operator %s is installed in %s/%s", name, cluster, namespace).At(
		field, "operator-known"),
		`select exists (select from resolver.installed where tenant = $1 and cluster = $2 and namespace = $3
			and name = $4)`, tenant, cluster, namespace, name)
}

// exists returns missing where a query says no.
func (s *Store) exists(ctx context.Context, missing error, query string, args ...any) error {
	var there bool
	if err := s.pool.QueryRow(ctx, query, args...).Scan(&there); err != nil {
		return fmt.Errorf("look for what a question is about: %w", pg.Err(err))
	}
	if there {
		return nil
	}
	return missing
}

// Checkpoint is how far a consumer has read the log.
func (s *Store) Checkpoint(ctx context.Context, consumer string) (at events.Position, err error) {
	err = s.pool.QueryRow(ctx, `select epoch, position from eventlog.checkpoints where consumer = $1 and tenant = $2`,
		consumer, events.AllTenants).Scan(&at.Epoch, &at.N)
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
