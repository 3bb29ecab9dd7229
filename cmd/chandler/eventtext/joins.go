package eventtext

import (
	"fmt"

	"github.com/chandler-fleet/chandler/libs/events"
)

func joinRequested(v events.ClusterJoinRequested) string {
	s := fmt.Sprintf("agent %s asks to join, from cluster %s with Kubernetes %s", v.Instance, v.ClusterUID,
		v.KubernetesVersion)
	if v.Accepted {
		s += "; accepted by its token"
	}
	return s
}
