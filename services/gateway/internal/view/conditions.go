package view

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Types of conditions (R-SUB §4.5). Three of them the resolver names as its reason.
const (
	conditionResolutionFailed = "ResolutionFailed"
	conditionUnpacking        = "BundleUnpacking"
	conditionUnpackFailed     = "BundleUnpackFailed"
	conditionUnhealthy        = "CatalogSourcesUnhealthy"
	conditionPlanMissing      = "InstallPlanMissing"
	conditionPlanPending      = "InstallPlanPending"
	conditionPlanFailed       = "InstallPlanFailed"
)

// catalogGone is the state of a catalog that was removed.
const catalogGone = "Gone"

// visibleCatalogs chooses the catalogs c that a subscription's namespace s sees.
const visibleCatalogs = `c.tenant = s.tenant and not c.disabled and c.visibility_cluster in ('', s.cluster) and c.visibility_namespace in ('', s.namespace)
	and not (c.cluster = '' and exists (select from gateway.operatorgroups g where g.tenant = s.tenant and g.cluster = s.cluster
		and g.namespace = s.namespace and g.spec ->> 'excludeGlobalCatalogs' = 'true'))`

// seenVariant chooses of a catalog h what a cluster k sees: the variant of its version of Kubernetes, else the fallback.
const seenVariant = `h.variant in ('', coalesce(substring(k.kubernetes_version from '^v?([0-9]+\.[0-9]+)'), ''))`

// pendingTerms are what a plan waits for before its first step.
type pendingTerms struct {
	begun    bool
	approval string
	expires  *time.Time // of its approval
	windows  []events.WindowGroup
}

// state is the plan as far as it matters to what it waits for.
func (t pendingTerms) state() installplan.State {
	s := installplan.State{Phase: installplan.Installing, Begun: t.begun}
	s.Proposed.Approval, s.Proposed.Windows = t.approval, t.windows
	if t.expires != nil {
		s.Approval = installplan.Approval{Digest: "given", Expires: *t.expires}
	}
	return s
}

// conditions are those of R-SUB §4.5 that events tell of, each with the event that set it (R-SUB-40, R-SUB-42).
func (s *subscriptionRow) conditions() []model.Condition {
	list := []model.Condition{s.catalogCondition()}
	switch c := s.failure(); {
	case s.failed == "":
	case c.Type == list[0].Type:
		list[0] = c
	default:
		list = append(list, c)
	}
	if s.plan.Name == "" && s.missingEvent != "" {
		list = append(list, model.Condition{
			Type: conditionPlanMissing, Status: "True", Reason: "ReferencedInstallPlanNotFound",
			Message: "the install plan that was made for it ended before it was begun, and there is no other one", Since: at(s.missingSince, s.UpdatedAt), Event: s.missingEvent,
		})
	}
	switch s.plan.Phase {
	case string(installplan.RequiresApproval):
		list = append(list, s.planCondition(conditionPlanPending, "RequiresApproval", "install plan "+s.plan.Name+" waits for approval"))
	case string(installplan.Installing):
		list = append(list, s.installing())
	case string(installplan.Failed):
		list = append(list, s.planCondition(conditionPlanFailed, s.planReason, "install plan "+s.plan.Name+" failed"))
	}
	return list
}

// installing says how far a plan is that may be carried out:
//
//	its approval expired before the first step → RequiresApproval again, from then on
//	its maintenance windows are not open       → MaintenanceWindow, and when they open
//	no step was taken yet                      → InstallPlanNotYetReconciled
//	otherwise                                  → Installing
func (s *subscriptionRow) installing() model.Condition {
	name := "install plan " + s.plan.Name
	reason, message := "Installing", name+" is being carried out"
	switch state := s.terms.state(); {
	case state.PhaseAt(s.now) == installplan.RequiresApproval:
		s.plan.Phase = string(installplan.RequiresApproval)
		c := s.planCondition(conditionPlanPending, "RequiresApproval", name+" waits for approval: the last one expired before it was begun")
		c.Since = at(s.terms.expires, c.Since)
		return c
	case !state.Executable(s.now):
		return s.planCondition(conditionPlanPending, "MaintenanceWindow", name+" waits for its maintenance window, "+opening(state, s.now))
	case !state.Begun:
		reason, message = "InstallPlanNotYetReconciled", name+" is on its way to the cluster"
	}
	if s.planReason != "" {
		message = name + " waits: " + s.planReason
	}
	return s.planCondition(conditionPlanPending, reason, message)
}

