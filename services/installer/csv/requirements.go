package csv

import (
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/bundle"
)

// Statuses of a requirement (R-CSV-5).
const (
	Present             = "Present"
	NotPresent          = "NotPresent"
	PresentNotSatisfied = "PresentNotSatisfied"
	PresentNotAvailable = "PresentNotAvailable"
)

// Requirement is one row of the check (R-CSV §6.4).
type Requirement struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
	UUID    string `json:"uuid,omitempty"`
}

// CRDFact is what the cluster says of a CRD.
type CRDFact struct {
	UID         string
	Established bool // Established and NamesAccepted
	Served      []string
}

// AccountFact is what the cluster says of a service account.
type AccountFact struct {
	UID string
	// ForeignOwner is a ClusterServiceVersion outside the chain of replacements that owns it.
	ForeignOwner string
}

// Facts is what the cluster holds of what a ClusterServiceVersion requires, by name; an absent name does
// not exist.
type Facts struct {
	KubernetesVersion string // such as v1.34.4
	CRDs              map[string]CRDFact
	Accounts          map[string]AccountFact
	// NativeAPIs are the served group/version/kinds among those that are asked for.
	NativeAPIs map[bundle.GVK]bool
}

// Unmet returns the rows that are not satisfied.
func Unmet(rows []Requirement) []Requirement {
	return slices.DeleteFunc(slices.Clone(rows), func(r Requirement) bool { return r.Status == Present })
}

// Check returns every row of R-CSV §6.4 in a fixed order: Kubernetes version, CRDs, native APIs,
// service accounts, each by name.
func Check(spec bundle.CSVSpec, f Facts) []Requirement {
	rows := checkVersion(spec.MinKubeVersion, f.KubernetesVersion)
	rows = append(rows, checkCRDs(append(slices.Clone(spec.CRDs.Owned), spec.CRDs.Required...), f)...)
	for _, a := range spec.NativeAPIs {
		r := Requirement{Group: a.Group, Version: a.Version, Kind: a.Kind, Status: Present}
		if !f.NativeAPIs[a] {
			r.Status, r.Message = NotPresent, "Native API does not exist"
		}
		rows = append(rows, r)
	}
	return append(rows, checkAccounts(spec, f)...)
}

// checkVersion compares without the pre-release part, which distributions use for their own builds.
func checkVersion(minimum, have string) []Requirement {
	if minimum == "" {
		return nil
	}
	r := Requirement{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ClusterServiceVersion", Name: "minKubeVersion", Status: Present}
	want, err := semver.ParseTolerant(minimum)
	if err != nil {
		r.Status, r.Message = PresentNotSatisfied, "minKubeVersion "+minimum+" is not a version"
		return []Requirement{r}
	}
	is, err := semver.ParseTolerant(have)
	if err != nil {
		r.Status, r.Message = PresentNotSatisfied, "the cluster's version "+have+" is not a version"
		return []Requirement{r}
	}
	is.Pre, is.Build = nil, nil
	if is.LT(want) {
		r.Status, r.Message = PresentNotSatisfied, "minKubeVersion "+minimum+" is above the cluster's "+is.String()
	}
	return []Requirement{r}
}

func checkCRDs(list []bundle.CRDDescription, f Facts) []Requirement {
	slices.SortStableFunc(list, func(a, b bundle.CRDDescription) int {
		return strings.Compare(a.Name+"/"+a.Version, b.Name+"/"+b.Version)
	})
	rows := make([]Requirement, 0, len(list))
	for _, d := range list {
		r := Requirement{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: d.Name, Status: Present}
		c, ok := f.CRDs[d.Name]
		r.UUID = c.UID
		switch {
		case !ok:
			r.Status, r.Message = NotPresent, "CRD is not present"
		case !slices.Contains(c.Served, d.Version):
			r.Status, r.Message = NotPresent, "CRD version not served"
		case !c.Established:
			r.Status, r.Message = PresentNotAvailable, "CRD is present but the Established condition is False (not available)"
		}
		rows = append(rows, r)
	}
	return slices.Compact(rows)
}

func checkAccounts(spec bundle.CSVSpec, f Facts) []Requirement {
	var rows []Requirement
	for _, name := range Accounts(spec) {
		r := Requirement{Version: "v1", Kind: "ServiceAccount", Name: name, Status: Present}
		a, ok := f.Accounts[name]
		r.UUID = a.UID
		switch {
		case !ok:
			r.Status, r.Message = NotPresent, "Service account does not exist"
		case a.ForeignOwner != "":
			r.Status, r.Message = PresentNotSatisfied, "Service account is owned by another ClusterServiceVersion"
		}
		rows = append(rows, r)
	}
	return rows
}

// Accounts returns the service accounts that the permissions name, sorted, each once.
func Accounts(spec bundle.CSVSpec) []string {
	var names []string
	for _, p := range append(slices.Clone(spec.Install.Spec.Permissions), spec.Install.Spec.ClusterPermissions...) {
		names = append(names, p.ServiceAccountName)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
