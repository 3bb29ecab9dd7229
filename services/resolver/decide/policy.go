package decide

import (
	"slices"

	"github.com/chandler-fleet/chandler/libs/installplan/terms"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Policy is an approval policy of the tenant.
type Policy = terms.Policy

// askedByRollout says whether a rollout has a subscription go back to a bundle: who asked for the rollback of the
// rollout has decided that for all of its clusters.
func (s State) askedByRollout(b resolution.Planned) bool {
	return slices.ContainsFunc(b.Subscriptions, func(name string) bool {
		sub := s.subscription(name)
		return sub != nil && sub.Target.Back && sub.Rollback.To == b.CSV
	})
}

// terms are what policies make of a component, taken together.
func (s State) terms(c resolution.Component) terms.Terms {
	bundles := make([]terms.Bundle, 0, len(c.Bundles))
	for _, b := range c.Bundles {
		one := terms.Bundle{
			Package: b.Package, Version: b.Version, Catalog: b.Catalog.String(), Content: string(b.Content),
			Rollback: b.Reason == resolution.ReasonRollback && !s.askedByRollout(b),
		}
		if from := s.predecessor(b); from != nil {
			one.From = &terms.Installed{Version: from.Version, Content: from.Content}
		}
		bundles = append(bundles, one)
	}
	return terms.Of(c.Approval, bundles, s.policies(), func(from, to string) (int, bool) {
		gained, known := s.PermissionGrowth[Upgrade{From: from, To: to}]
		return gained, known
	})
}
