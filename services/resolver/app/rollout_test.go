package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/libs/installplan"
)

// shore is a fleet of four clusters, of which the first is the one that changes are tried on.
type shore struct {
	*fleet

	stop func() // the first resolver
}

var shoreClusters = []string{"east-1", "east-2", "east-3", "east-4"}

func newShore(t *testing.T) shore {
	t.Helper()
	f := newFleet(t)
	stop := f.start()
	f.addCatalog("fleet")
	for i, name := range shoreClusters {
		f.append(events.Gateway, events.KindCluster, name, name, events.ClusterRegistered{
			Name: name, Labels: map[string]string{"ring": fmt.Sprint(min(i, 1))},
		})
		f.append(events.Installer, events.KindCluster, name, name, events.ClusterObserved{State: "Connected"})
	}
	return shore{f, stop}
}

// spec wants buoy on every cluster, first on those of ring 0.
func (s shore) spec() events.FleetSubscriptionSpec {
	return events.FleetSubscriptionSpec{
		Package: "buoy", Channel: "stable", Catalog: "fleet", Namespace: namespace, Approval: installplan.Automatic,
		OperatorGroup:  events.FleetOperatorGroup{Name: "og"},
		Placement:      events.FleetPlacement{Clusters: []string{"east-*"}},
		Strategy:       events.RolloutStrategy{Waves: []events.RolloutWaveSpec{{Name: "canary", Selector: "ring=0"}}},
		DeletionPolicy: events.DeletionPolicyOrphan,
	}
}

func (s shore) set(spec events.FleetSubscriptionSpec) {
	s.append(events.Gateway, events.KindFleetSubscription, "buoy", "buoy",
		events.FleetSubscriptionSet{Name: "buoy", Spec: spec})
	s.quiet()
}

// plan is the live plan of a cluster with the correlation of its proposal; "" where there is none.
func (s shore) plan(name string) (p installplan.State, correlation string) {
	for _, e := range s.recorded() {
		if proposed, ok := e.Payload.(events.InstallPlanProposed); ok && proposed.Cluster == name {
			correlation = e.Correlation
		}
	}
	for _, one := range slices.Backward(s.plans()) {
		if one.Proposed.Cluster == name && one.Live() {
			return one, correlation
		}
	}
	return p, ""
}

// versions are the plans that live, as "cluster csv".
func (s shore) planned() []string {
	var out []string
	for _, name := range shoreClusters {
		if p, correlation := s.plan(name); correlation != "" {
			out = append(out, name+" "+p.Proposed.Bundles[0].CSV)
		}
	}
	return out
}

// carryOutOn plays the executors of clusters.
func (s shore) carryOutOn(names ...string) {
	s.t.Helper()
	for _, name := range names {
		p, correlation := s.plan(name)
		if correlation == "" {
			s.t.Fatalf("nothing is planned on %s; decided: %v", name, s.decided())
		}
		s.correlation = correlation
		s.carryOut(p)
		s.correlation = ""
	}
	s.quiet()
}

// rollout is a rollout as its events tell it.
func (s shore) rollout(number int) rollout.State {
	s.t.Helper()
	return s.rolloutOf("buoy", number)
}

func (s shore) rolloutOf(fleet string, number int) (out rollout.State) {
	s.t.Helper()
	for _, e := range s.recorded() {
		if e.StreamID.Kind == events.KindRollout && e.Subject == fmt.Sprintf("%s/%d", fleet, number) {
			var err error
			out, err = rollout.Evolve(out, e.Payload, e.Time)
			s.must(err)
		}
	}
	return out
}

func (s shore) want(what string, got, want []string) {
	s.t.Helper()
	if !slices.Equal(got, want) {
		s.t.Fatalf("%s: %v, want %v; decided: %v", what, got, want, s.decided())
	}
}

