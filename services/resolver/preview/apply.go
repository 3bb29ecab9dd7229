package preview

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
)

// Apply returns the state as it would be with the hypotheses in the log, in their order. Those about other scopes
// change nothing. The state holds the disabled catalogs that the hypotheses name. What cannot be previewed is
// errs.Unprocessable.
func Apply(s decide.State, list []previewapi.Hypothesis) (decide.State, error) {
	for _, h := range list {
		p, err := h.Payload()
		if err != nil {
			return s, err
		}
		var known bool
		if s, known = s.Evolve(next(s, h, p)); !known {
			return s, errs.New(errs.Unprocessable, "%s of %s cannot be previewed", h.Type, h.Subject)
		}
	}
	return s, nil
}

// next is a hypothesis as the next event of its stream.
func next(s decide.State, h previewapi.Hypothesis, p events.Payload) decide.Event {
	e := decide.Event{Subject: h.Subject, Incarnation: h.Incarnation, Version: 1, Created: youngest(s), Payload: p}
	if _, created := p.(events.SubscriptionCreated); created {
		return e
	}
	name, here := strings.CutPrefix(h.Subject, s.Scope.Cluster+"/"+s.Scope.Namespace+"/")
	if i := find(s, name); here && i >= 0 {
		e.Incarnation, e.Version = s.Subscriptions[i].Incarnation, s.Subscriptions[i].Version+1
	}
	return e
}

func find(s decide.State, name string) int {
	return slices.IndexFunc(s.Subscriptions, func(x decide.Subscription) bool { return x.Name == name })
}

// youngest is the age of the subscription that is made next: the log gives them in order, too, and which of two is
// older can decide whom an operator belongs to.
func youngest(s decide.State) int64 {
	var newest int64
	for _, x := range s.Subscriptions {
		newest = max(newest, x.Created)
	}
	return newest + 1
}

// ApplyGenerated gives the state the subscriptions that are made for the dependencies of finished plans before
// anything is decided (R-RES-40), and returns their names. A name that is taken stays with the subscription that has
// it.
func ApplyGenerated(s decide.State) (decide.State, []string) {
	subs, plans := decide.Generated(s)
	if len(plans) == 0 {
		return s, nil
	}
	var names []string
	for _, g := range subs {
		if find(s, g.Name) < 0 {
			s, _ = s.Evolve(decide.Event{
				Subject: s.Scope.Cluster + "/" + s.Scope.Namespace + "/" + g.Name, Incarnation: 1, Version: 1,
				Created: youngest(s), Payload: g,
			})
			names = append(names, g.Name)
		}
	}
	s.Plans = slices.Clone(s.Plans)
	for i := range s.Plans {
		s.Plans[i].Settled = s.Plans[i].Settled || slices.ContainsFunc(
			plans, func(p decide.Plan) bool { return p.ID == s.Plans[i].ID })
	}
	return s, names
}
