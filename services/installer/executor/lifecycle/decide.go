package lifecycle

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// neighbour is an operator as one that it replaces, or that replaces it, sees it; nil where it is not there.
func neighbour(i scope.Installed, said map[string]protocol.OperatorCondition, name string) *csv.Neighbour {
	m := i.Operator(name)
	if m == nil {
		return nil
	}
	n := &csv.Neighbour{Name: name, Phase: m.Status.Phase}
	if c, ok := said[name]; ok && !c.Upgradeable {
		n.NotUpgradeable = c.Message
	}
	return n
}

// replacement is what replaces an operator; one that is there and cannot be read may be that.
func replacement(i scope.Installed, said map[string]protocol.OperatorCondition, m *scope.Operator) *csv.Neighbour {
	if s := neighbour(i, said, i.Chain.Successor(m.Name())); s != nil {
		s.Settled = settled(i, s.Name)
		return s
	}
	if len(i.Unreadable) == 0 {
		return nil
	}
	if m.Status.Phase != csv.PhaseReplacing {
		return nil
	}
	return &csv.Neighbour{Name: slices.Sorted(maps.Keys(i.Unreadable))[0]}
}

// settled reports an operator that is Succeeded, or replaced by one that is, through however many others: with
// fail-forward a version is replaced that never was Succeeded (R-RES-44).
func settled(i scope.Installed, name string) bool {
	for range i.Operators {
		m := i.Operator(name)
		switch {
		case m == nil:
			return false
		case m.Status.Phase == csv.PhaseSucceeded:
			return true
		case m.Status.Phase != csv.PhaseReplacing:
			return false
		}
		name = i.Chain.Successor(name)
	}
	return false
}

// ownerConflict names another member, outside the chain of replacements, that owns one of the same APIs.
func ownerConflict(i scope.Installed, m *scope.Operator) string {
	for _, other := range i.Operators {
		if i.Chain.Related(m.Name(), other.Name()) {
			continue
		}
		theirs := ownedAPIs(other)
		for _, api := range ownedAPIs(m) {
			if slices.Contains(theirs, api) {
				return "owner conflict: " + other.Name() + " owns " + api + ", too"
			}
		}
	}
	return ""
}

// ownedAPIs names the CRDs and the API services that a member owns.
func ownedAPIs(m *scope.Operator) []string {
	var out []string
	for _, d := range m.CSV.Spec.CRDs.Owned {
		out = append(out, d.Name)
	}
	for _, d := range m.CSV.Spec.APIServices.Owned {
		out = append(out, csv.APIServiceName(d))
	}
	return out
}

// concerns reports phases that the operators before and after one in its chain wait to see: none of them is passed
// over.
func concerns(p csv.Phase) bool {
	return p == csv.PhaseSucceeded || p == csv.PhaseReplacing || p == csv.PhaseDeleting
}

// needsRequirements reports the phases whose rows ask for them (R-CSV §6.3).
func needsRequirements(p csv.Phase) bool {
	return p == csv.PhasePending || p == csv.PhaseSucceeded || p == csv.PhaseFailed
}

// installFailure says why the Deployments of an operator cannot be created: what its plan failed for, "" where it did
// not. ask is set where its plan is held up at one, and its account may not be allowed to write it: that is the API
// server's to say (R-CSV-11).
func installFailure(m *scope.Operator, x *kube.Execution) (message string, ask bool) {
	if x == nil || x.Status.Message == "" || m.Status.Phase != csv.PhaseInstallReady &&
		m.Status.Phase != csv.PhaseFailed || !stuckAtDeployment(m, x) {
		return "", false
	}
	if x.Status.Phase == protocol.PlanFailed {
		return x.Status.Message, false
	}
	return "", x.Spec.Account != "" && (x.Status.Reason == failure.ReasonForbidden ||
		m.Status.Reason == csv.ReasonInstallComponentFailedNoRetry)
}

// stuckAtDeployment reports a plan that has set about a Deployment of the member and is not done with it.
func stuckAtDeployment(m *scope.Operator, x *kube.Execution) bool {
	return slices.ContainsFunc(x.Status.Steps, func(s kube.Step) bool {
		return s.State == kube.StepTaken && s.Kind == kube.GVKDeployment.Kind &&
			slices.ContainsFunc(m.CSV.Spec.Install.Spec.Deployments,
				func(d bundle.Deployment) bool { return d.Name == s.Name })
	})
}

// served are the targets in which an operator is to have its rights: those that exist and that it may be given. Others
// are a condition of the operator group, and hold up no operator.
func served(g scope.Group, namespace, operator string) []string {
	return slices.DeleteFunc(g.Limits.Targets(operator, g.Targets), func(ns string) bool {
		return ns != "" && ns != namespace && !slices.Contains(g.Served, ns)
	})
}

// justGranted reports an operator that lacks nothing but rights, which may have been given a moment ago.
func justGranted(m *scope.Operator, rows []csv.Requirement, now time.Time) bool {
	unmet := csv.Unmet(rows)
	return len(unmet) > 0 && now.Sub(m.Object.GetCreationTimestamp().Time) < grantLag &&
		!slices.ContainsFunc(unmet, func(r csv.Requirement) bool { return len(r.Dependents) == 0 })
}

// cameFirst reports whether owner (namespace/name) is another operator of the namespace that was there before m: who
// comes second has to wait, and does no harm to the first.
func cameFirst(c scope.Chain, namespace string, m *scope.Operator, owner string) bool {
	ns, name, ok := strings.Cut(owner, "/")
	return ok && ns == namespace && c.CameFirst(name, m.Name())
}

// foreignOwner names an owner outside the member's chain of replacements, "" where one of the chain is among them.
func foreignOwner(c scope.Chain, m *scope.Operator, owners []metav1.OwnerReference) string {
	foreign := ""
	for _, owner := range owners {
		if owner.Kind != kube.GVKInstalledOperator.Kind {
			continue
		}
		if foreign = apart(c, m, owner.Name); foreign == "" {
			return ""
		}
	}
	return foreign
}

// apart returns name unless it is the member or of its chain. A name that is gone is nobody's.
func apart(c scope.Chain, m *scope.Operator, name string) string {
	if c.Apart(m.Name(), name) {
		return name
	}
	return ""
}

// action is what the phase of an operator asks for beside being written.
type action int

const (
	actNothing action = iota
	actRepair         // write its objects again
	actCarryOn        // go on with an install that waits for its Deployments
	actRemove         // remove what was replaced
)

// asks says what is to be done for an operator in its phase. planned is set while its plan is under way, which is about
// to write the Deployments itself; unsure while the last phase could not be written: it may have been written all the
// same, and is read again before it is acted on.
func asks(p csv.Phase, planned, unsure bool) action {
	switch {
	case p == csv.PhaseDeleting:
		return actRemove
	case unsure:
		return actNothing
	case p == csv.PhaseInstallReady && !planned:
		return actRepair
	case p == csv.PhaseInstalling, p == csv.PhaseFailed:
		return actCarryOn
	}
	return actNothing
}
