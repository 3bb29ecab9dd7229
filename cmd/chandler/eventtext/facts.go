package eventtext

import (
	"fmt"

	"github.com/chandler-fleet/chandler/libs/events"
)

// clusterSeen tells what was found of a cluster.
func clusterSeen(p events.Payload) string {
	switch v := p.(type) {
	case events.ClusterObserved:
		return clusterObserved(v)
	case events.ClusterFactsObserved:
		return clusterFacts(v.Facts)
	}
	return ""
}

func clusterFacts(f events.ClusterFacts) string {
	of := "cluster"
	if f.Distribution != "" {
		of += " of " + f.Distribution
	}
	return fmt.Sprintf("%s has %d nodes, %d CPU cores, %d GiB, %d APIs", of, f.Nodes, f.CPUCores, f.MemoryGiB, f.APICount)
}
