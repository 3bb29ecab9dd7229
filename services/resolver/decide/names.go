package decide

import (
	"fmt"
	"slices"
)

// owner is who has the name of a ClusterServiceVersion in the namespace.
type owner struct{ pkg, text string }

// named refuses proposals of which a bundle has the name of a ClusterServiceVersion of another package: the cluster
// has one object of a name, so that one operator would be written over another. OLM's resolver plans both, and its
// plan breaks (RESOLVER-NOTES 6.3 knows the like). What is there, or planned already, comes first; then names of
// components decide.
func (s State) named(verdicts []Verdict) {
	owners := map[string]owner{}
	for _, i := range s.Installed {
		owners[i.Name] = owner{pkg: i.Package, text: "is installed"}
	}
	for _, p := range s.Plans {
		if p.State.Live() && (p.State.Begun || keeps(verdicts, p)) {
			for _, b := range p.State.Proposed.Bundles {
				owners[b.CSV] = owner{pkg: b.Package, text: "is planned by " + p.State.Proposed.Name}
			}
		}
	}
	for i, v := range verdicts {
		if v.Kind == Proposed {
			verdicts[i] = claim(owners, v)
		}
	}
}

func keeps(verdicts []Verdict, p Plan) bool {
	return slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Kind == Kept && v.Plan.ID == p.ID })
}

// claim takes the names of a proposal, or refuses it.
func claim(owners map[string]owner, v Verdict) Verdict {
	for _, b := range v.Component.Bundles {
		o, taken := owners[b.CSV]
		if taken && o.pkg != "" && o.pkg != b.Package {
			return NotInstallable(v, b.CSV, fmt.Sprintf(
				"bundle %s of package %s in catalog %s cannot be installed: a ClusterServiceVersion of this name, of "+
					"package %s, %s, and a namespace has one of a name",
				b.CSV, b.Package, b.Catalog, o.pkg, o.text))
		}
		owners[b.CSV] = owner{pkg: b.Package, text: "is to be installed with " + v.Component.Name}
	}
	return v
}
