package fleet_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/override"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/services/resolver/fleet"
)

// gone is a fleet subscription whose rollout 2 brought 1.1.0 to east-1 and east-2 and is to be taken back to rollout 1,
// which had brought 1.0.0 to east-1.
func gone() fleet.State {
	s := state()
	s.Stream = "fleetsubscription/buoy/1"
	rolled := func(number int, version string, phase rollout.Phase, clusters map[string]rollout.Cluster) rollout.State {
		return rollout.State{Phase: phase, Clusters: clusters, Started: events.RolloutStarted{
			Number: number, Stream: s.Stream, Version: s.Version, Intent: s.Intent(), Target: target(version),
		}}
	}
	done := rollout.Cluster{Attempt: 1, Outcome: events.ClusterSucceeded}
	s.Before = []rollout.State{rolled(1, "1.0.0", rollout.Succeeded, map[string]rollout.Cluster{"east-1": done})}
	s.Last = rolled(2, "1.1.0", rollout.RolledBack, map[string]rollout.Cluster{
		"east-1": {Attempt: 1}, "east-2": done, "east-3": {},
	})
	s.Last.RolledBackTo = 1
	return s
}

// TestBeginRollback: what is taken back goes to those that had what came before, in one wave, whatever windows the
// strategy has; others are named (issue 14, section 2).
func TestBeginRollback(t *testing.T) {
	t.Parallel()
	s := gone()
	s.Spec.Strategy.MaxFailures, s.Spec.Strategy.MaxConcurrent = "100%", 3
	s.Spec.Strategy.Windows = []events.Window{{Start: "22:00", Minutes: 60, TimeZone: "UTC"}}
	s.Spec.Approval = "Manual" // said since
	members, err := s.Members()
	if err != nil {
		t.Fatal(err)
	}
	got, begins, err := s.Begin(members, target("1.1.0"))
	if err != nil || !begins {
		t.Fatal(begins, err)
	}
	intent := s.Intent()
	want := events.RolloutStarted{
		FleetSubscription: "buoy", Number: 3, Stream: s.Stream, Version: 3, Change: events.ChangeRollback,
		Intent: intent, Target: target("1.0.0"), MaxConcurrent: 3, MaxFailures: 1,
		DeadlineSeconds: fleet.DefaultDeadlineSeconds, Avoids: []string{"buoy.v1.1.0"},
		Waves: []events.RolloutWave{{
			Name: "rollback", Clusters: []string{"east-1"}, Promotion: "Automatic", MaxFailures: 1, MaxUnreachable: 1,
		}},
		Rollback: events.RolloutRollback{Of: 2, From: "buoy.v1.1.0", To: 1, LeftAlone: []events.RolloutLeftAlone{
			{Cluster: "east-2", Reason: events.LeftNothingBefore},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	asked := fleet.Ask(got, "east-1")
	if asked.Rollback != (events.SubscriptionRollback{From: "buoy.v1.1.0", To: "buoy.v1.0.0"}) ||
		!slices.Equal(asked.Avoids, got.Avoids) || asked.Spec.Approval != "Manual" {
		t.Errorf("asked is %+v", asked)
	}
	// Who is chosen no more is left alone, too; the rollout says so, and ends.
	got, begins, err = s.Begin([]string{"east-3"}, target("1.1.0"))
	if err != nil || !begins || len(got.Waves) != 0 || got.Rollback.LeftAlone[0] != (events.RolloutLeftAlone{
		Cluster: "east-1", Reason: events.LeftNotChosen,
	}) {
		t.Errorf("with nobody left: %v, %v, %+v", begins, err, got)
	}
	for name, change := range map[string]func(*fleet.State){
		"another intent": func(s *fleet.State) { s.Version++ },
		"it is deleted":  func(s *fleet.State) { s.Deleted = true },
	} {
		other := gone()
		change(&other)
		if other.TakenBack() {
			t.Errorf("%s: it is taken back all the same", name)
		}
	}
}

// TestConfigurationIsTakenBack: a rollback of what brought another configuration holds until the fleet subscription is
// set again, whatever the channel offers.
func TestConfigurationIsTakenBack(t *testing.T) {
	t.Parallel()
	s := gone()
	s.Spec.Config = "c1:bad"
	s.Last.Started.Intent, s.Last.Started.Target = s.Intent(), target("1.0.0")
	s.Before[0].Started.Version = 2
	got, _, err := s.Begin([]string{"east-1"}, target("1.0.0"))
	if err != nil || got.IntentVersion != 2 || got.Avoids != nil || got.Intent.Subscription.Config != "" ||
		fleet.Ask(got, "east-1").Rollback.To != "" {
		t.Fatalf("%v, %+v", err, got)
	}
	s.Last = rollout.State{Phase: rollout.Succeeded, Started: got}
	for _, version := range []string{"1.0.0", "1.2.0"} {
		if !s.RolledBack(target(version)) {
			t.Errorf("%s would be brought with the configuration that was taken back", version)
		}
	}
	s.Version++
	if s.RolledBack(target("1.0.0")) {
		t.Error("it holds although the fleet subscription was set again")
	}
}

// TestOverridesAreTakenBack: a cluster goes back to the configuration that it had with what it goes back to, that of an
// override included, and is not asked for today's until the fleet subscription is set again; who approves is said now.
func TestOverridesAreTakenBack(t *testing.T) {
	t.Parallel()
	s := gone()
	s.Spec.Approval = "Automatic"
	over := func(config string) []events.RolloutOverride {
		return []events.RolloutOverride{
			{Name: "edge", Clusters: []string{"east-1"}, Config: config, Approval: "Automatic"},
		}
	}
	s.Before[0].Started.Overrides, s.Before[0].Started.Version = over("c1:before"), 2
	s.Last.Started.Overrides = over("c1:bad")
	s.Spec.Overrides = []events.FleetOverride{
		{Name: "edge", Clusters: []string{"east-1"}, Config: "c1:bad", MergedConfig: "c1:bad", Approval: "Manual"},
	}
	got, _, err := s.Begin([]string{"east-1", "east-2"}, target("1.1.0"))
	if err != nil {
		t.Fatal(err)
	}
	asked := fleet.Ask(got, "east-1")
	if got.IntentVersion != 2 || asked.Spec.Config != "c1:before" || asked.Spec.Approval != "Manual" {
		t.Fatalf("asked is %+v of version %d", asked.Spec, got.IntentVersion)
	}
	s.Last, s.Before = rollout.State{Phase: rollout.Succeeded, Started: got}, nil
	s.Placed = map[string]fleet.Placed{"east-1": {Spec: asked.Spec, Target: asked.Target}}
	s.Tried = map[string]fleet.Try{"east-1": {
		Stream: s.Stream, Version: s.Version, Target: got.Target, Asked: true, Outcome: events.ClusterSucceeded,
		Choice: override.Of(got, "east-1"),
	}}
	if _, begins, err := s.Begin([]string{"east-1"}, target("1.1.0")); err != nil || begins {
		t.Errorf("begins anew: %v, %v", begins, err)
	}
	s.Version++
	if r, _, _ := s.Begin([]string{"east-1"}, target("1.1.0")); fleet.Ask(r, "east-1").Spec.Config != "c1:bad" {
		t.Errorf("set again it asks for %+v", r)
	}

	// A change of nothing but an override is a change of its own.
	s = gone()
	s.Last.Started.Target = target("1.0.0")
	s.Before[0].Started.Waves = []events.RolloutWave{{Name: "all", Clusters: []string{"east-1"}}}
	s.Last.Started.Waves = s.Before[0].Started.Waves
	s.Last.Started.Overrides = over("c1:bad")
	s.Spec.Overrides = []events.FleetOverride{{Name: "edge", Clusters: []string{"east-1"}, MergedConfig: "c1:bad"}}
	got, begins, err := s.Begin([]string{"east-1"}, target("1.0.0"))
	if err != nil || !begins || got.Change != events.ChangeRollback || len(got.Overrides) != 0 ||
		got.IntentVersion == 0 {
		t.Errorf("%v, %v, %+v", begins, err, got)
	}
}

// TestAfterRollback: what was rolled back from is brought to nobody; who comes meanwhile gets what the others have, and
// who was left alone stays so until something else is offered.
func TestAfterRollback(t *testing.T) {
	t.Parallel()
	s := gone()
	started, _, err := s.Begin([]string{"east-1", "east-2", "east-3"}, target("1.1.0"))
	if err != nil {
		t.Fatal(err)
	}
	s.Last, s.Before = rollout.State{Phase: rollout.Succeeded, Started: started}, nil
	spec := s.Intent().Subscription
	s.Placed = map[string]fleet.Placed{
		"east-1": {Spec: spec, Target: target("1.0.0")}, "east-2": {Spec: spec, Target: target("1.1.0")},
	}
	try := func(version string, asked bool, outcome string) fleet.Try {
		return fleet.Try{Stream: s.Stream, Version: s.Version, Target: target(version), Asked: asked, Outcome: outcome}
	}
	s.Tried = map[string]fleet.Try{
		"east-1": try("1.0.0", true, events.ClusterSucceeded), "east-2": try("1.1.0", true, events.ClusterSucceeded),
		"east-3": try("1.1.0", false, ""),
	}
	clusters := func(offered string) (list []string, r events.RolloutStarted) {
		t.Helper()
		r, _, err := s.Begin([]string{"east-1", "east-2", "east-3"}, target(offered))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range r.Waves {
			list = append(list, w.Clusters...)
		}
		return list, r
	}
	// east-3 had been chosen and not asked: for the rollback it is one that comes.
	list, r := clusters("1.1.0")
	if !slices.Equal(list, []string{"east-3"}) || r.Target.CSV != "buoy.v1.0.0" ||
		r.Change != events.ChangeMembership || !slices.Equal(r.Avoids, []string{"buoy.v1.1.0"}) {
		t.Errorf("%v get %+v", list, r)
	}
	s.Placed["east-3"] = fleet.Placed{Spec: spec, Target: target("1.0.0")}
	s.Tried["east-3"] = try("1.0.0", true, events.ClusterSucceeded)
	if list, r = clusters("1.1.0"); len(list) != 0 || !s.RolledBack(target("1.1.0")) {
		t.Errorf("%v get %+v", list, r)
	}
	// Another version is for all, and does not lead through what was left.
	if list, r = clusters("1.2.0"); len(list) != 3 || r.Target.CSV != "buoy.v1.2.0" ||
		r.Change != events.ChangeVersion || !slices.Equal(r.Avoids, []string{"buoy.v1.1.0"}) {
		t.Errorf("%v get %+v", list, r)
	}
	s.Version++
	if list, r = clusters("1.1.0"); !slices.Equal(list, []string{"east-1", "east-3"}) || r.Avoids != nil {
		t.Errorf("set again, %v get %+v", list, r)
	}
}
