package view

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// shownState is the table of R-SUB §4.3 in SQL. It says how far the subscription got, and nothing of how that does: the phase
// of what is installed stands beside it wherever it is shown.
const shownState = `case
	when s.current_csv = '' then ''
	when s.current_csv = s.installed_csv then 'AtLatestKnown'
	when s.plan_phase = 'Failed' and exists (select from gateway.operatorgroups g where g.tenant = s.tenant and g.cluster = s.cluster
		and g.namespace = s.namespace and g.spec ->> 'upgradeStrategy' = 'TechPreviewUnsafeFailForward') then 'UpgradeFailed'
	else 'UpgradePending' end`

// The catalog is the cluster's own one of the named namespace where there is such a one, else the hub's; one that was
// removed counts where there is no other.
const subscriptionColumns = `select s.cluster, s.namespace, s.name, s.package, s.channel, s.catalog, s.catalog_namespace, s.starting_csv, s.approval,
	s.config, s.generated, ` + shownState + `, s.current_csv, s.installed_csv, coalesce(v.phase, ''),
	s.plan_id, s.plan_name, s.plan_generation, s.plan_phase, s.plan_reason, s.plan_event, s.plan_since,
	s.plan_begun, s.plan_approval, s.plan_expires, s.plan_windows, now(),
	s.failed_reason, s.failed_document, s.failed_event, s.failed_since, s.missing_event, s.missing_since,
	s.spec_event, s.spec_since, s.installed_event, s.installed_since,
	coalesce(h.state, ''), coalesce(h.reason, ''), coalesce(h.event_id, ''), h.since, coalesce(h.subject, ''), coalesce(h.variant, ''),
	coalesce(h.revision_event, ''), h.revision_since, coalesce(h.state = 'Ready', false) or exists (select from gateway.catalogs c where ` + visibleCatalogs + `),
	s.rollback_from, s.rollback_to, s.labels, s.annotations, s.created, s.updated, s.stream, s.version
	from gateway.subscriptions s
	left join gateway.clusters k on k.tenant = s.tenant and k.name = s.cluster
	left join gateway.subscription_csvs v on v.tenant = s.tenant and v.cluster = s.cluster and v.namespace = s.namespace and v.name = s.installed_csv
	left join lateral (select h.state, h.reason, h.event_id, h.since, h.subject, h.variant, h.revision_event, h.revision_since from gateway.subscription_catalogs h where h.tenant = s.tenant and ` + seenVariant + `
		and h.subject in (s.catalog, case when s.catalog_namespace <> '' then s.cluster || '/' || s.catalog_namespace || '/' || s.catalog else s.catalog end)
		order by h.state = '` + catalogGone + `', h.subject = s.catalog, h.variant = '' limit 1) h on true`

// subscriptionRow is a subscription with what its conditions are told from.
type subscriptionRow struct {
	model.Subscription
	config, annotations       string // commitments
	plan                      model.PlanRef
	planReason, planEvent     string
	planSince                 *time.Time
	failed                    string
	explanation, failedEvent  string
	failedSince               *time.Time
	catalogState              string
	catalogReason, catalogEvt string
	catalogSince              *time.Time
	catalogSubject            string
	catalogVariant            string
	revisionEvent             string // of the revision that the catalog serves
	revisionSince             *time.Time
	anyCatalog                bool // the namespace sees one at all
	terms                     pendingTerms
	now                       time.Time
	missingEvent              string
	missingSince              *time.Time
	specEvent                 string
	specSince                 *time.Time
	installedEvent            string
	installedSince            *time.Time
}

