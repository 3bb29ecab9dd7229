package app_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/configseal"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// The whole way of an Automatic plan: PLANS, content, reports, facts; then it is out of PLANS and its CSV
// is followed.
func TestPlanFromProposalToFacts(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s := e.cluster("east")
	id := e.propose(s, "etcd.v1.0.0", "Automatic")
	p := e.planned(s, id)
	if p.OperatorGroups != 1 || p.OperatorGroup.Name != "og" || p.Stopped || p.Position.IsZero() {
		t.Errorf("the scope says %+v", p)
	}
	g := p.Plans[0].Grant
	if err := g.Verify(e.key); err != nil || g.Expired(time.Now()) || g.Plan != id || g.Cluster != s.ClusterID ||
		g.Namespace != "ns" {
		t.Errorf("grant %+v: %v", g, err)
	}
	e.hasContent(p.Plans[0])

	e.report(s, protocol.ScopeReport{Plans: []protocol.PlanReport{
		{ID: id, Phase: protocol.PlanStarted, Begun: true, Steps: 2},
	}})
	e.recorded(events.KindInstallPlan, "installplan.proposed.v1", "installplan.started.v1")
	done := protocol.ScopeReport{
		Plans: []protocol.PlanReport{{
			ID: id, Phase: protocol.PlanFinished, Begun: true, Steps: 2, Done: 2,
			StepLog: json.RawMessage(`{"steps": [1, 2]}`),
		}},
		CSVs: []protocol.CSVReport{{
			Name: "etcd.v1.0.0", Package: "etcd", Version: "1.0.0", UID: "u1", Plan: id,
			History: history(3), Content: "sha256:x",
		}},
	}
	e.report(s, done)
	e.recorded(events.KindInstallPlan, "installplan.proposed.v1", "installplan.started.v1", "installplan.finished.v1")
	done.CSVs[0].History = history(4)
	e.report(s, done)
	e.report(s, done)
	e.recorded(events.KindCSV, "csv.phase-changed.v1 etcd.v1.0.0 Pending/RequirementsUnknown",
		"csv.phase-changed.v1 etcd.v1.0.0 InstallReady/AllRequirementsMet",
		"csv.phase-changed.v1 etcd.v1.0.0 Installing/InstallSucceeded",
		"csv.phase-changed.v1 etcd.v1.0.0 Succeeded/InstallSucceeded")
	p = e.planned(s)
	if len(p.Installed) != 1 || p.Installed[0].CSV != "etcd.v1.0.0" || p.Installed[0].Plan != id {
		t.Errorf("installed: %+v", p.Installed)
	}
	var stored string
	if err := e.pools[events.Gateway].QueryRow(t.Context(),
		`select document->'steps'->>1 from installer_api.step_logs`).Scan(&stored); err != nil || stored != "2" {
		t.Errorf("the stored step log says %q: %v", stored, err)
	}
}

// hasContent checks that every bundle that a plan names can be put together from CONTENT.
func (e *env) hasContent(p protocol.Plan) {
	e.t.Helper()
	stream, err := e.nats.Bus.Stream(e.t.Context(), protocol.StreamContent)
	if err != nil {
		e.t.Fatal(err)
	}
	var content digest.Digest
	if err := e.pools[events.Gateway].QueryRow(e.t.Context(), `select digest from catalog_api.contents limit 1`).Scan(
		&content); err != nil {
		e.t.Fatal(err)
	}
	var all []byte
	for n, chunks := 0, 1; n < chunks; n++ {
		m, err := stream.GetLastMsgForSubject(e.t.Context(), protocol.ContentSubject(events.DefaultTenant, content, n))
		if err != nil {
			e.t.Fatalf("chunk %d of plan %s: %v", n, p.Name, err)
		}
		if chunks, err = strconv.Atoi(m.Header.Get(protocol.HeaderChunks)); err != nil {
			e.t.Fatal(err)
		}
		all = append(all, m.Data...)
	}
	if _, d, err := bundle.Unpack(all); err != nil || d != content {
		e.t.Errorf("the chunks make the content %s (%v), want %s", d, err, content)
	}
}

