package fleet

import (
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Why a fleet subscription waits before a rollout can begin: codes.
const (
	WaitsForCatalog = "CatalogNotReady"
	WaitsForPackage = "PackageNotFound"
	WaitsForChannel = "ChannelNotFound"
	WaitsForVersion = "NoVersionAllowed"
	WaitsForContent = "BundleNotFetched"
	WaitsForCluster = "NoClusterChosen"
	WaitsForPlan    = "PlanUnderWay"    // on a cluster that leaves
	WaitsForSpec    = "SpecNotReadable" // written by a newer version of Chandler
	WaitsForAnother = "RolledBack"      // what is offered was rolled back from
	WaitsForKept    = "TargetNotKept"   // the catalog does not hold what a rollback leads to any more
)

// Choose is the bundle of a package that a rollout brings: the first of its channel, from the head, that is inside of
// the version policy and not deprecated; if all are, the first of those. waits is a code where there is none.
func Choose(spec events.FleetSubscriptionSpec, p *offer.Package) (bundle *offer.Operator, channel, waits string) {
	if p == nil {
		return nil, "", WaitsForPackage
	}
	for _, c := range p.Channels { // the default one is first
		if spec.Channel != "" && c.Name != spec.Channel {
			continue
		}
		if c.Err != nil {
			return nil, "", WaitsForChannel
		}
		if bundle = first(spec, c); bundle == nil {
			return nil, "", WaitsForVersion
		}
		return bundle, c.Name, ""
	}
	return nil, "", WaitsForChannel
}

func first(spec events.FleetSubscriptionSpec, c offer.Channel) *offer.Operator {
	bound := resolution.CompileBounds([]resolution.Bound{{
		Pin: spec.Versions.Pin, Range: spec.Versions.Range, Ceiling: spec.Versions.Ceiling,
	}})[0]
	var deprecated *offer.Operator
	for _, e := range c.Entries {
		switch {
		case !e.Bundle.HasVersion || !bound.Allows(e.Bundle): // without a version nothing can be held at it
		case !e.Bundle.Deprecated:
			return e.Bundle
		case deprecated == nil:
			deprecated = e.Bundle
		}
	}
	return deprecated
}
