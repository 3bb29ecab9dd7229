package csv

import (
	"slices"
	"time"
)

// Observation is everything that decides the next phase. It is taken anew for each decision.
type Observation struct {
	Now time.Time
	// OperatorGroups counts the groups of the namespace.
	OperatorGroups int
	// DuplicateMode is an install mode that is listed twice.
	DuplicateMode string
	// ModesError is the message of R-CSV-31 when the targets are not supported.
	ModesError string
	// TargetsKnown is set when the object has the annotation olm.targetNamespaces.
	TargetsKnown bool
	// FailForward is the operator group's upgrade strategy TechPreviewUnsafeFailForward.
	FailForward bool
	// StrategyError says why the install strategy cannot be read.
	StrategyError string
	// Requirements are all rows of the check, met or not.
	Requirements []Requirement
	// OwnerConflict names another owner of one of its APIs, outside its chain of replacements.
	OwnerConflict string
	// InstallError says why a component could not be created.
	InstallError string
	// Components is the state of its Deployments.
	Components Components
	// Predecessor is the ClusterServiceVersion that it replaces, where that still exists.
	Predecessor *Neighbour
	// Successor is the one that replaces it.
	Successor *Neighbour
}

// Neighbour is another ClusterServiceVersion in the chain of replacements.
type Neighbour struct {
	Name  string
	Phase Phase
}

// next is a decision; ok is false where the row does not apply.
type next struct {
	Transition
	ok bool
}

func to(p Phase, r Reason, message string) next {
	return next{Transition: Transition{Phase: p, Reason: r, Message: message}, ok: true}
}

// Next returns the next transition of the table in R-CSV §6.3, first match; ok is false when the
// status stays as it is. Deleting has no successor: the caller removes the object.
func Next(s Status, o Observation) (t Transition, ok bool) {
	n := decide(s, o)
	if !n.ok || s.Same(n.Transition) {
		return Transition{}, false
	}
	return n.Transition, true
}

func decide(s Status, o Observation) next {
	if member := s.Phase != PhaseNone && s.Phase != PhaseReplacing && s.Phase != PhaseDeleting; member {
		if n := membership(o); n.ok {
			return n
		}
	}
	switch s.Phase {
	case PhasePending:
		return fromPending(o)
	case PhaseInstallReady:
		return fromInstallReady(o)
	case PhaseInstalling:
		return fromInstalling(s, o)
	case PhaseSucceeded:
		return fromSucceeded(o)
	case PhaseFailed:
		return fromFailed(s, o)
	case PhaseReplacing:
		return fromReplacing(o)
	case PhaseDeleting:
		return next{}
	case PhaseNone:
	}
	return to(PhasePending, ReasonRequirementsUnknown, "requirements not yet checked")
}

// membership holds the rows "any": what the operator group allows.
func membership(o Observation) next {
	switch {
	case o.OperatorGroups == 0:
		return to(PhaseFailed, ReasonNoOperatorGroup, "csv in namespace with no operatorgroups")
	case o.OperatorGroups > 1:
		return to(PhaseFailed, ReasonTooManyOperatorGroups, "csv created in namespace with multiple operatorgroups, can't pick one automatically")
	case o.DuplicateMode != "":
		return to(PhaseFailed, ReasonInvalidInstallModes, "install mode "+o.DuplicateMode+" is listed more than once")
	case o.ModesError != "":
		return to(PhaseFailed, ReasonUnsupportedOperatorGroup, o.ModesError)
	case !o.TargetsKnown:
		return to(PhaseFailed, ReasonNoTargetNamespaces, "no targetNamespaces are set on the csv")
	}
	return next{}
}

func fromPending(o Observation) next {
	switch {
	case o.StrategyError != "":
		return to(PhaseFailed, ReasonInvalidInstallStrategy, o.StrategyError)
	case len(Unmet(o.Requirements)) > 0:
		return to(PhasePending, ReasonRequirementsNotMet, "one or more requirements couldn't be found")
	case o.OwnerConflict != "":
		return to(PhaseFailed, ReasonOwnerConflict, o.OwnerConflict)
	case o.Predecessor != nil && o.Predecessor.Phase != PhaseReplacing && o.Predecessor.Phase != PhaseDeleting:
		return next{}
	}
	return to(PhaseInstallReady, ReasonAllRequirementsMet, "all requirements found, attempting install")
}

