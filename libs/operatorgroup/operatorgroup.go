// Package operatorgroup holds the rules of operator groups that do not need the cluster's objects: which namespaces a
// group serves as far as its spec tells, when two groups intersect, and who may provide an API. The executor decides by
// them in the cluster; the resolver tells by the same ones what the executor will say. It is pure.
package operatorgroup

import (
	"slices"

	"github.com/chandler-fleet/chandler/libs/events"
)

// All is the target that stands for all namespaces.
const All = ""

// Group is the one operator group of a namespace.
type Group struct {
	ID        string // UUID of its stream: it stands for the group in labels of the cluster
	Namespace string
	Name      string
	Spec      events.OperatorGroupSpec
}

// String is namespace/name, for people.
func (g Group) String() string { return g.Namespace + "/" + g.Name }

// Named are the targets of a group whose spec alone tells them (R-OG §7.1), sorted, each once; [All] is all of them.
// ok is false where a selector chooses them. Chandler's own namespace is none: no operator is to have rights in it.
func Named(spec events.OperatorGroupSpec) (targets []string, ok bool) {
	if len(spec.TargetNamespaces) > 0 {
		listed := slices.Compact(slices.Sorted(slices.Values(spec.TargetNamespaces)))
		return slices.DeleteFunc(listed, func(ns string) bool { return ns == events.SystemNamespace }), true
	}
	if spec.Global() {
		return []string{All}, true
	}
	return nil, false
}

// Global reports whether targets are all namespaces.
func Global(targets []string) bool { return slices.Contains(targets, All) }
