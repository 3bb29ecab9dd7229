package rollout

import (
	"reflect"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/override"
)

// MaxBack is how many rollouts before the newest one can be gone back to: what they brought is kept in the catalog for
// that. A fleet subscription that moves every week has a quarter of a year.
const MaxBack = 12

// Rollback has what the rollout brought taken back, whether it goes on or has ended. Before are the rollouts before it,
// newest first, at most MaxBack; To is the number of the one that brought what the clusters go back to, 0 where that is
// found (Back). Reason is the commitment to the words of whoever asks.
type Rollback struct {
	Before []State
	To     int
	Reason string
}

func (Rollback) rolloutCommand() {}

func rollBack(s State, c Rollback) ([]events.Payload, error) {
	if s.Phase == RolledBack {
		if c.To == 0 || c.To == s.RolledBackTo {
			return nil, nil
		}
		return nil, refuse(s, "is being taken back to rollout %d already", s.RolledBackTo)
	}
	if s.Phase == Superseded {
		return nil, refuse(s, "has ended (Superseded): another intent takes its place")
	}
	way, err := Back(s, c.Before, c.To)
	if err != nil {
		return nil, err
	}
	return []events.Payload{events.RolloutRollbackRequested{To: way.To.Number, Reason: c.Reason}}, nil
}

// Way is where a rollback leads.
type Way struct {
	// To is the rollout that brought what the clusters go back to.
	To events.RolloutStarted
	// Clusters go back, LeftAlone do not; both by name.
	Clusters  []string
	LeftAlone []events.RolloutLeftAlone
}

// Back is where a rollback of a rollout leads.
//
//	what is taken back   what the newest rollout brought, by it and by the rollouts just before it that brought the
//	                     same: one that began since a cluster joined brought it to that one alone
//	which clusters       those that were asked for it, whatever came of that
//	where to             to, or the newest rollout before that all in all succeeded, was not taken back itself, brought
//	                     no later version, and had succeeded on one of them; where there is none, one that ended otherwise
//	who is left alone    a cluster on which nothing with that target ever succeeded: nothing is removed, and nobody gets
//	                     a version that was never there
func Back(s State, before []State, to int) (Way, error) {
	asked := map[string]bool{}
	add := func(one State) {
		for name, c := range one.Clusters {
			if c.Attempt > 0 {
				asked[name] = true
			}
		}
	}
	add(s)
	for len(before) > 0 && SameWish(before[0].Started, s.Started) {
		if before[0].Started.Number == to {
			return Way{}, refuse(s, "brings the same as rollout %d", to)
		}
		add(before[0])
		before = before[1:]
	}
	if len(asked) == 0 {
		return Way{}, refuse(s, "has asked no cluster for a change yet: abort it")
	}
	if to != 0 {
		return named(s, before, to, asked)
	}
	var otherwise Way
	for _, b := range before {
		if b.Phase == RolledBack || unfit(s, b) != "" {
			continue
		}
		way := wayTo(b.Started, before, asked)
		switch {
		case len(way.Clusters) == 0:
		case b.Phase == Succeeded:
			return way, nil
		case otherwise.To.Number == 0:
			otherwise = way
		}
	}
	if otherwise.To.Number == 0 {
		return Way{}, refuse(s, "has nothing to go back to: on none of the clusters that it asked did an earlier rollout "+
			"succeed with something else")
	}
	return otherwise, nil
}

// named is the way to a rollout that somebody named.
func named(s State, before []State, to int, asked map[string]bool) (Way, error) {
	for _, b := range before {
		if b.Started.Number != to {
			continue
		}
		if why := unfit(s, b); why != "" {
			return Way{}, refuse(s, "cannot be taken back to rollout %d, which %s", to, why)
		}
		way := wayTo(b.Started, before, asked)
		if len(way.Clusters) == 0 {
			return Way{}, refuse(s, "cannot be taken back to rollout %d: %s has not succeeded before on any of the "+
				"clusters that it asked", to, b.Started.Target.CSV)
		}
		return way, nil
	}
	return Way{}, errs.New(errs.NotFound, "fleet subscription %q has no rollout %d among the %d before rollout %d",
		s.Started.FleetSubscription, to, MaxBack, s.Started.Number)
}

// unfit says why nothing goes back to what a rollout brought; "" where it may.
func unfit(s, b State) string {
	was, is := b.Started, s.Started
	switch {
	case was.Target.Package != is.Target.Package || was.Intent.Namespace != is.Intent.Namespace:
		return "was for another package or namespace"
	case later(was.Target.Version, is.Target.Version):
		return "brought a later version: set the fleet subscription"
	default:
		return ""
	}
}

// later says whether a version is later than another one. What cannot be compared is not.
func later(a, b string) bool {
	x, errX := semver.Parse(a)
	y, errY := semver.Parse(b)
	return errX == nil && errY == nil && x.GT(y)
}

// wayTo sorts the clusters that were asked by whether they had what a rollout brought.
func wayTo(to events.RolloutStarted, before []State, asked map[string]bool) Way {
	had := map[string]bool{}
	for _, b := range before {
		if !sameBundle(b.Started.Target, to.Target) {
			continue
		}
		for name, c := range b.Clusters {
			had[name] = had[name] || c.Outcome == events.ClusterSucceeded
		}
	}
	way := Way{To: to}
	for name := range asked {
		if had[name] {
			way.Clusters = append(way.Clusters, name)
			continue
		}
		way.LeftAlone = append(way.LeftAlone,
			events.RolloutLeftAlone{Cluster: name, Reason: events.LeftNothingBefore})
	}
	slices.Sort(way.Clusters)
	slices.SortFunc(way.LeftAlone, func(a, b events.RolloutLeftAlone) int {
		return strings.Compare(a.Cluster, b.Cluster)
	})
	return way
}

// Had is the newest of the rollouts before in which a cluster succeeded with what it goes back to.
func (w Way) Had(cluster string, before []State) (r events.RolloutStarted, ok bool) {
	for _, b := range before {
		if sameBundle(b.Started.Target, w.To.Target) && b.Clusters[cluster].Outcome == events.ClusterSucceeded &&
			b.Started.Number <= w.To.Number {
			return b.Started, true
		}
	}
	return r, false
}

func sameBundle(a, b events.RolloutTarget) bool { return a.CSV == b.CSV && a.Content == b.Content }

// SameWish says whether two rollouts bring the same to clusters.
func SameWish(a, b events.RolloutStarted) bool {
	return sameBundle(a.Target, b.Target) && SameIntent(a.Intent, b.Intent) && sameOverrides(a, b)
}

// sameOverrides says whether two rollouts bring the same configuration to the clusters that both are for.
func sameOverrides(a, b events.RolloutStarted) bool {
	if len(a.Overrides)+len(b.Overrides) == 0 {
		return true
	}
	in := map[string]bool{}
	for _, w := range a.Waves {
		for _, name := range w.Clusters {
			in[name] = true
		}
	}
	for _, w := range b.Waves {
		for _, name := range w.Clusters {
			if in[name] && override.Of(a, name).Spec(a.Intent.Subscription).Config !=
				override.Of(b, name).Spec(b.Intent.Subscription).Config {
				return false
			}
		}
	}
	return true
}

// SameIntent says whether two intents ask the same of clusters. Who approves plans is not asked of clusters.
func SameIntent(a, b events.RolloutIntent) bool {
	a.Subscription.Approval, b.Subscription.Approval = "", ""
	return reflect.DeepEqual(a, b)
}
