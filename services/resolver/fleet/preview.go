package fleet

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/override"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
)

// Preview is what would come of the fleet subscription, by what decides it: the whole, and every cluster by name. A
// rollout that another intent ends counts as ended; one that goes on stays. Of clusters that a rollout would ask,
// Change is "": what it leads to there is Leads.
func (s State) Preview(target events.RolloutTarget, waits string) (
	whole previewapi.FleetPreview, list []previewapi.FleetCluster, err error,
) {
	whole = previewapi.FleetPreview{WaitsFor: waits, Waves: []previewapi.FleetWave{}}
	running := map[string]rollout.Cluster{}
	switch {
	case s.Superseded():
		whole.Supersedes = s.Last.Started.Number
	case s.Last.Phase != "" && !s.Last.Phase.Ended():
		whole.UnderWay, running = s.Last.Started.Number, s.Last.Clusters
	}
	all, present := s.candidates()
	verdicts, err := placement.Explain(s.Spec.Placement, all, present)
	if err != nil {
		return whole, nil, err
	}
	rules, err := override.Read(s.Spec)
	if err != nil {
		return whole, nil, err
	}
	waves := map[string]string{}
	if waits == "" {
		_, wanted := s.Wanted(target)
		whole.Target = &wanted
		if err := s.previewWaves(&whole, target, verdicts, waves); err != nil {
			return whole, nil, err
		}
		if whole.Change == "" && whole.UnderWay == 0 && s.RolledBack(target) {
			whole.WaitsFor = WaitsForAnother
		}
	}
	for _, v := range verdicts {
		c := s.previewCluster(v, rules.For(s.Clusters[v.Cluster].Cluster), waits, waves[v.Cluster])
		if r, is := running[v.Cluster]; is && v.Chosen && (r.Outcome == "" || r.Outcome == events.ClusterUnreachable) {
			c.Change, c.Wave, c.Reason, c.Detail = previewapi.FleetGoesOn, "", r.Reason, ""
		}
		count(&whole.Totals, c)
		list = append(list, c)
	}
	return whole, list, nil
}

// previewWaves adds the rollout that would begin, and which cluster is in which wave of it.
func (s State) previewWaves(
	whole *previewapi.FleetPreview, offered events.RolloutTarget, verdicts []placement.Verdict, waves map[string]string,
) error {
	var members []string
	for _, v := range verdicts {
		if v.Chosen {
			members = append(members, v.Cluster)
		}
	}
	started, begins, err := s.Begin(members, offered)
	if err != nil || !begins {
		return err
	}
	whole.Change = started.Change
	for _, w := range started.Waves {
		whole.Waves = append(whole.Waves, previewapi.FleetWave{
			Name: w.Name, Clusters: len(w.Clusters), SoakSeconds: w.SoakSeconds, Promotion: w.Promotion,
			MaxFailures: w.MaxFailures, MaxUnreachable: w.MaxUnreachable,
		})
		for _, name := range w.Clusters {
			waves[name] = w.Name
		}
	}
	return nil
}

func (s State) previewCluster(
	v placement.Verdict, choice override.Choice, waits, wave string,
) previewapi.FleetCluster {
	_, placed := s.Placed[v.Cluster]
	c := previewapi.FleetCluster{
		Name: v.Cluster, Chosen: v.Chosen, Placed: placed, Away: s.Clusters[v.Cluster].Away, Reason: v.Reason,
		Detail: v.Detail, Wave: wave,
	}
	if v.Chosen {
		c.Override = choice.Name
	}
	switch {
	case !v.Chosen && placed:
		c.Change = previewapi.FleetLeaves
		if s.Uninstalls() {
			c.Reason = s.Spec.DeletionPolicy
		}
	case !v.Chosen:
	case s.Taken[v.Cluster] != "":
		c.Change, c.Reason, c.Detail = previewapi.FleetConflicts, ReasonTaken, s.Taken[v.Cluster]
	case len(choice.Conflict) > 0:
		c.Change, c.Reason = previewapi.FleetConflicts, override.ReasonConflict
		c.Detail = strings.Join(choice.Conflict, ", ")
	case waits != "":
		c.Change, c.Reason = previewapi.FleetUnknown, waits
	case wave == "" && s.Tried[v.Cluster].Outcome != "" && s.Tried[v.Cluster].Outcome != events.ClusterSucceeded:
		c.Change, c.Reason = previewapi.FleetTried, s.Tried[v.Cluster].Outcome
	case wave == "":
		c.Change = previewapi.FleetKeeps
	}
	return c
}

func count(t *previewapi.FleetTotals, c previewapi.FleetCluster) {
	t.Clusters++
	switch {
	case c.Chosen:
		t.Chosen++
		if !c.Placed {
			t.Joining++
		}
	default:
		if t.NotChosen == nil {
			t.NotChosen = map[string]int{}
		}
		t.NotChosen[c.Reason]++
		if c.Placed {
			t.Leaving++
		}
	}
	if c.Wave != "" {
		t.Asked++
		if c.Away {
			t.Away++
		}
	}
}

// Leads adds to a cluster that a rollout asks what it leads to there: before is the state of the namespace with the
// subscription in it, and after is what would be decided about that.
func Leads(c *previewapi.FleetCluster, name string, target events.RolloutTarget, before decide.State,
	after previewapi.ScopePreview,
) {
	for _, one := range before.Subscriptions {
		if one.Name == name {
			c.From = one.InstalledCSV
		}
	}
	for _, p := range after.Plans {
		for _, b := range p.Bundles {
			if !slices.Contains(b.Subscriptions, name) {
				continue
			}
			if c.From == "" {
				c.From = b.Replaces
			}
			c.To, c.Approval, c.Change = b.CSV, p.Approval, previewapi.FleetUpgrades
			switch c.From {
			case "":
				c.Change = previewapi.FleetInstalls
			case b.CSV:
				c.Change = previewapi.FleetConfigures
			}
			return
		}
	}
	for _, f := range after.Failures {
		if slices.Contains(f.Subscriptions, name) {
			c.Change, c.Reason, c.Sentences = previewapi.FleetFails, f.Reason, f.Sentences
			return
		}
	}
	switch {
	case c.From == target.CSV:
		c.Change = previewapi.FleetKeeps
	case len(after.Waiting) > 0:
		c.Change, c.Reason, c.Sentences = previewapi.FleetHeldUp, after.Waiting[0].For, after.Waiting[0].Sentences
	default:
		c.Change, c.Reason = previewapi.FleetNoPath, rollout.ReasonNotAtTarget
	}
}
