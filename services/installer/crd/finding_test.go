package crd_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/services/installer/crd"
)

// TestFindings: what an approver overrides is one change of one definition (R-CRD-8, DESIGN D6): which objects it hurts
// at the moment makes no other finding, another change or other owners do. What no API server takes has none.
func TestFindings(t *testing.T) {
	t.Parallel()
	finding := func(live, next string, owners []string, objects ...map[string]any) string {
		t.Helper()
		j, err := crd.New(crd.Input{
			Live: definition(t, live), Next: definition(t, next), Owners: owners,
			Leaving: []string{"ports/gauge.v1"},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			j.Add(t.Context(), "v1", o)
		}
		return j.Verdict(false).Finding
	}
	one, v1 := []string{"ports/gauge.v1"}, version("v1", true, true, size)
	two := append([]string{"other/rival.v1"}, one...)
	large, larger := gauge("large", `{"size":9}`), gauge("larger", `{"size":99}`)
	narrowed := finding(namespaced+v1, namespaced+version("v1", true, true, sizeMax), one, large)
	if narrowed == "" || narrowed != finding(namespaced+v1, namespaced+version("v1", true, true, sizeMax), one, large,
		larger) {
		t.Error("one more object that it hurts makes another finding")
	}
	gone := finding(namespaced+v1+version("v0", true, false, size), namespaced+v1, two)
	for name, other := range map[string]string{
		"another change": finding(namespaced+v1, namespaced+version("v1", true, true, required), one, large),
		"from another definition": finding(namespaced+version("v1", true, true, color),
			namespaced+version("v1", true, true, sizeMax), one, large),
		"another owner beside":      finding(namespaced+v1, namespaced+version("v1", true, true, sizeMax), two, large),
		"a version that others use": gone,
	} {
		if other == "" || other == narrowed {
			t.Errorf("%s: finding %q", name, other)
		}
	}
	for name, none := range map[string]string{
		"nothing is hurt": finding(namespaced+v1, namespaced+version("v1", true, true, sizeMax), one),
		"another scope":   finding(namespaced+v1, "  scope: Cluster\n  versions:\n"+v1, one),
		"a stored version goes": finding(namespaced+v1+version("v2", true, false, size),
			namespaced+version("v2", true, true, size), one),
		"one of two cannot be settled": finding(namespaced+v1, "  scope: Cluster\n  versions:\n"+
			version("v1", true, true, sizeMax), one),
	} {
		if none != "" {
			t.Errorf("%s: finding %q, want none", name, none)
		}
	}
}
