// Package cataloghealth is the aggregate of one choice: whether an unhealthy catalog stops those who see it
// without needing it (R-CAT-99), for hub catalogs or for the catalogs of a namespace. It is pure.
package cataloghealth

import (
	"fmt"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// Modes.
const (
	Independent = "Independent" // a sick catalog hurts only those who need it
	Strict      = "Strict"      // OLM's rule: nothing is installed or updated until every visible catalog is healthy
)

// Scope is the catalogs that are meant: those of the hub when empty.
type Scope struct {
	Cluster   string
	Namespace string
}

// Subject is the natural key: catalog-health, or catalog-health/cluster/namespace.
func (s Scope) Subject() string {
	if s == (Scope{}) {
		return "catalog-health"
	}
	return "catalog-health/" + s.Cluster + "/" + s.Namespace
}

// Check wants both parts or neither.
func (s Scope) Check() error {
	var v rule.Violations
	if (s.Cluster == "") != (s.Namespace == "") {
		v.Addf("query.namespace", rule.Together,
			"the catalogs of a namespace need both cluster and namespace, those of the hub neither")
	}
	return v.Err()
}

// State is what was chosen. The zero value is Independent.
type State struct{ Mode string }

// Chosen is the mode that holds.
func (s State) Chosen() string {
	if s.Mode == "" {
		return Independent
	}
	return s.Mode
}

// Set chooses.
type Set struct {
	Scope Scope
	Mode  string
}

// Decide returns the event that the choice leads to; none if it changes nothing.
func Decide(s State, c Set) ([]events.Payload, error) {
	var v rule.Violations
	v.OneOf("/mode", c.Mode, Independent, Strict)
	if err := v.Err(); err != nil {
		return nil, err
	}
	if c.Mode == s.Chosen() {
		return nil, nil
	}
	return []events.Payload{events.CatalogHealthSet{
		Cluster: c.Scope.Cluster, Namespace: c.Scope.Namespace,
		Mode: c.Mode,
	}}, nil
}

// Evolve returns the state after an event.
func Evolve(s State, p events.Payload) (State, error) {
	e, ok := p.(events.CatalogHealthSet)
	if !ok {
		return s, fmt.Errorf("cataloghealth: event %s does not belong in this stream", p.EventType())
	}
	return State{Mode: e.Mode}, nil
}
