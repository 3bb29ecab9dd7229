package outcome_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/outcome"
)

var at = time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)

func fact(t *testing.T, p events.Payload) outcome.Fact {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return outcome.Fact{Type: p.EventType(), Time: at, Data: data}
}

func check(t *testing.T, what string, got outcome.State, state, reason string) {
	t.Helper()
	if got.State != state || got.Reason != reason {
		t.Errorf("%s: %s (%s), want %s (%s)", what, got.State, got.Reason, state, reason)
	}
}

// TestOfSubscription: from the intent to an operator that runs, each step as the log and the object have it (the
// issue's section 3: operations as resources).
func TestOfSubscription(t *testing.T) {
	t.Parallel()
	planned := fact(t, events.ResolutionSucceeded{Outcome: "Planned", CSV: "gauge.v2", Plan: "p1"})
	latest := fact(t, events.ResolutionSucceeded{Outcome: "AtLatestKnown", CSV: "gauge.v2"})
	impossible := fact(t, events.ResolutionFailed{Reason: "ConstraintsNotSatisfiable"})
	status := func(plan, phase, installed, operator string) (s model.Subscription) {
		if plan != "" {
			s.Status.InstallPlan = &model.PlanRef{ID: plan, Phase: phase}
		}
		s.Status.InstalledCSV, s.Status.Phase = installed, operator
		return s
	}
	for _, c := range []struct {
		what          string
		after         []outcome.Fact
		now           model.Subscription
		state, reason string
	}{
		{"nothing yet", nil, status("", "", "", ""), model.OperationRunning, "Resolving"},
		{
			"labels do not matter",
			[]outcome.Fact{fact(t, events.SubscriptionMetadataChanged{})},
			status("", "", "", ""),
			model.OperationRunning, "Resolving",
		},
		{
			"impossible",
			[]outcome.Fact{impossible},
			status("", "", "", ""), model.OperationFailed,
			"ConstraintsNotSatisfiable",
		},
		{
			"possible again",
			[]outcome.Fact{impossible, planned},
			status("p1", "Installing", "", ""),
			model.OperationRunning, "Installing",
		},
		{
			"another plan is shown still",
			[]outcome.Fact{planned},
			status("p0", "Complete", "gauge.v2", "Succeeded"),
			model.OperationRunning, "Planned",
		},
		{
			"people are asked",
			[]outcome.Fact{planned},
			status("p1", "RequiresApproval", "", ""), model.OperationWaiting,
			"RequiresApproval",
		},
		{"rejected", []outcome.Fact{planned}, status("p1", "Rejected", "", ""), model.OperationFailed, "PlanRejected"},
		{
			"the plan fails",
			[]outcome.Fact{planned},
			status("p1", "Failed", "", ""), model.OperationFailed,
			"PlanFailed",
		},
		{
			"steps are done",
			[]outcome.Fact{planned},
			status("p1", "Complete", "gauge.v2", "Installing"),
			model.OperationRunning, "Installing",
		},
		{
			"an older one is shown",
			[]outcome.Fact{planned},
			status("p1", "Complete", "gauge.v1", "Succeeded"),
			model.OperationRunning, "Installing",
		},
		{
			"it runs",
			[]outcome.Fact{planned},
			status("p1", "Complete", "gauge.v2", "Succeeded"),
			model.OperationSucceeded, "Succeeded",
		},
		{
			"it does not run",
			[]outcome.Fact{planned},
			status("p1", "Complete", "gauge.v2", "Failed"),
			model.OperationFailed, "OperatorFailed",
		},
		{
			"it was there",
			[]outcome.Fact{latest},
			status("", "", "gauge.v2", "Succeeded"), model.OperationSucceeded,
			"Succeeded",
		},
		{
			"changed meanwhile",
			[]outcome.Fact{planned, fact(t, events.SubscriptionChanged{}), planned},
			status("p1", "Complete", "gauge.v2", "Succeeded"), model.OperationSuperseded, "subscription.changed.v1",
		},
		{
			"a fleet subscription took it over meanwhile",
			[]outcome.Fact{planned, fact(t, events.SubscriptionPlaced{}), planned},
			status("p1", "Complete", "gauge.v2", "Succeeded"), model.OperationSuperseded, "subscription.placed.v1",
		},
	} {
		got := outcome.OfSubscription(fact(t, events.SubscriptionCreated{}), c.after, c.now)
		check(t, c.what, got, c.state, c.reason)
	}
}