// TestRollout: a change reaches clusters in waves; what began is brought to all of them, whatever the catalog does
// meanwhile; the next change waits for its end; a failure stops it before it reaches others; and nothing counts but
// what the rollout caused (issue 14, section 2).
func TestRollout(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	first := s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	s.set(s.spec())
	s.want("the first wave", s.planned(), []string{"east-1 buoy.v1.0.0"})
	s.carryOutOn("east-1")
	s.want("the second wave", s.planned(),
		[]string{"east-2 buoy.v1.0.0", "east-3 buoy.v1.0.0", "east-4 buoy.v1.0.0"})
	s.carryOutOn("east-2", "east-3", "east-4")
	if got := s.rollout(1); got.Phase != rollout.Succeeded || got.Started.Change != events.ChangeIntent {
		t.Fatalf("the first rollout is %+v", got)
	}

	second := s.publish("fleet", first,
		s.pkg("buoy", version{v: "1.1.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
	s.quiet()
	s.want("the first wave of the upgrade", s.planned(), []string{"east-1 buoy.v1.1.0"})
	// The catalog moves on, and what the rollout brings is in it no more.
	s.publish("fleet", second, s.pkg("buoy", version{v: "1.2.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
	s.quiet()
	s.want("while the catalog moves", s.planned(), []string{"east-1 buoy.v1.1.0"})
	s.carryOutOn("east-1")
	s.want("the second wave of the upgrade", s.planned(),
		[]string{"east-2 buoy.v1.1.0", "east-3 buoy.v1.1.0", "east-4 buoy.v1.1.0"})
	contents := map[string]bool{}
	for _, p := range s.plans() {
		if b := p.Proposed.Bundles[0]; b.CSV == "buoy.v1.1.0" {
			contents[b.Content] = true
		}
	}
	if len(contents) != 1 {
		t.Errorf("the clusters get different contents: %v", contents)
	}
	s.carryOutOn("east-2", "east-3", "east-4")
	if got := s.rollout(2); got.Phase != rollout.Succeeded || got.Started.Change != events.ChangeVersion {
		t.Fatalf("the second rollout is %+v", got)
	}
}

// TestRolloutStops: a cluster that fails stops the rollout before it reaches others; a failure that it did not cause
// does not; who resumes it has it go on.
func TestRolloutStops(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	s.set(s.spec())
	p, correlation := s.plan("east-1")
	in := "east-1/" + namespace + "/"
	s.phaseIn(in, p.Proposed.Bundles[0], p.Proposed.Plan, "Failed") // of another cause
	s.quiet()
	if got := s.rollout(1); got.Phase != rollout.Progressing {
		t.Fatalf("a failure of another cause: the rollout is %+v", got)
	}
	s.correlation = correlation
	s.phaseIn(in, p.Proposed.Bundles[0], p.Proposed.Plan, "Installing")
	s.phaseIn(in, p.Proposed.Bundles[0], p.Proposed.Plan, "Failed")
	s.correlation = ""
	s.quiet()
	got := s.rollout(1)
	if got.Phase != rollout.Halted || got.Reason != rollout.ReasonWaveFailures ||
		got.Clusters["east-1"].Outcome != events.ClusterFailed || len(s.planned()) != 0 {
		t.Fatalf("the rollout is %+v, planned %v", got, s.planned())
	}
	s.append(events.Gateway, events.KindRollout, "buoy/1", "buoy/1", events.RolloutResumed{})
	s.quiet()
	s.want("planned after it goes on", s.planned(),
		[]string{"east-2 buoy.v1.0.0", "east-3 buoy.v1.0.0", "east-4 buoy.v1.0.0"})
}

// TestRolloutAsksWhoHasItAlready: a cluster that is at the target counts because it says so when it is asked, and the
// subscription that brought it is taken over only where that is wished. A second try is one.
func TestRolloutAsksWhoHasItAlready(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	group, in := "east-1/"+namespace+"/og", "east-1/"+namespace+"/buoy"
	s.append(events.Gateway, events.KindOperatorGroup, group, group,
		events.OperatorGroupCreated{Cluster: "east-1", Namespace: namespace, Name: "og"})
	s.append(events.Gateway, events.KindSubscription, in, in, events.SubscriptionCreated{
		Cluster: "east-1", Namespace: namespace, Name: "buoy", Spec: events.SubscriptionSpec{
			Package: "buoy", Channel: "stable", Catalog: "fleet", Approval: installplan.Automatic,
		},
	})
	s.quiet()
	s.carryOutOn("east-1")
	spec := s.spec()
	spec.Placement.Clusters = []string{"east-1"}
	s.set(spec)
	if got := s.rollout(1); got.Phase != rollout.Halted || got.Clusters["east-1"].Reason != "SubscriptionExists" {
		t.Fatalf("the rollout is %+v", got)
	}
	spec.Adopt = true
	s.set(spec)
	got := s.rollout(2)
	if got.Phase != rollout.Succeeded || got.Clusters["east-1"].Attempt != 1 || len(s.planned()) != 0 {
		t.Fatalf("the rollout is %+v, planned %v", got, s.planned())
	}
	spec.Versions.Ceiling = "0.9.0"
	s.set(spec)
	var waits string
	s.must(s.pools[events.Gateway].QueryRow(s.ctx, `select waits from resolver_api.fleet_waits where tenant = $1
		and name = 'buoy'`, tenant).Scan(&waits))
	if waits != "NoVersionAllowed" || s.rollout(3).Phase != "" {
		t.Errorf("with a ceiling below what there is it waits for %q, rollout %+v", waits, s.rollout(3))
	}
}

// TestRolloutTriesAgain: who is asked a second time gets a plan of its own, and what comes of it counts.
func TestRolloutTriesAgain(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	spec := s.spec()
	spec.Placement.Clusters = []string{"east-1"}
	s.set(spec)
	p, _ := s.plan("east-1")
	name := "east-1/" + namespace + "/" + p.Proposed.Name
	s.append(events.Installer, events.KindInstallPlan, name, p.Proposed.Plan,
		events.InstallPlanStarted{Steps: p.Proposed.Steps}, events.InstallPlanFailed{Reason: "StepFailed"})
	s.quiet()
	if got := s.rollout(1); got.Phase != rollout.Halted || len(s.planned()) != 0 {
		t.Fatalf("after the plan failed the rollout is %+v, planned %v", got, s.planned())
	}
	s.append(events.Gateway, events.KindRollout, "buoy/1", "buoy/1",
		events.RolloutClusterRetried{Cluster: "east-1"}, events.RolloutResumed{})
	s.quiet()
	p, _ = s.plan("east-1")
	name = "east-1/" + namespace + "/" + p.Proposed.Name
	s.append(events.Gateway, events.KindInstallPlan, name, p.Proposed.Plan, // a person's word, a story of its own
		events.InstallPlanRejected{Digest: p.Proposed.Digest})
	s.quiet()
	if got := s.rollout(1); got.Phase != rollout.Halted || got.Clusters["east-1"].Reason != rollout.ReasonRejected {
		t.Fatalf("after the plan was rejected the rollout is %+v", got)
	}
	s.append(events.Gateway, events.KindRollout, "buoy/1", "buoy/1",
		events.RolloutClusterRetried{Cluster: "east-1"}, events.RolloutResumed{})
	s.quiet()
	s.carryOutOn("east-1")
	if got := s.rollout(1); got.Phase != rollout.Succeeded || got.Clusters["east-1"].Attempt != 3 {
		t.Errorf("after the second try the rollout is %+v", got)
	}
}

// TestFleetLeavesWhatIsNotItsOwn: a subscription of somebody else of the same package is not touched, and the rollout
// says so; who leaves the placement keeps what it has, without an owner.
func TestFleetLeavesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	in := "east-1/" + namespace + "/mine"
	s.append(events.Gateway, events.KindSubscription, in, in, events.SubscriptionCreated{
		Cluster: "east-1", Namespace: namespace, Name: "mine", Spec: events.SubscriptionSpec{
			Package: "buoy", Channel: "stable", Catalog: "fleet", Approval: installplan.Manual,
		},
	})
	s.quiet()
	s.set(s.spec())
	if got := s.rollout(1); got.Phase != rollout.Halted || got.Clusters["east-1"].Reason != "SubscriptionExists" {
		t.Fatalf("the rollout is %+v", got)
	}
	others := s.spec()
	others.Placement.Clusters = []string{"east-2"}
	s.set(others)
	if got := s.rollout(1); got.Phase != rollout.Superseded {
		t.Fatalf("the rollout is %+v", got)
	}
	s.carryOutOn("east-2")
	others.Placement.Clusters = []string{"east-3"}
	s.set(others)
	var released []string
	for _, e := range s.recorded() {
		if _, ok := e.Payload.(events.SubscriptionReleased); ok {
			released = append(released, e.Subject)
		}
	}
	s.want("let go", released, []string{"east-2/" + namespace + "/buoy"})
	for _, e := range s.recorded() {
		if strings.HasPrefix(e.Subject, "east-4/"+namespace) {
			t.Errorf("%s of %s", e.Type, e.Subject)
		}
	}
}

// TestRolloutOutlivesControllers: replicas that come and go direct each cluster once, and lose nothing.
func TestRolloutOutlivesControllers(t *testing.T) {
	t.Parallel()
	s := newShore(t)
	stop := s.start() // a second one
	s.publish("fleet", "", s.pkg("buoy", version{v: "1.0.0"}))
	s.set(s.spec())
	stop()
	s.carryOutOn("east-1")
	stop = s.start()
	s.carryOutOn("east-2", "east-3")
	stop()
	s.carryOutOn("east-4")
	directed := map[string]int{}
	for _, e := range s.recorded() {
		if p, ok := e.Payload.(events.RolloutClusterDirected); ok {
			directed[p.Cluster]++
		}
	}
	for _, name := range shoreClusters {
		if directed[name] != 1 {
			t.Errorf("%s was directed %d times", name, directed[name])
		}
	}
	if got := s.rollout(1); got.Phase != rollout.Succeeded {
		t.Errorf("the rollout is %+v", got)
	}
}
