package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

func wantedEverywhere() fleetmodel.SetFleetSubscription {
	return fleetmodel.SetFleetSubscription{FleetSubscriptionSpec: fleetmodel.FleetSubscriptionSpec{
		Package: "tidegauge", Catalog: "fleet", Namespace: "ports",
		Placement: fleetmodel.FleetPlacement{Clusters: []string{"east-*"}},
		Config:    json.RawMessage(`{"env":[{"name":"A","value":"s3cr3t"}]}`),
	}}
}

// TestFleetSubscriptions: a fleet subscription is set, read, replaced under If-Match, refused and ended by the API; who
// may not update it reads no values of its configuration, which cannot be erased while it is in use (issue 14,
// section 2).
func TestFleetSubscriptions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const path = "/api/v1/fleet/subscriptions/gauges"
	must[problem](b, 404, b.do("GET", path, nil))
	set := must[fleetmodel.FleetSubscription](b, 200, b.write("PUT", path, wantedEverywhere()))
	if set.Version != 1 || set.Spec.Approval != "Automatic" || set.Spec.DeletionPolicy != "Orphan" ||
		set.Position == "" {
		t.Errorf("set: %+v", set)
	}
	got := must[fleetmodel.FleetSubscription](b, 200, b.do("GET", b.seen(path), nil))
	if !strings.Contains(string(got.Spec.Config), "s3cr3t") || got.Status.Rollout != nil {
		t.Errorf("got %s, %+v", got.Spec.Config, got.Status)
	}
	b.exec("gateway", `insert into gateway.tokens (tenant, id, hash, role)
		values ('default', 'token-viewer', sha256('viewer-token-0123456789'), 'viewer')`)
	seen := must[fleetmodel.FleetSubscription](b, 200, b.as("viewer-token-0123456789", "GET", path, nil))
	if strings.Contains(string(seen.Spec.Config), "s3cr3t") || !strings.Contains(string(seen.Spec.Config), `"A"`) {
		t.Errorf("a viewer reads %s", seen.Spec.Config)
	}
	var config string
	if err := b.pool("gateway").QueryRow(t.Context(), `select commitment from gateway_api.bodies
		where kind = 'subscription-config'`).Scan(&config); err != nil {
		t.Fatal(err)
	}
	if p := must[problem](b, 409, b.do("DELETE", "/api/v1/bodies/"+config, nil)); !strings.Contains(p.Detail,
		"fleet subscription gauges works with") {
		t.Errorf("erased while it is in use: %+v", p)
	}
	odd := wantedEverywhere()
	odd.Placement = fleetmodel.FleetPlacement{Selector: "a in"}
	odd.Strategy.Waves = []fleetmodel.RolloutWaveSpec{{Name: "rest", Size: "101%"}}
	refused := must[problem](b, 400, b.do("PUT", path, odd))
	var at []string
	for _, e := range refused.Errors {
		at = append(at, e.Location)
	}
	if strings.Join(at, " ") != "body.placement.selector body.strategy.waves[0].name body.strategy.waves[0].size" {
		t.Errorf("refused at %q: %+v", at, refused)
	}
	changed := wantedEverywhere()
	changed.Strategy.MaxConcurrent = 3
	must[problem](b, 412, b.ask("PUT", path, changed, "If-Match", `"1.9"`))
	must[fleetmodel.FleetSubscription](b, 200, b.ask("PUT", path+"?dryRun=true", changed, "If-Match", set.Tag()))
	must[fleetmodel.FleetSubscription](b, 200, b.ask("PUT", path, changed, "If-Match", set.Tag()))
	must[model.Removed](b, 200, b.write("DELETE", path, nil))
	must[problem](b, 404, b.do("GET", b.seen(path), nil))
}

