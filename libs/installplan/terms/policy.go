package terms

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
)

// Policy is an approval policy of the tenant.
type Policy struct {
	Name string
	Spec events.ApprovalPolicySpec
}

// In returns the policies that may choose operators of a namespace, by name.
func In(all []Policy, cluster, namespace string, labels map[string]string) []Policy {
	var out []Policy
	for _, p := range all {
		if p.Here(cluster, namespace, labels) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b Policy) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Here says whether a policy may choose operators of a namespace at all, by cluster, its labels and namespace.
func (p Policy) Here(cluster, namespace string, labels map[string]string) bool {
	sel := p.Spec.Selector
	return hasLabels(sel.ClusterLabels, labels) && matches(sel.Clusters, cluster) && matches(sel.Namespaces, namespace)
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

// Chooses says whether a policy of the scope chooses a bundle, by package and catalog (name, or namespace/name).
func (p Policy) Chooses(pkg, catalog string) bool {
	return matches(p.Spec.Selector.Packages, pkg) && matches(p.Spec.Selector.Catalogs, catalog)
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

// matches says whether a name is among patterns: names, or prefixes followed by "*". No patterns are all names.
func matches(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		prefix, open := strings.CutSuffix(p, "*")
		return open && strings.HasPrefix(name, prefix) || p == name
	})
}
