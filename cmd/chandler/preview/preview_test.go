package preview_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/cmd/chandler/preview"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestRowsSayEverything: plans with what they move, what ends, what fails for the first time and still, what waits.
func TestRowsSayEverything(t *testing.T) {
	t.Parallel()
	rows, lines := preview.Rows(model.PreviewScope{
		Cluster: "c", Namespace: "n",
		Plans: []model.PreviewPlan{{
			Component: "buoy", Approval: "Manual", Steps: 3, Digest: "sha256:0123456789abcdef",
			Policies: []string{"careful"}, ManualReasons: []string{"MajorUpgrade"},
			Bundles: []model.PlannedBundle{{CSV: "gauge.v1"}, {CSV: "buoy.v2", Replaces: "buoy.v1"}},
		}},
		Superseded: []previewapi.PreviewSuperseded{{Name: "install-x", Component: "buoy", Digest: "sha256:ff"}},
		Failures: []previewapi.PreviewFailure{
			{Component: "a", Reason: "R", News: true, Sentences: []string{"why a"}},
			{Component: "b", Reason: "R"},
		},
		Waiting: []previewapi.PreviewWaiting{{Component: "w", For: previewapi.WaitImage, Sentences: []string{"why w"}}},
		Settled: []previewapi.PreviewOutcome{{Subscription: "s", CSV: "s.v1"}},
	})
	var got []string
	for _, r := range rows {
		if len(r) != len(preview.Columns) {
			t.Errorf("%d cells, want %d: %v", len(r), len(preview.Columns), r)
		}
		got = append(got, fmt.Sprint(r[2:8]...))
	}
	want := []string{
		fmt.Sprint("Plan", "buoy", "→ gauge.v1, buoy.v1 → buoy.v2", "Manual", 3, "0123456789ab"),
		fmt.Sprint("Supersede", "buoy", "install-x", "<none>", "<none>", "ff"),
		fmt.Sprint("Fail", "a", "R", "<none>", "<none>", "<none>"),
		fmt.Sprint("Still fail", "b", "R", "<none>", "<none>", "<none>"),
		fmt.Sprint("Wait", "w", "ImageNotFetched", "<none>", "<none>", "<none>"),
		fmt.Sprint("Settle", "s", "s.v1", "<none>", "<none>", "<none>"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if all := strings.Join(lines,
		"\n"); all != "c/n: buoy waits for a person, as careful want: MajorUpgrade\nc/n: a: why a\nc/n: w: why w" {
		t.Errorf("sentences:\n%s", all)
	}
}

// TestChangesOfDocuments: policies once, the rest on each cluster; what cannot be previewed is refused by its place.
func TestChangesOfDocuments(t *testing.T) {
	t.Parallel()
	documents := []olm.Document{
		{Name: "og", Namespace: "n", OperatorGroup: &model.OperatorGroupSpec{}},
		{Name: "p", Policy: &model.ApprovalPolicySpec{}},
		{Name: "s", Namespace: "n", Subscription: &model.SubscriptionSpec{Package: "x"}},
	}
	list, err := preview.Changes(documents, []string{"a", "b"})
	if err != nil || len(list) != 5 || list[0].ApprovalPolicy == nil || list[1].OperatorGroup.Cluster != "a" ||
		list[4].Subscription.Cluster != "b" {
		t.Errorf("%+v, %v", list, err)
	}
	_, err = preview.Changes([]olm.Document{{
		Kind: "CatalogSource", Where: "x.yaml, document 1",
		Catalog: &olm.Catalog{},
	}}, nil)
	if err == nil || !strings.Contains(err.Error(), "x.yaml, document 1") {
		t.Errorf("got %v", err)
	}
	if _, err := preview.Removed("cluster", "", "", "c"); err == nil {
		t.Error("the removal of a cluster can be previewed")
	}
}

// TestDifferencesAreSentences: before and after on one line, the reasons and the counts below.
func TestDifferencesAreSentences(t *testing.T) {
	t.Parallel()
	rows, lines := preview.Differences(model.Shadow{Same: 3, Missing: 1, Differences: []previewapi.ShadowDifference{{
		Cluster: "c", Namespace: "n", Subscription: "s", Semantics: "v", Why: []string{"since"}, Later: true,
		Before: previewapi.ShadowOutcome{Kind: "Planned", CSV: "s.v1", Approval: "Manual"},
		After:  previewapi.ShadowOutcome{Kind: "Failed", Reason: "R"},
	}}})
	want := []any{"c", "n", "s", "Planned s.v1 Manual", "Failed R", "v"}
	if len(rows) != 1 || cmp.Diff(want, rows[0]) != "" || len(lines) != 4 || lines[0] != "c/n/s: since" ||
		!strings.Contains(lines[2], "3 come out the same, 1 differently") {
		t.Errorf("rows %v, lines %q", rows, lines)
	}
}
