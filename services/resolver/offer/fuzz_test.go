package offer_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
)

// FuzzConstraint feeds arbitrary bytes as values of the properties that ask for something, and as one that a bundle
// has: reading and matching end without a panic and say the same twice, a requirement that is read has a
// sentence, and who meets it can be found by its anchors (R-RES-21 … R-RES-30).
func FuzzConstraint(f *testing.F) {
	for _, value := range []string{
		`{"failureMessage":"m","gvk":` + buoyAPI + `}`,
		`{"package":{"packageName":"buoy","versionRange":">=1.0.0 <2.0.0 !1.2.1 || 3.x"}}`,
		`{"all":{"constraints":[{"not":{"constraints":[{"gvk":` + brineAPI +
			`}]}},{"any":{"constraints":[]}},{"cel":{"rule":"size(properties) > 0"}}]}}`,
		`{"cel":{"rule":"properties.exists(p, p.value == 1)"}}`, buoyAPI, `{"packageName":"buoy","versionRange":"1.x"}`,
		`{"label":"floats"}`, `{}`, `null`, `{"all":null}`, `{"all":{"constraints":[null]}}`, `[`,
		`{"gvk":{"group":1}}`,
	} {
		f.Add(value, `{"label":"floats"}`)
	}
	f.Fuzz(func(t *testing.T, asked, offered string) {
		have := buoy(property("olm.label", offered), property(catalog.TypeGVK, offered),
			property(catalog.TypePackage, offered), property("a", offered))
		for _, typ := range []string{
			catalog.TypeConstraint, catalog.TypeGVKRequired, catalog.TypePackageRequired,
			"olm.label.required",
		} {
			r, why := asking(typ, asked)
			again, whyAgain := asking(typ, asked)
			if (r == nil) != (why != "") || why != whyAgain {
				t.Fatalf("%s %q is read as %v (%q), then %q", typ, asked, r, why, whyAgain)
			}
			if r == nil {
				continue
			}
			if r.Key() != again.Key() || r.Text != again.Text || r.Matches(have) != again.Matches(have) {
				t.Fatalf("%s %q is not the same twice", typ, asked)
			}
			if r.Matches(have) && !reachable(r, have) {
				t.Fatalf("%s %q is met by what its anchors do not lead to", typ, asked)
			}
		}
	})
}

// reachable says whether the anchors of a requirement lead to an operator.
func reachable(r *offer.Requirement, o *offer.Operator) bool {
	apis, packages, ok := r.Anchors()
	if !ok {
		return true
	}
	for _, api := range apis {
		for _, own := range o.APIs {
			if cmp.Equal(api, own) {
				return true
			}
		}
	}
	for _, name := range packages {
		named, _ := asking(catalog.TypePackageRequired, `{"packageName":`+strconv.Quote(name)+
			`,"versionRange":">=0.0.0-0"}`)
		if named == nil || named.Matches(o) {
			return true
		}
	}
	return false
}
