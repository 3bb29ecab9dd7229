package fleet

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/override"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/libs/installplan"
)

// rollbackWave is the name of the one wave that a rollback has.
const rollbackWave = "rollback"

// TakenBack says whether the newest rollout is to be taken back, which the next one does. Another intent is another
// answer to what went wrong: what it asks for takes the place of the rollback.
func (s State) TakenBack() bool {
	return s.Last.Phase == rollout.RolledBack && !s.Deleted && !s.otherIntent()
}

// RolledBack says whether what the catalog offers was rolled back from under this intent: then it is brought to nobody
// until the fleet subscription is set again, or the catalog offers something else. Where the intent itself was taken
// back, as where it brought another configuration, only the first helps.
func (s State) RolledBack(offered events.RolloutTarget) bool {
	if s.Last.Phase == "" || s.otherIntent() {
		return false
	}
	return s.Last.Phase == rollout.RolledBack || s.Last.Started.IntentVersion != 0 ||
		slices.Contains(s.Last.Started.Avoids, offered.CSV)
}

// Wanted is what clusters are to have: what is offered, as the fleet subscription says; or, where that was rolled back
// from, what the newest rollout brought, which members that come meanwhile get, too.
func (s State) Wanted(offered events.RolloutTarget) (events.RolloutIntent, events.RolloutTarget) {
	switch {
	case !s.RolledBack(offered):
		return s.Intent(), offered
	case s.TakenBack():
		if way, err := s.way(); err == nil {
			return s.intentOf(way.To), way.To.Target
		}
	}
	return s.intentOf(s.Last.Started), s.Last.Started.Target
}

// intentOf is the intent of an earlier rollout. Who approves plans is what the fleet subscription says now.
func (s State) intentOf(r events.RolloutStarted) events.RolloutIntent {
	out := r.Intent
	out.Subscription.Approval = s.Spec.Approval
	return out
}

func (s State) way() (rollout.Way, error) { return rollout.Back(s.Last, s.Before, s.Last.RolledBackTo) }

// beginRollback is the rollout that takes back the newest one: in one wave without soak, gates and windows, since what
// runs is what somebody wants gone. How many clusters are changed at a time, how many may fail, and the budget of mass
// changes hold; who is away is changed when it is back.
func (s State) beginRollback(members []string, rules override.Rules) (events.RolloutStarted, error) {
	way, err := s.way()
	if err != nil {
		return events.RolloutStarted{}, err
	}
	out := s.started(events.ChangeRollback)
	out.Windows = nil
	out.Intent, out.Target = s.intentOf(way.To), way.To.Target
	if !rollout.SameIntent(out.Intent, s.Intent()) {
		out.IntentVersion = way.To.Version
	}
	out.Rollback = events.RolloutRollback{
		Of: s.Last.Started.Number, From: s.Last.Started.Target.CSV, To: way.To.Number, LeftAlone: way.LeftAlone,
	}
	out.Avoids = avoids(s.Last.Started, out.Target.CSV)
	var clusters []string
	choices := map[string]override.Choice{}
	for _, name := range way.Clusters {
		if slices.Contains(members, name) {
			now := rules.For(s.Clusters[name].Cluster)
			clusters, choices[name] = append(clusters, name), s.choiceBack(name, way, now)
			if choices[name].Spec(out.Intent.Subscription).Config != now.Spec(s.Intent().Subscription).Config {
				out.IntentVersion = way.To.Version
			}
			continue
		}
		out.Rollback.LeftAlone = append(out.Rollback.LeftAlone,
			events.RolloutLeftAlone{Cluster: name, Reason: events.LeftNotChosen})
	}
	out.Overrides, out.Conflicts = override.Freeze(choices)
	slices.SortFunc(out.Rollback.LeftAlone, func(a, b events.RolloutLeftAlone) int {
		return strings.Compare(a.Cluster, b.Cluster)
	})
	out.MaxFailures, err = placement.Budget("strategy.maxFailures", s.Spec.Strategy.MaxFailures, len(clusters))
	if err != nil {
		return events.RolloutStarted{}, err
	}
	out.Waves = []events.RolloutWave{} // it ends at once where nobody goes back
	if len(clusters) > 0 {
		out.Waves = append(out.Waves, events.RolloutWave{
			Name: rollbackWave, Clusters: clusters, Promotion: events.PromotionAutomatic,
			MaxFailures: out.MaxFailures, MaxUnreachable: len(clusters),
		})
	}
	return out, nil
}

// choiceBack is what overrides made of a cluster when what it goes back to succeeded there. Who approves is what the
// fleet subscription says now.
func (s State) choiceBack(name string, way rollout.Way, now override.Choice) override.Choice {
	had, _ := way.Had(name, s.Before)
	was := override.Of(had, name)
	approval := s.Spec.Approval
	if now.Name != "" {
		approval = now.Approval
	}
	switch {
	case len(now.Conflict) > 0 && was.Name == "":
		return now // nobody knows who approves there
	case len(now.Conflict) > 0:
		was.Approval = installplan.Manual
	case was.Name != "":
		was.Approval = approval
	case approval != s.Spec.Approval:
		was = override.Choice{Name: now.Name, Config: way.To.Intent.Subscription.Config, Approval: approval}
	}
	return was
}

// avoids are the CSVs that are not brought again after a rollout was taken back to another CSV.
func avoids(last events.RolloutStarted, to string) []string {
	list := append(slices.Clone(last.Avoids), last.Target.CSV)
	slices.Sort(list)
	list = slices.DeleteFunc(slices.Compact(list), func(csv string) bool { return csv == to })
	if len(list) == 0 {
		return nil
	}
	return list
}

// keptBack are the avoids and the version of the intent that a rollout has from the one before, within the same intent.
func (s State) keptBack() (avoids []string, intentVersion int64) {
	if s.Last.Phase == "" || s.otherIntent() {
		return nil, 0
	}
	return s.Last.Started.Avoids, s.Last.Started.IntentVersion
}
