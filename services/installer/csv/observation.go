package csv

import (
	"strings"
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
	// Intersection says how the provided APIs of operator groups forbid it (R-OG §7.7):
	// ReasonInterOperatorGroupOwnerConflict or ReasonCannotModifyStaticOperatorGroupProvidedAPIs, "" where they do not.
	Intersection Reason
	// IntersectionMessage names the APIs and the group.
	IntersectionMessage string
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
	// InstallForbidden is set while the service account of the operator group may not create the components.
	InstallForbidden bool
	// Serving is the state of its API services and webhooks.
	Serving Serving
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
	// NotUpgradeable says why it does not let itself be replaced now (R-COND-3); "" where it does.
	NotUpgradeable string
	// Settled is set of a successor that is Succeeded, or replaced in turn by one that is.
	Settled bool
}

// Serving is the state of the API services that a ClusterServiceVersion owns, of its webhooks and of their
// certificates (R-CSV-40 … R-CSV-46); the zero value holds where all is well and where there are none.
type Serving struct {
	// InvalidWebhook says why its webhook descriptions are rejected (R-CSV-45, R-CSV-46).
	InvalidWebhook string
	// RotationDue is set when its certificates are to be renewed.
	RotationDue bool
	// ObjectsWrong names what is missing or not as it should be among the objects of its API services.
	ObjectsWrong string
	// Waiting names what is not served, as it is for a while after a start and while pods are replaced.
	Waiting string
	// Broken names an owned API service that does not work though its pods do.
	Broken string
}

// healthy reports whether everything runs and is served.
func (o Observation) healthy() bool {
	return o.Components.Healthy && o.Serving.Waiting == "" && o.Serving.Broken == ""
}

// unhealthy says what is not.
func (o Observation) unhealthy() string {
	var parts []string
	for _, text := range []string{o.Components.Message, o.Serving.Broken, o.Serving.Waiting} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}