func fromInstallReady(o Observation) next {
	switch {
	case o.InstallError != "":
		return to(PhaseFailed, ReasonInstallComponentFailed, o.InstallError)
	case o.Components.Applied:
		return to(PhaseInstalling, ReasonInstallSucceeded, "waiting for install components to report healthy")
	}
	return next{}
}

func fromInstalling(s Status, o Observation) next {
	c := o.Components
	switch {
	case c.Healthy:
		return to(PhaseSucceeded, ReasonInstallSucceeded, "install strategy completed with no errors")
	case c.DeadlineExceeded:
		return to(PhaseFailed, ReasonInstallCheckFailed, "install failed: "+c.Message)
	case o.Now.Sub(s.LastTransitionTime) >= InstallTimeout:
		return to(PhaseFailed, ReasonInstallCheckFailed, "install timeout")
	}
	return to(PhaseInstalling, ReasonInstallWaiting, "installing: "+c.Message)
}

func fromSucceeded(o Observation) next {
	c := o.Components
	switch {
	case o.Successor != nil:
		return to(PhaseReplacing, ReasonBeingReplaced, "being replaced by csv: "+o.Successor.Name)
	case len(Unmet(o.Requirements)) > 0:
		return to(PhaseFailed, ReasonRequirementsNotMet, "requirements no longer met")
	case !c.Applied:
		return to(PhaseInstallReady, ReasonComponentUnhealthy, "installing: "+c.Message)
	case !c.Healthy:
		return to(PhaseFailed, ReasonComponentUnhealthy, "component unhealthy: "+c.Message)
	}
	return next{}
}

func fromFailed(s Status, o Observation) next {
	c := o.Components
	switch {
	case o.Successor != nil && o.FailForward:
		return to(PhaseReplacing, ReasonBeingReplaced, "being replaced by csv: "+o.Successor.Name)
	case ofGroup(s.Reason):
		return to(PhasePending, ReasonRequirementsUnknown, "operator group no longer prevents the install")
	case o.StrategyError != "", o.OwnerConflict != "":
		return next{}
	case len(Unmet(o.Requirements)) > 0:
		return to(PhasePending, ReasonRequirementsNotMet, "requirements not met")
	case c.Healthy:
		return to(PhaseSucceeded, ReasonInstallSucceeded, "install strategy completed with no errors")
	case !c.Applied, o.Now.Sub(s.LastTransitionTime) >= ReinstallInterval:
		return to(PhasePending, ReasonNeedsReinstall, "components are not healthy: "+c.Message)
	}
	return next{}
}

// ofGroup reports whether membership gave the reason.
func ofGroup(r Reason) bool {
	return slices.Contains([]Reason{
		ReasonNoOperatorGroup, ReasonTooManyOperatorGroups, ReasonInvalidInstallModes, ReasonUnsupportedOperatorGroup, ReasonNoTargetNamespaces,
	}, r)
}

func fromReplacing(o Observation) next {
	switch {
	case o.Predecessor != nil:
		return next{} // the chain is removed from its oldest end
	case o.Successor != nil && o.Successor.Phase == PhaseSucceeded:
		return to(PhaseDeleting, ReasonReplaced, "has been replaced by a newer ClusterServiceVersion that has successfully installed.")
	}
	return next{}
}

// Wake returns how long after o.Now the clock alone may change the phase; zero when it will not.
func Wake(s Status, o Observation) time.Duration {
	var limit time.Duration
	switch {
	case s.Phase == PhaseInstalling:
		limit = InstallTimeout
	case s.Phase == PhaseFailed && !ofGroup(s.Reason):
		limit = ReinstallInterval
	default:
		return 0
	}
	return max(time.Second, limit-o.Now.Sub(s.LastTransitionTime))
}
