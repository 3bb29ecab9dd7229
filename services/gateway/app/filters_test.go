package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		}, events.CSVDrifted{Objects: 2, Diff: "sha256:d", Policy: "report"})
	b.fact(events.Indexer, events.KindCatalog, "fleet", "fleet", events.CatalogRevisionPublished{
		Revision: "sha256:" + strings.Repeat("2", 64), Packages: 1, Bundles: 1, Changes: []events.PackageChange{{
			Package: "tidegauge", Change: "changed", Deprecated: []string{"olm.bundle/tidegauge.v1.0.0"},
		}},
	})

	for query, want := range map[string]string{
		"subscriptions?state=ResolutionFailed":         "broken other",
		"subscriptions?state=ResolutionFailed&limit=1": "broken",
		"subscriptions?state=UpgradePending":           "planned",
		"subscriptions?state=UpgradeFailed":            "",
		"subscriptions?state=AtLatestKnown":            "done",
		"subscriptions?state=InstallPlanPending":       "",
		"subscriptions?phase=Failed":                   "done",
		"subscriptions?phase=Succeeded":                "",
		"catalogs?state=Ready":                         "fleet",
		"catalogs?state=Disabled":                      "spare",
		"installplans?blocked=true":                    "install-aaaaa",
		"installplans?blocked=false":                   "install-bbbbb install-ccccc",
		"installplans?phase=RequiresApproval":          "install-aaaaa install-bbbbb",
		"operators?phase=Failed":                       "tidegauge.v1.0.0",
		"operators?phase=Succeeded":                    "",
		"operators?state=Failed":                       "tidegauge.v1.0.0",
		"operators?state=Drifted":                      "tidegauge.v1.0.0",
		"operators?state=Flapping":                     "",
		"operators?state=Uninstalling":                 "",
		"subscriptions?fieldSelector=status.state%3DUpgradePending,metadata.name!%3Dx": "planned",
		"subscriptions?sort=-changed&approval=Automatic&clusterSelector=!retired":      "broken done other planned quiet",
		"installplans?sort=name&fieldSelector=status.phase%3DRequiresApproval":         "install-aaaaa install-bbbbb",
		"installplans?sort=-phase&fieldSelector=blocked.reason%3DWaiting":              "install-aaaaa",
		"installplans?sort=changed&clusterSelector=retired":                            "",
		"installplans?sort=-created&clusterSelector=!retired&cluster=spoke":            "install-aaaaa install-bbbbb install-ccccc",
		"clusters?sort=-state&fieldSelector=state%3DPending,metadata.name!%3Dx":        "spoke",
		"clusters?sort=changed&clusterSelector=retired":                                "",
		"catalogs?sort=-state&fieldSelector=disabled%3Dtrue":                           "spare",
		"catalogs?sort=created&fieldSelector=source.type%3Ddirectory,state!%3DReady":   "spare",
		"catalogs?clusterSelector=!retired":                                            "",
		"subscriptions?version=%3C2.0.0":                                               "done",
		"subscriptions?version=%3E2.0.0":                                               "",
		"operators?sort=-changed&fieldSelector=drifted%3Dtrue&version=1.0.0":           "tidegauge.v1.0.0",
		"subscriptions?state=RequiresApproval":                                         "planned",
		"subscriptions?state=UpgradeAvailable":                                         "",
		"subscriptions?state=Failing":                                                  "broken done other",
		"subscriptions?state=Deprecated":                                               "done",
		"clusters?state=Pending":                                                       "spoke",
		"clusters?state=Unreachable":                                                   "",
		"installplans?phase=Superseded&blocked=false":                                  "install-ccccc",
		"subscriptions?state=AtLatestKnown&phase=Failed":                               "done",
	} {
		sep := "&minPosition="
		if got := names(b, "/api/v1/"+query+sep+b.position); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}

	o := must[struct{ Items []model.Operator }](b, 200, b.do("GET", "/api/v1/operators?state=Drifted", nil)).Items[0]
	if d := o.Drift; d == nil || d.Objects != 2 || d.Policy != "report" || d.Since.IsZero() {
		t.Errorf("drift %+v", o.Drift)
	}
	summarized(t, b)
	whatMayNotBeListedIsNotTold(t, b)
	pagesOfAnOrder(t, b)

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
		"clusters?state=Gone": "OLMRunning", "catalogs?state=Gone": "Disabled", "operators?phase=Gone": "Succeeded",
		"installplans?sort=colour": "-changed", "clusters?sort=colour": "-changed", "catalogs?sort=colour": "-changed",
		"operators?state=Drift": "Drifted", "installplans?phase=Gone": "RequiresApproval",
		"installplans?blocked=perhaps": "false",
	} {
		p := must[problem](b, 400, b.do("GET", "/api/v1/"+query, nil))
		if len(p.Errors) != 1 || p.Errors[0].Rule != "one-of" || !strings.Contains(p.Errors[0].Message, choice) {
			t.Errorf("%s: %+v, want the choices", query, p)
		}
	}
}

