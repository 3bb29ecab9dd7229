package csv

import "time"

// Phase is where a ClusterServiceVersion is in its life (R-CSV §6.2).
type Phase string

// The phases.
const (
	PhaseNone         Phase = ""
	PhasePending      Phase = "Pending"
	PhaseInstallReady Phase = "InstallReady"
	PhaseInstalling   Phase = "Installing"
	PhaseSucceeded    Phase = "Succeeded"
	PhaseFailed       Phase = "Failed"
	PhaseReplacing    Phase = "Replacing"
	PhaseDeleting     Phase = "Deleting"
)

// Reason says why (R-CSV §6.2).
type Reason string

// The reasons that Next gives.
const (
	ReasonRequirementsUnknown                         Reason = "RequirementsUnknown"
	ReasonRequirementsNotMet                          Reason = "RequirementsNotMet"
	ReasonAllRequirementsMet                          Reason = "AllRequirementsMet"
	ReasonOwnerConflict                               Reason = "OwnerConflict"
	ReasonInvalidInstallStrategy                      Reason = "InvalidInstallStrategy"
	ReasonInvalidWebhookDescription                   Reason = "InvalidWebhookDescription"
	ReasonInstallComponentFailed                      Reason = "InstallComponentFailed"
	ReasonInstallComponentFailedNoRetry               Reason = "InstallComponentFailedNoRetry"
	ReasonDetectedClusterChange                       Reason = "DetectedClusterChange"
	ReasonInstallSucceeded                            Reason = "InstallSucceeded"
	ReasonInstallWaiting                              Reason = "InstallWaiting"
	ReasonInstallCheckFailed                          Reason = "InstallCheckFailed"
	ReasonComponentUnhealthy                          Reason = "ComponentUnhealthy"
	ReasonNeedsReinstall                              Reason = "NeedsReinstall"
	ReasonNeedsCertRotation                           Reason = "NeedsCertRotation"
	ReasonAPIServiceInstallFailed                     Reason = "APIServiceInstallFailed"
	ReasonAPIServiceResourceIssue                     Reason = "APIServiceResourceIssue"
	ReasonAPIServiceResourcesNeedReinstall            Reason = "APIServiceResourcesNeedReinstall"
	ReasonOperatorConditionNotUpgradeable             Reason = "OperatorConditionNotUpgradeable"
	ReasonBeingReplaced                               Reason = "BeingReplaced"
	ReasonReplaced                                    Reason = "Replaced"
	ReasonNoOperatorGroup                             Reason = "NoOperatorGroup"
	ReasonTooManyOperatorGroups                       Reason = "TooManyOperatorGroups"
	ReasonInvalidInstallModes                         Reason = "InvalidInstallModes"
	ReasonUnsupportedOperatorGroup                    Reason = "UnsupportedOperatorGroup"
	ReasonNoTargetNamespaces                          Reason = "NoTargetNamespaces"
	ReasonInterOperatorGroupOwnerConflict             Reason = "InterOperatorGroupOwnerConflict"
	ReasonCannotModifyStaticOperatorGroupProvidedAPIs Reason = "CannotModifyStaticOperatorGroupProvidedAPIs"
)

// MaxConditions is how many transitions a status keeps (R-CSV-5).
const MaxConditions = 20

// InstallTimeout is how long a ClusterServiceVersion may be Installing (R-CSV §6.3).
const InstallTimeout = 5 * time.Minute

// ReinstallInterval is how long one of which an install failed waits before it is tried again without a change in
// sight, so that an operator that never becomes healthy does not go round without end. One that merely lost its health
// does not wait.
const ReinstallInterval = 5 * time.Minute

// Condition is one entry of the history.
type Condition struct {
	Phase              Phase     `json:"phase"`
	Reason             Reason    `json:"reason"`
	Message            string    `json:"message,omitempty"`
	LastUpdateTime     time.Time `json:"lastUpdateTime"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

// Status is status of the object (R-CSV-5).
type Status struct {
	Phase              Phase         `json:"phase,omitempty"`
	Reason             Reason        `json:"reason,omitempty"`
	Message            string        `json:"message,omitempty"`
	LastUpdateTime     time.Time     `json:"lastUpdateTime,omitzero"`
	LastTransitionTime time.Time     `json:"lastTransitionTime,omitzero"`
	Conditions         []Condition   `json:"conditions,omitempty"`
	RequirementStatus  []Requirement `json:"requirementStatus,omitempty"`
	// CertsLastUpdated and CertsRotateAt are when its serving certificates were made and are to be renewed.
	CertsLastUpdated time.Time `json:"certsLastUpdated,omitzero"`
	CertsRotateAt    time.Time `json:"certsRotateAt,omitzero"`
	// ConditionsDropped counts the entries that MaxConditions pushed out, for whoever reads the
	// history and must know that it is not whole.
	ConditionsDropped int `json:"conditionsDropped,omitempty"`
}

// Transition is what Next decides. One that only changes Reason within Installing, or only Message,
// is not history: how often it is seen depends on when one looks.
type Transition struct {
	Phase   Phase
	Reason  Reason
	Message string
}

// Apply returns the status after a transition at a time. Same reports whether nothing would change.
func (s Status) Apply(t Transition, now time.Time) Status {
	now = now.UTC().Truncate(time.Second) // what the API keeps
	next := s
	next.Phase, next.Reason, next.Message, next.LastUpdateTime = t.Phase, t.Reason, t.Message, now
	if !s.isHistory(t) {
		return next
	}
	next.LastTransitionTime = now
	next.Conditions = append(append([]Condition(nil), s.Conditions...), Condition{
		Phase: t.Phase, Reason: t.Reason, Message: t.Message, LastUpdateTime: now, LastTransitionTime: now,
	})
	if over := len(next.Conditions) - MaxConditions; over > 0 {
		next.Conditions = next.Conditions[over:]
		next.ConditionsDropped += over
	}
	return next
}

// Same reports whether t is what the status says already.
func (s Status) Same(t Transition) bool {
	return s.Phase == t.Phase && s.Reason == t.Reason && s.Message == t.Message
}

func (s Status) isHistory(t Transition) bool {
	if s.Phase != t.Phase {
		return true
	}
	return s.Reason != t.Reason && t.Phase != PhaseInstalling
}
