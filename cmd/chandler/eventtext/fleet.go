package eventtext

import (
	"fmt"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
)

func fleetSentence(p events.Payload) string {
	switch v := p.(type) {
	case events.FleetSubscriptionSet:
		return fmt.Sprintf("fleet subscription set: %s of catalog %s in namespace %s", v.Spec.Package, v.Spec.Catalog,
			v.Spec.Namespace)
	case events.RolloutStarted:
		return "rollout began: " + v.Target.CSV + " for " + wavesText(v.Waves)
	case events.RolloutWaveOpened:
		return fmt.Sprintf("wave %d began", v.Wave+1)
	case events.RolloutWavePassed:
		return fmt.Sprintf("wave %d has passed", v.Wave+1)
	case events.RolloutClusterDirected:
		return fmt.Sprintf("cluster %s was asked for it, attempt %d", v.Cluster, v.Attempt)
	case events.RolloutClusterSettled:
		if v.Reason == "" {
			return fmt.Sprintf("cluster %s: %s", v.Cluster, v.Outcome)
		}
		return fmt.Sprintf("cluster %s: %s (%s)", v.Cluster, v.Outcome, v.Reason)
	case events.RolloutHalted:
		return fmt.Sprintf("rollout halted in wave %d (%s): nothing more is changed until a person says so", v.Wave+1,
			v.Reason)
	case events.RolloutEnded:
		return "rollout ended: " + v.Outcome
	case events.RolloutPromoted:
		return fmt.Sprintf("wave %d promoted: the next one may begin", v.Wave+1)
	case events.RolloutClusterSkipped:
		return "cluster " + v.Cluster + " is left out"
	case events.RolloutClusterRetried:
		return "cluster " + v.Cluster + " is tried again"
	}
	return ""
}

func wavesText(waves []events.RolloutWave) string {
	parts := make([]string, len(waves))
	for i, w := range waves {
		parts[i] = fmt.Sprintf("%d in wave %s", len(w.Clusters), w.Name)
	}
	return strings.Join(parts, ", ")
}
