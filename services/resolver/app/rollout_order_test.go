package app_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
	decided "github.com/chandler-fleet/chandler/services/resolver/fleet"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store/fleetstore"
)

// TestRolloutChangedMeanwhile: who changes the strategy while the first wave is being changed, or after it failed, does
// not have the rest changed before the first wave has shown itself (ADR 0071).
func TestRolloutChangedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	spec := s.spec()
	s.set(spec)
	s.want("the first wave", s.planned(), []string{"east-1 buoy.v1.0.0"})
	spec.Strategy.MaxConcurrent = 2
	s.set(spec)
	s.want("the first wave of the changed one", s.planned(), []string{"east-1 buoy.v1.0.0"})
	p, _ := s.plan("east-1")
	s.append(events.Installer, events.KindInstallPlan, "east-1/"+namespace+"/"+p.Proposed.Name, p.Proposed.Plan,
		events.InstallPlanStarted{Steps: p.Proposed.Steps}, events.InstallPlanFailed{Reason: "StepFailed"})
	s.quiet()
	if got := s.rollout(2); got.Phase != rollout.Halted {
		t.Fatalf("after the plan failed the rollout is %+v", got)
	}
	spec.Strategy.MaxConcurrent = 3
	s.set(spec)
	s.want("after the failure", s.planned(), []string{"east-1 buoy.v1.0.0"})
	s.carryOutOn("east-1")
	s.want("the second wave", s.planned(),
		[]string{"east-2 buoy.v1.0.0", "east-3 buoy.v1.0.0", "east-4 buoy.v1.0.0"})
}

// TestFleetSubscriptionMadeAgain: the rollout of a fleet subscription that was deleted and made again while no resolver
// ran ends, and the next one brings what is wanted now.
func TestFleetSubscriptionMadeAgain(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.1.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
	s.set(s.spec())
	s.want("the first wave", s.planned(), []string{"east-1 buoy.v1.1.0"})
	s.stop()
	s.append(events.Gateway, events.KindFleetSubscription, "buoy", "buoy", events.FleetSubscriptionDeleted{})
	spec := s.spec()
	spec.Versions.Ceiling = "1.0.0"
	s.append(events.Gateway, events.KindFleetSubscription, "buoy", "buoy",
		events.FleetSubscriptionSet{Name: "buoy", Spec: spec})
	s.start()
	s.quiet()
	if first, second := s.rollout(1), s.rollout(2); first.Phase != rollout.Superseded ||
		second.Started.Target.CSV != "buoy.v1.0.0" {
		t.Errorf("the rollouts are %+v and %+v", first, second)
	}
	s.want("the first wave of the second one", s.planned(), []string{"east-1 buoy.v1.0.0"})
}

// TestRolloutsEnd: a cluster that cannot be asked is tried once for an intent and a target, whatever is tried on others
// in between.
func TestRolloutsEnd(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	for _, name := range shoreClusters[:2] {
		in := name + "/" + namespace + "/mine"
		s.append(events.Gateway, events.KindSubscription, in, in, events.SubscriptionCreated{
			Cluster: name, Namespace: namespace, Name: "mine", Spec: events.SubscriptionSpec{
				Package: "buoy", Channel: "stable", Catalog: "fleet", Approval: installplan.Manual,
			},
		})
	}
	s.quiet()
	spec := s.spec()
	spec.Placement = events.FleetPlacement{Selector: "buoys=yes"}
	spec.Strategy.Waves = []events.RolloutWaveSpec{{Name: "all", MaxFailures: "100%"}}
	s.set(spec)
	for i, name := range shoreClusters[:2] {
		s.append(events.Gateway, events.KindCluster, name, name,
			events.ClusterLabelsChanged{Labels: map[string]string{"buoys": "yes"}})
		s.quiet()
		got := s.rollout(i + 1)
		if got.Phase != rollout.Succeeded || got.Clusters[name].Outcome != events.ClusterFailed {
			t.Fatalf("the rollout is %+v", got)
		}
	}
	if got := s.rollout(3); got.Phase != "" {
		t.Errorf("what was tried is tried again: %+v", got)
	}
}