func opening(p installplan.State, now time.Time) string {
	if opens, ok := p.NextOpening(now); ok {
		return "which opens at " + opens.UTC().Format(time.RFC3339)
	}
	return "which never opens together with the others"
}

// failure is the condition that a reason of the resolver stands for (R-SUB-42).
func (s *subscriptionRow) failure() model.Condition {
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

func (s *subscriptionRow) planCondition(typ, reason, message string) model.Condition {
	return model.Condition{Type: typ, Status: "True", Reason: reason, Message: message, Since: at(s.planSince, s.UpdatedAt), Event: s.planEvent}
}

// catalogCondition is about the catalog that the subscription names: one that it does not need hurts nobody (P2). What
// is not there was asked for by the subscription itself, whose event set the condition then.
func (s *subscriptionRow) catalogCondition() model.Condition {
	name := s.Spec.Catalog
	if s.Spec.CatalogNamespace != "" {
		name = s.Spec.CatalogNamespace + "/" + name
	}
	c := model.Condition{
		Type: conditionUnhealthy, Status: "True", Reason: "UnhealthyCatalogSourceFound",
		Since: at(s.catalogSince, at(s.specSince, s.CreatedAt)), Event: or(s.catalogEvt, s.specEvent),
	}
	switch s.catalogState {
	case model.CatalogReady:
		c.Status, c.Reason, c.Message = "False", "AllCatalogSourcesHealthy", "all available catalogsources are healthy"
	case "":
		c.Message = "targeted catalogsource " + name + " missing"
	case catalogGone:
		c.Reason, c.Message = "CatalogSourcesDeleted", "targeted catalogsource "+name+" missing"
	case model.CatalogLoading:
		c.Reason, c.Message = "CatalogSourcesAdded", "targeted catalogsource "+name+" unhealthy: no revision is in service yet"
	default:
		c.Message = "targeted catalogsource " + name + " unhealthy: " + s.catalogReason
	}
	if !s.anyCatalog && c.Status == "True" {
		c.Reason, c.Message = "NoCatalogSourcesFound", "dependency resolution requires at least one catalogsource"
	}
	return c
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func at(t *time.Time, otherwise time.Time) time.Time {
	if t == nil {
		return otherwise
	}
	return *t
}

// catalogHealth tells how each catalog does that the subscription's namespace sees (R-SUB §4.3).
func catalogHealth(ctx context.Context, q pg.Querier, tenant string, s *subscriptionRow) error {
	rows, err := q.Query(ctx, `select c.name, c.namespace, coalesce(h.state, c.state), coalesce(h.reason, ''), coalesce(h.event_id, ''), coalesce(h.since, c.added)
		from (select $1::text as tenant, $2::text as cluster, $3::text as namespace) s
		join gateway.catalogs c on `+visibleCatalogs+`
		left join gateway.clusters k on k.tenant = s.tenant and k.name = s.cluster
		left join lateral (select h.state, h.reason, h.event_id, h.since from gateway.subscription_catalogs h where h.tenant = c.tenant and h.subject = c.subject and `+seenVariant+`
			order by h.variant = '' limit 1) h on true
		order by c.cluster, c.namespace, c.name`, tenant, s.Cluster, s.Namespace)
	if err != nil {
		return fmt.Errorf("read the health of catalogs: %w", pg.Err(err))
	}
	s.Status.CatalogHealth, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (h model.CatalogSourceHealth, err error) {
		err = r.Scan(&h.Catalog, &h.Namespace, &h.State, &h.Reason, &h.Event, &h.Since)
		h.Healthy = h.State == model.CatalogReady
		return h, err
	})
	return err
}
