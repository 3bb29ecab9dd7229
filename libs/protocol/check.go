package protocol

import (
	"fmt"
	"strings"

	"github.com/chandler-fleet/chandler/libs/digest"
)

// Requests to the executor of a cluster, over NATS (libs/rpc): only it can read the cluster. They change nothing.
const (
	RPCPrefix     = "chandler.rpc.executor" // <prefix>.<tenant>.<cluster>.<question>
	RPCCheckPlan  = "check"                 // PlanQuestion → PlanCheck
	RPCRemoval    = "removal"               // RemovalQuestion → RemovalPlan
	askAllPattern = "*"
)

// RPCContent is where an executor asks the hub to publish a bundle again of which it finds a chunk missing or wrong:
// <prefix>.<tenant>.<cluster>, ContentRequest → nothing.
const RPCContent = "chandler.rpc.content"

// ContentRequest names a bundle.
type ContentRequest struct {
	Digest digest.Digest `json:"digest"`
}

// RPCContentSubject is where the executor of a cluster asks for a bundle.
func RPCContentSubject(tenant, clusterID string) string {
	return strings.Join([]string{RPCContent, tenant, clusterID}, ".")
}

// RPCSubject is the subject of a request to the executor of a cluster.
func RPCSubject(tenant, clusterID, question string) string {
	return strings.Join([]string{RPCPrefix, tenant, clusterID, question}, ".")
}

// RPCFilter matches all requests to the executor of a cluster.
func RPCFilter(tenant, clusterID string) string {
	return RPCSubject(tenant, clusterID, askAllPattern)
}

// PlanQuestion asks what would block a plan in its cluster now.
type PlanQuestion struct {
	Namespace string `json:"namespace"`
	// Plan has a grant without a signature, which only contains the choices of approvers.
	Plan Plan `json:"plan"`
	// OperatorGroups and OperatorGroup are as in ScopePlans.
	OperatorGroups int           `json:"operatorGroups"`
	OperatorGroup  OperatorGroup `json:"operatorGroup"`
}

// PlanCheck is the reply: all obstacles at once, not only the first.
type PlanCheck struct {
	// Permissions are rights that the account under which the plan runs lacks (R-IP-41).
	Permissions []MissingPermission `json:"permissions,omitempty"`
	// Account is the user name of the service account; "" is Chandler itself.
	Account string       `json:"account,omitempty"`
	CRDs    []CRDVerdict `json:"crds,omitempty"`
	// Shared are objects that other operators install, too, with other content; a choice decides which one counts.
	Shared []SharedObject `json:"shared,omitempty"`
	// Allowances are what bundles of the plan need an administrator's word for, given or not.
	Allowances []Allowance `json:"allowances,omitempty"`
	// Obstacles are other reasons, such as an operator that is not upgradeable.
	Obstacles []Obstacle `json:"obstacles,omitempty"`
	// RemovedAPIs are a warning: they block no plan.
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

// CRDVerdict says whether a plan may change one custom resource definition (R-CRD-1 … R-CRD-5).
type CRDVerdict struct {
	CRD  string `json:"crd"`
	Safe bool   `json:"safe"`
	// Reversible says whether going back afterwards is safe; Irreversible says why not.
	Reversible   bool     `json:"reversible"`
	Irreversible []string `json:"irreversible,omitempty"`
	Owners       []string `json:"owners,omitempty"` // namespace/csv
	Problems     []string `json:"problems,omitempty"`
	Warnings     []string `json:"warnings,omitempty"`
	// Checked objects were validated against the new schema; More if a limit ended that.
	Checked int      `json:"checked,omitempty"`
	More    bool     `json:"more,omitempty"`
	Invalid int      `json:"invalid,omitempty"`
	Sample  []string `json:"sample,omitempty"` // some invalid ones, with what is wrong
	// Finding is the digest by which an approver may override what is not safe; "" if nobody can. OverriddenBy are
	// the actors who did.
	Finding      string   `json:"finding,omitempty"`
	OverriddenBy []string `json:"overriddenBy,omitempty"`
}

// InTheWay reports whether the verdict blocks the plan.
func (v CRDVerdict) InTheWay() bool { return !v.Safe && len(v.OverriddenBy) == 0 }

// Obstacle is another reason that blocks a plan.
type Obstacle struct {
	Class   string `json:"class"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// RPCInstallerCheck is the subject on which the installer says what blocks a live install plan:
// LivePlanQuestion → PlanCheck. It knows the plan's document and asks the executor of its cluster.
const RPCInstallerCheck = "chandler.rpc.installer.check"

// LivePlanQuestion names an install plan that has not ended.
type LivePlanQuestion struct {
	Tenant string `json:"tenant"`
	Plan   string `json:"plan"` // id
}

// RemovalQuestion asks what a removal would do.
type RemovalQuestion struct {
	Namespace string   `json:"namespace"`
	CSV       string   `json:"csv"`
	CRDs      []string `json:"crds,omitempty"` // "*" is all that it owns
	// Dependants are the operators, as namespace/csv, that the hub knows to depend on it: by requirements that are in
	// no ClusterServiceVersion.
	Dependants []string `json:"dependants,omitempty"`
}

// RPCInstallerRemoval is where the installer service is asked what a removal would do: OperatorQuestion →
// RemovalPreview. It knows under which id the cluster is registered, and asks its executor.
const RPCInstallerRemoval = "chandler.rpc.installer.removal"

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