// TestFleetLooksAtItsSubscriptions: a subscription of the fleet that somebody deletes is made again, and a catalog that
// goes away is said to be missing.
func TestFleetLooksAtItsSubscriptions(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	spec := s.spec()
	spec.Placement.Clusters = []string{"east-1"}
	s.set(spec)
	s.carryOutOn("east-1")
	in := "east-1/" + namespace + "/buoy"
	s.append(events.Gateway, events.KindSubscription, in, in, events.SubscriptionDeleted{})
	s.quiet()
	if got := s.rollout(2); got.Phase != rollout.Succeeded || got.Started.Change != events.ChangeMembership {
		t.Fatalf("after its subscription was deleted the rollout is %+v", got)
	}
	s.append(events.Gateway, events.KindCatalog, "fleet", "fleet", events.CatalogRemoved{})
	s.quiet()
	var waits string
	s.must(pg.Err(s.pools[events.Gateway].QueryRow(s.ctx, `select coalesce(max(waits), '') from resolver_api.fleet_waits
		where tenant = $1 and name = 'buoy'`, tenant).Scan(&waits)))
	if waits != decided.WaitsForCatalog {
		t.Errorf("without its catalog it waits for %q", waits)
	}
}

// TestFleetDecisionMeetsFolds: a decision about a fleet subscription and the fold of the log meet at its row. What the
// decision has not seen is looked at after it, and neither waits for the other in a ring.
func TestFleetDecisionMeetsFolds(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	s.set(s.spec())
	s.stop()
	pool := s.pools[events.Resolver]
	fleets := store.New(pool, eventlog.New(pool), nil, nil, time.Now, bodies.Keys{}).Fleets
	var started eventlog.Recorded
	for _, e := range s.recorded() {
		if _, ok := e.Payload.(events.RolloutStarted); ok {
			started = e
		}
	}
	cordoned := eventlog.Recorded{Payload: events.ClusterCordoned{}}
	cordoned.Tenant, cordoned.Subject = tenant, "east-2"
	published := eventlog.Recorded{Payload: events.CatalogRevisionPublished{}}
	published.Tenant, published.Subject = tenant, "fleet"
	folds := &fleetstore.Folds{}
	for _, c := range []struct {
		name string
		fold func(context.Context, pgx.Tx, eventlog.Recorded) error
		e    eventlog.Recorded
		made []events.Payload
	}{
		{"a cluster", folds.Clusters, cordoned, nil},
		{"a catalog", folds.Catalog, published, nil},
		{"a rollout", folds.Rollout, started, []events.Payload{events.RolloutHalted{Reason: rollout.ReasonFailures}}},
	} {
		_, err := s.admin.Exec(s.ctx, `update resolver.fleet_subscriptions set due = true`)
		s.must(err)
		folded := make(chan error, 1)
		_, err = fleets.Decide(s.ctx, fleetstore.Name{Tenant: tenant, Name: "buoy"},
			func(context.Context, decided.State) (fleetstore.Decision, error) {
				go func() {
					folded <- pool.Tx(s.ctx, func(tx pgx.Tx) error { return c.fold(s.ctx, tx, c.e) })
				}()
				s.until("the fold to end, or to wait for the decision", func() (waits bool) {
					s.must(pg.Err(s.admin.QueryRow(s.ctx, `select exists (select from pg_stat_activity
						where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waits)))
					return waits || len(folded) > 0
				})
				return fleetstore.Decision{Rollout: c.made}, nil
			})
		if errFold := <-folded; err != nil || errFold != nil {
			t.Fatalf("%s: the decision ends with %v, the fold with %v", c.name, err, errFold)
		}
		var due bool
		s.must(pg.Err(s.admin.QueryRow(s.ctx, `select due from resolver.fleet_subscriptions`).Scan(&due)))
		if !due {
			t.Errorf("%s: nobody looks at what the decision has not seen", c.name)
		}
	}
}

// TestFleetReplacesNothingUnseen: a subscription that somebody made after what a decision has seen is not replaced.
func TestFleetReplacesNothingUnseen(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	s.set(s.spec())
	s.stop()
	pool := s.pools[events.Resolver]
	fleets := store.New(pool, eventlog.New(pool), nil, nil, time.Now, bodies.Keys{}).Fleets
	in := "east-2/" + namespace + "/buoy"
	s.append(events.Gateway, events.KindSubscription, in, in, events.SubscriptionCreated{
		Cluster: "east-2", Namespace: namespace, Name: "buoy", Spec: events.SubscriptionSpec{
			Package: "buoy", Channel: "stable", Catalog: "fleet", Approval: installplan.Manual,
		},
	})
	direct := func(name string) error {
		_, err := fleets.Decide(s.ctx, fleetstore.Name{Tenant: tenant, Name: "buoy"},
			func(_ context.Context, state decided.State) (fleetstore.Decision, error) {
				if state.Taken[name] != "" {
					t.Errorf("%s: the decision has seen the subscription already", name)
				}
				return fleetstore.Decision{Rollout: []events.Payload{
					events.RolloutClusterDirected{Cluster: name, Attempt: 1, Directive: uuid.NewString()},
				}}, nil
			})
		return err
	}
	if err := direct("east-2"); !errs.Is(err, errs.Conflict) {
		t.Errorf("a subscription of a person: %v, want a conflict", err)
	}
	if err := direct("east-3"); err != nil {
		t.Errorf("where there is none: %v", err)
	}
	s.start()
	s.quiet()
	got := s.rollout(1)
	if got.Clusters["east-2"].Directive != "" || got.Clusters["east-3"].Directive == "" {
		t.Errorf("the rollout is %+v", got)
	}
}

// TestClusterComesBack: a cluster that left the placement, or that Chandler had let go of, and comes back is asked
// again: the subscription that it kept is not in its way, unless somebody changed it.
func TestClusterComesBack(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	spec := s.spec()
	spec.Placement = events.FleetPlacement{Selector: "buoys=yes"}
	label := func(value string) {
		s.append(events.Gateway, events.KindCluster, "east-1", "east-1",
			events.ClusterLabelsChanged{Labels: map[string]string{"buoys": value}})
		s.quiet()
	}
	s.set(spec)
	label("yes")
	s.carryOutOn("east-1")
	label("no")
	label("yes")
	if got := s.rollout(2); got.Phase != rollout.Succeeded {
		t.Fatalf("a cluster that left and came back: the rollout is %+v", got)
	}
	s.append(events.Gateway, events.KindCluster, "east-1", "east-1", events.ClusterRemoved{Name: "east-1"})
	s.quiet()
	s.append(events.Gateway, events.KindCluster, "east-1", "east-1", events.ClusterRegistered{
		Name: "east-1", Labels: map[string]string{"buoys": "yes"},
	})
	s.append(events.Installer, events.KindCluster, "east-1", "east-1", events.ClusterObserved{State: "Connected"})
	s.quiet()
	if got := s.rollout(3); got.Phase != rollout.Succeeded {
		t.Fatalf("a cluster that was removed and registered again: the rollout is %+v", got)
	}
	label("no")
	in := "east-1/" + namespace + "/buoy"
	s.append(events.Gateway, events.KindSubscription, in, in, events.SubscriptionChanged{Spec: events.SubscriptionSpec{
		Package: "buoy", Channel: "stable", Catalog: "fleet", Approval: installplan.Manual,
	}})
	s.quiet()
	label("yes")
	if got := s.rollout(4); got.Clusters["east-1"].Reason != decided.ReasonTaken {
		t.Errorf("a subscription that somebody changed: the rollout is %+v", got)
	}
}

// TestFleetAsksForItsImageAgain: where a scope asked for the same image and withdrew, the fleet subscription that waits
// for it asks again.
func TestFleetAsksForItsImageAgain(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0", bare: true, image: buoyImage}))
	s.set(s.spec())
	want := []string{"fleet buoy buoy.v1.0.0 " + buoyImage}
	s.want("the images that are wanted", s.wanted(), want)
	_, err := s.admin.Exec(s.ctx, `delete from resolver.wanted_images`)
	s.must(err)
	s.until("the fleet subscription to ask again", func() bool { return slices.Equal(s.wanted(), want) })
	s.fetched(buoyImage, s.content("buoy.v1.0.0", version{v: "1.0.0"}), "")
	s.quiet()
	s.want("the first wave", s.planned(), []string{"east-1 buoy.v1.0.0"})
}

// TestFleetsOfOneOperator: of two fleet subscriptions for the same operator and namespace, that begin at once, one has
// the clusters, and the other one says why it has not (issue 14, section 2).
func TestFleetsOfOneOperator(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.start() // a second one, so that both may be decided about at a time
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	fleets := []string{"buoy", "other"}
	for _, name := range fleets {
		s.append(events.Gateway, events.KindFleetSubscription, name, name,
			events.FleetSubscriptionSet{Name: name, Spec: s.spec()})
	}
	s.quiet()
	asked := map[string][]string{}
	var phases []rollout.Phase
	for _, name := range fleets {
		got := s.rolloutOf(name, 1)
		phases = append(phases, got.Phase)
		for cluster, c := range got.Clusters {
			if c.Directive != "" {
				asked[cluster] = append(asked[cluster], name)
			} else if c.Outcome == events.ClusterFailed && c.Reason != decided.ReasonTaken {
				t.Errorf("%s on %s is %+v", name, cluster, c)
			}
		}
	}
	slices.Sort(phases)
	if len(asked["east-1"]) != 1 || !slices.Equal(phases, []rollout.Phase{rollout.Halted, rollout.Progressing}) {
		t.Errorf("asked %v, the rollouts are %v", asked, phases)
	}
}

// TestRolloutTriesAgainMeanwhile: a cluster is tried again while the plan of the try before still runs. What comes of
// that plan is not the second try's; that the operator is there is, once the cluster was asked for it.
func TestRolloutTriesAgainMeanwhile(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	s.set(s.spec())
	p, correlation := s.plan("east-1")
	in := "east-1/" + namespace + "/"
	s.append(events.Installer, events.KindInstallPlan, in+p.Proposed.Name, p.Proposed.Plan,
		events.InstallPlanStarted{Steps: p.Proposed.Steps})
	s.append(events.Gateway, events.KindRollout, "buoy/1", "buoy/1", events.RolloutPaused{},
		events.RolloutClusterSkipped{Cluster: "east-1"}, events.RolloutClusterRetried{Cluster: "east-1"},
		events.RolloutResumed{})
	s.quiet()
	if got := s.rollout(1).Clusters["east-1"]; got.Attempt != 2 || got.Outcome != "" {
		t.Fatalf("the second try is %+v", got)
	}
	s.correlation = correlation
	s.phaseIn(in, p.Proposed.Bundles[0], p.Proposed.Plan, "Failed")
	s.quiet()
	if got := s.rollout(1).Clusters["east-1"]; got.Outcome != "" {
		t.Fatalf("after a failure of the first try the second is %+v", got)
	}
	s.append(events.Installer, events.KindInstallPlan, in+p.Proposed.Name, p.Proposed.Plan,
		events.InstallPlanFinished{Steps: p.Proposed.Steps, StepLog: "log"})
	s.phaseIn(in, p.Proposed.Bundles[0], p.Proposed.Plan, "Succeeded")
	s.correlation = ""
	s.quiet()
	got := s.rollout(1)
	if c := got.Clusters["east-1"]; c.Outcome != events.ClusterSucceeded || got.Wave != 1 {
		t.Errorf("the rollout is %+v", got)
	}
}
