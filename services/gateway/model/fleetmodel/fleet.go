// Package fleetmodel has the types of the REST API about fleet subscriptions and rollouts. Package model has all
// others.
package fleetmodel

import (
	"encoding/json"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// FleetSubscriptionSpec is an operator for many clusters, and how changes reach them.
type FleetSubscriptionSpec struct {
	Package string `json:"package" minLength:"1" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	Channel string `json:"channel,omitempty" maxLength:"253" doc:"The default channel without it"`
	Catalog string `json:"catalog" minLength:"1" maxLength:"253" doc:"Name of a catalog of the hub"`
	// Versions bounds what a rollout takes from the channel.
	Versions       model.PolicyVersions `json:"versions,omitzero" doc:"What rollouts may bring; the newest of the channel without it"`
	Namespace      string               `json:"namespace" minLength:"1" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Of the subscription on each cluster"`
	Approval       string               `json:"approval,omitempty" enum:"Automatic,Manual" doc:"Of the subscriptions on the clusters; Automatic without it"`
	Config         json.RawMessage      `json:"config,omitempty" doc:"OLM's spec.config: env, resources, tolerations and so on. Kept outside the event log. Who may not update fleet subscriptions reads (hidden) for the values of variables."`
	Overrides      []FleetOverride      `json:"overrides,omitempty" maxItems:"50" nullable:"false" doc:"What some clusters get otherwise. Of those that fit a cluster the most particular one holds: a name before the beginning of one, a longer beginning before a shorter one, either before labels, then more requirements of the selector; as particular ones that differ are a conflict"`
	OperatorGroup  FleetOperatorGroup   `json:"operatorGroup,omitzero" doc:"Made on clusters on which the namespace has none"`
	Adopt          bool                 `json:"adopt,omitempty" doc:"Take over subscriptions of the same name that no fleet subscription owns; a cluster with one fails without it"`
	Placement      FleetPlacement       `json:"placement" doc:"Which clusters. It names clusters or a selector"`
	Strategy       RolloutStrategy      `json:"strategy,omitzero" doc:"How a change reaches them"`
	DeletionPolicy string               `json:"deletionPolicy,omitempty" enum:"Orphan,KeepCRDs,Remove" doc:"What becomes of clusters that leave. Orphan, the default: the subscription stays as it is, without its owner. KeepCRDs: the operator is uninstalled, its custom resource definitions and their objects stay. Remove: it is uninstalled with its definitions, and all objects of theirs are deleted. Values other than Orphan need the right to uninstall operators everywhere"`
}

// FleetOverride is what some clusters get otherwise: all that is given of clusters and selector must fit.
type FleetOverride struct {
	Name     string          `json:"name" minLength:"1" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	Clusters []string        `json:"clusters,omitempty" maxItems:"100" nullable:"false" doc:"Names, or beginnings of names followed by *"`
	Selector string          `json:"selector,omitempty" maxLength:"1024" example:"site=edge" doc:"Of labels, as Kubernetes writes it"`
	Config   json.RawMessage `json:"config,omitempty" doc:"Laid over config: of env each variable takes the place of the one of its name; every other key takes the place of that of config, and null takes it away. Kept outside the event log, hidden as config is"`
	Approval string          `json:"approval,omitempty" enum:"Automatic,Manual" doc:"In place of approval"`
}

// FleetOperatorGroup is the operator group of a fleet subscription's namespace.
type FleetOperatorGroup struct {
	Name string                  `json:"name" maxLength:"253"`
	Spec model.OperatorGroupSpec `json:"spec,omitzero"`
}

// FleetPlacement chooses clusters: all that is given must fit.
type FleetPlacement struct {
	Clusters    []string          `json:"clusters,omitempty" maxItems:"100" nullable:"false" doc:"Names, or beginnings of names followed by *"`
	Selector    string            `json:"selector,omitempty" maxLength:"1024" example:"stage=production" doc:"Of labels, as Kubernetes writes it"`
	Except      []string          `json:"except,omitempty" maxItems:"100" nullable:"false" doc:"Never these; as clusters"`
	Tolerations []FleetToleration `json:"tolerations,omitempty" maxItems:"50" nullable:"false" doc:"Taints of clusters that keep nothing away"`
	Count       int               `json:"count,omitempty" minimum:"0" maximum:"100000" doc:"How many of those that fit; all without it. Who is there stays before others come"`
	SpreadBy    string            `json:"spreadBy,omitempty" maxLength:"317" doc:"Key of a label over whose values they are spread"`
	Prefer      []FleetPreference `json:"prefer,omitempty" maxItems:"20" nullable:"false" doc:"Which come first where count leaves some out"`
}

// FleetToleration is a taint of clusters that keeps nothing away.
type FleetToleration struct {
	Key   string `json:"key" maxLength:"317"`
	Value string `json:"value,omitempty" maxLength:"63" doc:"Any without it"`
}

// FleetPreference adds a weight to clusters with some labels.
type FleetPreference struct {
	Selector string `json:"selector" maxLength:"1024"`
	Weight   int    `json:"weight" minimum:"-1000" maximum:"1000"`
}

// RolloutStrategy is how a change reaches the clusters.
type RolloutStrategy struct {
	Waves           []RolloutWaveSpec         `json:"waves,omitempty" maxItems:"20" nullable:"false" doc:"In their order; clusters that none takes are in one more at the end, rest"`
	MaxConcurrent   int                       `json:"maxConcurrent,omitempty" minimum:"0" maximum:"100000" doc:"How many clusters are being changed at a time; 10 without it"`
	MaxFailures     string                    `json:"maxFailures,omitempty" maxLength:"16" example:"5%" doc:"How many clusters of the whole may fail, as a number or a percentage; one more halts the rollout. What the waves allow together without it"`
	MaxUnreachable  string                    `json:"maxUnreachable,omitempty" maxLength:"16" example:"10%" doc:"How many clusters of a wave may be away: they are changed when they are back. With more the wave waits; none without it"`
	DeadlineSeconds int64                     `json:"deadlineSeconds,omitempty" minimum:"60" maximum:"604800" doc:"How long one cluster may take before it counts as failed; 1800 without it"`
	Windows         []model.MaintenanceWindow `json:"windows,omitempty" maxItems:"14" nullable:"false" doc:"When clusters may be asked for a change; always without one. Deadlines of clusters do not run outside of them"`
}

// RolloutWaveSpec is one wave. It takes of the clusters that no wave before it took.
type RolloutWaveSpec struct {
	Name        string        `json:"name" minLength:"1" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	Selector    string        `json:"selector,omitempty" maxLength:"1024" doc:"Of labels; all clusters that are left without it"`
	Size        string        `json:"size,omitempty" maxLength:"16" example:"10%" doc:"How many of those, as a number or a percentage, rounded up; all without it"`
	SoakSeconds int64         `json:"soakSeconds,omitempty" minimum:"0" maximum:"2592000" doc:"How long the wave has to be as wanted before the next one begins"`
	Promotion   string        `json:"promotion,omitempty" enum:"Automatic,Manual" doc:"What lets the next wave begin: Automatic without it, Manual a person"`
	MaxFailures string        `json:"maxFailures,omitempty" maxLength:"16" doc:"How many of its clusters may fail, as a number or a percentage, rounded down; none without it"`
	Gates       []RolloutGate `json:"gates,omitempty" maxItems:"10" nullable:"false" doc:"What has to pass before the next wave begins, or before this one does"`
}

// SetFleetSubscription makes a fleet subscription, or replaces all of it.
type SetFleetSubscription struct{ FleetSubscriptionSpec }

// FleetSubscription is an operator for many clusters, and how far it is.
type FleetSubscription struct {
	Name       string                `json:"name"`
	Spec       FleetSubscriptionSpec `json:"spec"`
	Status     FleetStatus           `json:"status"`
	CreatedAt  time.Time             `json:"createdAt"`
	UpdatedAt  time.Time             `json:"updatedAt"`
	Stream     string                `json:"stream,omitempty" doc:"Id of its stream of events"`
	Version    int64                 `json:"version,omitempty" doc:"Of its stream"`
	Position   string                `json:"position,omitempty" doc:"Of the write, in answers to writes"`
	Unreadable []model.Unreadable    `json:"unreadable,omitempty" nullable:"false" doc:"What of it is stored and cannot be opened: it is left out"`
}

// FleetStatus is how far a fleet subscription is.
type FleetStatus struct {
	WaitsFor string     `json:"waitsFor,omitempty" doc:"Code of why no rollout can begin"`
	HeldBack *FleetHeld `json:"heldBack,omitempty" doc:"Clusters that wait since as many as may have been changed, or let go of, within the hour"`
	Rollout  *Rollout   `json:"rollout,omitempty" doc:"The newest one, without its clusters"`
}

// Event is the fleet subscription in the form of events, with the commitment to its configuration. Overrides are
// without those to theirs.
func (s FleetSubscriptionSpec) Event(config string) events.FleetSubscriptionSpec {
	out := events.FleetSubscriptionSpec{
		Package: s.Package, Channel: s.Channel, Catalog: s.Catalog, Versions: events.PolicyVersions(s.Versions),
		Namespace: s.Namespace, Approval: s.Approval, Config: config, Adopt: s.Adopt, DeletionPolicy: s.DeletionPolicy,
		OperatorGroup: events.FleetOperatorGroup{
			Name: s.OperatorGroup.Name, Spec: events.OperatorGroupSpec(s.OperatorGroup.Spec),
		},
		Placement: events.FleetPlacement{
			Clusters: s.Placement.Clusters, Selector: s.Placement.Selector, Except: s.Placement.Except,
			Count: s.Placement.Count, SpreadBy: s.Placement.SpreadBy,
		},
		Strategy: events.RolloutStrategy{
			MaxConcurrent: s.Strategy.MaxConcurrent, MaxFailures: s.Strategy.MaxFailures,
			MaxUnreachable: s.Strategy.MaxUnreachable, DeadlineSeconds: s.Strategy.DeadlineSeconds,
		},
	}
	for _, o := range s.Overrides {
		out.Overrides = append(out.Overrides, events.FleetOverride{
			Name: o.Name, Clusters: o.Clusters, Selector: o.Selector, Approval: o.Approval,
		})
	}
	for _, t := range s.Placement.Tolerations {
		out.Placement.Tolerations = append(out.Placement.Tolerations, events.FleetToleration(t))
	}
	for _, p := range s.Placement.Prefer {
		out.Placement.Prefer = append(out.Placement.Prefer, events.FleetPreference(p))
	}
	for _, w := range s.Strategy.Windows {
		out.Strategy.Windows = append(out.Strategy.Windows, events.Window(w))
	}
	for _, w := range s.Strategy.Waves {
		out.Strategy.Waves = append(out.Strategy.Waves, waveEvent(w))
	}
	return out
}

// FleetSpec is a fleet subscription as people see it, without its configuration and those of overrides.
func FleetSpec(e events.FleetSubscriptionSpec) FleetSubscriptionSpec {
	out := FleetSubscriptionSpec{
		Package: e.Package, Channel: e.Channel, Catalog: e.Catalog, Versions: model.PolicyVersions(e.Versions),
		Namespace: e.Namespace, Approval: e.Approval, Adopt: e.Adopt, DeletionPolicy: e.DeletionPolicy,
		OperatorGroup: FleetOperatorGroup{
			Name: e.OperatorGroup.Name, Spec: model.OperatorGroupSpec(e.OperatorGroup.Spec),
		},
		Placement: FleetPlacement{
			Clusters: e.Placement.Clusters, Selector: e.Placement.Selector, Except: e.Placement.Except,
			Count: e.Placement.Count, SpreadBy: e.Placement.SpreadBy,
		},
		Strategy: RolloutStrategy{
			MaxConcurrent: e.Strategy.MaxConcurrent, MaxFailures: e.Strategy.MaxFailures,
			MaxUnreachable: e.Strategy.MaxUnreachable, DeadlineSeconds: e.Strategy.DeadlineSeconds,
		},
	}
	for _, o := range e.Overrides {
		out.Overrides = append(out.Overrides, FleetOverride{
			Name: o.Name, Clusters: o.Clusters, Selector: o.Selector, Approval: o.Approval,
		})
	}
	for _, t := range e.Placement.Tolerations {
		out.Placement.Tolerations = append(out.Placement.Tolerations, FleetToleration(t))
	}
	for _, p := range e.Placement.Prefer {
		out.Placement.Prefer = append(out.Placement.Prefer, FleetPreference(p))
	}
	out.Strategy.Windows = windows(e.Strategy.Windows)
	for _, w := range e.Strategy.Waves {
		out.Strategy.Waves = append(out.Strategy.Waves, waveSpec(w))
	}
	return out
}

// Tag is the entity tag of a fleet subscription.
func (f FleetSubscription) Tag() string { return model.TagOf(f.Stream, f.Version) }