func scanSubscription(row pgx.Row) (subscriptionRow, error) {
	var s subscriptionRow
	var back model.Rollback
	err := row.Scan(&s.Cluster, &s.Namespace, &s.Name, &s.Spec.Package, &s.Spec.Channel, &s.Spec.Catalog, &s.Spec.CatalogNamespace,
		&s.Spec.StartingCSV, &s.Spec.Approval, &s.config, &s.Generated, &s.Status.State, &s.Status.CurrentCSV, &s.Status.InstalledCSV, &s.Status.Phase,
		&s.plan.ID, &s.plan.Name, &s.plan.Generation, &s.plan.Phase, &s.planReason, &s.planEvent, &s.planSince,
		&s.terms.begun, &s.terms.approval, &s.terms.expires, &s.terms.windows, &s.now,
		&s.failed, &s.explanation, &s.failedEvent, &s.failedSince, &s.missingEvent, &s.missingSince,
		&s.specEvent, &s.specSince, &s.installedEvent, &s.installedSince,
		&s.catalogState, &s.catalogReason, &s.catalogEvt, &s.catalogSince, &s.catalogSubject, &s.catalogVariant,
		&s.revisionEvent, &s.revisionSince, &s.anyCatalog, &back.From, &back.To, &s.Labels, &s.annotations,
		&s.CreatedAt, &s.UpdatedAt, &s.Stream, &s.Version)
	if err != nil {
		return s, err
	}
	if s.plan.Phase == "" { // it ended before it was begun
		s.plan = model.PlanRef{}
	}
	if back.From != "" {
		s.Status.Rollback = &back
	}
	if s.explanation != "" {
		s.Status.Explanation = &model.Explanation{Digest: s.explanation}
	}
	return s, nil
}

// complete fills what follows from the row.
func (s *subscriptionRow) complete() {
	s.Status.Conditions = s.conditions()
	if s.plan.Name != "" {
		plan := s.plan
		s.Status.InstallPlan, s.Status.InstallPlanGeneration = &plan, plan.Generation
	}
}

// Subscriptions lists subscriptions by cluster, namespace and name.
func (r *Reader) Subscriptions(ctx context.Context, who model.Caller, f model.SubscriptionFilter) (items []model.Subscription, next []string, err error) {
	var w where
	w.add("s.tenant = ?", who.Tenant)
	w.equal("s.cluster", f.Cluster)
	w.equal("s.namespace", f.Namespace)
	w.equal("s.package", f.Package)
	w.equal("s.catalog", f.Catalog)
	w.equal("coalesce(v.phase, '')", f.Phase)
	if err := w.label("s.labels", f.Label); err != nil {
		return nil, nil, err
	}
	byCondition := w.state(f.State)
	var rows []subscriptionRow
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		var more bool
		rows, more, err = subscriptionPage(ctx, tx, w, f, byCondition)
		if more {
			last := rows[len(rows)-1]
			next = []string{last.Cluster, last.Namespace, last.Name}
		}
		return err
	})
	items = make([]model.Subscription, len(rows))
	for i, s := range rows {
		items[i] = s.Subscription
	}
	return items, next, err
}

// state adds the state that is shown, as far as SQL can say it. byCondition is true where a condition stands for the
// state: conditions are told from the whole row, and only subscriptions without a state are asked for them.
func (w *where) state(state string) (byCondition bool) {
	switch state {
	case "":
		return false
	case model.StateAtLatestKnown:
		w.equal(shownState, state)
		return false
	case model.StateUpgradeFailed:
		w.equal(shownState, state)
		return false
	case model.StateUpgradePending:
		w.equal(shownState, state)
		w.add("s.current_csv <> s.installed_csv") // what the state implies, in the words of an index
		return false
	default:
		w.add(shownState + " = ''")
		return true
	}
}

