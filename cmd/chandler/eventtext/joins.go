package eventtext

import (
	"fmt"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
)

// joinSentence tells how an agent gets in.
func joinSentence(p events.Payload) string {
	switch v := p.(type) {
	case events.ClusterJoinTokenIssued:
		return fmt.Sprintf("join token issued, good until %s; acceptance %s", v.Ends.UTC().Format(time.RFC3339), v.Accept)
	case events.ClusterJoinRequested:
		s := fmt.Sprintf("agent %s asks to join, from cluster %s with Kubernetes %s", v.Instance, v.ClusterUID,
			v.KubernetesVersion)
		if v.Accepted {
			s += "; accepted by its token"
		}
		return s
	}
	return ""
}
