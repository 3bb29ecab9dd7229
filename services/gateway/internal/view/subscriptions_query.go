package view

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Types of conditions that say why nothing can be planned (R-RES-41, R-SUB-42). Three of them the resolver
// names as its reason.
const (
	conditionResolutionFailed = "ResolutionFailed"
	conditionUnpacking        = "BundleUnpacking"
	conditionUnpackFailed     = "BundleUnpackFailed"
	conditionUnhealthy        = "CatalogSourcesUnhealthy"
)

// shownState is the table of R-SUB §4.3 in SQL.
const shownState = `case
	when s.current_csv = '' then ''
	when s.current_csv = s.installed_csv then 'AtLatestKnown'
	when s.plan_phase = 'Failed' and exists (select from gateway.operatorgroups g where g.tenant = s.tenant and g.cluster = s.cluster
		and g.namespace = s.namespace and g.spec ->> 'upgradeStrategy' = 'TechPreviewUnsafeFailForward') then 'UpgradeFailed'
	else 'UpgradePending' end`

// The catalog is the cluster's own one of the named namespace where there is such a one, else the hub's.
const subscriptionColumns = `select s.cluster, s.namespace, s.name, s.package, s.channel, s.catalog, s.catalog_namespace, s.starting_csv, s.approval,
	s.config, s.generated, ` + shownState + `, s.current_csv, s.installed_csv, coalesce(v.phase, ''),
	s.plan_id, s.plan_name, s.plan_generation, s.plan_phase, s.plan_reason, s.plan_event, s.plan_since,
	s.failed_reason, s.failed_document, s.failed_event, s.failed_since,
	coalesce(own.state, hub.state, ''), coalesce(own.reason, hub.reason, ''), coalesce(own.event_id, hub.event_id, ''), coalesce(own.since, hub.since),
	coalesce(own.subject, hub.subject, ''),
	s.created, s.updated, s.stream, s.version
	from gateway.subscriptions s
	left join gateway.subscription_csvs v on v.tenant = s.tenant and v.cluster = s.cluster and v.namespace = s.namespace and v.name = s.installed_csv
	left join gateway.subscription_catalogs own on s.catalog_namespace <> '' and own.tenant = s.tenant
		and own.subject = s.cluster || '/' || s.catalog_namespace || '/' || s.catalog
	left join gateway.subscription_catalogs hub on hub.tenant = s.tenant and hub.subject = s.catalog`

// subscriptionRow is a subscription with what its conditions are told from.
type subscriptionRow struct {
	model.Subscription
	config                    string // commitment
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
}

func scanSubscription(row pgx.Row) (subscriptionRow, error) {
	var s subscriptionRow
	err := row.Scan(&s.Cluster, &s.Namespace, &s.Name, &s.Spec.Package, &s.Spec.Channel, &s.Spec.Catalog, &s.Spec.CatalogNamespace,
		&s.Spec.StartingCSV, &s.Spec.Approval, &s.config, &s.Generated, &s.Status.State, &s.Status.CurrentCSV, &s.Status.InstalledCSV, &s.Status.Phase,
		&s.plan.ID, &s.plan.Name, &s.plan.Generation, &s.plan.Phase, &s.planReason, &s.planEvent, &s.planSince,
		&s.failed, &s.explanation, &s.failedEvent, &s.failedSince,
		&s.catalogState, &s.catalogReason, &s.catalogEvt, &s.catalogSince, &s.catalogSubject,
		&s.CreatedAt, &s.UpdatedAt, &s.Stream, &s.Version)
	if err != nil {
		return s, err
	}
	if s.plan.Name != "" {
		s.Status.InstallPlan = &s.plan
	}
	if s.explanation != "" {
		s.Status.Explanation = &model.Explanation{Digest: s.explanation}
	}
	return s, nil
}

// conditions are those of R-SUB §4.5 that events tell of, each with the event that set it (R-SUB-40, R-SUB-42).
func (s subscriptionRow) conditions() []model.Condition {
	list := []model.Condition{s.catalogCondition()}
	switch c := s.failure(); {
	case s.failed == "":
	case c.Type == list[0].Type:
		list[0] = c
	default:
		list = append(list, c)
	}
	switch s.plan.Phase {
	case "RequiresApproval":
		list = append(list, s.planCondition("InstallPlanPending", "RequiresApproval", "install plan "+s.plan.Name+" waits for approval"))
	case "Installing":
		message := "install plan " + s.plan.Name + " is being carried out"
		if s.planReason != "" {
			message = "install plan " + s.plan.Name + " waits: " + s.planReason
		}
		list = append(list, s.planCondition("InstallPlanPending", "Installing", message))
	case "Failed":
		list = append(list, s.planCondition("InstallPlanFailed", s.planReason, "install plan "+s.plan.Name+" failed"))
	}
	return list
}

