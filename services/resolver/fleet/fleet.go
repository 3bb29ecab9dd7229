// Package fleet decides what the fleet controller does about one fleet subscription: which clusters it is for, when a
// rollout begins, and which clusters are let go. How a rollout goes on is decided in libs/fleet/rollout. It is pure.
package fleet

import (
	"cmp"
	"slices"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/budget"
	"github.com/chandler-fleet/chandler/libs/fleet/override"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
)

// Defaults of a strategy.
const (
	// DefaultMaxConcurrent bounds what goes wrong at once, and is enough for a thousand clusters within hours.
	DefaultMaxConcurrent = 10
	// DefaultDeadlineSeconds is far beyond what an operator takes that becomes ready at all.
	DefaultDeadlineSeconds = 30 * 60
)

// State is what is known of one fleet subscription at a moment.
type State struct {
	Tenant  string
	Name    string
	Stream  string // of the fleet subscription
	Version int64  // of that stream
	Spec    events.FleetSubscriptionSpec
	Deleted bool
	// Clusters are those of the tenant, by name; removed ones are not among them.
	Clusters map[string]Cluster
	// Placed are the subscriptions that it owns, by cluster.
	Placed map[string]Placed
	// Taken are the clusters on which another subscription has the name or the package, with its name; of one that a
	// rollout is about to make, the name of its fleet subscription.
	Taken map[string]string
	// Strays are subscriptions that it owns elsewhere than in its namespace, which was another one before.
	Strays []Place
	// Last is the newest rollout; its phase is "" where there was none.
	Last rollout.State
	// Before are the rollouts before the newest one, newest first, where that one is to be taken back.
	Before []rollout.State
	// LastVersion is that of its stream.
	LastVersion int64
	// Seen is what is known of the attempts of the newest rollout, by cluster.
	Seen map[string]rollout.Seen
	// Evaluated is what gates of the newest rollout said last, by name.
	Evaluated map[string]rollout.Evaluation
	// Tried is the newest rollout of each cluster, whatever number it has, once no rollout goes on.
	Tried map[string]Try
	// Changed and Leaves bound how many clusters of the tenant may be changed, and may be let go of, within an hour.
	Changed, Leaves budget.Budget
	// Held are the clusters that were held back when it was decided last; nil for none.
	Held *Held
}

// Try is what a rollout that has ended wanted of a cluster, and what came of it.
type Try struct {
	Stream  string // of the fleet subscription
	Version int64  // of that stream
	Target  events.RolloutTarget
	Outcome string // "" where the rollout ended before there was one
	// Choice is what overrides made of the cluster.
	Choice override.Choice
	Asked  bool // whether it asked the cluster at all
}

// Cluster is one that operators may be placed on.
type Cluster struct {
	placement.Cluster

	// Away says that it does not answer, or is cordoned: nothing can be changed there now.
	Away bool
}

// Place is where a subscription of the fleet subscription is.
type Place struct{ Cluster, Namespace string }

// Placed is what was asked of a cluster last.
type Placed struct {
	Spec   events.SubscriptionSpec
	Target events.RolloutTarget
}

// ReasonTaken is why a cluster fails on which another subscription has the name or the package.
const ReasonTaken = "SubscriptionExists"

// ReasonRemoved is why a cluster fails that Chandler has let go of.
const ReasonRemoved = "ClusterRemoved"

// World is what the newest rollout looks at.
func (s State) World() map[string]rollout.Seen {
	out := make(map[string]rollout.Seen, len(s.Last.Clusters))
	for name := range s.Last.Clusters {
		seen := s.Seen[name]
		c, there := s.Clusters[name]
		seen.Away = !there || c.Away
		switch {
		case !there:
			seen.Refused = ReasonRemoved
		case s.Taken[name] != "":
			seen.Refused = ReasonTaken
		case len(override.Of(s.Last.Started, name).Conflict) > 0:
			seen.Refused = override.ReasonConflict
		}
		out[name] = seen
	}
	return out
}

