// Package model is what the REST API says: the shapes of requests and answers under /api/v1, with
// the tags that make the OpenAPI document. It is pure, and clients written in Go may use it.
//
// Names of fields are Kubernetes' and OLM's where those have one. Times are RFC 3339 in UTC.
package model

import "time"

// ActorConfiguration takes the place of a person's id in events: for what the configuration of
// the installation does.
const ActorConfiguration = "configuration"

// Role is what a token allows by itself within its whole tenant, as a binding to the role of that name would.
type Role string

// The roles of tokens. A role that is not one of these allows nothing.
const (
	RoleAdmin  Role = "admin"  // everything
	RoleViewer Role = "viewer" // reads
	RoleNone   Role = "none"   // nothing: what bindings give to the actor
)

// Condition is one statement about a resource that holds (R-SUB-40).
type Condition struct {
	Type    string    `json:"type" doc:"Kind of condition, such as ResolutionFailed"`
	Status  string    `json:"status" enum:"True,False,Unknown"`
	Reason  string    `json:"reason,omitempty" doc:"Code for programs"`
	Message string    `json:"message,omitempty" doc:"Sentence for people"`
	Since   time.Time `json:"lastTransitionTime" doc:"Time of the event that set it"`
	Event   string    `json:"event,omitempty" doc:"Id of the event that set it"`
}

// Effects says whether plans may take steps.
type Effects struct {
	Stopped  bool       `json:"stopped" doc:"No plan may begin or take another step"`
	Scope    string     `json:"scope,omitempty" doc:"fleet, or cluster/<name>"`
	Reason   string     `json:"reason,omitempty" doc:"RecordLostCommits or Operator"`
	Detail   string     `json:"detail,omitempty" doc:"What was seen, and how to go on"`
	Since    *time.Time `json:"since,omitempty"`
	Epoch    int64      `json:"epoch" doc:"Epoch of the record; to be repeated when resuming"`
	Position string     `json:"position,omitempty" doc:"Of the write, in answers to writes"`
}

// EffectsRequest stops effects or lets them go on.
type EffectsRequest struct {
	Action  string `json:"action" enum:"stop,resume"`
	Cluster string `json:"cluster,omitempty" maxLength:"63" doc:"Only this cluster; the whole fleet without it"`
	Epoch   int64  `json:"epoch,omitempty" doc:"The epoch that you have seen and accept; required to resume the fleet"`
}