// A Manual plan is in PLANS only once a person has approved it.
func TestManualPlanWaitsForApproval(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s := e.cluster("east")
	id := e.propose(s, "etcd.v1.0.0", "Manual")
	other := e.propose(s, "prom.v1.0.0", "Automatic")
	e.planned(s, other)
	e.append(events.KindInstallPlan, id, s.Cluster+"/ns/install-"+id[:5], events.InstallPlanApproved{
		Digest: "sha256:whatever", Expires: time.Now().Add(5 * time.Minute),
	})
	p := e.planned(s, id, other)
	if d := time.Until(p.Plans[0].Grant.Expires); d > 6*time.Minute {
		t.Errorf("the grant outlives the approval: %s", d)
	}
	e.append(events.KindInstallPlan, other, s.Cluster+"/ns/install-"+other[:5], events.InstallPlanSuperseded{})
	e.planned(s, id)
}

// TestGrantIsTheHubsWord: a plan that a resolver proposes as Automatic although its subscription wants a person is in
// PLANS with no grant at all, and its stream says why, once (ADR 0034).
func TestGrantIsTheHubsWord(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s := e.cluster("east")
	e.one(events.KindSubscription, "east/ns/etcd", events.SubscriptionCreated{
		Cluster: "east", Namespace: "ns", Name: "etcd",
		Spec: events.SubscriptionSpec{Package: "etcd.v1.0.0", Catalog: "harbour", Approval: "Manual"},
	})
	e.propose(s, "etcd.v1.0.0", "Automatic", "etcd")
	e.recorded(events.KindInstallPlan, "installplan.proposed.v1",
		"installplan.blocked.v1 conflict/ApprovalDiffers")
	other := e.propose(s, "prom.v1.0.0", "Automatic")
	e.planned(s, other)
	e.recorded(events.KindInstallPlan, "installplan.proposed.v1",
		"installplan.blocked.v1 conflict/ApprovalDiffers", "installplan.proposed.v1")
}

// opened opens a configuration as the executor of its cluster does. On its way it holds nothing that can be read.
func (e *env) opened(s protocol.Scope, sent json.RawMessage) string {
	e.t.Helper()
	if strings.Contains(string(sent), "env") {
		e.t.Errorf("NATS carries %s", sent)
	}
	root, err := configseal.NewRoot([]byte(strings.TrimSpace(e.cfg.Identity)))
	if err != nil {
		e.t.Fatal(err)
	}
	for id, ok := range map[string]bool{"another": false, s.ClusterID: true} {
		key, err := root.For(s.Tenant, id)
		if err != nil {
			e.t.Fatal(err)
		}
		plain, err := key.Open(sent)
		if (err == nil) != ok {
			e.t.Errorf("the key of cluster %s opens it: %v", id, err)
		}
		if ok {
			return string(plain)
		}
	}
	return ""
}

// Configurations are sealed to the executor, as they stood when the plan was proposed.
func TestPlanCarriesTheConfigurationItWasProposedWith(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s := e.cluster("east")
	config := func(name string) string {
		return bodiestest.Put(t, e.pools[events.Gateway], events.DefaultTenant, bodies.Configuration,
			`{"env":"`+name+`"}`)
	}
	e.one(events.KindSubscription, "east/ns/etcd", events.SubscriptionCreated{
		Cluster: "east", Namespace: "ns", Name: "etcd", Spec: events.SubscriptionSpec{Config: config("one")},
	})
	id := e.propose(s, "etcd.v1.0.0", "Automatic", "etcd")
	e.one(events.KindSubscription, "east/ns/etcd", events.SubscriptionChanged{
		Spec: events.SubscriptionSpec{Config: config("two")},
	})
	p := e.planned(s, id)
	if got := e.opened(s, p.Plans[0].Configs["etcd.v1.0.0"]); got != `{"env":"one"}` {
		t.Errorf("the configuration is %s", got)
	}
	// Of several subscriptions to a bundle the first one counts, as where the plan was rendered; one without.
	e.one(events.KindSubscription, "east/ns/plain", events.SubscriptionCreated{
		Cluster: "east", Namespace: "ns",
		Name: "plain",
	})
	both := e.propose(s, "prom.v1.0.0", "Automatic", "gone", "plain", "etcd")
	other := e.propose(s, "loki.v1.0.0", "Automatic", "gone", "etcd", "plain")
	p = e.planned(s, id, both, other)
	if got := p.Plans[1].Configs; len(got) != 0 {
		t.Errorf("the configurations are %s", got)
	}
	if got := e.opened(s, p.Plans[2].Configs["loki.v1.0.0"]); got != `{"env":"two"}` {
		t.Errorf("the configuration is %s", got)
	}
}