// Superseded says whether the newest rollout brings what nobody wants any more.
func (s State) Superseded() bool {
	return s.Last.Phase != "" && !s.Last.Phase.Ended() && (s.Deleted || s.otherIntent())
}

// otherIntent says whether the newest rollout began by another intent. A version says that only within its stream.
func (s State) otherIntent() bool {
	return s.Last.Started.Version != s.Version || s.Last.Started.Stream != s.Stream
}

// Members are the clusters that the fleet subscription is for, sorted.
func (s State) Members() ([]string, error) {
	if s.Deleted {
		return nil, nil
	}
	all, present := s.candidates()
	return placement.Choose(s.Spec.Placement, all, present)
}

// candidates are all clusters, and those of them that it is on.
func (s State) candidates() (all []placement.Cluster, present []string) {
	for name, c := range s.Clusters {
		all = append(all, c.Cluster)
		if _, is := s.Placed[name]; is {
			present = append(present, name)
		}
	}
	return all, present
}

// Leaving are the places that it is for no more.
func (s State) Leaving(members []string) []Place {
	out := slices.Clone(s.Strays)
	for name := range s.Placed {
		if !slices.Contains(members, name) {
			out = append(out, Place{name, s.Spec.Namespace})
		}
	}
	slices.SortFunc(out, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Namespace, b.Namespace))
	})
	return out
}

// Begin is the rollout that begins now: the one that takes back the newest one, where that is asked for, else for the
// members that do not have what is wanted. What a rollout tried on a cluster already, with the same outcome in view, is
// not tried again until something changes.
func (s State) Begin(members []string, offered events.RolloutTarget) (events.RolloutStarted, bool, error) {
	rules, err := override.Read(s.Spec)
	if err != nil {
		return events.RolloutStarted{}, false, err
	}
	if s.TakenBack() {
		out, err := s.beginRollback(members, rules)
		return out, err == nil, err
	}
	w := s.wish(rules, offered)
	var behind []placement.Cluster
	choices := map[string]override.Choice{}
	for _, name := range members {
		if choice := s.choice(name, w); s.behind(name, w, choice) {
			choices[name] = choice
			behind = append(behind, s.Clusters[name].Cluster)
		}
	}
	if len(behind) == 0 {
		return events.RolloutStarted{}, false, nil
	}
	waves, err := placement.Waves(s.Spec.Strategy, behind)
	if err != nil {
		return events.RolloutStarted{}, false, err
	}
	waves = slices.DeleteFunc(waves, func(w events.RolloutWave) bool { return len(w.Clusters) == 0 })
	failures, err := placement.Budget("strategy.maxFailures", s.Spec.Strategy.MaxFailures, len(behind))
	if err != nil {
		return events.RolloutStarted{}, false, err
	}
	if s.Spec.Strategy.MaxFailures == "" { // the waves say it
		for _, w := range waves {
			failures += w.MaxFailures
		}
	}
	out := s.started(s.change(w.target))
	out.Intent, out.Target, out.Waves, out.MaxFailures = w.intent, w.target, waves, failures
	out.Overrides, out.Conflicts = override.Freeze(choices)
	out.Avoids, out.IntentVersion = s.keptBack()
	return out, true, nil
}

// started is the next rollout without what it brings and where.
func (s State) started(change string) events.RolloutStarted {
	out := events.RolloutStarted{
		FleetSubscription: s.Name, Number: s.Last.Started.Number + 1, Stream: s.Stream, Version: s.Version,
		Change: change, MaxConcurrent: s.Spec.Strategy.MaxConcurrent,
		DeadlineSeconds: s.Spec.Strategy.DeadlineSeconds, Windows: s.Spec.Strategy.Windows,
	}
	if out.MaxConcurrent == 0 {
		out.MaxConcurrent = DefaultMaxConcurrent
	}
	if out.DeadlineSeconds == 0 {
		out.DeadlineSeconds = DefaultDeadlineSeconds
	}
	return out
}

