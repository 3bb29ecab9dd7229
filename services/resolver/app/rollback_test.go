package app_test

import (
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
)

// takeBack has a person ask for the rollback of a rollout.
func (s shore) takeBack(number string, to int) {
	s.append(events.Gateway, events.KindRollout, "buoy/"+number, "buoy/"+number,
		events.RolloutRollbackRequested{To: to, Reason: "c1:r"})
	s.quiet()
}

// waits is what the fleet subscription waits for.
func (s shore) waits() (code string) {
	s.t.Helper()
	s.must(s.pools[events.Gateway].QueryRow(s.ctx, `select coalesce((select waits from resolver_api.fleet_waits
		where tenant = $1 and name = 'buoy'), '')`, tenant).Scan(&code))
	return code
}

// TestRolloutIsTakenBack: a rollout that goes on is ended by a rollback, and what it asked of clusters is taken back,
// whatever came of it: where it was installed by a plan without another approval, where it never was at once. What was
// rolled back from is not brought again, also not to who comes meanwhile, until another version is there (issue 14,
// section 2).
func TestRolloutIsTakenBack(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	first := s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	spec := s.spec()
	spec.Placement.Except = []string{"east-4"}
	spec.Strategy.MaxFailures = "2"
	spec.Strategy.Waves[0].MaxFailures = "1"
	s.set(spec)
	s.carryOutOn("east-1")
	s.carryOutOn("east-2", "east-3")
	second := s.publish("fleet", first,
		s.pkg("buoy", version{v: "1.1.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
	s.quiet()
	s.carryOutOn("east-1")
	s.want("the upgrade", s.planned(), []string{"east-2 buoy.v1.1.0", "east-3 buoy.v1.1.0"})
	// On east-2 it begins before the rollback, and fails after; on east-3 it does not begin.
	p, directive := s.plan("east-2")
	in := "east-2/" + namespace + "/"
	s.correlation = directive
	s.append(events.Installer, events.KindInstallPlan, in+p.Proposed.Name, p.Proposed.Plan,
		events.InstallPlanStarted{Steps: p.Proposed.Steps})
	s.phaseIn(in, p.Proposed.Bundles[0], p.Proposed.Plan, "Installing")
	s.correlation = ""
	s.takeBack("2", 1)
	if got := s.rollout(2); got.Phase != rollout.RolledBack {
		t.Fatalf("the rollout is %+v", got)
	}
	back := s.rollout(3)
	if back.Started.Change != events.ChangeRollback || back.Started.Target != s.rollout(1).Started.Target ||
		!slices.Equal(back.Started.Waves[0].Clusters, []string{"east-1", "east-2", "east-3"}) {
		t.Fatalf("the rollback is %+v", back)
	}
	if c := back.Clusters["east-3"]; c.Outcome != events.ClusterSucceeded {
		t.Errorf("where nothing had begun: %+v", c)
	}
	s.want("planned", s.planned(), []string{"east-1 buoy.v1.0.0", "east-2 buoy.v1.1.0"})
	s.correlation = directive
	s.append(events.Installer, events.KindInstallPlan, in+p.Proposed.Name, p.Proposed.Plan,
		events.InstallPlanFinished{Steps: p.Proposed.Steps, StepLog: "log"})
	s.phaseIn(in, p.Proposed.Bundles[0], p.Proposed.Plan, "Failed")
	old := p.Proposed.Bundles[0]
	old.CSV = old.Replaces
	s.phaseIn(in, old, "", "Replacing")
	s.correlation = ""
	s.quiet()
	s.want("planned after the failure", s.planned(), []string{"east-1 buoy.v1.0.0", "east-2 buoy.v1.0.0"})
	for _, name := range []string{"east-1", "east-2"} {
		if p, _ := s.plan(name); p.Proposed.Approval != "Automatic" || len(p.Proposed.ManualReasons) != 0 ||
			p.Proposed.Bundles[0].Replaces != "buoy.v1.1.0" {
			t.Errorf("the plan of %s is %+v", name, p.Proposed)
		}
	}
	s.carryOutOn("east-1", "east-2")
	if back = s.rollout(3); back.Phase != rollout.Succeeded {
		t.Fatalf("the rollback is %+v", back)
	}
	if got := s.waits(); got != "RolledBack" || s.rollout(4).Phase != "" || len(s.planned()) != 0 {
		t.Errorf("it waits for %q; planned %v", got, s.planned())
	}
	// A cluster that comes gets what the others have.
	s.append(events.Gateway, events.KindCluster, "east-5", "east-5", events.ClusterRegistered{Name: "east-5"})
	s.append(events.Installer, events.KindCluster, "east-5", "east-5", events.ClusterObserved{State: "Connected"})
	s.quiet()
	if got := s.rollout(4); got.Started.Target.CSV != "buoy.v1.0.0" || len(got.Clusters) != 1 {
		t.Fatalf("the rollout for who came is %+v", got)
	}
	joined, correlation := s.plan("east-5")
	s.correlation = correlation
	s.carryOut(joined)
	s.correlation = ""
	s.quiet()
	// Another version is for all.
	s.publish("fleet", second, s.pkg("buoy", version{v: "1.2.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
	s.quiet()
	s.want("the next version", s.planned(), []string{"east-1 buoy.v1.2.0"})
	if got := s.waits(); got != "" {
		t.Errorf("it waits for %q", got)
	}
}