// TestOfRemoval: the events behind the request say how far it is.
func TestOfRemoval(t *testing.T) {
	t.Parallel()
	asked := fact(t, events.CSVRemovalRequested{})
	started := fact(t, events.CSVRemovalStarted{})
	blocked := fact(t, events.CSVRemovalBlocked{Reason: "FinalizersPending"})
	for _, c := range []struct {
		what          string
		after         []outcome.Fact
		state, reason string
	}{
		{"asked", nil, model.OperationRunning, "Requested"},
		{"started", []outcome.Fact{started}, model.OperationRunning, "Started"},
		{"blocked", []outcome.Fact{started, blocked}, model.OperationRunning, "FinalizersPending"},
		{
			"refused",
			[]outcome.Fact{fact(t, events.CSVRemovalRefused{Reason: "PlanChanged"})},
			model.OperationFailed,
			"PlanChanged",
		},
		{
			"asked again",
			[]outcome.Fact{asked, fact(t, events.CSVRemoved{})},
			model.OperationSuperseded,
			"csv.removal-requested.v1",
		},
		{"gone", []outcome.Fact{started, blocked, fact(t, events.CSVRemoved{})}, model.OperationSucceeded, "Removed"},
	} {
		got, err := outcome.OfRemoval(asked, c.after)
		if err != nil {
			t.Fatal(err)
		}
		check(t, c.what, got, c.state, c.reason)
	}
}

// TestOfPlanClusterAndCatalog: what is read says how far it is; a catalog counts what was polled since the intent.
func TestOfPlanClusterAndCatalog(t *testing.T) {
	t.Parallel()
	check(t, "a second approver", outcome.OfPlan(model.InstallPlan{Phase: "RequiresApproval"}), model.OperationWaiting,
		"RequiresApproval")
	check(t, "a window", outcome.OfPlan(model.InstallPlan{
		Phase: "Installing", Blocked: &model.PlanBlock{Reason: "OutsideWindow"},
	}), model.OperationRunning, "OutsideWindow")
	check(t, "a failure", outcome.OfPlan(model.InstallPlan{
		Phase: "Failed", Failure: &model.PlanFailure{Reason: "Forbidden"},
	}), model.OperationFailed, "Forbidden")
	check(t, "done", outcome.OfPlan(model.InstallPlan{Phase: "Complete"}), model.OperationSucceeded, "Complete")
	check(t, "given up", outcome.OfPlan(model.InstallPlan{Phase: "Superseded"}), model.OperationSuperseded,
		"PlanSuperseded")

	for state, want := range map[string]string{
		"Registered": model.OperationRunning, "Unreachable": model.OperationRunning,
		"Connected": model.OperationSucceeded, "Unauthorized": model.OperationFailed,
		"Refused": model.OperationFailed, "HeldElsewhere": model.OperationFailed,
	} {
		check(t, state, outcome.OfCluster(model.Cluster{Connection: state}), want, state)
	}

	before, since := at.Add(-time.Second), at.Add(time.Second)
	polled := func(state string, times ...*time.Time) model.Catalog {
		c := model.Catalog{State: state, Reason: "SourceUnreachable"}
		for _, one := range times {
			c.Variants = append(c.Variants, model.CatalogVariant{PolledAt: one})
		}
		return c
	}
	refresh, added := fact(t, events.CatalogRefreshRequested{}), fact(t, events.CatalogAdded{})
	check(t, "not polled", outcome.OfCatalog(refresh, polled("Ready", &before)), model.OperationRunning, "Polling")
	check(t, "one of two", outcome.OfCatalog(refresh, polled("Ready", &since, nil)), model.OperationRunning, "Polling")
	check(t, "polled", outcome.OfCatalog(refresh, polled("Ready", &since)), model.OperationSucceeded, "Ready")
	check(t, "polled in vain", outcome.OfCatalog(refresh, polled("Failed", &since)), model.OperationFailed,
		"SourceUnreachable")
	check(t, "failed before", outcome.OfCatalog(refresh, polled("Failed", &before)), model.OperationRunning, "Polling")
	check(t, "added", outcome.OfCatalog(added, polled("Loading")), model.OperationRunning, "Loading")
	check(t, "added and read", outcome.OfCatalog(added, polled("Ready")), model.OperationSucceeded, "Ready")
}
