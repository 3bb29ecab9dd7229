package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store/fleetstore"
)

// Projection folds the log into the tables, and makes dirty what an event touches.
type Projection struct {
	pool *pg.Pool
	own  *ownEvents
	// handlers fold events, by type.
	handlers map[events.Type]handler
	// facts takes in what rollouts believe, also of events that a decision has folded already.
	facts map[events.Type]handler
}

func newProjection(pool *pg.Pool, log *eventlog.Log, marks Marker, apis APIs, own *ownEvents) *Projection {
	dirty := &dirtyScopes{marks: marks}
	installed := &installedFolds{dirty: dirty, log: log}
	fleet, facts := &fleetstore.Folds{}, map[events.Type]handler{}
	each(facts, fleet.Fact, fleetstore.Facts()...)
	return &Projection{pool: pool, own: own, facts: facts, handlers: handlers(
		&clusterFolds{dirty: dirty}, &catalogFolds{dirty: dirty, apis: apis}, &policyFolds{dirty: dirty},
		&groupFolds{dirty: dirty}, &subscriptionFolds{dirty: dirty},
		&planFolds{dirty: dirty, log: log, installed: installed}, installed, fleet,
	)}
}

// handler folds the events of one type.
type handler func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error

// typed folds the events of one payload's type.
type typed[P events.Payload] func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p P) error

// on registers what folds the events of a payload's type.
func on[P events.Payload](table map[events.Type]handler, fold typed[P]) {
	var zero P
	table[zero.EventType()] = func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
		return fold(ctx, tx, e, e.Payload.(P)) //nolint:forcetypeassert // the table is looked up by the payload's type
	}
}

// each registers what folds the events of several types alike.
func each(table map[events.Type]handler, fold handler, payloads ...events.Payload) {
	for _, p := range payloads {
		table[p.EventType()] = fold
	}
}

// handlers are the events that the resolver takes, each with what folds it. This is the one list of them.
func handlers(clusters *clusterFolds, catalogs *catalogFolds, policies *policyFolds, groups *groupFolds,
	subscriptions *subscriptionFolds, plans *planFolds, installed *installedFolds, fleet *fleetstore.Folds,
) map[events.Type]handler {
	t := map[events.Type]handler{}
	on(t, clusters.registered)
	on(t, clusters.labelled)
	on(t, clusters.tainted)
	on(t, clusters.cordoned)
	on(t, clusters.uncordoned)
	on(t, clusters.removed)
	on(t, clusters.observed)
	on(t, clusters.factsObserved)
	each(t, catalogs.intent, events.CatalogAdded{}, events.CatalogChanged{}, events.CatalogRemoved{})
	on(t, catalogs.published)
	on(t, catalogs.loadFailed)
	on(t, catalogs.bundlesFetched)
	on(t, catalogs.healthSet)
	each(t, policies.fold, events.ApprovalPolicySet{}, events.ApprovalPolicyDeleted{})
	each(t, groups.intent, events.OperatorGroupCreated{}, events.OperatorGroupPlaced{}, events.OperatorGroupChanged{},
		events.OperatorGroupDeleted{})
	on(t, groups.observed)
	each(t, subscriptions.fold, events.SubscriptionCreated{}, events.SubscriptionGenerated{},
		events.SubscriptionChanged{}, events.SubscriptionPlaced{}, events.SubscriptionReleased{},
		events.SubscriptionRollbackRequested{}, events.SubscriptionMetadataChanged{}, events.SubscriptionDeleted{},
		events.SubscriptionRemoved{},
		events.ResolutionFailed{}, events.ResolutionSucceeded{})
	each(t, plans.fold, events.InstallPlanProposed{}, events.InstallPlanSuperseded{}, events.InstallPlanApproved{},
		events.InstallPlanApprovalGiven{}, events.InstallPlanObstaclesSettled{}, events.InstallPlanRejected{},
		events.InstallPlanMetadataChanged{}, events.InstallPlanCommented{}, events.InstallPlanStarted{},
		events.InstallPlanBlocked{},
		events.InstallPlanFinished{}, events.InstallPlanFailed{})
	on(t, installed.changed)
	on(t, installed.removed)
	on(t, installed.condition)
	fleets(t, fleet)
	return t
}

