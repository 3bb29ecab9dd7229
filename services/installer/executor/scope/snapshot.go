package scope

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// removedFor is how long the final report of a replaced operator is sent at least.
const removedFor = time.Hour

// Snapshot is what was read of a namespace.
type Snapshot struct {
	// Wanted is what the hub wants, as it was when the reconcile began (scope).
	Wanted protocol.ScopePlans
	// RecordBehind is set where the hub's message comes from a record that has lost commits: nothing may follow from
	// it (executor).
	RecordBehind bool
	// Executions are the step logs of plans and removals; a reading, and what was opened and discarded since (steplog).
	Executions Executions
	// Installed are the operators (scope).
	Installed Installed
	// Deployments are those that Chandler wrote (scope).
	Deployments Deployments
}

// Resting reports a namespace in which nothing is under way: it can wait for others.
func (s *Snapshot) Resting() bool {
	return len(s.Wanted.Removals) == 0 && !slices.ContainsFunc(s.Wanted.Plans, func(p protocol.Plan) bool {
		x := s.Executions.Of(p.ID)
		return x == nil || !Ended(x)
	})
}

// Overrides are what is to count in the place of an operator's own conditions, nil for nothing. known is false where
// the record cannot tell: what is in the cluster stays.
func (s *Snapshot) Overrides(csvName string) (o *protocol.Overrides, known bool) {
	i := slices.IndexFunc(s.Wanted.Installed, func(i protocol.Installed) bool { return i.CSV == csvName })
	if i < 0 || s.RecordBehind {
		return nil, false
	}
	return s.Wanted.Installed[i].Overrides, true
}

// AtRest reports an operator that no plan is about to change and that is installed, as far as it can be.
func (s *Snapshot) AtRest(m *Operator) bool {
	return !s.Executions.Planned(m.Name()) && s.Installed.Chain.Successor(m.Name()) == "" && !Halted(m) &&
		(MayDeploy(m.Status.Phase) || m.Status.Phase == csv.PhaseFailed)
}

// ServesOn reports an operator that goes on serving while the one that is to replace it does not yet, or not at all.
// How one that the record does not name any more is configured is not known.
func (s *Snapshot) ServesOn(m *Operator) bool {
	named := slices.ContainsFunc(s.Wanted.Installed, func(i protocol.Installed) bool { return i.CSV == m.Name() })
	return m.Status.Phase == csv.PhaseReplacing && named && !s.Executions.Planned(m.Name())
}

// LacksRequirements reports an operator that was installed and now lacks what it requires, perhaps an object of its
// own.
func (s *Snapshot) LacksRequirements(m *Operator) bool {
	return m.Status.Phase == csv.PhasePending && m.Status.Reason == csv.ReasonRequirementsNotMet &&
		!s.Executions.Planned(m.Name()) && s.Installed.Chain.Successor(m.Name()) == ""
}

// Stuck reports a plan that is under way and does not go on by itself now.
func (s *Snapshot) Stuck(x *kube.Execution) bool {
	listed := slices.ContainsFunc(s.Wanted.Plans, func(p protocol.Plan) bool { return p.ID == x.Spec.Plan })
	return !listed || x.Status.Phase == protocol.PlanBlocked
}

// GroupAccount is the account that the operator group names, the zero value where it names none.
func (s *Snapshot) GroupAccount() kube.Account {
	name := s.Wanted.OperatorGroup.Spec.ServiceAccountName
	if name == "" {
		return kube.Account{}
	}
	return kube.Account{Namespace: s.Wanted.Scope.Namespace, Name: name}
}

// Optional reports a kind that the cluster's settings do not have an operator wait for.
func (s *Snapshot) Optional(gvk schema.GroupVersionKind) bool {
	return s.Wanted.Settings.IsOptional(gvk.Group, gvk.Kind)
}

// Unserved reports an error that says that the kind of an object is not served, where that is no reason to wait.
func (s *Snapshot) Unserved(gvk schema.GroupVersionKind, err error) bool {
	return err != nil && s.Optional(gvk) && failure.Classify(err).Reason == failure.ReasonNotServed
}

// FinalReports are the last reports of replaced ClusterServiceVersions: as long as the hub still holds them as
// installed, and for a while in any case.
func (s *Snapshot) FinalReports(now time.Time) []protocol.CSVReport {
	var out []protocol.CSVReport
	for _, x := range s.Executions {
		if x.Spec.Removal != nil && !Ended(x) {
			continue // the report is kept, and the operator is still there
		}
		for _, c := range x.Status.Removed {
			listed := slices.ContainsFunc(s.Wanted.Installed,
				func(i protocol.Installed) bool { return i.CSV == c.Name && (c.UID != "" || i.Plan == c.Plan) })
			alive := slices.ContainsFunc(s.Installed.Operators,
				func(m *Operator) bool { return string(m.Object.GetUID()) == c.UID })
			fresh := len(c.History) > 0 && now.Sub(c.History[len(c.History)-1].Time) < removedFor
			if !alive && (listed || fresh) {
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(a, b protocol.CSVReport) int { return strings.Compare(a.Name+a.UID, b.Name+b.UID) })
	return out
}
