package eventtext

import (
	"fmt"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
)

// fleetSentence describes an event of fleet subscriptions and rollouts, or what they make. Waves are counted from 0, as
// events have them.
func fleetSentence(p events.Payload) string {
	switch v := p.(type) {
	case events.FleetSubscriptionSet:
		return fleetSubscriptionSet(v.Spec)
	case events.OperatorGroupPlaced:
		return "operator group made by fleet subscription " + v.Owner + " for " + targets(v.Spec)
	case events.RolloutStarted:
		return rolloutStarted(v)
	case events.RolloutWaveOpened:
		return fmt.Sprintf("wave %d begins", v.Wave)
	case events.RolloutClusterDirected:
		if v.Attempt > 1 {
			return fmt.Sprintf("the change is asked of cluster %s, attempt %d", v.Cluster, v.Attempt)
		}
		return "the change is asked of cluster " + v.Cluster
	case events.RolloutClusterSettled:
		return clusterSettled(v)
	case events.RolloutWavePassed:
		return fmt.Sprintf("wave %d is as wanted", v.Wave)
	case events.RolloutGatesDue, events.RolloutGateEvaluated, events.RolloutGateOverridden:
		return gateSentence(p)
	case events.RolloutHalted:
		return fmt.Sprintf("HALTED in wave %d (%s): the change is asked of no further cluster until a person resumes it",
			v.Wave, v.Reason)
	case events.RolloutEnded:
		return "rollout ended: " + v.Outcome
	case events.RolloutRollbackRequested: // the log holds only the commitment to the reason
		return fmt.Sprintf("a person has it taken back: its clusters get what rollout %d brought", v.To)
	case events.RolloutPromoted:
		return fmt.Sprintf("a person lets the wave after wave %d begin", v.Wave)
	case events.RolloutClusterSkipped: // the log holds only the commitment to the reason
		return "cluster " + v.Cluster + " is left out"
	case events.RolloutClusterRetried:
		return "cluster " + v.Cluster + " is tried again"
	default:
		return ""
	}
}

func fleetSubscriptionSet(s events.FleetSubscriptionSpec) string {
	return "fleet subscription set: " + intent(events.SubscriptionSpec{
		Package: s.Package, Channel: s.Channel, Catalog: s.Catalog, Approval: s.Approval,
	}) + ", in namespace " + s.Namespace + " of " + placement(s.Placement) + overrides(s.Overrides)
}

// overrides names those that some clusters have.
func overrides(list []events.FleetOverride) string {
	var parts []string
	for _, o := range list {
		of := events.FleetPlacement{Clusters: o.Clusters, Selector: o.Selector}
		parts = append(parts, o.Name+" for "+placement(of))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; overrides: " + strings.Join(parts, "; ")
}

// placement names the clusters that are chosen, as far as a line has room.
func placement(p events.FleetPlacement) string {
	var parts []string
	if len(p.Clusters) > 0 {
		parts = append(parts, "clusters "+strings.Join(p.Clusters, ", "))
	}
	if p.Selector != "" {
		parts = append(parts, "clusters with "+p.Selector)
	}
	if len(parts) == 0 {
		return "no cluster"
	}
	s := strings.Join(parts, ", of these ")
	if len(p.Except) > 0 {
		s += ", except " + strings.Join(p.Except, ", ")
	}
	if p.Count > 0 {
		s += fmt.Sprintf(", at most %d", p.Count)
	}
	return s
}

// causes say why a rollout began.
var causes = map[string]string{
	events.ChangeVersion: "its channel offers another version", events.ChangeMembership: "other clusters are chosen",
	events.ChangeIntent:   "the fleet subscription was changed",
	events.ChangeRollback: "a person has another one taken back",
}

func rolloutStarted(v events.RolloutStarted) string {
	clusters := 0
	for _, w := range v.Waves {
		clusters += len(w.Clusters)
	}
	parts := []string{fmt.Sprintf("rollout of %s to %s in %s began: %s", v.Target.CSV, plural(clusters, "cluster"),
		plural(len(v.Waves), "wave"), or(causes[v.Change], v.Change))}
	if v.Change == events.ChangeRollback {
		parts[0] += fmt.Sprintf(", rollout %d, which brought %s", v.Rollback.Of, v.Rollback.From)
	}
	for _, o := range v.Overrides {
		parts = append(parts, fmt.Sprintf("override %s for %s", o.Name, plural(len(o.Clusters), "cluster")))
	}
	for _, c := range v.Conflicts {
		parts = append(parts,
			fmt.Sprintf("CONFLICT of overrides %s on cluster %s", strings.Join(c.Overrides, " and "), c.Cluster))
	}
	return strings.Join(parts, "; ")
}

func clusterSettled(v events.RolloutClusterSettled) string {
	s := "cluster " + v.Cluster + ": " + v.Outcome
	if v.Reason != "" {
		s += " (" + v.Reason + ")"
	}
	return s
}
