package mirror

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// PlanWaiting is the phase of a plan that waits for approval, beside those of protocol.
const PlanWaiting = "Waiting"

// Plan is an install plan as the cluster knows it.
type Plan struct {
	ID      string
	Name    string
	Phase   string // as in protocol, or PlanWaiting; "" has not begun
	Message string
	Started time.Time
	Ended   time.Time
	Bundles []events.PlannedBundle
	Steps   []PlanStep
	// Warned are the steps that the API server warned of, under way or ended.
	Warned []WarnedStep
}

// WarnedStep is a step with warnings.
type WarnedStep struct {
	Index     int    // place in the plan, from 0
	Resolving string // ClusterServiceVersion
	Kind      string
	Name      string
	Texts     []string
	Time      time.Time
}

// PlanStep is one step of a plan.
type PlanStep struct {
	Resolving string // ClusterServiceVersion
	GVK       gvk
	Name      string
	Done      bool
}

// Approvals, as OLM says them.
const (
	approvalAutomatic = "Automatic"
	approvalManual    = "Manual"
)

// Known is what a cluster knows of a namespace.
type Known struct {
	Installed []Operator
	Plans     []Plan // oldest first
	// FailForward is the operator group's upgrade strategy TechPreviewUnsafeFailForward.
	FailForward bool
}

// Subscription shows a subscription. Of several plans the newest that moves its package counts. Its configuration is
// not shown: it may hold secrets, and reaches the cluster in the Deployments alone.
func Subscription(namespace string, s protocol.Subscription, k Known, now time.Time) Object {
	labels, annotations := mirrorMetadata(s.Metadata, componentOf(s.Spec.Package, namespace), nil)
	o := newObject(GVKSubscription, namespace, s.Name, labels, annotations)
	spec := map[string]any{
		"name": s.Spec.Package, "source": s.Spec.Catalog, "sourceNamespace": s.Spec.CatalogNamespace,
		"installPlanApproval": cmp.Or(s.Spec.Approval, approvalAutomatic),
	}
	setString(spec, "channel", s.Spec.Channel)
	setString(spec, "startingCSV", s.Spec.StartingCSV)
	o.Body["spec"] = spec

	status := map[string]any{"lastUpdated": stamp(now)}
	have := installedOf(s.Spec.Package, k.Installed)
	current, plan := have, Plan{}
	for _, p := range k.Plans {
		if i := slices.IndexFunc(p.Bundles,
			func(b events.PlannedBundle) bool { return b.Package == s.Spec.Package }); i >= 0 {
			plan, current = p, p.Bundles[i].CSV
		}
	}
	setString(status, "installedCSV", have)
	setString(status, "currentCSV", current)
	setString(status, "state", subscriptionState(have, current, k.FailForward && plan.Phase == protocol.PlanFailed))
	if plan.ID != "" {
		ref := map[string]any{
			"apiVersion": GVKInstallPlan.GroupVersion().String(), "kind": GVKInstallPlan.Kind, "name": plan.Name,
			"namespace": namespace,
		}
		status["installPlanRef"], status["installplan"] = ref, ref
	}
	status["conditions"] = append(subscriptionConditions(s, plan, now), deprecationConditions(s, have, now)...)
	status["catalogHealth"] = catalogHealth(namespace, s, now)
	o.Status, o.Events = status, subscriptionEvents(s)
	return o
}

// subscriptionState is the table of R-SUB-21. failed is set where the plan of current failed and the operator group is
// to fail forward.
func subscriptionState(installed, current string, failed bool) string {
	switch {
	case current == "":
		return ""
	case current == installed:
		return "AtLatestKnown"
	case failed:
		return "UpgradeFailed"
	default:
		return "UpgradePending"
	}
}

// installedOf is the ClusterServiceVersion of a package: of two, the one that replaces the other.
func installedOf(pkg string, installed []Operator) string {
	name := ""
	for _, op := range installed {
		if op.Package == pkg && (name == "" || op.Replaces == name) {
			name = op.Name
		}
	}
	return name
}

// InstallPlan shows a plan. Manifests are left out: they are many times the size of all the rest, and lie in the
// objects themselves.
func InstallPlan(namespace string, p Plan, subscriptions []protocol.Subscription) Object {
	o := newObject(GVKInstallPlan, namespace, p.Name, shown(namespace), nil)
	names := make([]string, len(p.Bundles))
	sources := map[string]events.PlannedBundle{}
	for i, b := range p.Bundles {
		names[i] = b.CSV
		sources[b.CSV] = b
	}
	slices.Sort(names)
	o.Body["spec"] = map[string]any{
		"approval": approvalOf(p, subscriptions), "approved": p.Phase != PlanWaiting,
		"clusterServiceVersionNames": anys(names),
	}
	steps := []any{}
	for _, s := range p.Steps {
		steps = append(steps, planStep(s, sources[s.Resolving].Catalog))
	}
	status := map[string]any{"phase": planPhase(p.Phase), "catalogSources": []any{}, "plan": steps}
	if !p.Started.IsZero() {
		status["startTime"] = stamp(p.Started)
	}
	setString(status, "message", p.Message)
	if c := planCondition(p); c != nil {
		status["conditions"] = []any{c}
	}
	o.Status, o.Events = status, planEvents(p)
	return o
}

// approvalOf is Manual where a subscription of the plan is (R-IP §5.1).
func approvalOf(p Plan, subscriptions []protocol.Subscription) string {
	for _, s := range subscriptions {
		if s.Spec.Approval == approvalManual && slices.ContainsFunc(
			p.Bundles, func(b events.PlannedBundle) bool { return b.Package == s.Spec.Package }) {
			return approvalManual
		}
	}
	return approvalAutomatic
}

