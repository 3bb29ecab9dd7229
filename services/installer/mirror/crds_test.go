package mirror_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// TestColumns: R-CSV-6, R-SUB-22: kubectl lists what it lists under OLM; it begins with NAME by itself.
func TestColumns(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for _, d := range mirror.CRDs(events.MirrorAll) {
		var columns []string
		for _, c := range d.Spec.Versions[0].AdditionalPrinterColumns {
			columns = append(columns, c.Name+"="+c.JSONPath)
		}
		if len(columns) > 0 {
			got[d.Spec.Names.Kind] = strings.Join(columns, " ")
		}
	}
	want := map[string]string{
		"ClusterServiceVersion": "Display=.spec.displayName Version=.spec.version Release=.spec.release Replaces=.spec.replaces Phase=.status.phase",
		"Subscription":          "Package=.spec.name Source=.spec.source Channel=.spec.channel",
		"InstallPlan":           "CSV=.spec.clusterServiceVersionNames[0] Approval=.spec.approval Approved=.spec.approved",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestViewRole: R-NAD-2: who may view a namespace may read its mirrors, all kinds of them, and nobody may write any.
func TestViewRole(t *testing.T) {
	t.Parallel()
	r := mirror.ViewRole()
	if r.Labels["rbac.authorization.k8s.io/aggregate-to-view"] != "true" || len(r.Rules) != 1 {
		t.Fatalf("got %+v", r)
	}
	rule := r.Rules[0]
	for _, d := range mirror.CRDs(events.MirrorAll) {
		kind := d.Spec.Names.Kind
		if mirrored := kind != "OperatorCondition" && kind != "OLMConfig"; slices.Contains(rule.Resources, d.Spec.Names.Plural) != mirrored {
			t.Errorf("%s may be read: %v, want %v", kind, !mirrored, mirrored)
		}
	}
	if diff := cmp.Diff([]string{"get", "list", "watch"}, rule.Verbs); diff != "" || !slices.Equal(rule.APIGroups, []string{"operators.coreos.com"}) {
		t.Errorf("rule %+v", rule)
	}
}
