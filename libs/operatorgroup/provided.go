package operatorgroup

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/bundle"
)

// API is one API that an operator provides.
type API struct {
	Kind     string
	Version  string
	Group    string
	Resource string // in the plural
	CRD      bool   // by a custom resource definition, else by an aggregated API
}

// String is Kind.version.group, as olm.providedAPIs has it (R-OG-20).
func (a API) String() string { return a.Kind + "." + a.Version + "." + a.Group }

// CRDName is the name of the definition behind an API.
func (a API) CRDName() string { return a.Resource + "." + a.Group }

// APIs are those that a ClusterServiceVersion owns, by name, each once.
func APIs(csv bundle.CSV) []API {
	var out []API
	for _, d := range csv.Spec.CRDs.Owned {
		plural, group, _ := strings.Cut(d.Name, ".")
		out = append(out, API{Kind: d.Kind, Version: d.Version, Group: group, Resource: plural, CRD: true})
	}
	for _, d := range csv.Spec.APIServices.Owned {
		out = append(out, API{Kind: d.Kind, Version: d.Version, Group: d.Group, Resource: d.Name})
	}
	slices.SortFunc(out, func(a, b API) int { return strings.Compare(a.String(), b.String()) })
	return slices.CompactFunc(out, func(a, b API) bool { return a.String() == b.String() })
}

// Names are the names of APIs.
func Names(apis []API) []string {
	out := make([]string, len(apis))
	for i, a := range apis {
		out[i] = a.String()
	}
	return out
}

// Join is the value of olm.providedAPIs: names sorted, each once.
func Join(names []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), ",")
}

// Split reads the value of olm.providedAPIs, which people may have written with spaces: sorted, each once.
func Split(value string) []string {
	var out []string
	for n := range strings.SplitSeq(strings.ReplaceAll(value, " ", ""), ",") {
		if n != "" {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