// failure is the condition that a reason of the resolver stands for (R-SUB-42).
func (s subscriptionRow) failure() model.Condition {
	c := model.Condition{
		Type: failureType(s.failed), Status: "True", Reason: s.failed,
		Message: "the subscription does not resolve; its explanation says why", Since: at(s.failedSince, s.UpdatedAt), Event: s.failedEvent,
	}
	switch c.Type {
	case conditionUnpacking:
		c.Reason = "UnpackingInProgress"
	case conditionUnhealthy:
		c.Reason = "UnhealthyCatalogSourceFound"
	}
	return c
}

func failureType(reason string) string {
	switch reason {
	case conditionUnpacking, conditionUnpackFailed, conditionUnhealthy:
		return reason
	default:
		return conditionResolutionFailed
	}
}

func (s subscriptionRow) planCondition(typ, reason, message string) model.Condition {
	return model.Condition{Type: typ, Status: "True", Reason: reason, Message: message, Since: at(s.planSince, s.UpdatedAt), Event: s.planEvent}
}

func (s subscriptionRow) catalogCondition() model.Condition {
	name := s.Spec.Catalog
	if s.Spec.CatalogNamespace != "" {
		name = s.Spec.CatalogNamespace + "/" + name
	}
	c := model.Condition{
		Type: conditionUnhealthy, Status: "True", Reason: "UnhealthyCatalogSourceFound",
		Since: at(s.catalogSince, s.CreatedAt), Event: s.catalogEvt,
	}
	switch s.catalogState {
	case model.CatalogReady:
		c.Status, c.Reason, c.Message = "False", "AllCatalogSourcesHealthy", "all available catalogsources are healthy"
	case "":
		c.Message = "targeted catalogsource " + name + " missing"
	case model.CatalogLoading:
		c.Message = "targeted catalogsource " + name + " unhealthy: no revision is in service yet"
	default:
		c.Message = "targeted catalogsource " + name + " unhealthy: " + s.catalogReason
	}
	return c
}

func at(t *time.Time, otherwise time.Time) time.Time {
	if t == nil {
		return otherwise
	}
	return *t
}

// Subscriptions lists subscriptions by cluster, namespace and name.
func (r *Reader) Subscriptions(ctx context.Context, who model.Caller, f model.SubscriptionFilter) (items []model.Subscription, next []string, err error) {
	var w where
	w.add("s.tenant = ?", who.Tenant)
	w.equal("s.cluster", f.Cluster)
	w.equal("s.namespace", f.Namespace)
	w.equal("s.package", f.Package)
	w.equal("s.catalog", f.Catalog)
	w.equal(shownState, f.State)
	if f.State == "UpgradePending" || f.State == "UpgradeFailed" {
		w.add("s.current_csv <> s.installed_csv") // what the state implies, in the words of an index
	}
	if err := w.after(f.After, "s.cluster", "s.namespace", "s.name"); err != nil {
		return nil, nil, err
	}
	var rows []subscriptionRow
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		var more bool
		rows, more, err = page(ctx, tx, subscriptionColumns+w.String()+" order by s.cluster, s.namespace, s.name", w.args, f.Limit, scanSubscription)
		if more {
			last := rows[len(rows)-1]
			next = []string{last.Cluster, last.Namespace, last.Name}
		}
		if err != nil {
			return err
		}
		for i := range rows {
			rows[i].Status.Conditions = rows[i].conditions()
		}
		return nil
	})
	items = make([]model.Subscription, len(rows))
	for i, s := range rows {
		items[i] = s.Subscription
	}
	return items, next, err
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
		s.Status.Conditions = s.conditions()
		if s.config != "" {
			if s.Spec.Config, err = document(ctx, tx, `select body from gateway.bodies where tenant = $1 and commitment = $2`, who.Tenant, s.config); err != nil {
				return err
			}
		}
		if s.Status.Explanation != nil {
			s.Status.Explanation.Document, err = document(ctx, tx,
				`select document::text from resolver_api.explanations where tenant = $1 and digest = $2`, who.Tenant, s.explanation)
			if err != nil {
				return err
			}
			explain(&s.Status, failureType(s.failed))
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
