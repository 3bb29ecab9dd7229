package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestChangesAreSentences: an approver reads what an upgrade changes, in words.
func TestChangesAreSentences(t *testing.T) {
	t.Parallel()
	d := compare.Difference{
		CRDs: []compare.CRD{
			{
				Name: "tides.sea.test", Change: compare.Changed, Scope: &compare.Move{From: "Namespaced", To: "Cluster"},
				Storage: &compare.Move{From: "v1beta1", To: "v1"}, ServedRemoved: []string{"v1beta1"}, VersionsAdded: []string{"v1"},
				Schema: []compare.SchemaChange{
					{Version: "v1", Path: "spec.size", Kind: compare.TypeChanged, From: "string", To: "integer"},
					{Version: "v1", Path: "spec.old", Kind: compare.FieldRemoved, From: "string"},
					{Version: "v1", Path: "spec.must", Kind: compare.FieldRequired},
				},
				More: 3,
			},
			{Name: "gone.sea.test", Change: compare.Removed},
		},
		Gained: []compare.Right{
			{Scope: compare.ScopeCluster, Resource: "secrets", Verbs: []string{"get", "list"}, Sensitive: compare.ReadsSecrets},
			{Scope: compare.ScopeNamespace, Group: "apps", Resource: "deployments", Name: "tide", Verbs: []string{"patch"}},
			{Scope: compare.ScopeCluster, URL: "/metrics", Verbs: []string{"get"}},
		},
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
		"patch deployments.apps tide in its namespaces",
		"get /metrics in the whole cluster",
	}
	if diff := cmp.Diff(want, append(crdLines(d.CRDs), rightLines(d.Gained)...)); diff != "" {
		t.Errorf("want, got:\n%s", diff)
	}
	for summary, u := range map[string]model.Upgrade{
		"BREAKING: ":         {State: model.UpgradeCompared, Breaking: true, Difference: d},
		"the same":           {State: model.UpgradeCompared},
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
	for i := range shownChanges + 5 {
		lines = append(lines, fmt.Sprint(i))
	}
	if got := limited(lines); len(got) != shownChanges+1 || got[shownChanges] != "… and 5 more; see -o json" || len(lines) != shownChanges+5 {
		t.Errorf("got %q", got)
	}
}
