// Package namelookup finds the object of a namespace that a name means. People name an operator by its package, its
// subscription or its ClusterServiceVersion, whichever they have at hand. The package is pure.
package namelookup

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Kind is the kind of object that is looked up.
type Kind string

// The kinds.
const (
	KindSubscription Kind = "subscription"
	KindOperator     Kind = "operator"
)

// Subscription has the names by which a subscription is known.
type Subscription struct {
	Name      string
	Package   string
	Installed string // CSV
	Current   string // CSV that it is on the way to
}

// Operator has the names by which an installed operator is known.
type Operator struct {
	Name    string // of its CSV
	Package string
}

// Namespace has the subscriptions and operators of one namespace of one cluster.
type Namespace struct {
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
func (n Namespace) Find(kind Kind, name string) (string, error) {
	exact, others := n.operators(name)
	if kind == KindSubscription {
		exact, others = n.subscriptions(name)
	}
	if exact {
		return name, nil
	}
	slices.Sort(others)
	switch others = slices.Compact(others); len(others) {
	case 0:
		return "", errs.New(errs.NotFound,
			"no %s %q is in namespace %q of cluster %q, and none of a package, subscription or ClusterServiceVersion "+
				"of this name",
			kind, name, n.Namespace, n.Cluster).At("path.name", "name-known")
	case 1:
		return others[0], nil
	default:
		return "", errs.New(errs.Conflict, "%q may be each of %s %s in namespace %q of cluster %q: say which",
			name, kind, strings.Join(others, ", "), n.Namespace, n.Cluster).At("path.name", "name-ambiguous")
	}
}

// Package is the package of what Find has found.
func (n Namespace) Package(kind Kind, name string) string {
	if kind == KindOperator {
		for _, o := range n.Operators {
			if o.Name == name {
				return o.Package
			}
		}
		return ""
	}
	for _, s := range n.Subscriptions {
		if s.Name == name {
			return s.Package
		}
	}
	return ""
}

func (n Namespace) subscriptions(name string) (exact bool, others []string) {
	var ofPackage []string
	for _, s := range n.Subscriptions {
		switch name {
		case s.Name:
			return true, nil
		case s.Package, s.Installed, s.Current:
			others = append(others, s.Name)
		}
		if slices.Contains(n.Operators, Operator{Name: name, Package: s.Package}) {
			ofPackage = append(ofPackage, s.Name)
		}
	}
	if len(others) == 0 {
		others = ofPackage
	}
	return false, others
}

func (n Namespace) operators(name string) (exact bool, others []string) {
	for _, o := range n.Operators {
		switch name {
		case o.Name:
			return true, nil
		case o.Package:
			others = append(others, o.Name)
		}
	}
	for _, s := range n.Subscriptions {
		if s.Name == name {
			others = append(others, n.installedBy(s)...)
		}
	}
	return false, others
}

// installedBy is what a subscription has installed, else what there is of its package.
func (n Namespace) installedBy(s Subscription) (found []string) {
	for _, o := range n.Operators {
		if o.Name == s.Installed {
			return []string{o.Name}
		}
		if o.Package == s.Package {
			found = append(found, o.Name)
		}
	}
	return found
}
