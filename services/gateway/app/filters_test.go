package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// names lists what a list holds, by name.
func names(b *bench, path string) string {
	b.t.Helper()
	list := must[struct{ Items []struct{ Name string } }](b, 200, b.do("GET", path, nil))
	var out []string
	for _, i := range list.Items {
		out = append(out, i.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestWhatIsShownCanBeChosen: every state and phase that a list shows is a filter of that list, and what is none is
// refused with the choices.
func TestWhatIsShownCanBeChosen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.catalog("fleet")
	spare := model.AddCatalog{
		Name: "spare", Disabled: true,
		Source: model.CatalogSource{Type: "directory", Path: "/catalogs/spare"},
	}
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs", spare))

	for _, name := range []string{"quiet", "broken", "other", "planned", "done"} {
		b.position = must[model.Subscription](b, 201,
			b.do("POST", subscriptions, subscribe(name, "tidegauge"))).Position
	}
	for _, name := range []string{"broken", "other"} {
		subject := "spoke/ops/" + name
		b.fact(events.Resolver, events.KindSubscription, subject, subject,
			events.ResolutionFailed{Reason: "ConstraintsNotSatisfiable", Explanation: "sha256:why"})
	}
	plan, free := uuid.NewString(), uuid.NewString()
	b.fact(events.Resolver, events.KindInstallPlan, plan, "spoke/ops/install-aaaaa",
		proposed(plan, "install-aaaaa", "tidegauge.v1.1.0", "planned"))
	b.fact(events.Resolver, events.KindInstallPlan, free, "spoke/ops/install-bbbbb",
		proposed(free, "install-bbbbb", "tidegauge.v1.2.0", "nobody"))
	b.fact(events.Resolver, events.KindSubscription, "spoke/ops/planned", "spoke/ops/planned",
		events.ResolutionSucceeded{Outcome: "Planned", CSV: "tidegauge.v1.1.0", Plan: plan})
	b.fact(events.Installer, events.KindInstallPlan, plan, "spoke/ops/install-aaaaa",
		events.InstallPlanBlocked{Class: "Transient", Reason: "Waiting"})
	past := uuid.NewString()
	b.fact(events.Resolver, events.KindInstallPlan, past, "spoke/ops/install-ccccc",
		proposed(past, "install-ccccc", "tidegauge.v1.0.0", "nobody"))
	b.fact(events.Installer, events.KindInstallPlan, past, "spoke/ops/install-ccccc",
		events.InstallPlanBlocked{Class: "Transient", Reason: "Waiting"})
	b.fact(events.Resolver, events.KindInstallPlan, past, "spoke/ops/install-ccccc",
		events.InstallPlanSuperseded{By: free})
	b.fact(events.Resolver, events.KindSubscription, "spoke/ops/done", "spoke/ops/done",
		events.ResolutionSucceeded{Outcome: "AtLatestKnown", CSV: "tidegauge.v1.0.0"})
	b.fact(events.Installer, events.KindCSV, "spoke/ops/tidegauge.v1.0.0", "spoke/ops/tidegauge.v1.0.0",
		events.CSVPhaseChanged{
			Cluster: "spoke", Namespace: "ops", Name: "tidegauge.v1.0.0", Package: "tidegauge", Version: "1.0.0",
			Phase: "Failed", Reason: "ComponentUnhealthy",
		})

	for query, want := range map[string]string{
		"subscriptions?state=ResolutionFailed":           "broken other",
		"subscriptions?state=ResolutionFailed&limit=1":   "broken",
		"subscriptions?state=UpgradePending":             "planned",
		"subscriptions?state=UpgradeFailed":              "",
		"subscriptions?state=AtLatestKnown":              "done",
		"subscriptions?state=InstallPlanPending":         "",
		"subscriptions?phase=Failed":                     "done",
		"subscriptions?phase=Succeeded":                  "",
		"catalogs?state=Ready":                           "fleet",
		"catalogs?state=Disabled":                        "spare",
		"installplans?blocked=true":                      "install-aaaaa",
		"installplans?blocked=false":                     "install-bbbbb install-ccccc",
		"installplans?phase=RequiresApproval":            "install-aaaaa install-bbbbb",
		"operators?phase=Failed":                         "tidegauge.v1.0.0",
		"operators?phase=Succeeded":                      "",
		"clusters?state=Registered":                      "spoke",
		"clusters?state=Unreachable":                     "",
		"installplans?phase=Superseded&blocked=false":    "install-ccccc",
		"subscriptions?state=AtLatestKnown&phase=Failed": "done",
	} {
		sep := "&minPosition="
		if got := names(b, "/api/v1/"+query+sep+b.position); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}

	// Pages of a state that a condition stands for hold no less than any others.
	page := must[struct{ Next string }](b, 200, b.do("GET",
		"/api/v1/subscriptions?state=ResolutionFailed&limit=1&minPosition="+b.position, nil))
	if got := names(b, "/api/v1/subscriptions?state=ResolutionFailed&limit=1&cursor="+page.Next); got != "other" {
		t.Errorf("the second page holds %q", got)
	}

	// One name may stand for another thing; what may be several is a conflict that lists them.
	const named = "/api/v1/clusters/spoke/namespaces/ops/named/"
	for path, want := range map[string]string{
		"done?kind=operator": "tidegauge.v1.0.0", "tidegauge?kind=operator": "tidegauge.v1.0.0",
		"tidegauge.v1.0.0?kind=subscription": "done", "broken?kind=subscription": "broken",
		"tidegauge.v1.1.0?kind=subscription": "planned",
	} {
		if got := must[model.Named](b, 200, b.do("GET", named+path+"&minPosition="+b.position,
			nil)); got.Name != want || got.Package != "tidegauge" {
			t.Errorf("%s is %q, want %q", path, got.Name, want)
		}
	}
	if p := must[problem](b, 409, b.do("GET", named+"tidegauge?kind=subscription", nil)); !strings.Contains(
		p.Detail, "broken, done, other, planned, quiet") {
		t.Errorf("got %+v", p)
	}
	must[problem](b, 404, b.do("GET", named+"anchor?kind=operator", nil))

	for query, choice := range map[string]string{
		"subscriptions?state=Gone": "ResolutionFailed", "subscriptions?phase=Gone": "Succeeded",
		"clusters?state=Gone": "Unauthorized", "catalogs?state=Gone": "Disabled", "operators?phase=Gone": "Succeeded",
		"installplans?phase=Gone": "RequiresApproval", "installplans?blocked=perhaps": "false",
	} {
		p := must[problem](b, 400, b.do("GET", "/api/v1/"+query, nil))
		if len(p.Errors) != 1 || p.Errors[0].Rule != "one-of" || !strings.Contains(p.Errors[0].Message, choice) {
			t.Errorf("%s: %+v, want the choices", query, p)
		}
	}
}
