package scope

import (
	"strings"

	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/clusterconfig"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/preflight"
)

// Findings are what the stages of a reconcile have found out so far. Each field names the package that writes it; the
// others read.
type Findings struct {
	// Config is what the cluster tells all operators (clusterconfig).
	Config clusterconfig.All
	// Group is the operator group (group).
	Group Group
	// Certificates are those under which operators serve, by name of the Secret (serving).
	Certificates map[string]certs.Kept
	// Former are CRDs of which a new form keeps something until its operator answers (serving).
	Former map[string]certs.Former
	// Expected are the digests, with overlays, of the Deployments that begun plans are about to write, by
	// ClusterServiceVersion and name (overlay).
	Expected map[string]map[string]string
	// Vacant are objects of plans that were not there in this reconcile, and those that several operators have (plan).
	Vacant preflight.Vacant
	// Outcomes are what is reported of plans and removals, by id (steplog).
	Outcomes map[string]protocol.PlanReport
	// Conditions are what the operators say of upgrades, by ClusterServiceVersion (condition).
	Conditions map[string]protocol.OperatorCondition
	// Unready are the Deployments that are not ready, by ClusterServiceVersion and name (lifecycle).
	Unready map[string]map[string]protocol.NotReady
	// Deleted are operators of the record that somebody deleted in the cluster (lifecycle).
	Deleted []protocol.CSVReport
	// PhaseMoved is set once a phase changed in this reconcile (objects).
	PhaseMoved bool
	// Components are the objects of the operators with their states, by ClusterServiceVersion (report).
	Components map[string][]protocol.Component
}

// LabelNamespacePrefix with a group's id behind it marks the namespaces that the group serves (R-CSV-44).
const LabelNamespacePrefix = "olm.operatorgroup.uid/"

// Group is the operator group of the namespace as it is in the cluster now.
type Group struct {
	operatorgroup.Standing

	One        bool     // there is exactly one group; else nothing is known of it
	Served     []string // targets beside its own namespace that exist
	Limits     Limits
	Conditions []protocol.GroupCondition
	// Verdicts are what becomes of the APIs of the operators, by ClusterServiceVersion.
	Verdicts map[string]operatorgroup.Verdict
}

// Annotations name to an operator, and its pods, its group and the targets (R-OG §7.3).
func (g Group) Annotations(operator string) map[string]string {
	return map[string]string{
		render.AnnotationOperatorGroup:     g.Name,
		render.AnnotationOperatorNamespace: g.Namespace,
		render.AnnotationTargetNamespaces:  strings.Join(g.Limits.Targets(operator, g.Targets), ","),
	}
}
