package kinds

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestChangesAreSentences: an approver reads what an upgrade changes, in words, and an auditor which rights it gains
// (R-NAD-7).
func TestChangesAreSentences(t *testing.T) {
	t.Parallel()
	d := compare.Difference{
		CRDs: []compare.CRD{
			{
				Name: "tides.sea.test", Change: compare.Changed,
				Scope:   &compare.Move{From: "Namespaced", To: "Cluster"},
				Storage: &compare.Move{From: "v1beta1", To: "v1"}, ServedRemoved: []string{"v1beta1"},
				VersionsAdded: []string{"v1"}, Schema: []compare.SchemaChange{
					{Version: "v1", Path: "spec.size", Kind: compare.TypeChanged, From: "string", To: "integer"},
					{Version: "v1", Path: "spec.old", Kind: compare.FieldRemoved, From: "string"},
					{Version: "v1", Path: "spec.must", Kind: compare.FieldRequired},
				},
				More: 3,
			},
			{Name: "gone.sea.test", Change: compare.Removed},
		},
		Gained: []compare.Right{
			{
				Scope: compare.ScopeCluster, Resource: "secrets", Verbs: []string{"get", "list"},
				Sensitive: compare.ReadsSecrets,
			},
			{
				Scope: compare.ScopeNamespace, Group: "apps", Resource: "deployments", Name: "tide",
				Verbs: []string{"patch"},
			},
			{Scope: compare.ScopeCluster, URL: "/metrics", Verbs: []string{"get"}},
			{
				Scope: compare.ScopeCluster, Holder: "Group system:authenticated", Role: "ClusterRole/edit",
				Group: "*", Resource: "*", Verbs: []string{"*"}, Sensitive: compare.GrantedToEveryone,
			},
		},
		Demands: []compare.Demand{
			{Danger: compare.GainsPrivileges, Object: "Deployment tide", Detail: "nothing forbids it"},
			{Danger: compare.Privileged, Object: "Deployment tide", Detail: "container tide"},
			{Danger: compare.Unknown, Object: "Deployment tide", Detail: "field hostEverything of the pod"},
		},
		MoreDemands: 2,
	}
	want := []string{
		"tides.sea.test: scope Namespaced becomes Cluster",
		"tides.sea.test: stored version v1beta1 becomes v1",
		"tides.sea.test: no longer serves v1beta1",
		"tides.sea.test: new versions v1",
		"tides.sea.test: v1 spec.size TypeChanged: string becomes integer",
		"tides.sea.test: v1 spec.old FieldRemoved: string",
		"tides.sea.test: v1 spec.must FieldRequired",
		"tides.sea.test: and 3 more",
		"gone.sea.test is removed",
		"get, list secrets in the whole cluster (ReadsSecrets)",
		"unknown, so everything: whatever ClusterRole/edit allows in the whole cluster for Group " +
			"system:authenticated (GrantedToEveryone)",
		"patch deployments.apps tide in its namespaces",
		"get /metrics in the whole cluster",
		"new demand: Deployment tide: container tide (Privileged)",
		"unknown: Deployment tide: field hostEverything of the pod",
		"new demand: Deployment tide: nothing forbids it (GainsPrivileges)",
		"and 2 more demands",
	}
	if diff := cmp.Diff(want, slices.Concat(crdLines(d.CRDs), rightLines(d.Gained),
		demandLines(d.Demands, d.MoreDemands))); diff != "" {
		t.Errorf("want, got:\n%s", diff)
	}
	for summary, u := range map[string]model.Upgrade{
		"BREAKING: ": {State: model.UpgradeCompared, Breaking: true, Difference: d},
		"the same":   {State: model.UpgradeCompared, Semantics: compare.Semantics},
		// What older rules did not count is not shown as nothing.
		"changed custom resource definitions: 0, permissions gained: 0, lost: 0; demands: unknown": {
			State: model.UpgradeCompared, Semantics: "chandler.compare.v1",
		},
		"not compared yet":   {State: model.UpgradePending},
		"unknown: ":          {State: model.UpgradeUnknown},
		"cannot be compared": {State: model.UpgradeCompared, Difference: compare.Difference{Problem: "x"}},
	} {
		if got := changeSummary(u); !strings.HasPrefix(got, summary) {
			t.Errorf("want %q…, got %q", summary, got)
		}
	}
}

func TestLongListsAreCut(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range printer.ShownChanges + 5 {
		lines = append(lines, fmt.Sprint(i))
	}
	if got := printer.Limit(lines); len(got) != printer.ShownChanges+1 ||
		got[printer.ShownChanges] != "… and 5 more; see -o json" || len(lines) != printer.ShownChanges+5 {
		t.Errorf("got %q", got)
	}
}

// TestRevisionsAreSentences: what a revision changed stands in a line, mutated bundles by name.
func TestRevisionsAreSentences(t *testing.T) {
	t.Parallel()
	all := []model.RevisionChange{
		{Package: "new", Change: "added", BundlesAdded: []string{"new.v1"}},
		{
			Package: "buoy", Change: "changed", Heads: []model.ChannelMove{
				{Channel: "stable", From: "a", To: "b"},
				{Channel: "gone", From: "c"},
			},
			BundlesAdded: []string{"b"}, BundlesMutated: []string{"z", "a"}, DefaultChannelTo: "stable",
			Deprecated: []string{"olm.package"}, Undeprecated: []string{"olm.bundle/a"},
		},
		{Package: "icon", Change: "changed"},
		{Package: "old", Change: "removed"},
		{Package: "fifth", Change: "added"},
	}
	want := "new added; buoy stable: a to b, gone: c to <none>, 1 bundles added, 2 bundles mutated, default channel " +
		"stable, " +
		"deprecated olm.package, no longer deprecated olm.bundle/a; icon changed; old removed; and 1 packages more"
	if got := ChangesText(all); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := fmt.Sprint(Mutated(all)); got != "[a z]" {
		t.Errorf("got %s", got)
	}
}

// TestLeftOut: what is not listed is counted, in words.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]protocol.Cut{
		"1 component": {Components: 1},
		"2 components, 3 drifted objects, 1 difference, 4 requirements, 5 texts, 6 transitions": {
			Components: 2,
			Drifts:     3, Fields: 1, Requirements: 4, Messages: 5, History: 6,
		},
	} {
		if got := leftOutText(c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
