package operatorgroup

import (
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
)

// Status is a group with its state in the cluster, as far as its events have it. The zero value is a group that was
// never created.
type Status struct {
	State

	Targets      []string // namespaces that its operators serve, "" for all; empty while a selector's are not known
	ProvidedAPIs []string // Kind.version.group
	Conditions   []string // types of those that hold
	Event        string   // that created the group, or changed its spec last
	// Observed is the event since which these conditions hold; its zero value is none.
	Observed Moment
}

// Moment is an event and its time.
type Moment struct {
	Event string
	Time  time.Time
}

// Evolve folds one event of the group's stream. An event of another kind of stream is an error.
func (s Status) Evolve(p events.Payload, at Moment) (Status, error) {
	var err error
	if s.State, err = Evolve(s.State, p); err != nil {
		return s, err
	}
	switch e := p.(type) {
	case events.OperatorGroupCreated, events.OperatorGroupPlaced:
		return Status{
			State: s.State, Targets: DeclaredTargets(s.Spec), ProvidedAPIs: list(s.Spec.ProvidedAPIs),
			Conditions: []string{}, Event: at.Event,
		}, nil
	case events.OperatorGroupChanged:
		s.Event = at.Event
		// Until the cluster has reported what a selector chooses, what it chose before stands.
		if len(e.Spec.TargetNamespaces) > 0 || e.Spec.Global() {
			s.Targets = DeclaredTargets(e.Spec)
		}
	case events.OperatorGroupObserved:
		if !slices.Equal(s.Conditions, e.Conditions) {
			s.Observed = at
		}
		s.Targets, s.ProvidedAPIs, s.Conditions = list(e.Targets), list(e.ProvidedAPIs), list(e.Conditions)
	}
	return s, nil
}

// list is a slice that JSON writes as a list, empty or not.
func list(s []string) []string { return append([]string{}, s...) }
