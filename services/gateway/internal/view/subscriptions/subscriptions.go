package subscriptions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/content"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operators"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// Places are the columns by which a subscription s lies in a scope: its catalog is the one that it names.
var Places = readmodel.Places{
	Cluster: "s.cluster", Namespace: "s.namespace",
	Catalog: "case when s.catalog_namespace = '' then s.catalog else s.catalog_namespace || '/' || s.catalog end",
}

// CatalogPlaces are where the catalog lies that a subscription s names.
var CatalogPlaces = readmodel.Places{
	Cluster: "case when s.catalog_namespace = '' then '' else s.cluster end", Namespace: "s.catalog_namespace",
	Catalog: Places.Catalog, OpenToAll: true,
}

// Reader answers queries about subscriptions.
type Reader struct {
	Pool    *pg.Pool
	Content *content.Reader
	Bodies  *readmodel.Bodies // for configurations and annotations
}

// List returns subscriptions by cluster, namespace and name.
func (r *Reader) List(
	ctx context.Context, who model.Caller, f model.SubscriptionFilter,
) (items []model.Subscription, next []string, err error) {
	w := readmodel.Tenant("s.tenant", who.Tenant)
	w.Within(who, access.List, access.Subscriptions, Places)
	w.Equal("s.cluster", f.Cluster)
	w.Equal("s.namespace", f.Namespace)
	w.Equal("s.package", f.Package)
	w.Equal("s.catalog", f.Catalog)
	w.Equal("coalesce(v.phase, '')", f.Phase)
	if err := w.Label("s.labels", f.Label); err != nil {
		return nil, nil, err
	}
	if f.Approval != "" {
		w.Add("coalesce(nullif(s.approval, ''), 'Automatic') = ?", f.Approval)
	}
	// The page begins where its rows are read.
	if err := listing.Narrow(&w, who, f.Choice, nil); err != nil {
		return nil, nil, err
	}
	byCondition := addState(&w, f.State)
	err = r.Pool.TenantRead(ctx, who.Tenant, func(q pg.Querier) error {
		if err := operators.AddVersions(ctx, q, &w, installedVersion, who.Tenant, f.Version); err != nil {
			return err
		}
		items, next, err = page(ctx, q, w, f, byCondition)
		return err
	})
	return items, next, err
}

// addState adds the state that is shown, as far as SQL can say it. byCondition is true where a condition stands for the
// state: conditions follow from the whole row, and only subscriptions without a state are asked for them.
func addState(w *readmodel.Where, state string) (byCondition bool) {
	switch state {
	case "":
		return false
	case model.StateAtLatestKnown:
		w.Equal(shownState, state)
		return false
	case model.StateUpgradeFailed:
		w.Equal(shownState, state)
		return false
	case model.StateUpgradePending:
		w.Equal(shownState, state)
		w.Add("s.current_csv <> s.installed_csv") // what the state implies, in the words of an index
		return false
	case model.StateUpgradeAvailable:
		w.Add(UpgradeAvailable)
		return false
	case model.StateRequiresApproval:
		w.Add(RequiresApproval)
		return false
	case model.StateFailing:
		w.Add("(" + DoesNotGoOn + " or coalesce(v.phase, '') = 'Failed')")
		return false
	case model.StateDeprecated:
		w.Add(Deprecated)
		return false
	default:
		w.Add(shownState + " = ''")
		return true
	}
}

// page reads one page in the order of the key. Where a condition chooses, it reads on until the page is full.
func page(
	ctx context.Context, q pg.Querier, w readmodel.Where, f model.SubscriptionFilter, byCondition bool,
) (items []model.Subscription, next []string, err error) {
	var last row
	for after := f.After; ; {
		from := w.Clone()
		if err := listing.After(&from, f.Sort, after); err != nil {
			return nil, nil, err
		}
		rows, more, err := readmodel.Page[row](ctx, q, columns, from, listing.OrderBy(f.Sort), f.Limit)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range rows {
			s := r.answer()
			if byCondition && s.ShownState() != f.State {
				continue
			}
			if len(items) == f.Limit {
				return items, listing.Next(f.Sort, last), nil
			}
			items, last = append(items, s), r
		}
		switch {
		case !more:
			return items, nil, nil
		case !byCondition:
			return items, listing.Next(f.Sort, last), nil
		}
		after = listing.Next(f.Sort, rows[len(rows)-1])
	}
}

// Get returns one subscription with its configuration and, where it does not resolve, why.
func (r *Reader) Get(
	ctx context.Context, who model.Caller, cluster, namespace, name string,
) (s model.Subscription, err error) {
	w := readmodel.Tenant("s.tenant", who.Tenant)
	w.Add("s.cluster = ? and s.namespace = ? and s.name = ?", cluster, namespace, name)
	w.Within(who, access.Get, access.Subscriptions, Places)
	err = r.Pool.TenantRead(ctx, who.Tenant, func(q pg.Querier) error {
		x, err := readmodel.One[row](ctx, q, columns, w,
			errs.New(errs.NotFound, "no subscription %q exists in namespace %q of cluster %q", name, namespace,
				cluster))
		if err != nil {
			return err
		}
		s = x.answer()
		if err := r.addBodies(ctx, q, who.Tenant, x, &s); err != nil {
			return err
		}
		if s.Status.CatalogHealth, err = catalogHealth(ctx, q, who.Tenant, cluster, namespace); err != nil {
			return err
		}
		if !who.May(access.Update, access.Subscriptions, access.Target{
			Cluster: cluster, Namespace: namespace, Catalog: access.CatalogName(x.CatalogNamespace, x.Catalog),
		}) {
			s.Spec.Config = subscription.HideValues(s.Spec.Config)
		}
		deprecations, err := r.deprecations(ctx, q, who.Tenant, x)
		s.Status.Conditions = append(s.Status.Conditions, deprecations...)
		return err
	})
	return s, err
}

