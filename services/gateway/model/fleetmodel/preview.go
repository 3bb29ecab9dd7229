package fleetmodel

import (
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
)

// FleetPreview is what a fleet subscription would lead to, if nothing else changed.
type FleetPreview struct {
	FleetSubscription string                    `json:"fleetSubscription"`
	WaitsFor          string                    `json:"waitsFor,omitempty" doc:"Code of why no rollout could begin"`
	Target            *RolloutTarget            `json:"target,omitempty" doc:"What every cluster would get"`
	Change            string                    `json:"change,omitempty" enum:"Version,Intent,Membership,Rollback" doc:"Why a rollout would begin; absent where none would"`
	UnderWay          int                       `json:"underWay,omitempty" doc:"Number of the rollout that goes on, and has to end first"`
	Supersedes        int                       `json:"supersedes,omitempty" doc:"Number of the rollout that would end"`
	Waves             []previewapi.FleetWave    `json:"waves" nullable:"false" doc:"Of the rollout that would begin, in their order"`
	Totals            previewapi.FleetTotals    `json:"totals" doc:"Of all pages"`
	Clusters          []previewapi.FleetCluster `json:"clusters" nullable:"false" doc:"By name, chosen or not"`
	Next              string                    `json:"next,omitempty" doc:"Cursor of the next page; absent on the last"`
}

// FleetPreviewOf is a page as the REST API shows it, without its cursor.
func FleetPreviewOf(name string, p previewapi.FleetPage) FleetPreview {
	out := FleetPreview{
		FleetSubscription: name, WaitsFor: p.WaitsFor, Change: p.Change, UnderWay: p.UnderWay, Supersedes: p.Supersedes,
		Waves: p.Waves, Totals: p.Totals, Clusters: p.Clusters,
	}
	if p.Target != nil {
		target := TargetOf(*p.Target)
		out.Target = &target
	}
	return out
}

// TargetOf is what every cluster of a rollout gets, as the REST API shows it.
func TargetOf(t events.RolloutTarget) RolloutTarget {
	return RolloutTarget{
		Package: t.Package, Channel: t.Channel, Catalog: t.Catalog, Revision: t.Revision, CSV: t.CSV,
		Version: t.Version, Content: t.Content,
	}
}
