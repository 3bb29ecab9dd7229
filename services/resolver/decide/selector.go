package decide

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/installplan/terms"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// chooses says whether a policy of the scope chooses a bundle.
func chooses(p Policy, b resolution.Planned) bool { return p.Chooses(b.Package, b.Catalog.String()) }

// bound is what a policy says of versions; ok is false where it says nothing.
func bound(p Policy) (b resolution.Bound, ok bool) {
	v := p.Spec.Versions
	return resolution.Bound{
		Policy: p.Name, Packages: p.Spec.Selector.Packages, Catalogs: p.Spec.Selector.Catalogs, Pin: v.Pin,
		Range: v.Range, Ceiling: v.Ceiling,
	}, v != (events.PolicyVersions{})
}

// policies are those that may choose operators of the scope, by name.
func (s State) policies() []Policy {
	return terms.In(s.Policies, s.Scope.Cluster, s.Scope.Namespace, s.Labels)
}

// bounds are the versions that policies forbid in the scope, by name of the policy.
func (s State) bounds() []resolution.Bound {
	var out []resolution.Bound
	for _, p := range s.policies() {
		if b, ok := bound(p); ok {
			out = append(out, b)
		}
	}
	for _, sub := range s.Subscriptions { // what rollouts ask of them
		if t := sub.Target; t.CSV != "" {
			out = append(out, resolution.Bound{
				Rollout: t.Rollout, Packages: []string{t.Package}, Ceiling: t.Version,
			})
		}
	}
	return out
}

// Upgrade is one content of a bundle that takes the place of another.
type Upgrade struct{ From, To string } // digests

// PermissionGrowth says how many rights upgrades gain. What could not be compared is not in it.
type PermissionGrowth map[Upgrade]int

// Upgrades are those of a resolution, and of plans that were not begun, of which has to be known what they gain,
// since a policy asks: each once, in order.
func (s State) Upgrades(r resolution.Result) []Upgrade {
	var out []Upgrade
	policies := s.policies()
	var bundles []resolution.Planned
	for _, c := range r.Components {
		bundles = append(bundles, c.Bundles...)
	}
	for _, p := range s.Plans {
		if p.State.Live() && !p.State.Begun {
			bundles = append(bundles, unplanned(p.State.Proposed.Bundles)...)
		}
	}
	for _, b := range bundles {
		asks := func(p Policy) bool { return p.Spec.PermissionGrowth == installplan.Manual && chooses(p, b) }
		u := Upgrade{To: string(b.Content)}
		if i := s.predecessor(b); i != nil {
			u.From = i.Content
		}
		if u.From != "" && u.To != "" && u.From != u.To && slices.ContainsFunc(policies, asks) {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b Upgrade) int { return strings.Compare(a.From+a.To, b.From+b.To) })
	return slices.Compact(out)
}

// predecessor is the installed operator whose place a bundle takes; nil where it is new.
func (s State) predecessor(b resolution.Planned) *Installed {
	for i := range s.Installed {
		if s.Installed[i].Name == b.Replaces {
			return &s.Installed[i]
		}
	}
	for i := range s.Installed {
		if s.Installed[i].Package == b.Package && !s.leaving(s.Installed[i]) {
			return &s.Installed[i]
		}
	}
	return nil
}