// TestWhoMayHaveFleetsUninstall: a policy that uninstalls operators wherever a placement leaves wants the right to
// uninstall one, everywhere, of who sets it, changes it and deletes it.
func TestWhoMayHaveFleetsUninstall(t *testing.T) {
	t.Parallel()
	b := setup(t)
	must[model.AccessRole](b, 200, b.write("PUT", "/api/v1/roles/places", map[string]any{
		"rules": []any{map[string]any{
			"verbs": []string{"get", "update", "delete"}, "resources": []string{"fleetsubscriptions"},
		}},
	}))
	bob := b.give(model.AddToken{Name: "bob", Role: model.RoleNone})
	b.bind("places", "places", bob.Actor, model.AccessScope{})
	const path = "/api/v1/fleet/subscriptions/gauges"
	in := wantedEverywhere()
	must[fleetmodel.FleetSubscription](b, 200, b.as(bob.Secret, "PUT", path, in))
	in.DeletionPolicy = "KeepCRDs"
	refused := func(method string, body any) {
		t.Helper()
		if p := must[problem](b, 403, b.as(bob.Secret, method, path, body)); !strings.Contains(p.Detail, "operators") {
			t.Errorf("%s: %+v", method, p)
		}
	}
	refused("PUT", in)
	must[fleetmodel.FleetSubscription](b, 200, b.write("PUT", path, in))
	in.Placement.Except = []string{"east-1"}
	refused("PUT", in)
	refused("DELETE", nil)
	in.DeletionPolicy = ""
	must[fleetmodel.FleetSubscription](b, 200, b.as(bob.Secret, "PUT", path, in))
}

// TestRolloutsAreSteered: the rollout that the fleet controller began is shown with its waves and clusters, and people
// pause, resume, promote, skip, retry and abort it.
func TestRolloutsAreSteered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	must[fleetmodel.FleetSubscription](b, 200,
		b.write("PUT", "/api/v1/fleet/subscriptions/gauges", wantedEverywhere()))
	fact := func(p ...events.Payload) { b.fact(events.Fleet, events.KindRollout, "gauges/1", "gauges/1", p...) }
	fact(events.RolloutStarted{
		FleetSubscription: "gauges", Number: 1, Change: events.ChangeIntent, MaxConcurrent: 10, MaxFailures: 1,
		DeadlineSeconds: 600, Target: events.RolloutTarget{CSV: "tidegauge.v1.0.0"}, Waves: []events.RolloutWave{
			{Name: "canary", Clusters: []string{"east-1", "east-2"}, Promotion: events.PromotionManual},
			{Name: "rest", Clusters: []string{"east-3"}, Promotion: events.PromotionAutomatic},
		},
	}, events.RolloutWaveOpened{}, events.RolloutClusterDirected{Cluster: "east-1", Attempt: 1, Directive: "d"},
		events.RolloutClusterSettled{
			Cluster: "east-1", Directive: "d", Outcome: events.ClusterFailed, Reason: "StepFailed",
		},
		events.RolloutHalted{Reason: "WaveFailures"})
	const path = "/api/v1/fleet/rollouts/gauges/1"
	got := must[fleetmodel.Rollout](b, 200, b.do("GET", b.seen(path), nil))
	if got.Phase != "Halted" || got.Reason != "WaveFailures" || got.Waves[0].State != "Stopped" ||
		got.Waves[0].Members[0].Reason != "StepFailed" || got.Waves[1].Members[0].State != "Waiting" {
		t.Errorf("got %+v", got)
	}
	listed := must[struct {
		Items []fleetmodel.FleetSubscription
	}](b, 200,
		b.do("GET", b.seen("/api/v1/fleet/subscriptions"), nil))
	if r := listed.Items[0].Status.Rollout; r == nil || r.Clusters.Failed != 1 || r.Clusters.Total != 3 {
		t.Errorf("listed with %+v", r)
	}
	say := func(status int, what string, body any) answer {
		t.Helper()
		a := b.write("POST", path+what, body)
		if a.status != status {
			t.Errorf("%s: status %d, want %d: %s", what, a.status, status, a.body)
		}
		return a
	}
	say(409, "/pause", nil)
	say(200, "/resume", nil)
	say(409, "/promote", fleetmodel.PromoteRollout{})
	say(200, "/clusters/east-2/skip?dryRun=true", fleetmodel.SkipCluster{Reason: "tried"})
	say(200, "/clusters/east-2/skip", fleetmodel.SkipCluster{Reason: "its disk is being replaced"})
	say(400, "/clusters/east-2/skip", fleetmodel.SkipCluster{})
	say(404, "/clusters/east-9/retry", nil)
	say(409, "/promote", fleetmodel.PromoteRollout{Wave: "rest"})
	say(200, "/promote", fleetmodel.PromoteRollout{Wave: "canary"})
	say(200, "/clusters/east-1/retry", nil)
	say(200, "/pause", nil)
	got = must[fleetmodel.Rollout](b, 200, b.do("GET", b.seen(path), nil))
	m := got.Waves[0].Members
	if got.Phase != "Paused" || m[0].State != "Waiting" || m[0].Attempt != 1 || m[1].State != "Skipped" ||
		m[1].Words != "its disk is being replaced" || m[1].SkippedBy != "token-admin" || !got.Waves[0].Promoted {
		t.Errorf("got %+v", got)
	}
	// Words can be erased; what happened stays.
	must[model.ErasedBody](b, 200, b.do("DELETE", "/api/v1/bodies/"+m[1].Body, nil))
	if got = must[fleetmodel.Rollout](b, 200, b.do("GET", path, nil)); got.Waves[0].Members[1].Words != "" ||
		got.Waves[0].Members[1].State != "Skipped" {
		t.Errorf("after they were erased: %+v", got.Waves[0].Members[1])
	}
	say(200, "/abort", nil)
	say(409, "/resume", nil)
	must[problem](b, 404, b.do("GET", "/api/v1/fleet/rollouts/gauges/2", nil))
	all := must[struct{ Items []fleetmodel.Rollout }](b, 200,
		b.do("GET", b.seen("/api/v1/fleet/rollouts")+"&subscription=gauges", nil))
	if len(all.Items) != 1 || all.Items[0].Phase != "Aborted" || all.Items[0].Waves[0].Members != nil {
		t.Errorf("listed %+v", all.Items)
	}
}

