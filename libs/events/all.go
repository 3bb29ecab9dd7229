package events

import "slices"

// All is the registry: every event type and version that exists, in the order of docs/events.md. Each subject's file
// lists its own.
func All() []Definition {
	return slices.Concat(
		clusterEvents(), catalogEvents(), catalogSecretEvents(), policyEvents(), operatorGroupEvents(),
		subscriptionEvents(), installPlanEvents(), csvEvents(), accessEvents(), retentionEvents(), webhookEvents(),
		fleetEvents(), fleetBudgetEvents(),
	)
}
