package decide_test

import (
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/internal/fixture"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// TestDependants: R-UNI-4 by every kind of requirement (R-RES-21): who requires what the operator that goes meets,
// and no other installed one does.
func TestDependants(t *testing.T) {
	t.Parallel()
	installed := func(pkg, version string, words ...string) decide.Installed {
		return decide.Installed{
			Name: pkg + ".v" + version, Package: pkg, Version: version, Phase: "Succeeded",
			Properties: fixture.Properties(pkg, version, words...),
		}
	}
	gauge := installed("gauge", "1.2.0", "gives:Gauge")
	leaving := installed("meter", "1.0.0", "gives:Gauge")
	leaving.Phase = "Replacing"
	for name, c := range map[string]struct {
		others []decide.Installed
		want   []string // requirements of the dependant, if it is one
	}{
		"olm.package": {
			[]decide.Installed{installed("buoy", "1.0.0", "pkg:gauge >=1.0.0")},
			[]string{"of package gauge in range >=1.0.0"},
		},
		"olm.gvk": {
			[]decide.Installed{installed("buoy", "1.0.0", "api:Gauge")},
			[]string{"providing Gauge (sea.test/v1)"},
		},
		"several, in their order": {
			[]decide.Installed{
				installed("buoy", "1.0.0", "api:Gauge", "pkg:gauge <2.0.0"),
			},
			[]string{"providing Gauge (sea.test/v1)", "of package gauge in range <2.0.0"},
		},
		"olm.constraint, package": {
			[]decide.Installed{
				installed("buoy", "1.0.0", `constraint:{"package":{"packageName":"gauge","versionRange":">=1.0.0"}}`),
			},
			[]string{"of package gauge in range >=1.0.0"},
		},
		"olm.constraint, all": {[]decide.Installed{
			installed("buoy", "1.0.0",
				`constraint:{"all":{"constraints":[{"gvk":{"group":"sea.test","version":"v1","kind":"Gauge"}},{"package":{"packageName":"gauge","versionRange":">=1.0.0"}}]}}`),
		}, nil},
		"olm.constraint, any": {[]decide.Installed{
			installed("buoy", "1.0.0",
				`constraint:{"any":{"constraints":[{"package":{"packageName":"other","versionRange":">=1.0.0"}},{"package":{"packageName":"gauge","versionRange":">=1.0.0"}}]}}`),
		}, nil},
		"olm.constraint, not": {[]decide.Installed{
			installed("buoy", "1.0.0",
				`constraint:{"all":{"constraints":[{"package":{"packageName":"gauge","versionRange":">=1.0.0"}},{"not":{"constraints":[{"package":{"packageName":"gauge","versionRange":"<1.0.0"}}]}}]}}`),
		}, nil},
		"olm.constraint, cel": {[]decide.Installed{
			installed("buoy", "1.0.0",
				`constraint:{"cel":{"rule":"properties.exists(p, p.type == 'olm.package' && p.value.packageName == 'gauge')"}}`),
		}, nil},
		"nothing is required": {[]decide.Installed{installed("buoy", "1.0.0")}, []string{}},
		"a version that it has not": {
			[]decide.Installed{installed("buoy", "1.0.0", "pkg:gauge >=2.0.0")},
			[]string{},
		},
		"another one gives it, too": {[]decide.Installed{
			installed("buoy", "1.0.0", "api:Gauge"),
			installed("meter", "1.0.0", "gives:Gauge"),
		}, []string{}},
		"the other one is on its way": {
			[]decide.Installed{installed("buoy", "1.0.0", "api:Gauge"), leaving},
			[]string{"providing Gauge (sea.test/v1)"},
		},
		"a dependant is on its way":    {[]decide.Installed{leaving}, []string{}},
		"what goes is not there (any)": {nil, []string{}},
	} {
		s := decide.State{
			Scope:     resolution.Scope{Cluster: "c", Namespace: "ops"},
			Installed: append(slices.Clone(c.others), gauge),
		}
		got := s.Dependants("gauge.v1.2.0")
		switch {
		case c.want == nil && len(got) == 1 && got[0].String() == "ops/buoy.v1.0.0" && len(got[0].Requires) == 1:
		case len(c.want) == 0 && len(got) == 0 && c.want != nil:
		case len(c.want) > 0 && len(got) == 1 && slices.Equal(got[0].Requires, c.want):
		default:
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := (decide.State{}).Dependants("gauge.v1.2.0"); len(got) != 0 {
		t.Errorf("of nothing: %+v", got)
	}
}
