package removal

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/bundle"
)

// API is one API that an operator brings or needs.
type API struct {
	Group, Version, Kind string
	// CRD is the name of its custom resource definition; "" for one that is aggregated.
	CRD string
}

// Operator is one installed operator of a cluster.
type Operator struct {
	Namespace string
	Name      string // of the ClusterServiceVersion
	Owned     []API
	Required  []API
}

// String is namespace/csv.
func (o Operator) String() string { return o.Namespace + "/" + o.Name }

// OperatorOf reads what matters here of a ClusterServiceVersion.
func OperatorOf(namespace string, csv bundle.CSV) Operator {
	s := csv.Spec
	return Operator{
		Namespace: namespace, Name: csv.Name,
		Owned:    append(crdAPIs(s.CRDs.Owned), serviceAPIs(s.APIServices.Owned)...),
		Required: append(crdAPIs(s.CRDs.Required), serviceAPIs(s.APIServices.Required)...),
	}
}

func crdAPIs(list []bundle.CRDDescription) []API {
	var out []API
	for _, d := range list {
		_, group, _ := strings.Cut(d.Name, ".")
		out = append(out, API{Group: group, Version: d.Version, Kind: d.Kind, CRD: d.Name})
	}
	return out
}

func serviceAPIs(list []bundle.APIDescription) []API {
	var out []API
	for _, d := range list {
		out = append(out, API{Group: d.Group, Version: d.Version, Kind: d.Kind})
	}
	return out
}

// crds are the names of the definitions that an operator owns, sorted, each once.
func (o Operator) crds() []string {
	var names []string
	for _, a := range o.Owned {
		if a.CRD != "" {
			names = append(names, a.CRD)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// dependants are the operators that depend on the one that goes, sorted: by an API that it brings and none of the
// others does, as the cluster tells, or by another requirement, as the hub knows. One that is not there any more
// depends on nothing.
func (in Input) dependants() []string {
	var out []string
	for _, o := range in.Others {
		lacks := func(a API) bool { return slices.Contains(in.Operator.Owned, a) && !provides(a, in.Others) }
		if slices.ContainsFunc(o.Required, lacks) || slices.Contains(in.Dependants, o.String()) {
			out = append(out, o.String())
		}
	}
	slices.Sort(out)
	return out
}

func provides(a API, by []Operator) bool {
	return slices.ContainsFunc(by, func(o Operator) bool { return slices.Contains(o.Owned, a) })
}