// CONTENT emptied under two replicas that both remember what it held is filled again.
func TestContentEmptied(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.start() // another replica
	s := e.cluster("east")
	id := e.propose(s, "etcd.v1.0.0", "Automatic")
	p := e.planned(s, id)
	stream, err := e.nats.Bus.Stream(t.Context(), protocol.StreamContent)
	if err != nil {
		t.Fatal(err)
	}
	e.eventually("the replicas know how much CONTENT holds", func() bool {
		var messages uint64
		err := e.pools[events.Installer].QueryRow(t.Context(), `select messages from installer.streams where name = $1`,
			protocol.StreamContent).Scan(&messages)
		return err == nil && messages == 2
	})
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.eventually("CONTENT filled again", func() bool {
		info, err := stream.Info(t.Context())
		return err == nil && info.State.Msgs == 2
	})
	e.hasContent(p.Plans[0])
}

// Deleting every stream in mid-run changes nothing but time.
func TestStreamsDeletedInMidRun(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s := e.cluster("east")
	id := e.propose(s, "etcd.v1.0.0", "Automatic")
	p := e.planned(s, id)
	js := e.nats.Bus.JetStream()
	for _, kind := range bus.Streams() {
		err := js.DeleteStream(t.Context(), e.nats.Bus.StreamName(kind))
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Fatal(err)
		}
	}
	e.planned(s, id)
	e.hasContent(p.Plans[0])
	e.report(s, protocol.ScopeReport{Plans: []protocol.PlanReport{
		{ID: id, Phase: protocol.PlanFinished, Begun: true, Steps: 2, Done: 2},
	}})
	e.recorded(events.KindInstallPlan, "installplan.proposed.v1", "installplan.started.v1", "installplan.finished.v1")
	e.planned(s)

	stream, err := e.nats.Bus.Stream(t.Context(), protocol.StreamPlans)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil { // emptied, not deleted
		t.Fatal(err)
	}
	e.planned(s)
}

// The installer is stopped while streams are lost, and fills them when it is back.
func TestStreamsLostWhileTheInstallerIsAway(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s := e.cluster("east")
	id := e.propose(s, "etcd.v1.0.0", "Automatic")
	e.planned(s, id)
	e.stop()
	js := e.nats.Bus.JetStream()
	for _, name := range []string{protocol.StreamPlans, protocol.StreamContent} {
		if err := js.DeleteStream(t.Context(), e.nats.Bus.StreamName(name)); err != nil {
			t.Fatal(err)
		}
	}
	e.start()
	p := e.planned(s, id)
	e.hasContent(p.Plans[0])
}