// addBodies adds what stands outside the log: configuration, annotations, and the explanation of a failure.
func (r *Reader) addBodies(ctx context.Context, q pg.Querier, tenant string, x row, s *model.Subscription) (err error) {
	opened, err := r.Bodies.Read(ctx, q, tenant, x.Config, x.Annotations)
	if err != nil {
		return err
	}
	s.Spec.Config = opened.Text(x.Config, model.PartConfig, &s.Unreadable)
	if err := opened.Annotations(x.Annotations, &s.Metadata, &s.Unreadable); err != nil {
		return err
	}
	if s.Status.Explanation == nil {
		return nil
	}
	s.Status.Explanation.Document, err = readmodel.Document(ctx, q,
		`select document::text from resolver_api.explanations where tenant = $1 and digest = $2`, tenant,
		x.FailedDocument)
	if err == nil {
		explain(&s.Status, failureType(x.FailedReason))
	}
	return err
}

// explain puts the sentences of the explanation into the condition, which people read first.
func explain(status *model.SubscriptionStatus, condition string) {
	sentences := strings.Join(status.Explanation.Sentences(), "; ")
	if sentences == "" {
		return
	}
	for i := range status.Conditions {
		if status.Conditions[i].Type == condition {
			status.Conditions[i].Message = sentences
		}
	}
}

// maxPast bounds how far back a rollback leads: no operator can still read the data of versions before that.
const maxPast = 20

// Past is what a subscription has installed and what it had before, as far as finished plans lead back. Where a
// rollback led to is not left by it again: what counts is what each version had replaced when it came.
func (r *Reader) Past(ctx context.Context, q pg.Querier, tenant string, name subscription.Name) (model.Past, error) {
	var p model.Past
	err := pg.Err(q.QueryRow(ctx, `select installed_csv from subscriptions where tenant = $1 and cluster = $2
		and namespace = $3 and name = $4`,
		tenant, name.Cluster, name.Namespace, name.Name).Scan(&p.CSV))
	if errs.Is(err, errs.NotFound) {
		return p, nil
	}
	for at := p.CSV; err == nil && at != "" && len(p.Before) < maxPast; {
		err = pg.Err(q.QueryRow(ctx, `select coalesce(max(b ->> 'replaces'), '') from (select p.bundles
			from installplans p
			where p.tenant = $1 and p.cluster = $2 and p.namespace = $3 and p.phase = 'Complete'
			and p.bundles @> jsonb_build_array(jsonb_build_object('csv', $4::text))
			and not p.bundles @> jsonb_build_array(jsonb_build_object('csv', $4::text, 'reason', 'Rollback'))
			order by p.epoch desc, p.position desc limit 1) newest, jsonb_array_elements(newest.bundles) b
			where b ->> 'csv' = $4`,
			tenant, name.Cluster, name.Namespace, at).Scan(&at))
		if at == "" || slices.Contains(p.Before, at) || at == p.CSV {
			break
		}
		p.Before = append(p.Before, at)
	}
	return p, err
}

// Subscribers names the subscriptions that want an operator: it is what they have or are to have, or it is of their
// package.
func (r *Reader) Subscribers(
	ctx context.Context, q pg.Querier, tenant, cluster, namespace, csv, packageName string,
) ([]string, error) {
	rows, err := q.Query(ctx, `select name from subscriptions where tenant = $1 and cluster = $2
		and namespace = $3
		and ($4 in (installed_csv, current_csv) or package = $5) order by name`, tenant, cluster, namespace, csv, packageName)
	if err != nil {
		return nil, pg.Err(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return names, pg.Err(err)
}

// catalogHealth is how each catalog does that the subscription's namespace sees (R-SUB §4.3).
func catalogHealth(
	ctx context.Context, q pg.Querier, tenant, cluster, namespace string,
) ([]model.CatalogSourceHealth, error) {
	rows, err := q.Query(ctx, `select c.name, c.namespace, coalesce(h.state, c.state), coalesce(h.reason, ''),
		coalesce(h.event_id, ''), coalesce(h.since, c.added)
		from (select $1::text as tenant, $2::text as cluster, $3::text as namespace) s
		join catalogs c on `+visibleCatalogs+`
		left join clusters k on k.tenant = s.tenant and k.name = s.cluster
		left join lateral (select h.state, h.reason, h.event_id, h.since from subscription_catalogs h
		where h.tenant = c.tenant and h.subject = c.subject and `+seenVariant+`
			order by h.variant = '' limit 1) h on true
		order by c.cluster, c.namespace, c.name`, tenant, cluster, namespace)
	if err != nil {
		return nil, fmt.Errorf("read the health of catalogs: %w", pg.Err(err))
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (h model.CatalogSourceHealth, err error) {
		err = r.Scan(&h.Catalog, &h.Namespace, &h.State, &h.Reason, &h.Event, &h.Since)
		h.Healthy = h.State == model.CatalogReady
		return h, err
	})
	return list, err
}