// fleets adds what the fleet looks at to what others fold.
func fleets(t map[events.Type]handler, f *fleetstore.Folds) {
	on(t, f.Set)
	on(t, f.Deleted)
	on(t, f.BudgetSet)
	on(t, f.BudgetAllowed)
	each(t, f.Rollout, events.RolloutStarted{}, events.RolloutWaveOpened{}, events.RolloutClusterDirected{},
		events.RolloutClusterSettled{}, events.RolloutWavePassed{}, events.RolloutHalted{}, events.RolloutEnded{},
		events.RolloutPaused{}, events.RolloutResumed{}, events.RolloutPromoted{}, events.RolloutClusterSkipped{},
		events.RolloutClusterRetried{}, events.RolloutAborted{}, events.RolloutGatesDue{},
		events.RolloutGateEvaluated{}, events.RolloutGateOverridden{}, events.RolloutRollbackRequested{})
	also(t, f.Subscription, events.SubscriptionCreated{}, events.SubscriptionChanged{}, events.SubscriptionDeleted{})
	also(t, f.Released, events.SubscriptionReleased{}, events.SubscriptionRemoved{})
	also(t, f.Clusters, events.ClusterRegistered{}, events.ClusterLabelsChanged{}, events.ClusterTaintsChanged{},
		events.ClusterCordoned{},
		events.ClusterUncordoned{}, events.ClusterRemoved{}, events.ClusterObserved{},
		events.ClusterFactsObserved{})
	also(t, f.Catalog, events.CatalogRevisionPublished{}, events.CatalogBundlesFetched{}, events.CatalogAdded{},
		events.CatalogChanged{}, events.CatalogRemoved{})
}

// also has the events of several types folded by another one, too, after what folds them already.
func also(table map[events.Type]handler, fold handler, payloads ...events.Payload) {
	for _, p := range payloads {
		before := table[p.EventType()]
		table[p.EventType()] = func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
			if err := before(ctx, tx, e); err != nil {
				return err
			}
			return fold(ctx, tx, e)
		}
	}
}

// Types are the events that Apply takes.
func (p *Projection) Types() []events.Type {
	out := make([]events.Type, 0, len(p.handlers))
	for t := range p.handlers {
		out = append(out, t)
	}
	return out
}

// Apply folds one event into the tables and makes dirty what it touches. An event of the resolver's own
// that its decision has folded already changes nothing.
func (p *Projection) Apply(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	if p.own.knows(e.ID) {
		return p.believe(ctx, tx, e)
	}
	return p.Fold(ctx, tx, e)
}

// Fold is Apply into tables that hold no decisions yet, those of a rebuild.
func (p *Projection) Fold(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	fold, known := p.handlers[e.Type]
	if !known {
		return errs.New(errs.Internal, "the resolver does not know what to do with %s", e.Type)
	}
	if err := fold(ctx, tx, e); err != nil {
		return err
	}
	return p.believe(ctx, tx, e)
}

// believe takes in what a rollout waits for.
func (p *Projection) believe(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	if fact, is := p.facts[e.Type]; is {
		return fact(ctx, tx, e)
	}
	return nil
}

// Checkpoint is how far a consumer has read the log.
func (p *Projection) Checkpoint(ctx context.Context, consumer string) (at events.Position, err error) {
	ctx = pg.Confine(ctx, events.AllTenants) // how far the log was read belongs to no tenant
	err = p.pool.QueryRow(ctx, `select epoch, position from eventlog.checkpoint($1)`, consumer).Scan(&at.Epoch, &at.N)
	if errors.Is(err, pgx.ErrNoRows) { // it has not begun
		return at, nil
	}
	if err != nil {
		return at, fmt.Errorf("read the checkpoint of %s: %w", consumer, pg.Err(err))
	}
	return at, nil
}

// Making is what a rebuild makes of the resolver's tables. Those that it does not name are no folds of the log: what
// decisions consulted and said (inputs, explanations, plan_documents, content_references), what the last one of a scope
// asked (reads, wanted_images), what was asked of gates (gate_evaluations), counters (scopes), samples, previews and
// the cache package_apis.
func (s *Store) Making(consumer *bus.Consumer) projection.Making {
	return projection.Making{
		Consumer: consumer, Schema: "resolver", Handle: s.Projection.Fold,
		Derived: []string{
			"clusters", "catalogs", "catalog_revisions", "bundle_images", "catalog_health", "approval_policies",
			"operator_groups", "subscriptions", "plans", "installed", "fleet_subscriptions", "rollouts",
			"rollout_clusters", "directives", "fleet_budgets", "fleet_allowances", "fleet_changes",
		},
		// That a finished plan needs no more subscriptions is found by those who decide; the replay finds some of it.
		// So is what a fleet subscription waits for.
		Keep:  map[string][]string{"plans": {"settled"}, "fleet_subscriptions": {"due", "waits", "held"}},
		Marks: []string{"dirty"},
		// A decision that was made by the tables before compares the clock, which only goes up; wishes are of
		// decisions.
		Aside: []string{"catalog_clock", "wanted_images"},
	}
}
