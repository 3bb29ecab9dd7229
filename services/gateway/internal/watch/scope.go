package watch

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Scope is a part of a collection: a namespace of a cluster, a cluster (without a namespace), or all of it (the zero
// value).
type Scope struct{ Cluster, Namespace string }

// everything is the whole collection.
var everything = Scope{}

// holds says whether the scope in lies in s.
func (s Scope) holds(in Scope) bool {
	return s == everything || s.Cluster == in.Cluster && (s.Namespace == "" || s.Namespace == in.Namespace)
}

// Name is which object of its collection something is.
type Name struct {
	ID        string `json:"id,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// nameParts are those of a subject cluster/namespace/name.
const nameParts = 3

// touched is the part of a collection that an event may change, where the collection follows events of its kind:
//
//	subscription, install plan, CSV   its namespace
//	operator group                    its cluster: which groups intersect decides about each of them
//	cluster                           the cluster, whose labels lists are chosen by
//	catalog                           its cluster; one of the hub everything
//	one that this binary does not know   everything
//
// Other events change what somebody may see, if anything (changesRights).
func touched(e model.StreamedEvent, kinds []events.Kind) (part Scope, ok bool) {
	d, known := events.Lookup(e.Type)
	if !known {
		return everything, true
	}
	if !slices.Contains(kinds, d.Kind) {
		return everything, false
	}
	subject := strings.SplitN(e.Subject, "/", nameParts)
	switch {
	case d.Kind == events.KindCluster:
		return Scope{Cluster: e.Subject}, true
	case len(subject) < nameParts:
		return everything, true
	case d.Kind == events.KindCatalog, d.Kind == events.KindOperatorGroup:
		return Scope{Cluster: subject[0]}, true
	default:
		return Scope{Cluster: subject[0], Namespace: subject[1]}, true
	}
}

// changesRights says whether an event may change what somebody may see: roles and bindings, and the labels of clusters
// that scopes choose by.
func changesRights(e model.StreamedEvent) bool {
	d, known := events.Lookup(e.Type)
	return !known || d.Kind == events.KindAccess || d.Kind == events.KindCluster
}

// maxParts bounds the parts that are compared one by one: each costs a query, and beyond some the whole costs less.
const maxParts = 16

// due is what has to be compared. Its zero value is nothing.
type due struct {
	whole bool
	now   bool // the whole, without waiting: what may be seen has changed
	parts []Scope
}

func (d *due) add(part Scope) {
	switch {
	case part == everything:
		d.whole = true
	case slices.ContainsFunc(d.parts, func(has Scope) bool { return has.holds(part) }):
	default:
		d.parts = append(slices.DeleteFunc(d.parts, part.holds), part)
	}
	if len(d.parts) > maxParts {
		d.whole, d.parts = true, nil
	}
}

func (d *due) empty() bool { return !d.whole && len(d.parts) == 0 }
