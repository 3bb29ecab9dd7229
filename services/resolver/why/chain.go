package why

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
)

// member is an operator that is installed or planned.
type member struct {
	op        *offer.Operator
	followers []string // subscriptions
}

// because is why the operator is there: the subscription that follows it, and the shortest chain of requirements
// from an operator that another subscription follows, which comes first in the chain.
func (s *subject) because() []Link {
	out := []Link{}
	if s.sub != nil {
		out = append(out, Link{
			By: "subscription/" + s.sub.Name,
			Text: fmt.Sprintf("subscription %s asks for package %s%s", s.sub.Name, s.sub.Package,
				inChannel(s.sub.Channel)),
		})
	}
	all := s.members()
	for _, m := range all {
		if m.op.Package == s.pkg {
			return append(out, chain(all, m)...)
		}
	}
	return out
}

func inChannel(name string) string {
	if name == "" {
		return ""
	}
	return ", channel " + name
}

// members are what the namespace has when the component's plan is carried out, by name.
func (s *subject) members() []*member {
	var out []*member
	if s.component != nil {
		for _, b := range s.component.Bundles {
			out = append(out, &member{
				op:        offer.NewOperator(b.CSV, b.Package, b.Version, b.Content, b.Properties),
				followers: b.Subscriptions,
			})
		}
	}
	for _, i := range s.f.Input.Installed {
		if slices.ContainsFunc(out, func(m *member) bool { return m.op.Package == i.Package && i.Package != "" }) {
			continue
		}
		m := &member{op: offer.NewOperator(i.CSV, i.Package, i.Version, i.Content, i.Properties)}
		if i.Subscription != "" {
			m.followers = []string{i.Subscription}
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *member) int { return cmp.Compare(a.op.Name, b.op.Name) })
	return out
}

// chain walks from an operator to those that require it until one has a subscription, breadth first. The
// operator's own subscription does not end it: one may have been made for the dependency (R-RES-40).
func chain(all []*member, from *member) []Link {
	type at struct {
		m     *member
		links []Link
	}
	seen := map[*member]bool{from: true}
	queue := []at{{m: from}}
	for len(queue) > 0 {
		here := queue[0]
		queue = queue[1:]
		for _, m := range all {
			need := requires(m.op, here.m.op)
			if seen[m] || need == nil {
				continue
			}
			seen[m] = true
			links := append([]Link{{
				By: m.op.Name, Requirement: need.Text,
				Text: fmt.Sprintf("%s requires an operator %s, which %s is", m.op.Name, need.Text, here.m.op.Name),
			}}, here.links...)
			if len(m.followers) > 0 {
				return append([]Link{{
					By:   "subscription/" + m.followers[0],
					Text: fmt.Sprintf("subscription %s asks for %s", m.followers[0], m.op.Name),
				}}, links...)
			}
			queue = append(queue, at{m, links})
		}
	}
	return nil
}

// requires is the first requirement of an operator that another one meets; nil for none.
func requires(op, by *offer.Operator) *offer.Requirement {
	if op == by {
		return nil
	}
	for _, r := range op.Requires {
		if r.Matches(by) {
			return r
		}
	}
	return nil
}

// ours says whether a planned bundle belongs to the component.
func (s *subject) ours(b events.PlannedBundle) bool {
	return slices.Contains(s.component.Packages, b.Package)
}
