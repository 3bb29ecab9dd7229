// Package naming finds what a name of a namespace means. People name an operator by its package, its subscription or its
// ClusterServiceVersion, as they happen to have it before them. The package is pure.
package naming

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Kind is what is looked for.
type Kind string

// The kinds.
const (
	KindSubscription Kind = "subscription"
	KindOperator     Kind = "operator"
)

// Subscription is what is known by of a subscription.
type Subscription struct {
	Name      string
	Package   string
	Installed string // CSV
	Current   string // CSV that it is on the way to
}

// Operator is what is known by of an installed operator.
type Operator struct {
	Name    string // of its CSV
	Package string
}

// World is what there is in one namespace of one cluster.
type World struct {
	Cluster, Namespace string
	Subscriptions      []Subscription
	Operators          []Operator
}

// Find returns the name of the one thing of a kind that a name means:
//
//	its own name                                   → it, whatever else has that name
//	a package, or for an operator a subscription   → what is of it
//	a CSV, for a subscription                      → the one that has it, or is on the way to it, else those of its package
//	none of them                                   → an error of kind NotFound
//	several                                        → an error of kind Conflict, which lists them
func (w World) Find(kind Kind, name string) (string, error) {
	exact, others := w.operators(name)
	if kind == KindSubscription {
		exact, others = w.subscriptions(name)
	}
	if exact {
		return name, nil
	}
	slices.Sort(others)
	switch others = slices.Compact(others); len(others) {
	case 0:
		return "", errs.New(errs.NotFound, "no %s %q is in namespace %q of cluster %q, and none of a package, subscription or ClusterServiceVersion of this name",
			kind, name, w.Namespace, w.Cluster).At("path.name", "name-known")
	case 1:
		return others[0], nil
	default:
		return "", errs.New(errs.Conflict, "%q may be each of %s %s in namespace %q of cluster %q: say which",
			name, kind, strings.Join(others, ", "), w.Namespace, w.Cluster).At("path.name", "name-ambiguous")
	}
}

// Package is the package of what Find has found.
func (w World) Package(kind Kind, name string) string {
	if kind == KindOperator {
		for _, o := range w.Operators {
			if o.Name == name {
				return o.Package
			}
		}
		return ""
	}
	for _, s := range w.Subscriptions {
		if s.Name == name {
			return s.Package
		}
	}
	return ""
}

func (w World) subscriptions(name string) (exact bool, others []string) {
	var ofPackage []string
	for _, s := range w.Subscriptions {
		switch name {
		case s.Name:
			return true, nil
		case s.Package, s.Installed, s.Current:
			others = append(others, s.Name)
		}
		if slices.Contains(w.Operators, Operator{Name: name, Package: s.Package}) {
			ofPackage = append(ofPackage, s.Name)
		}
	}
	if len(others) == 0 {
		others = ofPackage
	}
	return false, others
}

func (w World) operators(name string) (exact bool, others []string) {
	for _, o := range w.Operators {
		switch name {
		case o.Name:
			return true, nil
		case o.Package:
			others = append(others, o.Name)
		}
	}
	for _, s := range w.Subscriptions {
		if s.Name == name {
			others = append(others, w.installedBy(s)...)
		}
	}
	return false, others
}

// installedBy is what a subscription has installed, else what there is of its package.
func (w World) installedBy(s Subscription) (found []string) {
	for _, o := range w.Operators {
		if o.Name == s.Installed {
			return []string{o.Name}
		}
		if o.Package == s.Package {
			found = append(found, o.Name)
		}
	}
	return found
}
