package decide_test

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// TestOneOfAName: a namespace has one ClusterServiceVersion of a name, so that a bundle never takes the name of
// another package's operator, installed or planned; where two are planned at once the first component gets it.
func TestOneOfAName(t *testing.T) {
	t.Parallel()
	component := func(pkg string, bundles ...string) resolution.Component {
		c := resolution.Component{
			Name: pkg, Packages: []string{pkg}, Subscriptions: []string{pkg},
			Approval: resolution.Automatic,
		}
		for _, name := range bundles {
			c.Bundles = append(c.Bundles, resolution.Planned{
				CSV: name, Package: pkg, Content: "sha256:c",
				Catalog: resolution.CatalogKey{Name: "fleet"},
			})
		}
		return c
	}
	cases := map[string]struct {
		installed  []decide.Installed
		components []resolution.Component
		refused    map[string]string // component → what the sentence says
	}{
		"different names": {components: []resolution.Component{component("a", "a.v1"), component("b", "b.v1")}},
		"planned at once": {
			components: []resolution.Component{component("a", "x.v1"), component("b", "x.v1")},
			refused:    map[string]string{"b": "is to be installed with a"},
		},
		"installed": {
			installed:  []decide.Installed{{Name: "x.v1", Package: "c", Phase: "Succeeded"}},
			components: []resolution.Component{component("a", "x.v1")},
			refused:    map[string]string{"a": "of package c, is installed"},
		},
		"installed, of nobody": {
			installed:  []decide.Installed{{Name: "x.v1", Phase: "Succeeded"}},
			components: []resolution.Component{component("a", "x.v1")},
		},
		"installed, of the same": {
			installed:  []decide.Installed{{Name: "x.v1", Package: "a", Phase: "Succeeded"}},
			components: []resolution.Component{component("a", "x.v1")},
		},
	}
	for name, c := range cases {
		s := newScene().State
		s.Installed = c.installed
		verdicts, err := decide.Assess(s, resolution.Result{Components: c.components})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range verdicts {
			want, refused := c.refused[v.Component.Name]
			switch {
			case !refused && v.Kind != decide.Proposed:
				t.Errorf("%s: %s is %s", name, v.Component.Name, v.Kind)
			case refused && (v.Kind != decide.Failed || v.Failure.Class != resolution.ClassNotInstallable ||
				!strings.Contains(v.Failure.Statements[0].Text, want)):
				t.Errorf("%s: %s is %s with %+v, want a refusal that says %q", name, v.Component.Name, v.Kind,
					v.Failure, want)
			}
		}
	}
}
