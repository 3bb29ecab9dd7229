package csv

import (
	"cmp"
	"slices"
	"time"
)

// The table of R-CSV §6.3. The first row that fits holds; TestTable names each.
//
//	from                  when                                               to (reason)
//	Failed                InstallComponentFailedNoRetry, still forbidden     unchanged
//	Failed                InstallComponentFailedNoRetry, no longer           Pending (DetectedClusterChange)
//	any                   no operator group in the namespace                 Failed (NoOperatorGroup)
//	any                   several operator groups                            Failed (TooManyOperatorGroups)
//	any                   an install mode is listed twice                    Failed (InvalidInstallModes)
//	any                   targets not supported by the modes                 Failed (UnsupportedOperatorGroup)
//	any                   no annotation olm.targetNamespaces                 Failed (NoTargetNamespaces)
//	any                   another group provides its APIs                    Failed (InterOperatorGroupOwnerConflict)
//	any                   its static group does not provide its APIs         Failed (CannotModifyStaticOperatorGroupProvidedAPIs)
//	""                    -                                                  Pending (RequirementsUnknown)
//	Pending               the one that it replaces is not upgradeable        Pending (OperatorConditionNotUpgradeable)
//	Pending               install strategy cannot be read                    Failed (InvalidInstallStrategy)
//	Pending               a requirement is unmet                             Pending (RequirementsNotMet)
//	Pending               webhook descriptions are invalid                   Failed (InvalidWebhookDescription)
//	Pending               one outside its chain owns one of its APIs         Failed (OwnerConflict)
//	Pending               the one that it replaces is not yet Replacing      unchanged
//	Pending               all met                                            InstallReady (AllRequirementsMet)
//	InstallReady          the group's account may not create components      Failed (InstallComponentFailedNoRetry)
//	InstallReady          creating components failed                         Failed (InstallComponentFailed)
//	InstallReady          created                                            Installing (InstallSucceeded)
//	Installing            an owned API service is broken                     Failed (APIServiceInstallFailed)
//	Installing            all healthy                                        Succeeded (InstallSucceeded)
//	Installing            a Deployment exceeded its progress deadline        Failed (InstallCheckFailed)
//	Installing            five minutes since the last transition             Failed (InstallCheckFailed)
//	Installing            not yet healthy                                    Installing (InstallWaiting)
//	Succeeded             another one replaces it                            Replacing (BeingReplaced)
//	Succeeded             an owned API service is broken                     Failed (APIServiceInstallFailed)
//	Succeeded             objects of its API services missing or wrong       Failed (APIServiceResourceIssue)
//	Succeeded             certificates are due                               Pending (NeedsCertRotation)
//	Succeeded             a requirement vanished                             Failed (RequirementsNotMet)
//	Succeeded             a Deployment differs from what it should be        InstallReady (ComponentUnhealthy)
//	Succeeded             a component is unhealthy                           Failed (ComponentUnhealthy)
//	Failed                fail-forward, and another one replaces it          Replacing (BeingReplaced)
//	Failed                the operator group's cause is gone                 Pending (RequirementsUnknown)
//	Failed                a cause that only another plan removes remains     unchanged
//	Failed                requirements are unmet                             Pending (RequirementsNotMet)
//	Failed                objects of its API services are to be fixed       Pending (APIServiceResourcesNeedReinstall)
//	Failed                certificates are due                               Pending (NeedsCertRotation)
//	Failed                all healthy                                        Succeeded (InstallSucceeded)
//	Failed                a Deployment has exceeded its progress deadline    Failed (InstallCheckFailed)
//	Failed                it lost its health, or its components              Pending (NeedsReinstall)
//	Failed                five minutes after an install that failed          Pending (NeedsReinstall)
//	Failed                an install failed a short while ago                Failed (InstallCheckFailed)
//	Replacing             nothing replaces it any more                       Pending (RequirementsUnknown)
//	Replacing             the one that it replaces still exists              unchanged
//	Replacing             its replacements lead to one that is Succeeded     Deleting (Replaced)
//	Deleting              -                                                  the caller removes the object
//
// Being replaced comes before a broken API service, since that is what an upgrade may fix.

// next is a decision; ok is false where the row does not apply.
type next struct {
	Transition
	ok bool
}

