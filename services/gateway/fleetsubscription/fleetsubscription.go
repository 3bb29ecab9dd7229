// Package fleetsubscription is the aggregate of one fleet subscription: an operator for the clusters that a placement
// chooses, and how changes reach them. It is pure. What clusters are chosen, and what becomes of them, the fleet
// controller of the resolver decides. Configuration comes as a commitment.
package fleetsubscription

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// State is a fleet subscription as folded from its events. The zero value but for the name was never set, or is
// deleted.
type State struct {
	Name string // given by the caller
	Set  bool
	Spec events.FleetSubscriptionSpec
}

// Command is one of Set and Delete.
type Command interface{ fleetSubscriptionCommand() }

// Set makes the fleet subscription, or replaces all of it.
type Set struct {
	Spec events.FleetSubscriptionSpec
	// Others is how many fleet subscriptions the tenant has beside this one.
	Others int
	// Clusters are those of the tenant, as far as overrides want to be held against them.
	Clusters []placement.Cluster
}

// Delete ends the fleet subscription; what is on the clusters stays.
type Delete struct{}

func (Set) fleetSubscriptionCommand()    {}
func (Delete) fleetSubscriptionCommand() {}

// Decide returns the events that the command leads to; none if it changes nothing.
func Decide(s State, c Command) ([]events.Payload, error) {
	switch c := c.(type) {
	case Set:
		spec := normal(c.Spec)
		if err := check(s, spec, c.Clusters); err != nil {
			return nil, err
		}
		if !s.Set && c.Others >= MaxFleetSubscriptions {
			return nil, errs.New(errs.Unprocessable,
				"fleet subscription %q would be number %d, at most %d are allowed: delete one", s.Name, c.Others+1,
				MaxFleetSubscriptions).At("path.name", rule.MaxItems)
		}
		if s.Set && reflect.DeepEqual(s.Spec, spec) {
			return nil, nil
		}
		return []events.Payload{events.FleetSubscriptionSet{Name: s.Name, Spec: spec}}, nil
	case Delete:
		if !s.Set {
			return nil, NotFound(s.Name)
		}
		return []events.Payload{events.FleetSubscriptionDeleted{}}, nil
	default:
		return nil, fmt.Errorf("fleet subscription: command %T is not known", c)
	}
}

// NotFound says that no fleet subscription has a name.
func NotFound(name string) error {
	return errs.New(errs.NotFound, "no fleet subscription %q exists", name)
}

// NoRollout says that a fleet subscription has no rollout of a number.
func NoRollout(name string, number int) error {
	return errs.New(errs.NotFound, "fleet subscription %q has no rollout %d", name, number)
}

// Evolve returns the state after an event. An event of another kind of stream is an error.
func Evolve(s State, p events.Payload) (State, error) {
	switch e := p.(type) {
	case events.FleetSubscriptionSet:
		return State{Name: s.Name, Set: true, Spec: normal(e.Spec)}, nil
	case events.FleetSubscriptionDeleted:
		return State{Name: s.Name}, nil
	default:
		return s, fmt.Errorf("fleet subscription: event %s does not belong in its stream", p.EventType())
	}
}

// normal gives what means the same one form: lists of names are sets, empty lists are none, and defaults are written
// out. The order of waves counts. Defaults of numbers are the fleet controller's.
func normal(s events.FleetSubscriptionSpec) events.FleetSubscriptionSpec {
	if s.Approval == "" {
		s.Approval = subscription.Automatic
	}
	if s.DeletionPolicy == "" {
		s.DeletionPolicy = events.DeletionPolicyOrphan
	}
	s.OperatorGroup.Spec = operatorgroup.Normal(s.OperatorGroup.Spec)
	for _, list := range []*[]string{&s.Placement.Clusters, &s.Placement.Except} {
		*list = slices.Compact(slices.Sorted(slices.Values(*list)))
	}
	s.Overrides = slices.Clone(s.Overrides)
	for i := range s.Overrides {
		list := &s.Overrides[i].Clusters
		*list = slices.Compact(slices.Sorted(slices.Values(*list)))
	}
	if len(s.Overrides) == 0 {
		s.Overrides = nil
	}
	if len(s.Placement.Tolerations) == 0 {
		s.Placement.Tolerations = nil
	}
	if len(s.Placement.Prefer) == 0 {
		s.Placement.Prefer = nil
	}
	s.Strategy.Waves = slices.Clone(s.Strategy.Waves)
	for i, w := range s.Strategy.Waves {
		if w.Promotion == "" {
			s.Strategy.Waves[i].Promotion = events.PromotionAutomatic
		}
	}
	normalGates(&s.Strategy)
	if len(s.Strategy.Waves) == 0 {
		s.Strategy.Waves = nil
	}
	return s
}