// whatMayNotBeListedIsNotTold: labels of clusters and names of catalogs are told to those alone who may list them, also
// by what a selector chooses and by what is counted.
func whatMayNotBeListedIsNotTold(t *testing.T, b *bench) {
	t.Helper()
	must[model.AccessRole](b, 200, b.do("PUT", "/api/v1/roles/objects", model.RoleSpec{Rules: []model.AccessRule{
		{Verbs: []string{"get", "list"}, Resources: []string{"subscriptions", "operators", "installplans"}},
	}}))
	eve := b.give(model.AddToken{Name: "eve", Role: model.RoleNone})
	b.bind("eve", "objects", eve.Actor, model.AccessScope{})
	get := func(query string) model.FleetSummary {
		t.Helper()
		return must[model.FleetSummary](b, 200, b.as(eve.Secret, "GET", "/api/v1/summary?"+query, nil))
	}
	if got := get("by=catalog"); len(got.Items) != 1 || got.Items[0].Catalog != "" || got.Items[0].Subscriptions != 5 ||
		got.Items[0].Operators != 1 {
		t.Errorf("by catalog: %+v", got)
	}
	for _, query := range []string{"catalog=fleet", "clusterSelector=!retired", "by=catalog&clusterSelector=!retired"} {
		if got := get(query); len(got.Items) != 0 {
			t.Errorf("%s: %+v", query, got)
		}
	}
	for _, list := range []string{"subscriptions", "operators", "installplans"} {
		all := must[struct{ Items []any }](b, 200, b.as(eve.Secret, "GET", "/api/v1/"+list, nil))
		chosen := must[struct{ Items []any }](b, 200,
			b.as(eve.Secret, "GET", "/api/v1/"+list+"?clusterSelector=!retired", nil))
		if len(all.Items) == 0 || len(chosen.Items) != 0 {
			t.Errorf("%s: %d, of which a selector of clusters chooses %d", list, len(all.Items), len(chosen.Items))
		}
	}
	must[model.Removed](b, 200, b.do("DELETE", bindingsPath+"eve", nil))
	if got := must[model.FleetSummary](b, 200, b.do("GET", "/api/v1/summary?by=catalog&catalog=fleet", nil)); len(
		got.Items) != 1 || got.Items[0].Catalog != "fleet" {
		t.Errorf("who may list catalogs sees %+v", got)
	}
}

// pagesOfAnOrder: the pages of every order hold everything, once, and the other way round is the other way round.
func pagesOfAnOrder(t *testing.T, b *bench) {
	t.Helper()
	b.cluster("berth")
	for list, sorts := range map[string]string{
		"installplans": "name cluster phase created changed", "clusters": "name state created changed",
		"catalogs": "name state created changed",
	} {
		for sort := range strings.FieldsSeq(sorts) {
			var ways [2][]string
			for i, sign := range []string{"", "-"} {
				for cursor := ""; ; {
					page := must[struct {
						Items []struct{ Name string }
						Next  string
					}](b, 200, b.do("GET", "/api/v1/"+list+"?limit=1&sort="+sign+sort+"&cursor="+cursor, nil))
					for _, item := range page.Items {
						ways[i] = append(ways[i], item.Name)
					}
					if cursor = page.Next; cursor == "" {
						break
					}
				}
			}
			slices.Reverse(ways[1])
			if len(ways[0]) < 2 || !slices.Equal(ways[0], ways[1]) {
				t.Errorf("%s by %s: %v, and the other way round %v", list, sort, ways[0], ways[1])
			}
		}
	}
}

// summarized checks the numbers of TestWhatIsShownCanBeChosen, for who sees all of it and for who sees less.
func summarized(t *testing.T, b *bench) {
	t.Helper()
	get := func(bearer, query string) model.FleetSummary {
		t.Helper()
		return must[model.FleetSummary](b, 200, b.as(bearer, "GET", "/api/v1/summary?"+query, nil))
	}
	want := model.SummaryCounts{
		Operators: 1, Phases: map[string]int{"Failed": 1}, Drifted: 1, Subscriptions: 5, RequiresApproval: 1,
		Failing: 3, Deprecated: 1,
	}
	for query, item := range map[string]model.Summary{
		"":                                     {Cluster: "spoke"},
		"by=namespace":                         {Cluster: "spoke", Namespace: "ops"},
		"by=package&cluster=spoke":             {Package: "tidegauge"},
		"by=catalog&namespace=ops":             {Catalog: "fleet"},
		"catalog=fleet":                        {Cluster: "spoke"},
		"clusterSelector=!retired":             {Cluster: "spoke"},
		"package=tidegauge&limit=1":            {Cluster: "spoke"},
		"by=cluster&minPosition=" + b.position: {Cluster: "spoke"},
	} {
		item.SummaryCounts = want
		got := get(token, query)
		if diff := cmp.Diff(model.FleetSummary{Total: want, Items: []model.Summary{item}}, got); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	for _, query := range []string{"cluster=else", "clusterSelector=retired", "package=buoy", "catalog=spare"} {
		if got := get(token, query); len(got.Items) != 0 || got.Total.Subscriptions+got.Total.Operators != 0 {
			t.Errorf("%s: %+v", query, got)
		}
	}
	narrow := b.give(model.AddToken{Name: "narrow", Role: model.RoleNone})
	b.bind("narrow", "viewer", narrow.Actor, model.AccessScope{Namespaces: []string{"other"}})
	if got := get(narrow.Secret, ""); len(got.Items) != 0 || got.Total.Subscriptions+got.Total.Operators != 0 {
		t.Errorf("who sees another namespace alone sees %+v", got)
	}
	must[problem](b, 400, b.do("GET", "/api/v1/summary?by=planet", nil))
	must[problem](b, 400, b.do("GET", "/api/v1/summary?clusterSelector=a=b=c", nil))
}