// TestRolloutsAreTakenBack: the newest rollout is taken back to an earlier one, which is found or named, with a reason
// that can be erased; what leads nowhere is refused; the rollout that takes it back says of whom it leaves alone (issue
// 14, section 2).
func TestRolloutsAreTakenBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const path = "/api/v1/fleet/subscriptions/gauges"
	back := func(status int, in fleetmodel.RollBackRollout, query string) answer {
		t.Helper()
		a := b.write("POST", path+"/rollback"+query, in)
		if a.status != status {
			t.Errorf("%+v: status %d, want %d: %s", in, a.status, status, a.body)
		}
		return a
	}
	why := fleetmodel.RollBackRollout{Reason: "it loses s3cr3t readings"}
	back(404, why, "")
	set := must[fleetmodel.FleetSubscription](b, 200, b.write("PUT", path, wantedEverywhere()))
	back(404, why, "") // no rollout yet
	rollout := func(number int, version string, more ...events.Payload) {
		subject := fleetmodel.RolloutSubject("gauges", number)
		b.fact(events.Fleet, events.KindRollout, subject, subject, append([]events.Payload{events.RolloutStarted{
			FleetSubscription: "gauges", Number: number, Stream: set.Stream, Version: set.Version, MaxConcurrent: 9,
			Target: events.RolloutTarget{
				Package: "tidegauge", CSV: "tidegauge.v" + version, Version: version, Content: "sha256:" + version,
			},
			Waves: []events.RolloutWave{{Name: "rest", Clusters: []string{"east-1", "east-2"}}},
		}, events.RolloutWaveOpened{}}, more...)...)
	}
	directed := events.RolloutClusterDirected{Cluster: "east-1", Attempt: 1, Directive: "d"}
	settled := events.RolloutClusterSettled{Cluster: "east-1", Directive: "d", Outcome: events.ClusterSucceeded}
	rollout(1, "1.0.0", directed, settled, events.RolloutEnded{Outcome: "Succeeded"})
	b.do("GET", b.seen("/api/v1/fleet/rollouts"), nil) // the read model has it
	if p := must[problem](b, 409, b.do("POST", path+"/rollback", why)); !strings.Contains(p.Detail,
		"nothing to go back to") {
		t.Errorf("the first one: %+v", p)
	}
	rollout(2, "1.1.0", directed, settled)
	b.do("GET", b.seen("/api/v1/fleet/rollouts"), nil) // the read model has both
	back(400, fleetmodel.RollBackRollout{Reason: " "}, "")
	back(400, fleetmodel.RollBackRollout{To: -1, Reason: "a"}, "")
	back(404, fleetmodel.RollBackRollout{To: 7, Reason: "a"}, "")
	back(200, why, "?dryRun=true")
	if got := must[fleetmodel.Rollout](b, 200, back(200, why, "")); got.Phase != "RolledBack" ||
		got.RolledBack.To != 1 {
		t.Errorf("taken back: %+v", got)
	}
	back(200, fleetmodel.RollBackRollout{To: 1, Reason: "again"}, "")
	const of = "/api/v1/fleet/rollouts/gauges/2"
	got := must[fleetmodel.Rollout](b, 200, b.do("GET", b.seen(of), nil))
	if r := got.RolledBack; r == nil || r.By != "token-admin" || r.Words != why.Reason ||
		got.Waves[0].State != "Stopped" {
		t.Errorf("got %+v", got)
	}
	must[model.ErasedBody](b, 200, b.do("DELETE", "/api/v1/bodies/"+got.RolledBack.Body, nil))
	if got = must[fleetmodel.Rollout](b, 200, b.do("GET", of, nil)); got.RolledBack.Words != "" {
		t.Errorf("after it was erased: %+v", got.RolledBack)
	}
	b.fact(events.Fleet, events.KindRollout, "gauges/3", "gauges/3", events.RolloutStarted{
		FleetSubscription: "gauges", Number: 3, Stream: set.Stream, Version: set.Version, Change: events.ChangeRollback,
		Waves: []events.RolloutWave{}, Rollback: events.RolloutRollback{
			Of: 2, From: "tidegauge.v1.1.0", To: 1,
			LeftAlone: []events.RolloutLeftAlone{{Cluster: "east-2", Reason: events.LeftNothingBefore}},
		},
	}, events.RolloutEnded{Outcome: "Succeeded"})
	f := must[fleetmodel.FleetSubscription](b, 200, b.do("GET", b.seen(path), nil))
	if r := f.Status.Rollout; r == nil || r.Rollback == nil || r.Rollback.From != "tidegauge.v1.1.0" ||
		len(r.Rollback.LeftAlone) != 1 || r.Rollback.LeftAlone[0].Name != "east-2" {
		t.Errorf("the rollout that takes it back: %+v", r)
	}
	changed := wantedEverywhere()
	changed.Strategy.MaxConcurrent = 3
	must[fleetmodel.FleetSubscription](b, 200, b.ask("PUT", path, changed, "If-Match", set.Tag()))
	if p := must[problem](b, 409, b.do("POST", path+"/rollback", why)); !strings.Contains(p.Detail, "the next one") {
		t.Errorf("after it was set again: %+v", p)
	}
}