// Ask is what a rollout asks of the subscription of a cluster.
func Ask(r events.RolloutStarted, cluster string) events.SubscriptionPlaced {
	out := events.SubscriptionPlaced{
		Cluster: cluster, Namespace: r.Intent.Namespace, Name: r.FleetSubscription,
		Spec:  override.Of(r, cluster).Spec(r.Intent.Subscription),
		Owner: r.FleetSubscription, Rollout: r.Number, Target: r.Target, Avoids: r.Avoids,
	}
	if r.Change == events.ChangeRollback && r.Rollback.From != r.Target.CSV {
		out.Rollback = events.SubscriptionRollback{From: r.Rollback.From, To: r.Target.CSV}
	}
	return out
}

// wish is what members are to have.
type wish struct {
	intent     events.RolloutIntent
	target     events.RolloutTarget
	rules      override.Rules
	rolledBack bool // what is offered is not brought
	older      bool // the intent is that of an earlier version of the fleet subscription
}

func (s State) wish(rules override.Rules, offered events.RolloutTarget) wish {
	w := wish{rules: rules, rolledBack: s.RolledBack(offered)}
	w.intent, w.target = s.Wanted(offered)
	_, version := s.keptBack()
	w.older = version != 0
	return w
}

// choice is what overrides make of a member. Where an older intent holds, who went back to it keeps what it had then.
func (s State) choice(name string, w wish) override.Choice {
	try, was := s.Tried[name]
	if was && w.older && try.Stream == s.Stream && try.Version == s.Version && same(try.Target, w.target) {
		return try.Choice
	}
	return w.rules.For(s.Clusters[name].Cluster)
}

// behind says whether a member has to be asked for what is wanted, by what it has and by what came of the newest
// rollout that it was in:
//
//	it was in none                                    if it does not have it
//	one of the same intent, with the same target      if it had succeeded and does not have it any more
//	another one, and it has what is wanted            if it has not shown that: nobody else may rely on it
//	another one                                       yes
//
// What is wanted of a cluster is what overrides make of the intent; where labels make that another thing, it is another
// intent. A cluster on which overrides are a conflict has what is wanted never. While something that was rolled back
// from is not brought again, a cluster that was asked for it and did not go back is left alone, and one that was in its
// rollout without being asked counts as one that was in none.
func (s State) behind(name string, w wish, choice override.Choice) bool {
	now, is := s.Placed[name]
	has := is && len(choice.Conflict) == 0 && now.Spec == choice.Spec(w.intent.Subscription) &&
		same(now.Target, w.target)
	try, was := s.Tried[name]
	left := was && w.rolledBack && slices.Contains(s.Last.Started.Avoids, try.Target.CSV)
	succeeded := try.Outcome == events.ClusterSucceeded
	switch {
	case left && try.Asked:
		return false
	case !was || left:
		return !has
	case try.Stream == s.Stream && try.Version == s.Version && same(try.Target, w.target) &&
		try.Choice.Key() == choice.Key():
		return succeeded && !has
	case has:
		return !succeeded
	default:
		return true
	}
}

// same says whether two targets bring the same; where a catalog moved elsewhere is no change.
func same(a, b events.RolloutTarget) bool {
	return a.CSV == b.CSV && a.Content == b.Content && a.Catalog == b.Catalog && a.Channel == b.Channel
}

func (s State) change(target events.RolloutTarget) string {
	switch {
	case s.Last.Phase == "" || s.otherIntent():
		return events.ChangeIntent
	case !same(s.Last.Started.Target, target):
		return events.ChangeVersion
	default:
		return events.ChangeMembership
	}
}

// Intent is what each cluster is asked for, before overrides.
func (s State) Intent() events.RolloutIntent {
	return events.RolloutIntent{
		Namespace: s.Spec.Namespace, OperatorGroup: s.Spec.OperatorGroup, Adopt: s.Spec.Adopt,
		Subscription: events.SubscriptionSpec{
			Package: s.Spec.Package, Channel: s.Spec.Channel, Catalog: s.Spec.Catalog, Approval: s.Spec.Approval,
			Config: s.Spec.Config,
		},
	}
}
