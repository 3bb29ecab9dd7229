package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// placedOf is what a rollout of the fleet subscription tides asks of a cluster.
func placedOf(name string, rollout int) events.SubscriptionPlaced {
	return events.SubscriptionPlaced{
		Cluster: "spoke", Namespace: "ops", Name: name, Owner: "tides", Rollout: rollout,
		Spec: events.SubscriptionSpec{
			Package: "tidegauge", Channel: "fast", Catalog: "fleet", Approval: "Manual",
		},
		Target: events.RolloutTarget{Version: "1.1.0", CSV: "tidegauge.v1.1.0"},
	}
}

// TestSubscriptionOfAFleet: a subscription that a fleet subscription asks for says so, is changed there and not by
// hand, and is its cluster's again once it is let go, at its target until somebody changes it (issue 14, section 2).
func TestSubscriptionOfAFleet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.catalog("fleet")
	const path, subject = subscriptions + "/tidegauge", "spoke/ops/tidegauge"
	byFleet := func(p events.Payload) { b.fact(events.Fleet, events.KindSubscription, subject, subject, p) }
	get := func() (model.Subscription, string) {
		t.Helper()
		a := b.do("GET", b.seen(path), nil)
		return must[model.Subscription](b, 200, a), a.header.Get("ETag")
	}
	in := subscribe("tidegauge", "tidegauge")
	in.Labels = map[string]string{"team": "sea"}
	b.position = must[model.Subscription](b, 201, b.do("POST", subscriptions, in)).Position
	before, tag := get()

	byFleet(placedOf("tidegauge", 3)) // it adopts what was there
	s, _ := get()
	target := &model.SubscriptionTarget{Version: "1.1.0", CSV: "tidegauge.v1.1.0", Rollout: 3}
	if s.Owner != "tides" || cmp.Diff(target, s.Target) != "" || s.Spec.Channel != "fast" ||
		s.Spec.Approval != "Manual" || s.Labels["team"] != "sea" || !s.CreatedAt.Equal(before.CreatedAt) {
		t.Errorf("placed: %+v", s)
	}
	same := must[model.Subscription](b, 200, b.do("PUT", path, model.ChangeSubscription{
		Metadata: s.Metadata, SubscriptionSpec: s.Spec,
	}))
	if same.Owner != "tides" || cmp.Diff(target, same.Target) != "" || same.Version != s.Version {
		t.Errorf("what was read, sent back: %+v", same)
	}
	spec := in.SubscriptionSpec
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"PUT", path, spec},
		{"PATCH", path, map[string]any{"channel": "stable"}},
		{"POST", path + "/rollback", model.RollBack{To: "tidegauge.v1.0.0"}},
		{"DELETE", path, nil},
	} {
		p := must[problem](b, http.StatusConflict, b.do(c.method, c.path, c.body))
		if len(p.Errors) != 1 || p.Errors[0].Rule != "fleet-subscription-owns-it" ||
			!strings.Contains(p.Detail, `fleet subscription "tides"`) || !strings.Contains(p.Detail, "placement") {
			t.Errorf("%s %s: %+v", c.method, c.path, p)
		}
	}
	list := must[struct{ Items []model.Subscription }](b, 200,
		b.do("GET", "/api/v1/subscriptions?fieldSelector=owner%3Dtides", nil)).Items
	if len(list) != 1 || list[0].Name != "tidegauge" {
		t.Errorf("the subscriptions of the fleet subscription are %+v", list)
	}

	byFleet(events.SubscriptionReleased{})
	if s, _ := get(); s.Owner != "" || cmp.Diff(target, s.Target) != "" || s.Spec.Channel != "fast" {
		t.Errorf("let go: %+v", s)
	}
	// What was read before the rollout is not what is replaced.
	must[problem](b, http.StatusPreconditionFailed, b.ask("PUT", path, spec, "If-Match", tag))
	_, tag = get()
	b.position = must[model.Subscription](b, 200, b.ask("PUT", path, spec, "If-Match", tag)).Position
	if s, _ := get(); s.Owner != "" || s.Target != nil || s.Spec.Channel != "stable" {
		t.Errorf("changed by hand: %+v", s)
	}
	must[model.Removed](b, 200, b.do("DELETE", path, nil))
	byFleet(placedOf("tidegauge", 4))
	if s, _ := get(); s.Owner != "tides" || s.Target == nil || s.Target.Rollout != 4 || len(s.Labels) != 0 {
		t.Errorf("made by a rollout: %+v", s)
	}
}

