package hub

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
)

// handlers are the events that the hub's tables depend on, each with what folds it. This is the one list of them.
func (f folder) handlers() bus.Handlers {
	h, intents := bus.Handlers{}, intentFolds{f}
	bus.On(h, f.clusterRegistered)
	bus.On(h, f.credentialReplaced)
	bus.On(h, f.credentialRotated)
	bus.On(h, f.clusterConfigured)
	bus.On(h, intents.clusterLabelsChanged)
	bus.On(h, f.clusterRemoved)
	h.Each(agentFolds{f}.keep, events.ClusterJoinTokenIssued{}, events.ClusterJoinRequested{},
		events.ClusterJoinAccepted{},
		events.ClusterJoinRejected{}, events.ClusterAgentRevoked{}, events.ClusterAgentCloned{})
	handleSubscriptions(h, f, intents)
	bus.On(h, intents.catalogAdded)
	bus.On(h, intents.catalogChanged)
	h.Each(f.markFollowers, events.CatalogRevisionPublished{}, events.CatalogLoadFailed{})
	bus.On(h, f.catalogMetadataChanged)
	bus.On(h, f.catalogRemoved)
	bus.On(h, intents.policySet)
	bus.On(h, intents.policyDeleted)
	h.All(events.KindInstallPlan, f.foldPlan)
	delete(h, events.InstallPlanMetadataChanged{}.EventType()) // nothing that the hub publishes hangs on these two
	delete(h, events.InstallPlanCommented{}.EventType())
	bus.On(h, f.planProposed)
	bus.On(h, f.planFinished)
	bus.On(h, f.csvPhaseChanged)
	bus.On(h, f.csvRemoved)
	overrides := overrideFolds{f}
	bus.On(h, overrides.overridden)
	bus.On(h, overrides.overridesRemoved)
	bus.On(h, f.removalRequested)
	bus.On(h, leavingFolds{f}.removalDirected)
	bus.On(h, f.removalRefused)
	bus.On(h, f.effectsStopped)
	bus.On(h, f.effectsResumed)
	f.noteClusters(h)
	return h
}

// handleSubscriptions adds the events of subscriptions and operator groups.
func handleSubscriptions(h bus.Handlers, f folder, intents intentFolds) {
	bus.On(h, f.groupCreated)
	bus.On(h, intents.groupPlaced)
	bus.On(h, f.groupChanged)
	bus.On(h, f.groupDeleted)
	bus.On(h, f.groupMetadataChanged)
	bus.On(h, f.subscriptionCreated)
	bus.On(h, f.subscriptionGenerated)
	bus.On(h, f.subscriptionChanged)
	bus.On(h, intents.subscriptionPlaced)
	bus.On(h, f.subscriptionDeleted)
	bus.On(h, leavingFolds{f}.subscriptionRemoved)
	bus.On(h, f.subscriptionMetadataChanged)
	bus.On(h, f.resolutionFailed)
	bus.On(h, f.resolutionSucceeded)
}

// noteClusters has it noted that clusters may have changed, where an event of one is folded. The events of what is in
// clusters are many more.
func (f folder) noteClusters(h bus.Handlers) {
	for t, fold := range h {
		if d, _ := events.Lookup(t); d.Kind != events.KindCluster {
			continue
		}
		h[t] = func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
			f.clusters.Store(true)
			return fold(ctx, tx, e)
		}
	}
}
