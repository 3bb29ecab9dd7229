package subscription_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/rule/ruletest"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

type history = []events.Payload

// TestDecide proves R-SUB-1, R-SUB-3 (Automatic by default) and R-SUB-32 (deleting ends the intent only).
func TestDecide(t *testing.T) {
	t.Parallel()
	name := subscription.Name{Cluster: "spoke", Namespace: "ops", Name: "tidegauge"}
	spec := events.SubscriptionSpec{Package: "tidegauge", Channel: "stable-4.x", Catalog: "fleet", Approval: "Manual"}
	auto := spec
	auto.Approval = ""
	automatic := spec
	automatic.Approval = "Automatic"
	other := spec
	other.Package = "brinestore"
	created := events.SubscriptionCreated{Cluster: "spoke", Namespace: "ops", Name: "tidegauge", Spec: spec}
	generated := events.SubscriptionGenerated{
		Cluster: "spoke", Namespace: "ops", Name: "tidegauge", Spec: spec, Plan: "p",
	}
	back := events.SubscriptionRollbackRequested{From: "a.v2", To: "a.v1"}
	noted := events.Metadata{Labels: map[string]string{"team": "sea"}, Annotations: "c1:a"}
	labelled := events.SubscriptionMetadataChanged{Metadata: noted}
	placed := events.SubscriptionPlaced{
		Cluster: "spoke", Namespace: "ops", Name: "tidegauge", Spec: spec, Owner: "tides", Rollout: 1,
		Target: events.RolloutTarget{Version: "1.2.0", CSV: "a.v2"},
	}
	released := events.SubscriptionReleased{}
	cases := []struct {
		name  string
		given history
		when  subscription.Command
		then  history
		kind  errs.Kind
	}{
		{"create", nil, subscription.Create{Name: name, Spec: spec}, history{created}, ""},
		{
			"create with the default approval", nil,
			subscription.Create{Name: name, Spec: auto},
			history{events.SubscriptionCreated{Cluster: "spoke", Namespace: "ops", Name: "tidegauge", Spec: automatic}},
			"",
		},
		{
			"create in Chandler's own namespace", nil,
			subscription.Create{
				Name: subscription.Name{Cluster: "spoke", Namespace: "chandler-system", Name: "tidegauge"}, Spec: spec,
			},
			nil, errs.Invalid,
		},
		{"create twice", history{created}, subscription.Create{Name: name, Spec: spec}, nil, errs.AlreadyExists},
		{
			"create what was generated",
			history{generated},
			subscription.Create{Name: name, Spec: spec},
			nil,
			errs.AlreadyExists,
		},
		{"create without a package", nil, subscription.Create{
			Name: name, Spec: events.SubscriptionSpec{Catalog: "fleet"},
		}, nil, errs.Invalid},
		{
			"change",
			history{created, events.ResolutionFailed{}},
			subscription.Change{Spec: automatic},
			history{events.SubscriptionChanged{Spec: automatic}},
			"",
		},
		{
			"change a generated one",
			history{generated},
			subscription.Change{Spec: automatic},
			history{events.SubscriptionChanged{Spec: automatic}},
			"",
		},
		{"change nothing", history{created}, subscription.Change{Spec: spec}, nil, ""},
		{"change the package", history{created}, subscription.Change{Spec: other}, nil, errs.Invalid},
		{"change nothing known", nil, subscription.Change{Spec: spec}, nil, errs.NotFound},
		{"roll back", history{created}, subscription.Rollback{From: "a.v2", To: "a.v1"}, history{back}, ""},
		{
			"roll back in the same way twice",
			history{created, back},
			subscription.Rollback{From: "a.v2", To: "a.v1"},
			nil, "",
		},
		{
			"roll back further",
			history{created, back},
			subscription.Rollback{From: "a.v2", To: "a.v0"},
			history{events.SubscriptionRollbackRequested{From: "a.v2", To: "a.v0"}},
			"",
		},
		{
			"roll back to where it is",
			history{created},
			subscription.Rollback{From: "a.v2", To: "a.v2"},
			nil,
			errs.Unprocessable,
		},
		{"roll back to nothing", history{created}, subscription.Rollback{From: "a.v2"}, nil, errs.Invalid},
		{"roll back what is not known", nil, subscription.Rollback{From: "a.v2", To: "a.v1"}, nil, errs.NotFound},
		{
			"the same intent again ends a rollback",
			history{created, back},
			subscription.Change{Spec: spec},
			history{events.SubscriptionChanged{Spec: spec}},
			"",
		},
		{
			"create with labels", nil,
			subscription.Create{Name: name, Spec: spec, Metadata: noted},
			history{created, labelled},
			"",
		},
		{
			"change labels alone",
			history{created},
			subscription.Change{Spec: spec, Metadata: noted},
			history{labelled},
			"",
		},
		{
			"the same labels again",
			history{created, labelled},
			subscription.Change{Spec: spec, Metadata: noted},
			nil,
			"",
		},
		{
			"take labels away",
			history{created, labelled},
			subscription.Change{Spec: spec},
			history{events.SubscriptionMetadataChanged{}},
			"",
		},
		{
			"change both",
			history{created},
			subscription.Change{Spec: automatic, Metadata: noted},
			history{events.SubscriptionChanged{Spec: automatic}, labelled},
			"",
		},
		{
			"labels alone do not end a rollback",
			history{created, back},
			subscription.Change{Spec: spec, Metadata: noted},
			history{labelled},
			"",
		},
		{
			"deleted with its labels",
			history{created, labelled, events.SubscriptionDeleted{}},
			subscription.Create{Name: name, Spec: spec, Metadata: noted},
			history{created, labelled},
			"",
		},
		{
			"delete",
			history{created, events.ResolutionSucceeded{}},
			subscription.Delete{},
			history{events.SubscriptionDeleted{}},
			"",
		},
		{
			"create what a fleet subscription asks for",
			history{placed},
			subscription.Create{Name: name, Spec: spec},
			nil, errs.AlreadyExists,
		},
		{
			"change what a fleet subscription asks for",
			history{placed},
			subscription.Change{Spec: automatic},
			nil, errs.Conflict,
		},
		{
			"change nothing of what a fleet subscription asks for",
			history{created, labelled, placed},
			subscription.Change{Spec: spec, Metadata: noted},
			nil, "",
		},
		{
			"label what a fleet subscription asks for",
			history{placed},
			subscription.Change{Spec: spec, Metadata: noted},
			nil, errs.Conflict,
		},
		{
			"roll back what a fleet subscription asks for",
			history{placed},
			subscription.Rollback{From: "a.v2", To: "a.v1"},
			nil, errs.Conflict,
		},
		{"delete what a fleet subscription asks for", history{placed}, subscription.Delete{}, nil, errs.Conflict},
		{
			"delete what a fleet subscription took over",
			history{created, placed},
			subscription.Delete{},
			nil, errs.Conflict,
		},
		{
			"change what was let go",
			history{placed, released},
			subscription.Change{Spec: automatic},
			history{events.SubscriptionChanged{Spec: automatic}},
			"",
		},
		{
			"roll back what was let go",
			history{placed, released},
			subscription.Rollback{From: "a.v2", To: "a.v1"},
			history{back},
			"",
		},
		{
			"delete what was let go",
			history{placed, released},
			subscription.Delete{},
			history{events.SubscriptionDeleted{}},
			"",
		},
		{
			"a rollout ends a rollback",
			history{created, back, placed, released},
			subscription.Change{Spec: spec},
			nil, "",
		},
		{
			"a rollout leaves labels",
			history{created, labelled, placed, released},
			subscription.Change{Spec: spec, Metadata: noted},
			nil, "",
		},
		{"delete twice", history{created, events.SubscriptionDeleted{}}, subscription.Delete{}, nil, errs.NotFound},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := subscription.State{Name: name}
			for _, p := range c.given {
				var err error
				if s, err = subscription.Evolve(s, p); err != nil {
					t.Fatal(err)
				}
			}
			got, err := subscription.Decide(s, c.when)
			if errs.KindOf(err) != c.kind {
				t.Fatalf("error %v, want kind %q", err, c.kind)
			}
			if diff := cmp.Diff(c.then, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTargetHoldsUntilSomebodyChangesIt: who leaves a fleet is not upgraded for that (issue 14, section 2).
func TestTargetHoldsUntilSomebodyChangesIt(t *testing.T) {
	t.Parallel()
	target := events.RolloutTarget{Version: "1.2.0", CSV: "tidegauge.v1.2.0"}
	placed := events.SubscriptionPlaced{Name: "tidegauge", Owner: "tides", Target: target}
	for _, c := range []struct {
		name   string
		given  history
		owner  string
		target events.RolloutTarget
	}{
		{"placed", history{placed}, "tides", target},
		{"let go", history{placed, events.SubscriptionReleased{}}, "", target},
		{
			"let go and resolved",
			history{placed, events.SubscriptionReleased{}, events.ResolutionSucceeded{}},
			"", target,
		},
		{
			"changed",
			history{placed, events.SubscriptionReleased{}, events.SubscriptionChanged{}},
			"",
			events.RolloutTarget{},
		},
		{
			"deleted",
			history{placed, events.SubscriptionReleased{}, events.SubscriptionDeleted{}},
			"",
			events.RolloutTarget{},
		},
		{"taken back", history{placed, events.SubscriptionRemoved{}}, "", events.RolloutTarget{}},
	} {
		var s subscription.State
		for _, p := range c.given {
			var err error
			if s, err = subscription.Evolve(s, p); err != nil {
				t.Fatal(err)
			}
		}
		if s.Owner != c.owner || s.Target != c.target {
			t.Errorf("%s: owner %q, target %+v", c.name, s.Owner, s.Target)
		}
	}
}

func TestEveryViolationIsNamed(t *testing.T) {
	t.Parallel()
	bad := subscription.Create{
		Name: subscription.Name{Cluster: "spoke", Namespace: "Ops", Name: "a/b"},
		Spec: events.SubscriptionSpec{
			Package: "Tide", Channel: "a b", Catalog: "", CatalogNamespace: "_", StartingCSV: "x y",
			Approval: "Perhaps",
		},
	}
	_, err := subscription.Decide(subscription.State{}, bad)
	var got []string
	for _, v := range ruletest.All(err) {
		got = append(got, v.Field+" "+v.Rule)
	}
	want := []string{
		"/namespace dns-1123-label", "/name dns-1123-subdomain", "/package dns-1123-label", "/catalog required",
		"/catalogNamespace dns-1123-label", "/channel printable-token", "/startingCSV printable-token",
		"/approval one-of",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEvolveRefusesForeignEvents(t *testing.T) {
	t.Parallel()
	if _, err := subscription.Evolve(subscription.State{}, events.ClusterRemoved{}); err == nil {
		t.Error("an event of another kind of stream must not pass silently")
	}
}