// The executor reported while the installer was away: the last values are read at the start.
func TestReportsWrittenWhileTheInstallerIsAway(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s := e.cluster("east")
	id := e.propose(s, "etcd.v1.0.0", "Automatic")
	e.planned(s, id)
	e.stop()
	r := protocol.ScopeReport{
		Plans: []protocol.PlanReport{{ID: id, Phase: protocol.PlanFinished, Begun: true, Steps: 2, Done: 2}},
		CSVs:  []protocol.CSVReport{{Name: "etcd.v1.0.0", UID: "u1", Plan: id, History: history(4)}},
	}
	e.report(s, r)
	e.start()
	e.recorded(events.KindInstallPlan, "installplan.proposed.v1", "installplan.started.v1", "installplan.finished.v1")
	e.eventually("the CSV recorded", func() bool { return len(e.facts(events.KindCSV)) == 4 })
	e.stop()
	e.start() // the same reports again
	e.report(s, r)
	e.one(events.KindSubscription, "east/ns/x", events.SubscriptionCreated{Cluster: "east", Namespace: "ns", Name: "x"})
	e.report(protocol.Scope{Tenant: s.Tenant, Cluster: s.Cluster, ClusterID: s.ClusterID, Namespace: "other"},
		protocol.ScopeReport{
			CSVs: []protocol.CSVReport{{Name: "last", UID: "u9", History: history(1)}},
		})
	e.eventually("what came behind it recorded", func() bool { return len(e.facts(events.KindCSV)) == 5 })
	if n := len(e.facts(events.KindInstallPlan)); n != 3 {
		t.Errorf("%d plan events after the same reports came again", n)
	}
}

// An upgrade as an executor reports it, and the object's next life under the same name.
func TestCSVLives(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s := e.cluster("east")
	csv := func(uid string, h []protocol.Transition) protocol.CSVReport {
		return protocol.CSVReport{Name: "etcd.v1.0.0", UID: uid, History: h}
	}
	e.report(s, protocol.ScopeReport{CSVs: []protocol.CSVReport{csv("u1", history(1))}})
	want := []string{"csv.phase-changed.v1 etcd.v1.0.0 Pending/RequirementsUnknown"}
	e.recorded(events.KindCSV, want...)

	gone := csv("u1", append(history(1), protocol.Transition{
		Phase: "Replacing", Reason: "BeingReplaced",
		Time: time.Now(),
	},
		protocol.Transition{Phase: "Deleting", Reason: "Replaced", Time: time.Now()}))
	gone.Removed, gone.RemovedReason = true, "Replaced"
	e.report(s, protocol.ScopeReport{CSVs: []protocol.CSVReport{gone, csv("u2", history(1))}})
	want = append(want, "csv.phase-changed.v1 etcd.v1.0.0 Replacing/BeingReplaced",
		"csv.phase-changed.v1 etcd.v1.0.0 Deleting/Replaced",
		"csv.removed.v1 Replaced", "csv.phase-changed.v1 etcd.v1.0.0 Pending/RequirementsUnknown")
	e.recorded(events.KindCSV, want...)

	e.report(s, protocol.ScopeReport{CSVs: []protocol.CSVReport{gone, csv("u3", history(2))}}) // u2 went unseen
	want = append(want, "csv.removed.v1 Deleted", "csv.phase-changed.v1 etcd.v1.0.0 Pending/RequirementsUnknown",
		"csv.phase-changed.v1 etcd.v1.0.0 InstallReady/AllRequirementsMet")
	e.recorded(events.KindCSV, want...)

	e.report(s, protocol.ScopeReport{CSVs: []protocol.CSVReport{
		{Name: "etcd.v1.0.0", Removed: true, RemovedReason: "Deleted"},
	}})
	e.recorded(events.KindCSV, append(want, "csv.removed.v1 Deleted")...)
}

// A report of a holder that was replaced, and an older one, change nothing.
func TestStaleReportsAreRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s := e.cluster("east")
	id := e.propose(s, "etcd.v1.0.0", "Automatic")
	e.planned(s, id)
	blocked := protocol.ScopeReport{
		Plans: []protocol.PlanReport{{ID: id, Phase: protocol.PlanBlocked, Class: "transient", Reason: "Late"}},
	}
	former := e.signed(s, blocked)
	e.takeOver(s.ClusterID, 2)
	older := e.signed(s, blocked)
	e.report(s, protocol.ScopeReport{
		Plans: []protocol.PlanReport{{ID: id, Phase: protocol.PlanStarted, Begun: true}},
	})
	e.recorded(events.KindInstallPlan, "installplan.proposed.v1", "installplan.started.v1")
	e.send(former)
	e.send(older)
	e.report(s, protocol.ScopeReport{
		Plans: []protocol.PlanReport{{ID: id, Phase: protocol.PlanFinished, Begun: true, Done: 2}},
	})
	e.recorded(events.KindInstallPlan, "installplan.proposed.v1", "installplan.started.v1", "installplan.finished.v1")
}

