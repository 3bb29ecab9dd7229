package rollout

import (
	"github.com/chandler-fleet/chandler/libs/events"
)

// Fact is an event about the operator of a rollout on one cluster.
type Fact struct {
	ID          string
	Correlation string
	Payload     events.Payload
}

// Codes of why a cluster failed, beside those that its events name.
const (
	ReasonRejected = "PlanRejected" // a person ended the plan
	ReasonRemoved  = "Removed"      // the operator went while it was being changed
	// ReasonNotAtTarget says that nothing leads to the target from what is installed.
	ReasonNotAtTarget = "NoUpgradePath"
)

// atLatestKnown is the outcome of a resolution that has nothing to do.
const atLatestKnown = "AtLatestKnown"

// phases of a ClusterServiceVersion that end a change (R-CSV §6.2).
const (
	phaseSucceeded = "Succeeded"
	phaseFailed    = "Failed"
)

// unresolvable are the reasons of failed resolutions that nothing but another intent or another catalog mends. All
// others pass, or the cluster's deadline does.
var unresolvable = map[string]bool{"ConstraintsNotSatisfiable": true}

// With takes in one fact: what was not caused by the directive changes nothing (P22). A step in between, to a version
// before the target, is no outcome.
func (s Seen) With(target events.RolloutTarget, f Fact) Seen {
	if s.Directive == "" || f.Correlation != s.Directive {
		return s
	}
	failed := func(reason string) Seen {
		s.Outcome, s.Reason, s.Content, s.Cause = events.ClusterFailed, reason, "", f.ID
		return s
	}
	switch p := f.Payload.(type) {
	case events.ResolutionFailed:
		if unresolvable[p.Reason] {
			return failed(p.Reason)
		}
	case events.ResolutionSucceeded:
		switch {
		case p.Outcome != atLatestKnown:
		case s.Outcome == events.ClusterFailed: // that something is there does not say that it runs
		case p.CSV == target.CSV && p.Content == "": // it is there, and does not run
		case p.CSV == target.CSV: // it was there already, and says so because it was asked
			s.Outcome, s.Reason, s.Content, s.Cause = events.ClusterSucceeded, "", p.Content, f.ID
		default:
			return failed(ReasonNotAtTarget)
		}
	case events.InstallPlanFailed:
		return failed(p.Reason)
	case events.InstallPlanRejected:
		return failed(ReasonRejected)
	case events.CSVPhaseChanged:
		switch {
		case p.Phase == phaseFailed:
			return failed(p.Reason)
		case p.Phase == phaseSucceeded && p.Name == target.CSV:
			s.Outcome, s.Reason, s.Content, s.Cause = events.ClusterSucceeded, "", p.Content, f.ID
		}
	case events.CSVRemoved:
		if p.Reason != "Replaced" {
			return failed(ReasonRemoved)
		}
	}
	return s
}
