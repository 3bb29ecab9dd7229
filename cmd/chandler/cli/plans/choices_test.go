package plans

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// settled is a check with an object that two operators have in different forms, and two definitions.
func settled() model.PlanCheck {
	return model.PlanCheck{
		Shared: []model.SharedObject{{
			Object: "ClusterRole/metrics-reader", Operator: "south/rival.v1", Holder: "north/gauge.v1",
			Owners: []string{"north/gauge.v1"}, Finding: "sha256:f",
			Differences: []model.Difference{{
				Path: "/rules", Has: json.RawMessage(`[1]`),
				Wants: json.RawMessage(`[2]`),
			}},
		}},
		Allowances: []model.Allowance{{
			Object: "ClusterServiceVersion/tide.v1", Finding: "sha256:a", Content: "sha256:0123456789abcdef",
			Needed: []string{"ClusterRoleBinding tide gives ClusterRole cluster-admin to everybody"},
		}},
		CRDs: []model.CRDVerdict{
			{CRD: "gauges.sea.test", Problems: []string{"3 objects become invalid"}, Finding: "sha256:g"},
			{CRD: "buoys.sea.test", Problems: []string{"it cannot change its scope"}},
			{CRD: "tides.sea.test", Safe: true, Reversible: true},
		},
	}
}

// TestChoices: the flags of approve become choices of exactly what the check of the plan shows, and are refused where
// that shows no such thing.
func TestChoices(t *testing.T) {
	t.Parallel()
	p := model.InstallPlan{Name: "install-7x2kq"}
	got, err := (&choiceFlags{
		keep: []string{"ClusterRole/metrics-reader"}, crds: []string{"gauges.sea.test"},
		allow:  []string{"tide.v1"},
		reason: "none is used",
	}).choices(settled(), p)
	want := []model.SettleObstacle{
		{Object: "ClusterRole/metrics-reader", Choice: "Keep", Finding: "sha256:f", Reason: "none is used"},
		{
			Object: "CustomResourceDefinition/gauges.sea.test", Choice: "Override", Finding: "sha256:g",
			Reason: "none is used",
		},
		{Object: "ClusterServiceVersion/tide.v1", Choice: "Allow", Finding: "sha256:a", Reason: "none is used"},
	}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for says, s := range map[string]*choiceFlags{
		"conflicting objects: ClusterRole/metrics-reader":   {take: []string{"ClusterRole/other"}},
		"the change of buoys.sea.test cannot be overridden": {crds: []string{"buoys.sea.test"}},
		"needs no allowance; bundles that do: tide.v1":      {allow: []string{"other.v1"}},
		"needs no override; changes that do: g":             {crds: []string{"tides.sea.test"}},
	} {
		if _, err := s.choices(settled(), p); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
	for says, s := range map[string]*choiceFlags{
		"--override-crd needs a --reason": {crds: []string{"a"}},
		"--allow needs a --reason":        {allow: []string{"a"}},
		"with --keep and with --take":     {keep: []string{"a/b"}, take: []string{"a/b"}},
	} {
		if err := s.check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

// TestSharedObjectsText: both owners, the difference, and what can be done are told; then what was chosen, and by whom.
func TestSharedObjectsText(t *testing.T) {
	t.Parallel()
	shown := func(c model.PlanCheck) string {
		var out printer.Text
		writeCheck(&out, c)
		return strings.Join(strings.Fields(out.String()), " ")
	}
	c := settled()
	text := shown(c)
	for _, want := range []string{
		"installed by north/gauge.v1, and south/rival.v1 installs it with different content",
		"/rules: the cluster has [1], the plan has [2]",
		"--keep ClusterRole/metrics-reader (what the cluster has) or --take ClusterRole/metrics-reader",
		"--override-crd gauges.sea.test --reason TEXT", "this cannot be overridden",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	c.Shared[0].Choice, c.Shared[0].By, c.CRDs[0].OverriddenBy = "Take", []string{"anna"}, []string{"bert"}
	for _, want := range []string{
		"chosen: take, by anna",
		"gauges.sea.test: it is changed: an approver has overridden the check", "overridden by bert",
	} {
		if text := shown(c); !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
}
