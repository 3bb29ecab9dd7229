package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
)

// Target is what a request is about. The zero value is the fleet as a whole.
type Target struct {
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"` // of the cluster
	// Catalog is a catalog, or the one that a subscription names: a name, or namespace/name of a cluster's own.
	Catalog string `json:"catalog,omitempty"`
	// Anywhere asks whether there is any place where it is allowed: the answer holds only what one may see.
	Anywhere bool `json:"anywhere,omitempty"`
}

// CatalogTarget is a catalog of the hub, or one of a namespace of a cluster.
func CatalogTarget(cluster, namespace, name string) Target {
	return Target{Cluster: cluster, Namespace: namespace, Catalog: CatalogName(namespace, name)}
}

// CatalogName is how scopes name a catalog.
func CatalogName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// String is the place in a sentence.
func (t Target) String() string {
	var parts []string
	if t.Catalog != "" {
		parts = append(parts, fmt.Sprintf("catalog %q", t.Catalog))
	}
	if t.Namespace != "" {
		parts = append(parts, fmt.Sprintf("namespace %q", t.Namespace))
	}
	if t.Cluster != "" {
		parts = append(parts, fmt.Sprintf("cluster %q", t.Cluster))
	}
	switch {
	case t.Anywhere:
		return "any scope"
	case len(parts) == 0:
		return "the fleet as a whole"
	default:
		return strings.Join(parts, " of ")
	}
}

// Patterns are names, and prefixes of names.
type Patterns struct {
	Names    []string
	Prefixes []string
}

func patternsOf(list []string) Patterns {
	var p Patterns
	for _, x := range list {
		if prefix, ok := strings.CutSuffix(x, "*"); ok {
			p.Prefixes = append(p.Prefixes, prefix)
		} else {
			p.Names = append(p.Names, x)
		}
	}
	return p
}

// Limited says whether there is a pattern: none is no limit.
func (p Patterns) Limited() bool { return len(p.Names)+len(p.Prefixes) > 0 }

// Fit says whether a name fits one of them.
func (p Patterns) Fit(name string) bool {
	return slices.Contains(p.Names, name) ||
		slices.ContainsFunc(p.Prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// Scope is where a binding holds, made ready.
type Scope struct {
	// Clusters are those that fit by name; where labels are wanted, too, they are the names of those that have both.
	Clusters   Patterns
	ByLabels   bool // Clusters may be empty, and then no cluster fits
	Namespaces Patterns
	Catalogs   Patterns
}

// scopeOf resolves labels to the clusters that have them now.
func scopeOf(s events.AccessScope, clusters map[string]map[string]string) Scope {
	out := Scope{
		Clusters: patternsOf(s.Clusters), Namespaces: patternsOf(s.Namespaces), Catalogs: patternsOf(s.Catalogs),
	}
	if len(s.ClusterLabels) == 0 {
		return out
	}
	named := out.Clusters
	out.ByLabels, out.Clusters = true, Patterns{}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		if hasLabels(clusters[name], s.ClusterLabels) && (!named.Limited() || named.Fit(name)) {
			out.Clusters.Names = append(out.Clusters.Names, name)
		}
	}
	return out
}

func hasLabels(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// LimitsClusters says whether only some clusters fit.
func (s Scope) LimitsClusters() bool { return s.ByLabels || s.Clusters.Limited() }

// Whole says whether nothing is limited.
func (s Scope) Whole() bool {
	return !s.LimitsClusters() && !s.Namespaces.Limited() && !s.Catalogs.Limited()
}

// holds says whether a target lies in the scope:
//
//	a limit of clusters       what belongs to no cluster, or to another, is outside
//	a limit of namespaces     what belongs to no namespace, or to another, is outside: a whole cluster, the fleet
//	a limit of catalogs       another catalog is outside, and so is what is neither a catalog nor in a namespace;
//	                          what is in a namespace and names no catalog (a plan, an operator) is not limited by it
func (s Scope) holds(t Target) bool {
	switch {
	case t.Anywhere:
		return !s.ByLabels || s.Clusters.Limited()
	case s.LimitsClusters() && (t.Cluster == "" || !s.Clusters.Fit(t.Cluster)):
		return false
	case s.Namespaces.Limited() && (t.Namespace == "" || !s.Namespaces.Fit(t.Namespace)):
		return false
	case s.Catalogs.Limited() && t.Catalog != "":
		return s.Catalogs.Fit(t.Catalog)
	case s.Catalogs.Limited():
		return t.Namespace != ""
	default:
		return true
	}
}

// covers says whether everything that fits inner fits outer, by what they say: clusters that happen to have the labels
// today count for nothing.
func covers(outer, inner events.AccessScope) bool {
	for k, v := range outer.ClusterLabels {
		if got, ok := inner.ClusterLabels[k]; !ok || got != v {
			return false
		}
	}
	return coversPatterns(outer.Clusters, inner.Clusters) && coversPatterns(outer.Namespaces, inner.Namespaces) &&
		coversPatterns(outer.Catalogs, inner.Catalogs)
}

func coversPatterns(outer, inner []string) bool {
	if len(outer) == 0 {
		return true
	}
	if len(inner) == 0 {
		return false
	}
	out := patternsOf(outer)
	for _, p := range inner {
		prefix, isPrefix := strings.CutSuffix(p, "*")
		if !isPrefix && out.Fit(p) {
			continue
		}
		if !isPrefix || !slices.ContainsFunc(out.Prefixes,
			func(o string) bool { return strings.HasPrefix(prefix, o) }) {
			return false
		}
	}
	return true
}
