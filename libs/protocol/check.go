package protocol

import (
	"fmt"
	"strings"
)

// Questions to the executor of a cluster, as NATS requests with JSON bodies: only it can look. Each answer is
// an Answer. They change nothing.
const (
	AskPrefix     = "chandler.ask.executor" // <prefix>.<tenant>.<cluster>.<question>
	AskCheckPlan  = "check"                 // PlanQuestion → PlanCheck
	AskRemoval    = "removal"               // RemovalQuestion → RemovalPlan
	askAllPattern = "*"
)

// AskSubject is where a question to the executor of a cluster goes.
func AskSubject(tenant, clusterID, question string) string {
	return strings.Join([]string{AskPrefix, tenant, clusterID, question}, ".")
}

// AskFilter matches all questions to the executor of a cluster.
func AskFilter(tenant, clusterID string) string {
	return AskSubject(tenant, clusterID, askAllPattern)
}

// PlanQuestion asks what would stand in the way of a plan in its cluster now.
type PlanQuestion struct {
	Namespace string `json:"namespace"`
	// Plan has a grant without a signature, which says no more than what approvers chose.
	Plan Plan `json:"plan"`
	// OperatorGroups and OperatorGroup are as in ScopePlans.
	OperatorGroups int           `json:"operatorGroups"`
	OperatorGroup  OperatorGroup `json:"operatorGroup"`
}

// PlanCheck is the answer: everything at once, not the first thing only.
type PlanCheck struct {
	// Permissions are rights that the account under which the plan runs lacks (R-IP-41).
	Permissions []MissingPermission `json:"permissions,omitempty"`
	// Account is who would do it, as a user name; "" is Chandler itself.
	Account string       `json:"account,omitempty"`
	CRDs    []CRDVerdict `json:"crds,omitempty"`
	// Shared are objects that other operators bring, too, in another form; a choice says which one holds.
	Shared []SharedObject `json:"shared,omitempty"`
	// Obstacles are other things, such as an operator that does not let itself be upgraded.
	Obstacles []Obstacle `json:"obstacles,omitempty"`
	// RemovedAPIs are a warning: they keep no plan from beginning.
	RemovedAPIs []RemovedAPI `json:"removedAPIs,omitempty"`
}

// RemovedAPI is a kind of Kubernetes' own API that something uses and that the cluster no longer serves once it is
// upgraded by one minor version, or already does not (R-CSV-61).
type RemovedAPI struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Removed string `json:"removed"`       // the first version of Kubernetes without it, such as 1.38
	For     string `json:"for,omitempty"` // what uses it, such as an object of a plan
}

// MissingPermission is one right that is missing.
type MissingPermission struct {
	User      string `json:"user"`
	Verb      string `json:"verb"`
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource,omitempty"`
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"` // "" is the whole cluster
	URL       string `json:"url,omitempty"`       // of a non-resource rule
	For       string `json:"for"`                 // the object of the plan that needs it
}

// String is the API server's sentence about a right that is missing (R-IP-41), for people.
func (m MissingPermission) String() string {
	if m.URL != "" {
		return fmt.Sprintf("%s is forbidden: User %q cannot %s path %q", m.For, m.User, m.Verb, m.URL)
	}
	named, scope := "", "at the cluster scope"
	if m.Name != "" {
		named = fmt.Sprintf(" %q", m.Name)
	}
	if m.Namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", m.Namespace)
	}
	return fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q%s in API group %q %s", m.For, m.User, m.Verb,
		m.Resource, named, m.Group, scope)
}

// CRDVerdict says whether one custom resource definition may be changed as a plan wants (R-CRD-1 … R-CRD-5).
type CRDVerdict struct {
	CRD  string `json:"crd"`
	Safe bool   `json:"safe"`
	// Reversible says whether going back afterwards is safe; Irreversible says why not.
	Reversible   bool     `json:"reversible"`
	Irreversible []string `json:"irreversible,omitempty"`
	Owners       []string `json:"owners,omitempty"` // namespace/csv
	Problems     []string `json:"problems,omitempty"`
	Warnings     []string `json:"warnings,omitempty"`
	// Checked objects were validated against the new schema; More where a limit ended it.
	Checked int      `json:"checked,omitempty"`
	More    bool     `json:"more,omitempty"`
	Invalid int      `json:"invalid,omitempty"`
	Sample  []string `json:"sample,omitempty"` // some invalid ones, with what is wrong
	// Finding is the digest by which an approver may override what is not safe; "" where nobody can. OverriddenBy are
	// those who did (opaque ids).
	Finding      string   `json:"finding,omitempty"`
	OverriddenBy []string `json:"overriddenBy,omitempty"`
}

// InTheWay reports a verdict that keeps the plan from beginning.
func (v CRDVerdict) InTheWay() bool { return !v.Safe && len(v.OverriddenBy) == 0 }

// Obstacle is something else that stands in the way.
type Obstacle struct {
	Class   string `json:"class"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// AskInstallerCheck is where the installer service is asked what stands in the way of a live install plan:
// LivePlanQuestion → PlanCheck. It knows the plan's document and asks the executor of its cluster.
const AskInstallerCheck = "chandler.ask.installer.check"

// LivePlanQuestion names an install plan that has not ended.
type LivePlanQuestion struct {
	Tenant string `json:"tenant"`
	Plan   string `json:"plan"` // id
}

// RemovalQuestion asks what a removal would do.
type RemovalQuestion struct {
	Namespace string   `json:"namespace"`
	CSV       string   `json:"csv"`
	CRDs      []string `json:"crds,omitempty"` // "*" is all of its own
	// Dependants are the operators, as namespace/csv, that the hub knows to depend on it: by requirements that are in
	// no ClusterServiceVersion.
	Dependants []string `json:"dependants,omitempty"`
}

// AskInstallerRemoval is where the installer service is asked what a removal would do: OperatorQuestion →
// RemovalPreview. It knows under which id the cluster is registered, and asks its executor.
const AskInstallerRemoval = "chandler.ask.installer.removal"

// OperatorQuestion is a question about an operator of a cluster that is known by its name.
type OperatorQuestion struct {
	Tenant  string `json:"tenant"`
	Cluster string `json:"cluster"` // name
	RemovalQuestion
}

// RemovalPreview is a plan with the digest by which it can be asked for.
type RemovalPreview struct {
	RemovalPlan
	Digest string `json:"digest"`
}