// subscriptionPage reads one page in the order of the key. Where a condition chooses, it reads on until the page is full.
func subscriptionPage(ctx context.Context, tx pgx.Tx, w where, f model.SubscriptionFilter, byCondition bool) (rows []subscriptionRow, more bool, err error) {
	for after := f.After; ; {
		from := w.clone()
		if err := from.after(after, "s.cluster", "s.namespace", "s.name"); err != nil {
			return nil, false, err
		}
		var read []subscriptionRow
		read, more, err = page(ctx, tx, subscriptionColumns+from.String()+" order by s.cluster, s.namespace, s.name", from.args, f.Limit, scanSubscription)
		if err != nil {
			return nil, false, err
		}
		for i := range read {
			read[i].complete()
			if byCondition && read[i].ShownState() != f.State {
				continue
			}
			if len(rows) == f.Limit {
				return rows, true, nil
			}
			rows = append(rows, read[i])
		}
		if !byCondition || !more {
			return rows, more, nil
		}
		last := read[len(read)-1]
		after = []string{last.Cluster, last.Namespace, last.Name}
	}
}

// Subscription returns one subscription with its configuration and, where it does not resolve, why.
func (r *Reader) Subscription(ctx context.Context, who model.Caller, cluster, namespace, name string) (model.Subscription, error) {
	s := new(subscriptionRow)
	err := r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) (err error) {
		*s, err = one(ctx, tx, subscriptionColumns+` where s.tenant = $1 and s.cluster = $2 and s.namespace = $3 and s.name = $4`,
			[]any{who.Tenant, cluster, namespace, name},
			errs.New(errs.NotFound, "no subscription %q exists in namespace %q of cluster %q", name, namespace, cluster), scanSubscription)
		if err != nil {
			return err
		}
		s.complete()
		if s.config != "" {
			if s.Spec.Config, err = document(ctx, tx, `select body from gateway.bodies where tenant = $1 and commitment = $2`, who.Tenant, s.config); err != nil {
				return err
			}
		}
		if err := annotations(ctx, tx, who.Tenant, s.annotations, &s.Metadata); err != nil {
			return err
		}
		if s.Status.Explanation != nil {
			s.Status.Explanation.Document, err = document(ctx, tx,
				`select document::text from resolver_api.explanations where tenant = $1 and digest = $2`, who.Tenant, s.explanation)
			if err != nil {
				return err
			}
			explain(&s.Status, failureType(s.failed))
		}
		if err := catalogHealth(ctx, tx, who.Tenant, s); err != nil {
			return err
		}
		return r.deprecations(ctx, tx, who.Tenant, s)
	})
	return s.Subscription, err
}

// explain puts the sentences of the explanation into the condition, where people look first.
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

// maxPast bounds how far back a subscription can be led: further versions have long lost their data's form.
const maxPast = 20

// Past is what a subscription has installed and what it had before, as far as finished plans lead back. Where a
// rollback led to is not left by it again: what counts is what each version had replaced when it came.
func (r *Reader) Past(ctx context.Context, q pg.Querier, tenant string, name subscription.Name) (model.Past, error) {
	var p model.Past
	err := pg.Err(q.QueryRow(ctx, `select installed_csv from gateway.subscriptions where tenant = $1 and cluster = $2 and namespace = $3 and name = $4`,
		tenant, name.Cluster, name.Namespace, name.Name).Scan(&p.CSV))
	if errs.Is(err, errs.NotFound) {
		return p, nil
	}
	for at := p.CSV; err == nil && at != "" && len(p.Before) < maxPast; {
		err = pg.Err(q.QueryRow(ctx, `select coalesce(max(b ->> 'replaces'), '') from (select p.bundles from gateway.installplans p
			where p.tenant = $1 and p.cluster = $2 and p.namespace = $3 and p.phase = 'Complete'
			and p.bundles @> jsonb_build_array(jsonb_build_object('csv', $4::text)) and not p.bundles @> jsonb_build_array(jsonb_build_object('csv', $4::text, 'reason', 'Rollback'))
			order by p.epoch desc, p.position desc limit 1) newest, jsonb_array_elements(newest.bundles) b where b ->> 'csv' = $4`,
			tenant, name.Cluster, name.Namespace, at).Scan(&at))
		if at == "" || slices.Contains(p.Before, at) || at == p.CSV {
			break
		}
		p.Before = append(p.Before, at)
	}
	return p, err
}
