package mirror

import (
	"cmp"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// States of a catalog, as the hub tells them.
const (
	catalogReady   = "Ready"
	catalogLoading = "Loading"
)

func conditionOf(typ, status, reason, message string, since time.Time) map[string]any {
	c := map[string]any{"type": typ, "status": status, "reason": reason, "lastTransitionTime": stamp(since)}
	setString(c, "message", message)
	return c
}

// subscriptionConditions are those of R-SUB §4.5 that the cluster can know; True is abnormal. plan is the newest one
// that moves the package:
//
//	the catalog that is named                      CatalogSourcesUnhealthy
//	what the resolver says                         ResolutionFailed, BundleUnpacking, BundleUnpackFailed or ClusterCordoned
//	plan waits for approval                        InstallPlanPending, RequiresApproval
//	plan was not begun                             InstallPlanPending, InstallPlanNotYetReconciled
//	plan is under way, or blocked                  InstallPlanPending, Installing
//	plan failed                                    InstallPlanFailed
//	the catalog deprecates what is used            PackageDeprecated, ChannelDeprecated, BundleDeprecated, Deprecated
func subscriptionConditions(s protocol.Subscription, plan Plan, now time.Time) []any {
	out := []any{catalogCondition(s, now)}
	if typ := s.Failed; typ != "" && typ != conditionUnhealthy {
		since := s.FailedSince
		if since.IsZero() {
			since = now
		}
		switch typ {
		case conditionUnpacking:
			out = append(out, conditionOf(typ, "True", "UnpackingInProgress", "", since))
		case conditionCordoned:
			out = append(out, conditionOf(typ, "True", typ, messageCordoned, since))
		case conditionUnpackFailed:
			out = append(out, conditionOf(typ, "True", typ, "", since))
		default:
			out = append(out, conditionOf(conditionResolutionFailed, "True", s.Failed, messageUnresolved, since))
		}
	}
	if plan.ID == "" {
		return out
	}
	since := plan.Started
	if !plan.Ended.IsZero() {
		since = plan.Ended
	}
	if since.IsZero() {
		since = now
	}
	pending := func(reason string) []any {
		return append(out, conditionOf("InstallPlanPending", "True", reason, plan.Message, since))
	}
	switch plan.Phase {
	case protocol.PlanFinished:
		return out
	case protocol.PlanFailed:
		return append(out, conditionOf("InstallPlanFailed", "True", reasonComponentFailed, plan.Message, since))
	case PlanWaiting:
		return pending("RequiresApproval")
	case "":
		return pending("InstallPlanNotYetReconciled")
	default:
		return pending("Installing")
	}
}

// conditionResolutionFailed is the type of the condition of a subscription that does not resolve, messageUnresolved
// what it says: the cluster is told why in one word.
const (
	conditionResolutionFailed = "ResolutionFailed"
	messageUnresolved         = "the subscription does not resolve; chandler explain says why"
)

// Types of conditions that the resolver names as its reason.
const (
	conditionUnhealthy    = "CatalogSourcesUnhealthy"
	conditionUnpacking    = "BundleUnpacking"
	conditionUnpackFailed = "BundleUnpackFailed"
	conditionCordoned     = "ClusterCordoned"
)

// messageCordoned is what the condition of a cordoned cluster says.
const messageCordoned = "the cluster is cordoned: no new install plans are made for it"

// reasonComponentFailed is the reason of a plan that failed at a step (R-IP-5).
const reasonComponentFailed = "InstallComponentFailed"

func catalogCondition(s protocol.Subscription, now time.Time) map[string]any {
	name := s.Spec.Catalog
	if s.Spec.CatalogNamespace != "" {
		name = s.Spec.CatalogNamespace + "/" + name
	}
	switch c := s.Catalog; {
	case c == nil:
		return conditionOf(conditionUnhealthy, "True", "UnhealthyCatalogSourceFound", "targeted catalogsource "+name+
			" missing", now)
	case c.State == catalogReady:
		return conditionOf(conditionUnhealthy, "False", "AllCatalogSourcesHealthy",
			"all available catalogsources are healthy", now)
	case c.State == catalogLoading:
		return conditionOf(conditionUnhealthy, "True", "CatalogSourcesAdded", "targeted catalogsource "+name+
			" unhealthy: no revision is in service yet", now)
	default:
		return conditionOf(conditionUnhealthy, "True", "UnhealthyCatalogSourceFound", "targeted catalogsource "+name+
			" unhealthy: "+cmp.Or(c.Reason, c.State), now)
	}
}

// catalogHealth names the catalog as it is shown in the cluster, beside the subscription.
func catalogHealth(namespace string, s protocol.Subscription, now time.Time) []any {
	if s.Catalog == nil {
		return []any{}
	}
	return []any{map[string]any{
		"catalogSourceRef": map[string]any{
			"apiVersion": GVKCatalogSource.GroupVersion().String(), "kind": GVKCatalogSource.Kind,
			"name": s.Spec.Catalog, "namespace": namespace,
		},
		"healthy": s.Catalog.State == catalogReady, "lastUpdated": stamp(now),
	}}
}

// CatalogSources show the catalogs that subscriptions of a namespace name, each once, beside them: catalogs belong to
// the fleet and have no namespace of their own in a cluster.
func CatalogSources(namespace string, list []protocol.Subscription) []Object {
	var out []Object
	seen := map[string]bool{}
	for _, s := range list {
		if s.Catalog == nil || seen[s.Spec.Catalog] {
			continue
		}
		seen[s.Spec.Catalog] = true
		labels, annotations := mirrorMetadata(s.Catalog.Metadata, shown(namespace), nil)
		o := newObject(GVKCatalogSource, namespace, s.Spec.Catalog, labels, annotations)
		spec := map[string]any{"sourceType": "grpc", "priority": int64(s.Catalog.Priority)}
		setString(spec, "displayName", s.Catalog.DisplayName)
		setString(spec, "publisher", s.Catalog.Publisher)
		o.Body["spec"] = spec
		state := "TRANSIENT_FAILURE"
		switch s.Catalog.State {
		case catalogReady:
			state = "READY"
		case catalogLoading:
			state = "CONNECTING"
		}
		status := map[string]any{"connectionState": map[string]any{"lastObservedState": state}}
		if state == "TRANSIENT_FAILURE" {
			setString(status, "reason", s.Catalog.Reason)
			status["message"] = "the catalog has no revision in service: chandler describe catalog " + s.Spec.Catalog
		}
		o.Status = status
		out = append(out, o)
	}
	return out
}

// Waiting are plans that may not be carried out yet, and Approved those that no step was taken of: neither has left a
// trace in the cluster.
func Waiting(list []protocol.WaitingPlan) []Plan {
	var out []Plan
	for _, w := range list {
		p := Plan{ID: w.ID, Name: w.Name, Phase: PlanWaiting, Message: w.Message, Bundles: w.Bundles}
		if w.Approved {
			p.Phase = ""
		}
		out = append(out, p)
	}
	return out
}