// TestGroupOfAFleet: the operator group that a fleet subscription makes is the namespace's from then on.
func TestGroupOfAFleet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	const path, subject = "/api/v1/clusters/spoke/namespaces/ops/operatorgroups/og", "spoke/ops/og"
	b.fact(events.Fleet, events.KindOperatorGroup, subject, subject, events.OperatorGroupPlaced{
		Cluster: "spoke", Namespace: "ops", Name: "og", Owner: "tides",
		Spec: events.OperatorGroupSpec{TargetNamespaces: []string{"ops"}},
	})
	g := must[model.OperatorGroup](b, 200, b.do("GET", b.seen(path), nil))
	if diff := cmp.Diff([]string{"ops"}, g.Targets); diff != "" {
		t.Error(diff)
	}
	must[model.OperatorGroup](b, 200, b.do("PUT", path, model.OperatorGroupSpec{}))
	must[model.Removed](b, 200, b.do("DELETE", path, nil))
}

// TestWhoSetsAFleetSubscriptionHasAsked: the plans of a rollout are not approved by the person who has set its fleet
// subscription last, also once that is deleted.
func TestWhoSetsAFleetSubscriptionHasAsked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.catalog("fleet")
	ann, bob := b.give(model.AddToken{Name: "ann", Role: model.RoleNone}), b.give(model.AddToken{
		Name: "bob", Role: model.RoleNone,
	})
	ops := model.AccessScope{Clusters: []string{"spoke"}, Namespaces: []string{"ops"}}
	for _, actor := range []string{ann.Actor, bob.Actor} {
		b.bind(actor, "operator-admin", actor, ops)
	}
	set := events.FleetSubscriptionSet{Name: "tides", Spec: events.FleetSubscriptionSpec{Package: "tidegauge"}}
	fleet := func(actor string, p events.Payload) {
		b.recordBy(actor, events.Gateway, events.KindFleetSubscription, "tides", "tides", p)
	}
	fleet(bob.Actor, set)
	fleet(ann.Actor, set)
	const subject = "spoke/ops/tidegauge"
	b.fact(events.Fleet, events.KindSubscription, subject, subject, placedOf("tidegauge", 1))
	id := uuid.NewString()
	p := proposed(id, "install-aaaaa", "tidegauge.v1.1.0", "tidegauge")
	b.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/install-aaaaa", p)
	approve := func(who model.NewToken) answer {
		return b.as(who.Secret, "POST", "/api/v1/installplans/"+id+"/approve", model.ApprovePlan{Digest: p.Digest})
	}
	refused := func() {
		t.Helper()
		why := must[problem](b, http.StatusForbidden, approve(ann))
		if len(why.Errors) != 1 || why.Errors[0].Rule != "requester-not-approver" ||
			!strings.Contains(why.Detail, "fleet subscription tides") {
			t.Errorf("got %+v", why)
		}
	}
	refused()
	fleet(bob.Actor, events.FleetSubscriptionDeleted{})
	refused()
	// What a rollback of a rollout does was asked by whoever asked for that.
	b.fact(events.Fleet, events.KindRollout, "tides/2", "tides/2",
		events.RolloutStarted{FleetSubscription: "tides", Number: 2})
	b.recordBy(bob.Actor, events.Gateway, events.KindRollout, "tides/2", "tides/2",
		events.RolloutRollbackRequested{To: 1})
	b.fact(events.Fleet, events.KindRollout, "tides/3", "tides/3", events.RolloutStarted{
		FleetSubscription: "tides", Number: 3, Rollback: events.RolloutRollback{Of: 2},
	})
	back := placedOf("tidegauge", 3)
	back.Rollback = events.SubscriptionRollback{From: "tidegauge.v1.1.0", To: "tidegauge.v1.0.0"}
	b.fact(events.Fleet, events.KindSubscription, subject, subject, back)
	byRollback := func() {
		t.Helper()
		why := must[problem](b, http.StatusForbidden, approve(bob))
		if !strings.Contains(why.Detail, "rollback of fleet subscription tides") {
			t.Errorf("who asked for the rollback: %+v", why)
		}
	}
	byRollback()
	// So was what clusters get that joined since, by a rollout that only goes on with it.
	b.fact(events.Fleet, events.KindRollout, "tides/4", "tides/4", events.RolloutStarted{
		FleetSubscription: "tides", Number: 4, Avoids: []string{"tidegauge.v1.1.0"},
	})
	b.fact(events.Fleet, events.KindSubscription, subject, subject, placedOf("tidegauge", 4))
	byRollback()
	must[model.InstallPlan](b, 200, approve(ann))
}