// TestFleetBudget: the budget of mass changes has defaults, is replaced under If-Match, and raised once with a reason;
// what is held back is shown with it and with its fleet subscription; who runs the fleet allows, and does not set it.
func TestFleetBudget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const path = "/api/v1/fleet/budget"
	first := must[fleetmodel.FleetBudget](b, 200, b.do("GET", path, nil))
	if !first.Default || first.Changed != 100 || first.Leaving != 20 || first.Tag() != "" || len(first.Held) != 0 {
		t.Errorf("nobody has set it: %+v", first)
	}
	must[fleetmodel.FleetSubscription](b, 200,
		b.write("PUT", "/api/v1/fleet/subscriptions/gauges", wantedEverywhere()))
	b.fact(events.Fleet, events.KindFleetBudget, events.FleetBudgetSubject, events.FleetBudgetSubject,
		events.FleetBudgetExhausted{FleetSubscription: "gauges", Of: events.BudgetLeaving})
	b.exec("resolver", `insert into resolver.fleet_subscriptions (tenant, name, incarnation, version, spec, held)
		values ('default', 'gauges', 1, 1, '{}', '{"of": "Leaving", "limit": 20, "used": 20, "held": 7, "until": "2026-03-01T12:00:00Z"}')`)
	b.exec("resolver", `insert into resolver.fleet_changes (tenant, event, kind, cluster, at) values
		('default', gen_random_uuid(), 'Changed', 'east-1', now()), ('default', gen_random_uuid(), 'Changed', 'east-1', now()),
		('default', gen_random_uuid(), 'Changed', 'east-2', now() - interval '2 hours'),
		('acme', gen_random_uuid(), 'Changed', 'east-3', now())`)
	want := fleetmodel.SetFleetBudget{Changed: 7, Leaving: 2}
	must[problem](b, 412, b.ask("PUT", path, want, "If-Match", "*"))
	must[problem](b, 400, b.ask("PUT", path, fleetmodel.SetFleetBudget{Changed: -1}, "If-None-Match", "*"))
	set := must[fleetmodel.FleetBudget](b, 200, b.ask("PUT", path, want, "If-None-Match", "*"))
	if set.Default || set.Changed != 7 || set.Used != (fleetmodel.FleetClusters{Changed: 1}) || len(set.Held) != 1 ||
		set.Held[0].FleetSubscription != "gauges" || set.Held[0].Held != 7 {
		t.Errorf("set: %+v", set)
	}
	must[problem](b, 400, b.do("POST", path+"/allow", fleetmodel.AllowFleetBudget{Reason: "nothing"}))
	must[problem](b, 400, b.do("POST", path+"/allow", fleetmodel.AllowFleetBudget{Changed: 1, Reason: " "}))
	more := must[fleetmodel.FleetBudget](b, 200, b.do("POST", path+"/allow",
		fleetmodel.AllowFleetBudget{Changed: 3, Reason: "the s3cr3t outage"}))
	if more.Changed != 7 || more.Allowed != (fleetmodel.FleetClusters{Changed: 3}) {
		t.Errorf("allowed: %+v", more)
	}
	// Neither what is allowed nor what the fleet controller says is a change of the bounds.
	want.Changed = 9
	must[problem](b, 428, b.ask("PUT", path, want))
	must[fleetmodel.FleetBudget](b, 200, b.ask("PUT", path, want, "If-Match", set.Tag()))
	must[problem](b, 412, b.ask("PUT", path, want, "If-Match", set.Tag()))
	f := must[fleetmodel.FleetSubscription](b, 200, b.do("GET", b.seen("/api/v1/fleet/subscriptions/gauges"), nil))
	if h := f.Status.HeldBack; h == nil || h.Reason != "BudgetExhausted" || h.Of != "Leaving" {
		t.Errorf("the fleet subscription says %+v", f.Status)
	}
	runs := b.give(model.AddToken{Name: "runs", Role: model.RoleNone})
	b.bind("runs", "fleet-admin", runs.Actor, model.AccessScope{})
	for status, a := range map[int]answer{
		403: b.as(runs.Secret, "PUT", path, want),
		200: b.as(runs.Secret, "POST", path+"/allow", fleetmodel.AllowFleetBudget{Changed: 1, Reason: "again"}),
	} {
		if a.status != status {
			t.Errorf("who runs the fleet: status %d, want %d: %s", a.status, status, a.body)
		}
	}
}

