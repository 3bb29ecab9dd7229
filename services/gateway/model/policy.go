package model

import (
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
)

// ApprovalPolicySpec says which upgrades may happen, when, and who has to agree. Where several policies choose the
// same operator, the strictest of each kind holds.
type ApprovalPolicySpec struct {
	Selector PolicySelector `json:"selector,omitzero" doc:"Which operators; all without it"`
	Versions PolicyVersions `json:"versions,omitzero" doc:"What may be installed; what is installed stays"`
	Rules    []ApprovalRule `json:"rules,omitempty" maxItems:"5" nullable:"false" doc:"Approval mode by what an upgrade is; the first that fits counts, without one the subscription's mode"`
	// PermissionGrowth is Manual where it is left out.
	PermissionGrowth string              `json:"permissionGrowth,omitempty" enum:"Manual,Ignore" doc:"Manual, the default: an upgrade that gains rights waits for a person, whatever the rules say"`
	Windows          []MaintenanceWindow `json:"windows,omitempty" maxItems:"14" nullable:"false" doc:"When plans may begin; always without one"`
	Approvers        int                 `json:"approvers,omitempty" minimum:"1" maximum:"5" doc:"How many different people must approve a Manual plan"`
	ApprovalSeconds  int64               `json:"approvalSeconds,omitempty" minimum:"300" maximum:"2592000" doc:"How long an approval holds at most; 24 hours without it"`
}

// PolicySelector chooses operators: all that is given must fit. Lists hold names, or beginnings of names followed by
// "*".
type PolicySelector struct {
	Clusters      []string          `json:"clusters,omitempty" maxItems:"100" nullable:"false"`
	ClusterLabels map[string]string `json:"clusterLabels,omitempty" doc:"Labels of the cluster, all of them"`
	Namespaces    []string          `json:"namespaces,omitempty" maxItems:"100" nullable:"false"`
	Packages      []string          `json:"packages,omitempty" maxItems:"100" nullable:"false"`
	Catalogs      []string          `json:"catalogs,omitempty" maxItems:"100" nullable:"false" doc:"Name, or namespace/name of a namespace's own"`
}

// PolicyVersions are the versions that may be installed; all that is given holds.
type PolicyVersions struct {
	Pin     string `json:"pin,omitempty" maxLength:"253" doc:"Exactly this version, or this CSV"`
	Range   string `json:"range,omitempty" maxLength:"253" example:">=1.4.0 <2.0.0"`
	Ceiling string `json:"ceiling,omitempty" maxLength:"253" doc:"Never beyond this version"`
}

// ApprovalRule gives a mode to a kind of change.
type ApprovalRule struct {
	Change string `json:"change" enum:"Install,Patch,Minor,Major,Any" doc:"By the versions before and after; what has none, or goes back, is Major"`
	Mode   string `json:"mode" enum:"Automatic,Manual"`
}

// MaintenanceWindow is a stretch of time that comes again every week.
type MaintenanceWindow struct {
	Days     []string `json:"days,omitempty" maxItems:"7" nullable:"false" enum:"Mon,Tue,Wed,Thu,Fri,Sat,Sun" doc:"Of the start; every day without it"`
	Start    string   `json:"start" maxLength:"5" example:"22:00" doc:"HH:MM on the clock of the time zone"`
	Minutes  int      `json:"minutes" minimum:"5" maximum:"10080" doc:"How long, in minutes that pass"`
	TimeZone string   `json:"timeZone" maxLength:"64" example:"Europe/Oslo" doc:"IANA name"`
}

// PlanWindows are the maintenance windows of one policy.
type PlanWindows struct {
	Policy  string              `json:"policy"`
	Windows []MaintenanceWindow `json:"windows" nullable:"false"`
}

// SetApprovalPolicy makes a policy, or replaces all of it, its labels and annotations too.
type SetApprovalPolicy struct {
	Metadata
	ApprovalPolicySpec
}

// PolicyFilter chooses approval policies; empty fields choose all.
type PolicyFilter struct {
	Label string // key=value, or key
	Page
}

// ApprovalPolicy is a policy that holds.
type ApprovalPolicy struct {
	Name string `json:"name"`
	Metadata
	Spec       ApprovalPolicySpec `json:"spec"`
	CreatedAt  time.Time          `json:"createdAt"`
	UpdatedAt  time.Time          `json:"updatedAt"`
	Stream     string             `json:"stream,omitempty" doc:"Id of its stream of events"`
	Version    int64              `json:"version,omitempty" doc:"Of its stream"`
	Position   string             `json:"position,omitempty" doc:"Of the write, in answers to writes"`
	Unreadable []Unreadable       `json:"unreadable,omitempty" nullable:"false" doc:"What of it is stored and cannot be opened: it is left out"`
}

// Event is the policy in the form of events.
func (s ApprovalPolicySpec) Event() events.ApprovalPolicySpec {
	out := events.ApprovalPolicySpec{
		Selector: events.PolicySelector(s.Selector), Versions: events.PolicyVersions(s.Versions),
		PermissionGrowth: s.PermissionGrowth, Approvers: s.Approvers, ApprovalSeconds: s.ApprovalSeconds,
	}
	for _, r := range s.Rules {
		out.Rules = append(out.Rules, events.ApprovalRule(r))
	}
	for _, w := range s.Windows {
		out.Windows = append(out.Windows, events.Window(w))
	}
	return out
}

// PolicySpec is a policy as people see it.
func PolicySpec(e events.ApprovalPolicySpec) ApprovalPolicySpec {
	out := ApprovalPolicySpec{
		Selector: PolicySelector(e.Selector), Versions: PolicyVersions(e.Versions),
		PermissionGrowth: e.PermissionGrowth, Windows: windows(e.Windows), Approvers: e.Approvers,
		ApprovalSeconds: e.ApprovalSeconds,
	}
	for _, r := range e.Rules {
		out.Rules = append(out.Rules, ApprovalRule(r))
	}
	return out
}

func windows(list []events.Window) []MaintenanceWindow {
	var out []MaintenanceWindow
	for _, w := range list {
		out = append(out, MaintenanceWindow(w))
	}
	return out
}
