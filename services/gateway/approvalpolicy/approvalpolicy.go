// Package approvalpolicy is the aggregate of one approval policy: which upgrades may happen, when, and who has to
// agree, for the operators that a selector chooses. It is pure. What policies come to, the resolver says.
package approvalpolicy

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// What an upgrade does that gains rights.
const (
	GrowthManual = "Manual" // it waits for a person, whatever the rules say
	GrowthIgnore = "Ignore"
)

// Subject is the natural key of a policy.
func Subject(name string) string { return "approval/" + name }

// State is a policy as folded from its events. The zero value but for the name was never set, or is deleted.
type State struct {
	Name string // given by the caller
	Set  bool
	Spec events.ApprovalPolicySpec
	// Metadata changes nothing that a policy rules.
	Metadata events.Metadata
}

// Command is one of Set and Delete.
type Command interface{ approvalPolicyCommand() }

// Set makes the policy, or replaces all of it.
type Set struct {
	Spec     events.ApprovalPolicySpec
	Metadata events.Metadata
	// Others is how many policies the tenant has beside this one.
	Others int
}

// Delete ends the policy.
type Delete struct{}

func (Set) approvalPolicyCommand()    {}
func (Delete) approvalPolicyCommand() {}

// Decide returns the events that the command leads to; none if it changes nothing.
func Decide(s State, c Command) ([]events.Payload, error) {
	switch c := c.(type) {
	case Set:
		spec := normal(c.Spec)
		if err := check(s.Name, spec); err != nil {
			return nil, err
		}
		if !s.Set && c.Others >= MaxPolicies {
			return nil, errs.New(errs.Unprocessable,
				"approval policy %q would be number %d, at most %d are allowed: delete one, or combine several that "+
					"decide the same",
				s.Name, c.Others+1, MaxPolicies).At("path.name", rule.MaxItems)
		}
		var out []events.Payload
		if !s.Set || !reflect.DeepEqual(s.Spec, spec) {
			out = append(out, events.ApprovalPolicySet{Name: s.Name, Spec: spec})
		}
		if !c.Metadata.Equal(s.Metadata) {
			out = append(out, events.ApprovalPolicyMetadataChanged{Metadata: c.Metadata})
		}
		return out, nil
	case Delete:
		if !s.Set {
			return nil, errs.New(errs.NotFound, "no approval policy %q exists", s.Name)
		}
		return []events.Payload{events.ApprovalPolicyDeleted{}}, nil
	default:
		return nil, fmt.Errorf("approval policy: command %T is not known", c)
	}
}

// Evolve returns the state after an event. An event of another kind of stream is an error.
func Evolve(s State, p events.Payload) (State, error) {
	switch e := p.(type) {
	case events.ApprovalPolicySet:
		return State{Name: s.Name, Set: true, Spec: normal(e.Spec), Metadata: s.Metadata}, nil
	case events.ApprovalPolicyMetadataChanged:
		s.Metadata = e.Metadata
		return s, nil
	case events.ApprovalPolicyDeleted:
		return State{Name: s.Name}, nil
	default:
		return s, fmt.Errorf("approval policy: event %s does not belong in a policy's stream", p.EventType())
	}
}

// normal gives what means the same one form: lists of names are sets, empty lists are none, and the default of
// permissionGrowth is written out. The order of rules counts, and that of windows is the author's.
func normal(s events.ApprovalPolicySpec) events.ApprovalPolicySpec {
	for _, list := range []*[]string{
		&s.Selector.Clusters, &s.Selector.Namespaces, &s.Selector.Packages,
		&s.Selector.Catalogs,
	} {
		*list = slices.Compact(slices.Sorted(slices.Values(*list)))
	}
	if len(s.Selector.ClusterLabels) == 0 {
		s.Selector.ClusterLabels = nil
	}
	if s.PermissionGrowth == "" {
		s.PermissionGrowth = GrowthManual
	}
	if len(s.Rules) == 0 {
		s.Rules = nil
	}
	s.Windows = slices.Clone(s.Windows)
	for i := range s.Windows {
		if len(s.Windows[i].Days) == 0 {
			s.Windows[i].Days = nil
		}
	}
	if len(s.Windows) == 0 {
		s.Windows = nil
	}
	return s
}