func to(p Phase, r Reason, message string) next {
	return next{Transition: Transition{Phase: p, Reason: r, Message: message}, ok: true}
}

// Next returns the next transition of the table above; ok is false when the status stays as it is.
func Next(s Status, o Observation) (t Transition, ok bool) {
	n := decide(s, o)
	if !n.ok || s.Same(n.Transition) {
		return Transition{}, false
	}
	return n.Transition, true
}

func decide(s Status, o Observation) next {
	if s.Phase == PhaseFailed && s.Reason == ReasonInstallComponentFailedNoRetry {
		if o.InstallForbidden {
			return next{}
		}
		return to(PhasePending, ReasonDetectedClusterChange, "Cluster resources changed state")
	}
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
		return to(PhaseFailed, ReasonTooManyOperatorGroups,
			"csv created in namespace with multiple operatorgroups, can't pick one automatically")
	case o.DuplicateMode != "":
		return to(PhaseFailed, ReasonInvalidInstallModes, "install mode "+o.DuplicateMode+" is listed more than once")
	case o.ModesError != "":
		return to(PhaseFailed, ReasonUnsupportedOperatorGroup, o.ModesError)
	case !o.TargetsKnown:
		return to(PhaseFailed, ReasonNoTargetNamespaces, "no targetNamespaces are set on the csv")
	case o.Intersection == ReasonInterOperatorGroupOwnerConflict:
		return to(PhaseFailed, o.Intersection, cmp.Or(o.IntersectionMessage,
			"intersecting operatorgroups provide the same apis"))
	case o.Intersection == ReasonCannotModifyStaticOperatorGroupProvidedAPIs:
		return to(PhaseFailed, o.Intersection, cmp.Or(o.IntersectionMessage,
			"static provided api operatorgroup cannot be modified by these apis"))
	}
	return next{}
}

func fromPending(o Observation) next {
	p := o.Predecessor
	switch {
	case p != nil && p.NotUpgradeable != "":
		return to(PhasePending, ReasonOperatorConditionNotUpgradeable, "operator is not upgradeable: "+p.NotUpgradeable)
	case o.StrategyError != "":
		return to(PhaseFailed, ReasonInvalidInstallStrategy, o.StrategyError)
	case len(Unmet(o.Requirements)) > 0:
		return to(PhasePending, ReasonRequirementsNotMet, "one or more requirements couldn't be found")
	case o.Serving.InvalidWebhook != "":
		return to(PhaseFailed, ReasonInvalidWebhookDescription, o.Serving.InvalidWebhook)
	case o.OwnerConflict != "":
		return to(PhaseFailed, ReasonOwnerConflict, o.OwnerConflict)
	case p != nil && p.Phase != PhaseReplacing && p.Phase != PhaseDeleting:
		return next{}
	}
	return to(PhaseInstallReady, ReasonAllRequirementsMet, "all requirements found, attempting install")
}

func fromInstallReady(o Observation) next {
	switch {
	case o.InstallError != "" && o.InstallForbidden:
		return to(PhaseFailed, ReasonInstallComponentFailedNoRetry, o.InstallError)
	case o.InstallError != "":
		return to(PhaseFailed, ReasonInstallComponentFailed, o.InstallError)
	case o.Components.Applied && o.Serving.ObjectsWrong == "" && !o.Serving.RotationDue:
		return to(PhaseInstalling, ReasonInstallSucceeded, "waiting for install components to report healthy")
	}
	return next{}
}

func fromInstalling(s Status, o Observation) next {
	switch {
	case o.Serving.Broken != "":
		return to(PhaseFailed, ReasonAPIServiceInstallFailed, "APIService install failed: "+o.Serving.Broken)
	case o.healthy():
		return to(PhaseSucceeded, ReasonInstallSucceeded, "install strategy completed with no errors")
	case o.Components.DeadlineExceeded:
		return to(PhaseFailed, ReasonInstallCheckFailed, "install failed: "+o.unhealthy())
	case o.Now.Sub(s.LastTransitionTime) >= InstallTimeout:
		return to(PhaseFailed, ReasonInstallCheckFailed, "install timeout")
	}
	return to(PhaseInstalling, ReasonInstallWaiting, "installing: "+o.unhealthy())
}

