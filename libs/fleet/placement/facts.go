package placement

import (
	"maps"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
)

// Labels that selectors of a placement may use without anybody setting them. They are known of a cluster once its
// executor has looked.
const (
	LabelDistribution = "chandler-fleet.io/distribution"     // such as openshift
	LabelMinor        = "chandler-fleet.io/kubernetes-minor" // such as 1.34
	// LabelArchitecture is the beginning of the keys that have "true", one for each architecture of the nodes:
	// chandler-fleet.io/arch-amd64.
	LabelArchitecture = "chandler-fleet.io/arch-"
)

// Labels are the labels of a cluster with those that follow from its facts and from the minor version of its
// Kubernetes. What somebody set under one of these keys does not count.
func Labels(own map[string]string, facts events.ClusterFacts, minor string) map[string]string {
	out := make(map[string]string, len(own)+len(facts.Architectures)+1)
	maps.Copy(out, own)
	delete(out, LabelDistribution)
	delete(out, LabelMinor)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, LabelArchitecture) })
	if facts.Distribution != "" {
		out[LabelDistribution] = facts.Distribution
	}
	if minor != "" {
		out[LabelMinor] = minor
	}
	for a := range facts.Architectures {
		out[LabelArchitecture+a] = "true"
	}
	return out
}
