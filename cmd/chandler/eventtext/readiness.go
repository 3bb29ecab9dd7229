package eventtext

import (
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
)

// readiness lists the Deployments that are not ready, and why.
func readiness(v events.CSVReadinessChanged) string {
	if len(v.Deployments) == 0 {
		return "its Deployments are ready again"
	}
	var parts []string
	for _, d := range v.Deployments {
		part := "Deployment " + d.Name + " is not ready (" + d.Reason
		if d.Webhook != "" {
			part += ": webhook " + d.Webhook
		}
		if d.Owner != "" {
			part += " of " + d.Owner
		}
		parts = append(parts, part+")")
	}
	return strings.Join(parts, ", ")
}