// TestLabelsOfAFleetWantApprovers: a fleet subscription whose operator group has labels of its namespace written lifts
// the limits of namespaces of the whole fleet, so that it takes the right to approve plans there (ADR 0063).
func TestLabelsOfAFleetWantApprovers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	must[model.AccessRole](b, 200, b.do("PUT", "/api/v1/roles/shipper", model.RoleSpec{Rules: []model.AccessRule{
		{Verbs: []string{"get", "update"}, Resources: []string{"fleetsubscriptions"}},
	}}))
	shipper := b.give(model.AddToken{Name: "shipper", Role: model.RoleNone})
	b.bind("shipper", "shipper", shipper.Actor, model.AccessScope{})
	const path = "/api/v1/fleet/subscriptions/gauges"
	set := wantedEverywhere()
	set.OperatorGroup = fleetmodel.FleetOperatorGroup{Name: "ports", Spec: model.OperatorGroupSpec{
		NamespaceLabels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"},
	}}
	if got := b.as(shipper.Secret, "PUT", path, set).status; got != 403 {
		t.Errorf("with labels: %d, want 403", got)
	}
	set.OperatorGroup.Spec.NamespaceLabels = nil
	if got := b.as(shipper.Secret, "PUT", path, set).status; got != 200 {
		t.Errorf("without labels: %d, want 200", got)
	}
}
