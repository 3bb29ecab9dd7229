package decide

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// outdated says whether a plan that was not begun rests on something that has changed since: policies, configuration,
// operator group, what its subscriptions ask for, or what is installed. It is asked where nothing new can be proposed
// yet: such a plan must not begin under terms that hold no more (DESIGN D6). Phases of operators and the revisions of
// catalogs are no part of it, so that neither an operator that flaps nor a catalog that moves voids anything.
func (s State) outdated(p Plan, verdicts []Verdict) (bool, error) {
	bundles := unplanned(p.State.Proposed.Bundles)
	if slices.ContainsFunc(bundles, s.unwanted) {
		return true, nil
	}
	v, err := s.withTerms(Verdict{Component: asComponent(p, bundles, verdicts)})
	return v.Effect != p.Effect, err
}

// unwanted says whether a bundle is outside of a policy's bounds, or is not what one of its subscriptions asks for.
func (s State) unwanted(b resolution.Planned) bool {
	if slices.ContainsFunc(s.bounds(), func(bound resolution.Bound) bool { return bound.Forbids(b) }) {
		return true
	}
	return slices.ContainsFunc(b.Subscriptions, func(name string) bool {
		sub := s.subscription(name)
		return sub == nil || !sub.follows(b, s.hides(sub.Spec)) || s.predecessor(b) == nil && !sub.starts(b)
	})
}

// follows says whether a bundle is of the package, channel and catalog that the subscription names. A catalog that its
// namespace does not have is the hub's, unless it is hidden from the scope.
func (s Subscription) follows(b resolution.Planned, hidden bool) bool {
	own := resolution.CatalogKey{Name: s.Spec.Catalog, Namespace: s.Spec.CatalogNamespace}
	return s.Spec.Package == b.Package && (s.Spec.Channel == "" || s.Spec.Channel == b.Channel) &&
		(s.Spec.Catalog == "" || b.Catalog == own || !hidden &&
			b.Catalog == resolution.CatalogKey{Name: s.Spec.Catalog})
}

// starts says whether a bundle may be the first that the subscription installs (R-GRA-12).
func (s Subscription) starts(b resolution.Planned) bool {
	if s.Spec.StartingCSV == "" {
		return b.Reason != resolution.ReasonStartingCSV
	}
	return s.Spec.StartingCSV == b.CSV
}

// asComponent is the component of a plan, with its own bundles and the roots that the resolution has for its packages
// now.
func asComponent(p Plan, bundles []resolution.Planned, verdicts []Verdict) resolution.Component {
	c := resolution.Component{
		Name: p.State.Proposed.Component, Packages: p.packages(), Approval: installplan.Automatic,
		Bundles: bundles,
	}
	for _, v := range verdicts {
		if !shares(p.packages(), v.Component.Packages) {
			continue
		}
		c.Packages = append(c.Packages, v.Component.Packages...)
		c.Subscriptions = append(c.Subscriptions, v.Component.Subscriptions...)
		if v.Component.Approval == installplan.Manual {
			c.Approval = installplan.Manual
		}
	}
	return c
}

// unplanned is the other way round of planned. What a plan does not record of its bundles plays no part in its terms.
func unplanned(bundles []events.PlannedBundle) []resolution.Planned {
	out := make([]resolution.Planned, 0, len(bundles))
	for _, b := range bundles {
		key := resolution.CatalogKey{Name: b.Catalog}
		if namespace, name, own := strings.Cut(b.Catalog, "/"); own {
			key = resolution.CatalogKey{Name: name, Namespace: namespace}
		}
		out = append(out, resolution.Planned{
			CSV: b.CSV, Package: b.Package, Version: b.Version, Channel: b.Channel, Catalog: key, Revision: b.Revision,
			Content: digest.Digest(b.Content), Replaces: b.Replaces, Reason: b.Reason, RequiredBy: b.RequiredBy,
			Subscriptions: b.Subscriptions,
		})
	}
	return out
}
