package eventtext

import (
	"fmt"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
)

// webhookSentence never shows addresses and secrets: the log does not hold them.
func webhookSentence(p events.Payload) string {
	switch v := p.(type) {
	case events.WebhookSet:
		what := "all events"
		if len(v.Spec.Types) > 0 {
			what = strings.Join(v.Spec.Types, ", ")
		}
		if v.Spec.Suspended {
			return fmt.Sprintf("webhook set: %s of %s wait", what, v.Owner.Actor)
		}
		return fmt.Sprintf("webhook set: sends %s that %s may see as %s", what, v.Owner.Actor, v.Spec.Target)
	case events.WebhookSecretRotated:
		return fmt.Sprintf("webhook has another secret; the one before signs for %s, too",
			time.Duration(v.OverlapSeconds)*time.Second)
	case events.WebhookReplayRequested:
		return "webhook sends the events behind " + v.After + " again"
	case events.WebhookDisabled:
		return "webhook disabled: " + map[string]string{
			"Failing": "its receiver took nothing for three days", "Gone": "its receiver answered 410",
			"NoRights": "its owner may see nothing of its scope any more",
		}[v.Reason]
	}
	return ""
}
