package decide

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Policy is an approval policy of the tenant.
type Policy struct {
	Name string
	Spec events.ApprovalPolicySpec
}

// Here says whether a policy may choose operators of a scope at all, by cluster, labels and namespace.
func (p Policy) Here(scope resolution.Scope, labels map[string]string) bool {
	sel := p.Spec.Selector
	return hasLabels(sel.ClusterLabels, labels) && matches(sel.Clusters, scope.Cluster) &&
		matches(sel.Namespaces, scope.Namespace)
}

// Moved says whether a policy chooses otherwise in a cluster after its labels changed, and which of its scopes: as a
// selector of this cluster whatever its labels.
func (p Policy) Moved(cluster string, before, after map[string]string) (events.PolicySelector, bool) {
	sel := p.Spec.Selector
	if !matches(sel.Clusters, cluster) || hasLabels(sel.ClusterLabels, before) == hasLabels(sel.ClusterLabels, after) {
		return events.PolicySelector{}, false
	}
	sel.Clusters, sel.ClusterLabels = []string{cluster}, nil
	return sel, true
}

// hasLabels says whether labels hold all that are wanted.
func hasLabels(want, have map[string]string) bool {
	for key, value := range want {
		if v, ok := have[key]; !ok || v != value {
			return false
		}
	}
	return true
}

// chooses says whether a policy of the scope chooses a bundle, by package and catalog.
func (p Policy) chooses(b resolution.Planned) bool {
	return matches(p.Spec.Selector.Packages, b.Package) && matches(p.Spec.Selector.Catalogs, b.Catalog.String())
}

// bound is what the policy says of versions; ok is false where it says nothing.
func (p Policy) bound() (b resolution.Bound, ok bool) {
	v := p.Spec.Versions
	return resolution.Bound{
		Policy: p.Name, Packages: p.Spec.Selector.Packages, Catalogs: p.Spec.Selector.Catalogs, Pin: v.Pin,
		Range: v.Range, Ceiling: v.Ceiling,
	}, v != (events.PolicyVersions{})
}

// matches says whether a name is among patterns: names, or prefixes followed by "*". No patterns are all names.
func matches(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		prefix, open := strings.CutSuffix(p, "*")
		return open && strings.HasPrefix(name, prefix) || p == name
	})
}

// policies are those that may choose operators of the scope, by name.
func (s State) policies() []Policy {
	var out []Policy
	for _, p := range s.Policies {
		if p.Here(s.Scope, s.Labels) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b Policy) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// bounds are the versions that policies forbid in the scope, by name of the policy.
func (s State) bounds() []resolution.Bound {
	var out []resolution.Bound
	for _, p := range s.policies() {
		if b, ok := p.bound(); ok {
			out = append(out, b)
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
		asks := func(p Policy) bool { return p.Spec.PermissionGrowth == installplan.Manual && p.chooses(b) }
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