// TestReportDoesNotReviveAPlan: DESIGN D7: the holder of the cluster itself says that it has begun a plan that was
// superseded: that is recorded as it is, and the hub never signs a grant for the plan again.
func TestReportDoesNotReviveAPlan(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s := e.cluster("east")
	id := e.propose(s, "etcd.v1.0.0", "Automatic")
	e.planned(s, id)
	e.append(events.KindInstallPlan, id, s.Cluster+"/"+s.Namespace+"/install-"+id[:5], events.InstallPlanSuperseded{})
	e.planned(s)
	e.report(s, protocol.ScopeReport{Plans: []protocol.PlanReport{
		{ID: id, Phase: protocol.PlanStarted, Begun: true, Steps: 2},
	}})
	e.recorded(events.KindInstallPlan, "installplan.proposed.v1", "installplan.superseded.v1",
		"installplan.start-unauthorised.v1")
	next := e.propose(s, "etcd.v1.1.0", "Automatic")
	e.planned(s, next) // a message that was made after the report names the other plan alone
}

// A cluster may not speak of another's plans.
func TestReportOfAnothersPlanIsNotRecorded(t *testing.T) {
	t.Parallel()
	e := setup(t)
	east, west := e.cluster("east"), e.cluster("west")
	id := e.propose(east, "etcd.v1.0.0", "Automatic")
	e.planned(east, id)
	e.report(west, protocol.ScopeReport{
		Plans: []protocol.PlanReport{{ID: id, Phase: protocol.PlanFinished, Begun: true}},
		CSVs:  []protocol.CSVReport{{Name: "own", UID: "u1", History: history(1)}},
	})
	e.recorded(events.KindCSV, "csv.phase-changed.v1 own Pending/RequirementsUnknown")
	e.recorded(events.KindInstallPlan, "installplan.proposed.v1")
}

// cluster.observed is recorded when something changed, and a removed cluster leaves nothing behind in NATS.
func TestClusterObservedAndRemoved(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s := e.cluster("east")
	report := protocol.ClusterReport{
		Tenant: s.Tenant, Cluster: "east", ClusterID: s.ClusterID, State: "Connected",
		KubernetesVersion: "v1.34.4", HolderEpoch: 1,
	}
	for range 3 {
		report.Reported = time.Now()
		e.reportCluster(report)
	}
	e.recorded(events.KindCluster, "cluster.registered.v1", "cluster.observed.v1 Connected")
	report.State, report.Reason, report.Message = "Unreachable", "ConnectionRefused", "dial tcp: refused"
	e.reportCluster(report)
	e.recorded(events.KindCluster, "cluster.registered.v1", "cluster.observed.v1 Connected",
		"cluster.observed.v1 Unreachable ConnectionRefused")
	var message string
	if err := e.pools[events.Gateway].QueryRow(t.Context(),
		`select message from installer_api.messages where kind = 'cluster' and subject = 'east'`).Scan(
		&message); err != nil || message != report.Message {
		t.Errorf("message %q: %v", message, err)
	}
	id := e.propose(s, "etcd.v1.0.0", "Automatic")
	e.planned(s, id)
	e.one(events.KindCluster, "east", events.ClusterRemoved{Name: "east"})
	e.eventually("PLANS cleared", func() bool { _, ok := e.plans(s); return !ok })
	again := e.one(events.KindCluster, "east", events.ClusterRegistered{Name: "east", Credential: "c1:other"})
	s2 := s
	s2.ClusterID = again.UUID().String()
	e.planned(s2, id)
}