func planStep(s PlanStep, catalog string) map[string]any {
	status := "Unknown"
	if s.Done {
		status = "Created"
	}
	return map[string]any{"resolving": s.Resolving, "status": status, "resource": map[string]any{
		"group": s.GVK.Group, "version": s.GVK.Version, "kind": s.GVK.Kind, "name": s.Name,
		"sourceName": catalog, "sourceNamespace": "", "manifest": "",
	}}
}

// planPhase is the phase in OLM's words (R-IP-5): a plan that is blocked goes on by itself.
func planPhase(phase string) string {
	switch phase {
	case protocol.PlanFinished:
		return "Complete"
	case protocol.PlanFailed:
		return "Failed"
	case PlanWaiting:
		return "RequiresApproval"
	default:
		return "Installing"
	}
}

// planCondition is the condition Installed (R-IP-5); nil while nothing is to be said.
func planCondition(p Plan) map[string]any {
	c := map[string]any{"type": "Installed", "status": "True"}
	since := p.Ended
	switch p.Phase {
	case protocol.PlanFinished:
	case protocol.PlanFailed, protocol.PlanBlocked:
		c["status"], c["reason"] = "False", "InstallComponentFailed"
		if p.Started.IsZero() {
			c["reason"] = "InstallCheckFailed"
		}
		setString(c, "message", p.Message)
	default:
		return nil
	}
	if since.IsZero() {
		since = p.Started
	}
	if !since.IsZero() {
		c["lastTransitionTime"], c["lastUpdateTime"] = stamp(since), stamp(since)
	}
	return c
}

// OperatorGroup shows the operator group of a namespace.
func OperatorGroup(namespace string, g protocol.OperatorGroup, report protocol.GroupReport, now time.Time) (
	Object, error,
) {
	annotations := map[string]string{}
	if len(report.ProvidedAPIs) > 0 {
		annotations["olm.providedAPIs"] = strings.Join(report.ProvidedAPIs, ",")
	}
	if g.Spec.ExcludeGlobalCatalogs {
		annotations[annotationExcludeGlobal] = "true"
	}
	labels, annotations := mirrorMetadata(g.Metadata, shown(namespace), annotations)
	o := newObject(GVKOperatorGroup, namespace, g.Name, labels, annotations)
	spec := map[string]any{"upgradeStrategy": cmp.Or(g.Spec.UpgradeStrategy, "Default")}
	if len(g.Spec.TargetNamespaces) > 0 {
		spec["targetNamespaces"] = anys(g.Spec.TargetNamespaces)
	}
	selector, err := jsonOf(g.Spec.Selector)
	if err != nil {
		return o, err
	}
	if len(selector) > 0 {
		spec["selector"] = selector
	}
	if g.Spec.StaticProvidedAPIs {
		spec["staticProvidedAPIs"] = true
	}
	setString(spec, "serviceAccountName", g.Spec.ServiceAccountName)
	o.Body["spec"] = spec
	status := map[string]any{"lastUpdated": stamp(now), "namespaces": anys(report.Targets)}
	if conditions := groupConditions(report.Conditions, now); len(conditions) > 0 {
		status["conditions"] = conditions
	}
	o.Status = status
	return o, nil
}

func groupConditions(list []protocol.GroupCondition, now time.Time) []any {
	var out []any
	for _, c := range list {
		out = append(out, map[string]any{
			"type": c.Type, "status": "True", "reason": c.Reason, "message": c.Message,
			"lastTransitionTime": stamp(now),
		})
	}
	return out
}

// OperatorOf shows all parts of a package in a namespace, which is where to see what belongs to it (R-CSV-62). With
// missing the namespace itself is not there yet: it is told as the one part that is still to come.
func OperatorOf(namespace, pkg string, parts []protocol.Component, missing bool, now time.Time) Object {
	o := newObject(GVKOperator, "", OperatorName(pkg, namespace), shown(namespace), nil)
	o.Body["spec"] = map[string]any{}
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b protocol.Component) int { return compareRefs(a.ObjectRef, b.ObjectRef) })
	parts = slices.CompactFunc(parts, func(a, b protocol.Component) bool { return a.ObjectRef == b.ObjectRef })
	refs := []any{}
	if missing {
		refs = append(refs, map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "name": namespace,
			"conditions": []any{conditionOf("Available", "False", "NamespaceToCome",
				"the namespace is not there yet: Chandler makes it with the first plan that is carried out in it",
				now)},
		})
	}
	for _, p := range parts {
		ref := map[string]any{
			"apiVersion": runtimeschema.GroupVersion{Group: p.Group, Version: p.Version}.String(), "kind": p.Kind,
			"name": p.Name,
		}
		setString(ref, "namespace", p.Namespace)
		if p.Status == protocol.ComponentWaiting {
			ref["conditions"] = []any{conditionOf("Available", "False", protocol.ReasonNotServed, p.Message, now)}
		}
		refs = append(refs, ref)
	}
	o.Status = map[string]any{"components": map[string]any{
		"labelSelector": map[string]any{"matchExpressions": []any{
			map[string]any{"key": ComponentLabel(pkg, namespace), "operator": "Exists"},
		}},
		"refs": refs,
	}}
	return o
}

func compareRefs(a, b protocol.ObjectRef) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
}

func componentOf(pkg, namespace string) map[string]string {
	labels := maps.Clone(shown(namespace))
	labels[ComponentLabel(pkg, namespace)] = ""
	return labels
}

func setString(m map[string]any, key, value string) {
	if value != "" {
		m[key] = value
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
