package suggestion

import (
	"fmt"
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// state is what a result comes to for each subscription and each installed operator.
type state struct {
	ok      map[string]bool   // subscription → it resolves, and nothing holds up its plan
	to      map[string]string // subscription → the CSV that it moves to or has
	planned map[string]bool   // CSVs
	unhappy map[string]bool   // CSVs without subscription that are part of a conflict
}

func standing(r resolution.Result) state {
	s := state{ok: map[string]bool{}, to: map[string]string{}, planned: map[string]bool{}, unhappy: map[string]bool{}}
	for _, c := range r.Components {
		blamed := []string{}
		if c.Failure != nil {
			blamed = c.Failure.Subscriptions
			for _, csv := range c.Failure.CSVs {
				s.unhappy[csv] = true
			}
		}
		for _, name := range c.Subscriptions {
			// A subscription may be in two components: the one in whose failure it is counts.
			was, seen := s.ok[name]
			s.ok[name] = (was || !seen) && c.Blocked == nil && !slices.Contains(blamed, name)
		}
		for _, o := range c.Outcomes {
			s.to[o.Subscription] = o.CSV
		}
		for _, b := range c.Bundles {
			s.planned[b.CSV] = true
		}
	}
	return s
}

// helps resolves again with a change, and says what would come of it.
func (s *search) helps(r Suggestion) (also []string, ok bool) {
	in, ok := r.Apply(s.in)
	if !ok {
		return nil, false
	}
	if s.harms(in, r) {
		return nil, false
	}
	after := standing(s.outcome(in, s.groupsWith(r)))
	for _, sub := range in.Subscriptions {
		asked := slices.Contains(s.blamed(), sub.Name) || s.before.ok[sub.Name]
		if asked && !after.ok[sub.Name] {
			return nil, false
		}
	}
	for csv := range after.unhappy {
		if !s.before.unhappy[csv] {
			return nil, false
		}
	}
	return s.also(in, after), true
}

func (s *search) resolve(in resolution.Input) resolution.Result {
	s.answer.Tried++
	in.Policy.MaxConflicts = trialConflicts
	return resolve.Resolve(in)
}

// also says what the blamed subscriptions come to, and what else comes out differently.
func (s *search) also(in resolution.Input, after state) []string {
	var own, others []string
	said := map[string]bool{}
	for _, sub := range in.Subscriptions {
		to := after.to[sub.Name]
		if _, known := s.before.ok[sub.Name]; known { // not one that the change brings
			said[to] = true
		}
		switch {
		case slices.Contains(s.blamed(), sub.Name):
			own = append(own, fmt.Sprintf("subscription %s then %s %s", sub.Name, verb(after.planned[to]), to))
		case s.before.to[sub.Name] != to && s.before.ok[sub.Name]:
			others = append(others, fmt.Sprintf("subscription %s then %s %s instead of %s", sub.Name,
				verb(after.planned[to]), to, s.before.to[sub.Name]))
		}
	}
	for _, csv := range sorted(after.planned) {
		if !s.before.planned[csv] && !said[csv] {
			others = append(others, csv+" is then installed, too")
		}
	}
	slices.Sort(own)
	slices.Sort(others)
	list := slices.Concat(own, others)
	if more := len(list) - maxAlso; more > 0 {
		list = append(list[:maxAlso], fmt.Sprintf("and %d more changes", more))
	}
	return list
}

func verb(planned bool) string {
	if planned {
		return "gets"
	}
	return "has"
}

func sorted(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for k := range set {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