// The stop switch reaches every scope of the fleet or of one cluster, and so does its end.
func TestStopSwitch(t *testing.T) {
	t.Parallel()
	e := setup(t)
	east, west := e.cluster("east"), e.cluster("west")
	stopped := func(s protocol.Scope, want bool) {
		t.Helper()
		e.eventually("the switch reached "+s.Cluster, func() bool {
			p, ok := e.plans(s)
			return ok &&
				p.Stopped == want
		})
	}
	stopped(east, false)
	e.one(events.KindAccess, "cluster/east", events.EffectsStopped{Reason: "Operator"})
	stopped(east, true)
	stopped(west, false)
	e.one(events.KindAccess, "fleet", events.EffectsStopped{Reason: "Operator"})
	stopped(west, true)
	e.one(events.KindAccess, "cluster/east", events.EffectsResumed{})
	e.one(events.KindAccess, "fleet", events.EffectsResumed{})
	stopped(east, false)
	stopped(west, false)
}

// How a cluster is to be treated is told with all of its scopes, those of the one that has changed only.
func TestClusterSettings(t *testing.T) {
	t.Parallel()
	e := setup(t)
	east, west := e.cluster("east"), e.cluster("west")
	quay := east
	quay.Namespace = "quay"
	e.planned(quay, e.propose(quay, "etcd.v1.0.0", "Automatic"))
	spec := events.SubscriptionSpec{Package: "etcd", Catalog: "community", Approval: "Manual", Config: "c1:x"}
	e.one(events.KindSubscription, "east/ns/etcd", events.SubscriptionCreated{
		Cluster: "east", Namespace: "ns", Name: "etcd", Spec: spec,
	})
	want := events.ClusterSettings{Mirror: events.MirrorAll, Drift: events.DriftReport}
	e.one(events.KindCluster, "east", events.ClusterConfigured{Settings: want})
	for _, s := range []protocol.Scope{east, quay} {
		e.eventually("the settings reached "+s.Namespace,
			func() bool { p, ok := e.plans(s); return ok && p.Settings == want })
	}
	if p, _ := e.plans(west); p.Settings != (events.ClusterSettings{}) {
		t.Errorf("another cluster was told %+v", p.Settings)
	}

	// Subscriptions are told where they are to be shown, without their configurations.
	spec.Config = ""
	if p, _ := e.plans(east); !cmp.Equal(p.Subscriptions, []protocol.Subscription{{Name: "etcd", Spec: spec}}) {
		t.Errorf("told the subscriptions %+v", p.Subscriptions)
	}
	e.one(events.KindSubscription, "east/ns/etcd", events.SubscriptionDeleted{})
	e.eventually("the subscription's end", func() bool { p, _ := e.plans(east); return len(p.Subscriptions) == 0 })
}

// A cluster that has acted on more than the record holds stops all effects (DESIGN D1).
func TestClusterThatKnowsMoreThanTheRecord(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s := e.cluster("east")
	id := e.propose(s, "etcd.v1.0.0", "Automatic")
	e.planned(s, id)
	m, _ := e.plans(s)
	var hash []byte
	if err := e.pools[events.Gateway].QueryRow(t.Context(), `select hash from eventlog.events where position = $1`,
		m.Position.N).Scan(&hash); err != nil || protocol.ProvedHash(m.Proof) != digest.FromSum(hash) {
		t.Errorf("with %s the event %q is told, want %x (%v)", m.Position, protocol.ProvedHash(m.Proof), hash, err)
	}
	seen := events.Position{Epoch: 1, N: 9000}
	proof, err := protocol.ProvePosition(s.ClusterID, seen, "", e.private)
	if err != nil {
		t.Fatal(err)
	}
	e.report(s, protocol.ScopeReport{Seen: seen, Proof: proof})
	e.eventually("effects stopped in PLANS", func() bool { p, ok := e.plans(s); return ok && p.Stopped })
	log := eventlog.New(e.pools[events.Gateway])
	stop, is, err := log.EffectsStopped(t.Context())
	if err != nil || !is || stop.Source != "cluster east" {
		t.Fatalf("stop %+v %v %v", stop, is, err)
	}
	if err := log.Resume(t.Context(), stop.Epoch, "person"); err != nil {
		t.Fatal(err)
	}
	e.eventually("effects go on in PLANS", func() bool { p, ok := e.plans(s); return ok && !p.Stopped })
}
