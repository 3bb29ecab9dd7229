package deploy_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestAlerts is R-MET-3, and two of ours about the placement and about break-glass tokens: which alerts there are, when
// they fire, and that they warn. What they ask for are metrics and phases that there are.
func TestAlerts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/helm/chandler/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	type alert struct{ Metric, Phases, For string }
	metric, phases := regexp.MustCompile(
		`\b(csv_abnormal|installplan_warnings_total|chandler_(installer_unplaced|breakglass_used|identities_full))\b`),
		regexp.MustCompile(`phase=~?"([^"]*)"`)
	got := map[string]alert{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			a := alert{Metric: metric.FindString(r.Expr), For: r.For}
			if m := phases.FindStringSubmatch(r.Expr); m != nil {
				a.Phases = m[1]
			}
			got[r.Alert] = a
			if r.Labels["severity"] != "warning" || slices.Contains(
				[]string{r.Annotations["summary"], r.Annotations["description"]}, "") {
				t.Errorf("%s has labels %v and annotations %v", r.Alert, r.Labels, r.Annotations)
			}
		}
	}
	want := map[string]alert{
		"BreakGlassUsed":                     {"chandler_breakglass_used", "", ""},
		"CsvAbnormalFailedOver2Min":          {"csv_abnormal", "Failed", "2m"},
		"CsvAbnormalOver30Min":               {"csv_abnormal", "Replacing|Pending|Deleting|Unknown", "30m"},
		"InstallPlanStepAppliedWithWarnings": {"installplan_warnings_total", "", ""},
		"NoRoomForExecutors":                 {"chandler_installer_unplaced", "", "2m"},
		"TooManyNewIdentities":               {"chandler_identities_full", "", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