func fromSucceeded(o Observation) next {
	c := o.Components
	switch {
	case o.Successor != nil:
		return to(PhaseReplacing, ReasonBeingReplaced, "being replaced by csv: "+o.Successor.Name)
	case o.Serving.Broken != "":
		return to(PhaseFailed, ReasonAPIServiceInstallFailed, "APIService install failed: "+o.Serving.Broken)
	case o.Serving.ObjectsWrong != "":
		return to(PhaseFailed, ReasonAPIServiceResourceIssue, o.Serving.ObjectsWrong)
	case o.Serving.RotationDue:
		return to(PhasePending, ReasonNeedsCertRotation, "owned APIServices need cert refresh")
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
	switch {
	case o.Successor != nil && o.FailForward:
		return to(PhaseReplacing, ReasonBeingReplaced, "being replaced by csv: "+o.Successor.Name)
	case ofGroup(s.Reason):
		return to(PhasePending, ReasonRequirementsUnknown, "operator group no longer prevents the install")
	case o.StrategyError != "", o.Serving.InvalidWebhook != "", o.OwnerConflict != "", o.InstallError != "":
		return next{}
	case len(Unmet(o.Requirements)) > 0:
		return to(PhasePending, ReasonRequirementsNotMet, "requirements not met")
	case o.Serving.ObjectsWrong != "":
		return to(PhasePending, ReasonAPIServiceResourcesNeedReinstall, o.Serving.ObjectsWrong)
	case o.Serving.RotationDue:
		return to(PhasePending, ReasonNeedsCertRotation, "owned APIServices need cert refresh")
	case o.healthy():
		return to(PhaseSucceeded, ReasonInstallSucceeded, "install strategy completed with no errors")
	case o.Components.Applied && o.Components.DeadlineExceeded:
		return to(PhaseFailed, ReasonInstallCheckFailed, "install failed: "+o.unhealthy())
	case !o.Components.Applied, lostHealth(s, o), o.Now.Sub(s.LastTransitionTime) >= ReinstallInterval:
		return to(PhasePending, ReasonNeedsReinstall, "installing: "+o.unhealthy())
	case s.Reason == ReasonInstallCheckFailed:
		return to(PhaseFailed, s.Reason, "install timeout: "+o.unhealthy()) // why may have become known since
	}
	return next{}
}

// lostHealth reports one that ran and is not healthy any more: it is installed again at once (R-CSV-11), unless that
// would fail as it begins. What it was Failed for, a component, a requirement or an API service, may have changed
// since.
func lostHealth(s Status, o Observation) bool {
	lost := []Reason{
		ReasonComponentUnhealthy, ReasonRequirementsNotMet, ReasonAPIServiceResourceIssue,
		ReasonAPIServiceInstallFailed,
	}
	return slices.Contains(lost, s.Reason) && o.Serving.Broken == ""
}

// ofGroup reports whether membership gave the reason.
func ofGroup(r Reason) bool {
	return slices.Contains([]Reason{
		ReasonNoOperatorGroup, ReasonTooManyOperatorGroups, ReasonInvalidInstallModes, ReasonUnsupportedOperatorGroup,
		ReasonNoTargetNamespaces, ReasonInterOperatorGroupOwnerConflict,
		ReasonCannotModifyStaticOperatorGroupProvidedAPIs,
	}, r)
}

func fromReplacing(o Observation) next {
	switch {
	case o.Successor == nil:
		return to(PhasePending, ReasonRequirementsUnknown, "the ClusterServiceVersion that was to replace it is gone")
	case o.Predecessor != nil:
		return next{} // the chain is removed from its oldest end
	case o.Successor.Settled:
		return to(PhaseDeleting, ReasonReplaced,
			"has been replaced by a newer ClusterServiceVersion that has successfully installed.")
	}
	return next{}
}

// Wake returns how long after o.Now the clock alone may change the phase; zero when it will not.
func Wake(s Status, o Observation) time.Duration {
	var limit time.Duration
	switch {
	case s.Phase == PhaseInstalling:
		limit = InstallTimeout
	case s.Phase == PhaseFailed && !ofGroup(s.Reason) && !o.Components.DeadlineExceeded:
		limit = ReinstallInterval
	default:
		return 0
	}
	return max(time.Second, limit-o.Now.Sub(s.LastTransitionTime))
}
