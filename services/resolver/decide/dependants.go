package decide

import (
	"cmp"
	"slices"

	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
)

// Dependants are the installed operators of the scope that require what a ClusterServiceVersion meets and no other
// installed one does, by whichever kind of requirement (R-RES-21). Operators that are being replaced neither depend
// nor help.
func (s State) Dependants(csv string) []previewapi.Dependant {
	out := []previewapi.Dependant{}
	var goes *offer.Operator
	var stay []*offer.Operator
	for _, i := range s.Installed {
		o := offer.NewOperator(i.Name, i.Package, i.Version, contentDigest(i.Content), i.Properties)
		switch {
		case i.Name == csv:
			goes = o
		case !s.leaving(i):
			stay = append(stay, o)
		}
	}
	if goes == nil {
		return out
	}
	for _, o := range stay {
		d := previewapi.Dependant{Namespace: s.Scope.Namespace, CSV: o.Name}
		for _, r := range o.Requires {
			if r.Matches(goes) && !slices.ContainsFunc(stay, r.Matches) {
				d.Requires = append(d.Requires, r.Text)
			}
		}
		if len(d.Requires) > 0 {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b previewapi.Dependant) int { return cmp.Compare(a.CSV, b.CSV) })
	return out
}

// Standing are the installed ClusterServiceVersions of a package that nothing takes the place of, sorted.
func Standing(s State, packageName string) (list []string) {
	for _, i := range s.Installed {
		if i.Package == packageName && !s.leaving(i) {
			list = append(list, i.Name)
		}
	}
	slices.Sort(list)
	return list
}

// Begun says whether the cluster is at work on a plan that brings a package.
func Begun(s State, packageName string) bool {
	return slices.ContainsFunc(s.Plans, func(p Plan) bool {
		return p.State.Begun && p.State.Phase == installplan.Installing && slices.Contains(p.packages(), packageName)
	})
}
