package subscriptions

import (
	"cmp"
	"time"

	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Types of conditions (R-SUB §4.5). Four of them the resolver names as its reason; that of a cordoned cluster is
// Chandler's own.
const (
	conditionResolutionFailed = "ResolutionFailed"
	conditionUnpacking        = "BundleUnpacking"
	conditionUnpackFailed     = "BundleUnpackFailed"
	conditionUnhealthy        = "CatalogSourcesUnhealthy"
	conditionCordoned         = "ClusterCordoned"
	conditionPlanMissing      = "InstallPlanMissing"
	conditionPlanPending      = "InstallPlanPending"
	conditionPlanFailed       = "InstallPlanFailed"
)

// catalogGone is the state of a catalog that was removed.
const catalogGone = "Gone"

// visibleCatalogs chooses the catalogs c that a subscription's namespace s sees.
const visibleCatalogs = `c.tenant = s.tenant and not c.disabled and c.visibility_cluster in ('', s.cluster) and c.visibility_namespace in ('', s.namespace)
	and not (c.cluster = '' and exists (select from operatorgroups g where g.tenant = s.tenant and g.cluster = s.cluster
		and g.namespace = s.namespace and g.spec ->> 'excludeGlobalCatalogs' = 'true'))`

// ClusterVariant is the variant of catalogs that a cluster k sees where there is such a one: that of its version of
// Kubernetes.
const ClusterVariant = `coalesce(substring(k.kubernetes_version from '^v?([0-9]+\.[0-9]+)'), '')`

// seenVariant chooses of a catalog h what a cluster k sees: the variant of its version of Kubernetes, else the
// fallback.
const seenVariant = `h.variant in ('', ` + ClusterVariant + `)`

// conditions are those of R-SUB §4.5 that follow from events, each with the event that set it (R-SUB-40, R-SUB-42).
func (r row) conditions() []model.Condition {
	list := []model.Condition{r.catalogCondition()}
	switch c := r.failure(); {
	case r.FailedReason == "":
	case c.Type == list[0].Type:
		list[0] = c
	default:
		list = append(list, c)
	}
	if r.PlanName == "" && r.MissingEvent != "" {
		list = append(list, model.Condition{
			Type: conditionPlanMissing, Status: "True", Reason: "ReferencedInstallPlanNotFound",
			Message: "the install plan that was made for it ended before it was begun, and there is no other one",
			Since:   at(r.MissingSince, r.Updated), Event: r.MissingEvent,
		})
	}
	switch r.PlanPhase {
	case string(installplan.RequiresApproval):
		list = append(list, r.planCondition(conditionPlanPending, "RequiresApproval",
			"install plan "+r.PlanName+" waits for approval"))
	case string(installplan.Installing):
		list = append(list, r.installing())
	case string(installplan.Failed):
		list = append(list, r.planCondition(conditionPlanFailed, r.PlanState.Failure.Reason,
			"install plan "+r.PlanName+" failed"))
	}
	return list
}

// installing says how far a plan is that may be carried out:
//
//	its approval expired before the first step → RequiresApproval again, from then on
//	its maintenance windows are not open       → MaintenanceWindow, and when they open
//	no step was taken yet                      → InstallPlanNotYetReconciled
//	otherwise                                  → Installing
func (r row) installing() model.Condition {
	name := "install plan " + r.PlanName
	reason, message := "Installing", name+" is being carried out"
	switch state := *r.PlanState; {
	case state.PhaseAt(r.Now) == installplan.RequiresApproval:
		c := r.planCondition(conditionPlanPending, "RequiresApproval",
			name+" waits for approval: the last one expired before it was begun")
		c.Since = state.Approval.Expires
		return c
	case !state.Executable(r.Now):
		return r.planCondition(conditionPlanPending, "MaintenanceWindow",
			name+" waits for its maintenance window, "+opening(state, r.Now))
	case !state.Begun:
		reason, message = "InstallPlanNotYetReconciled", name+" is on its way to the cluster"
	}
	if r.PlanState.Blocked.Reason != "" {
		message = name + " waits: " + r.PlanState.Blocked.Reason
	}
	return r.planCondition(conditionPlanPending, reason, message)
}

func opening(p installplan.State, now time.Time) string {
	if opens, ok := p.NextOpening(now); ok {
		return "which opens at " + opens.UTC().Format(time.RFC3339)
	}
	return "which never opens together with the others"
}

// failure is the condition that a reason of the resolver stands for (R-SUB-42).
func (r row) failure() model.Condition {
	c := model.Condition{
		Type: failureType(r.FailedReason), Status: "True", Reason: r.FailedReason,
		Message: "the subscription does not resolve; its explanation says why", Since: at(r.FailedSince,
			r.Updated), Event: r.FailedEvent,
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
	case conditionUnpacking, conditionUnpackFailed, conditionUnhealthy, conditionCordoned:
		return reason
	default:
		return conditionResolutionFailed
	}
}

func (r row) planCondition(typ, reason, message string) model.Condition {
	return model.Condition{
		Type: typ, Status: "True", Reason: reason, Message: message, Since: at(r.PlanSince, r.Updated),
		Event: r.PlanEvent,
	}
}

// catalogCondition is about the catalog that the subscription names: one that it does not need hurts nobody (P2). What
// is not there was asked for by the subscription itself, whose event set the condition then.
func (r row) catalogCondition() model.Condition {
	name := r.Catalog
	if r.CatalogNamespace != "" {
		name = r.CatalogNamespace + "/" + name
	}
	c := model.Condition{
		Type: conditionUnhealthy, Status: "True", Reason: "UnhealthyCatalogSourceFound",
		Since: at(r.CatalogSince, at(r.SpecSince, r.Created)), Event: cmp.Or(r.CatalogEvent, r.SpecEvent),
	}
	switch r.CatalogState {
	case model.CatalogReady:
		c.Status, c.Reason, c.Message = "False", "AllCatalogSourcesHealthy", "all available catalogsources are healthy"
	case "":
		c.Message = "targeted catalogsource " + name + " missing"
	case catalogGone:
		c.Reason, c.Message = "CatalogSourcesDeleted", "targeted catalogsource "+name+" missing"
	case model.CatalogLoading:
		c.Reason, c.Message = "CatalogSourcesAdded", "targeted catalogsource "+name+
			" unhealthy: no revision is in service yet"
	default:
		c.Message = "targeted catalogsource " + name + " unhealthy: " + r.CatalogReason
	}
	if !r.AnyCatalog && c.Status == "True" {
		c.Reason, c.Message = "NoCatalogSourcesFound", "dependency resolution requires at least one catalogsource"
	}
	return c
}

func at(t *time.Time, otherwise time.Time) time.Time {
	if t == nil {
		return otherwise
	}
	return *t
}
