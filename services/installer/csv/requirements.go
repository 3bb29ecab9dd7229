package csv

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/permissions"
)

// The table of R-CSV §6.4. TestRequirements names each row.
//
//	requirement             met when                                                     otherwise
//	minKubeVersion          the cluster's version is not below it                        PresentNotSatisfied
//	owned and required CRD  it exists and serves the version                             NotPresent
//	                        it is Established with its names accepted                    PresentNotAvailable
//	owned CRD               no ClusterServiceVersion outside the chain came with it      PresentNotSatisfied
//	required API service    its kind is served and the APIService is Available           NotPresent
//	owned API service       its Deployment is in the install strategy                    DeploymentNotFound
//	native API              the cluster serves it                                        NotPresent
//	service account         it exists in the operator's namespace                        NotPresent
//	                        no ClusterServiceVersion outside the chain owns it           PresentNotSatisfied
//	permissions             the account holds each rule in each target namespace         PresentNotSatisfied
//	cluster permissions     the account holds each rule in the whole cluster             PresentNotSatisfied

// Statuses of a requirement (R-CSV-5).
const (
	Present             = "Present"
	NotPresent          = "NotPresent"
	PresentNotSatisfied = "PresentNotSatisfied"
	PresentNotAvailable = "PresentNotAvailable"
	DeploymentFound     = "DeploymentFound"
	DeploymentNotFound  = "DeploymentNotFound"
)

// Requirement is one row of the check (R-CSV §6.4).
type Requirement struct {
	Group      string      `json:"group"`
	Version    string      `json:"version"`
	Kind       string      `json:"kind"`
	Name       string      `json:"name"`
	Status     string      `json:"status"`
	Message    string      `json:"message,omitempty"`
	UUID       string      `json:"uuid,omitempty"`
	Dependents []Dependent `json:"dependents,omitempty"`
}

// CRDFact is what the cluster says of a CRD.
type CRDFact struct {
	UID         string
	Established bool // Established and NamesAccepted
	Served      []string
	// Alongside are the ClusterServiceVersions of the namespace outside the chain of replacements that came
	// with it before, as namespace/name.
	Alongside []string
}

// APIServiceFact is what the cluster says of an APIService.
type APIServiceFact struct {
	UID       string
	Available bool
}

// AccountFact is what the cluster says of a service account.
type AccountFact struct {
	UID string
	// ForeignOwner is a ClusterServiceVersion outside the chain of replacements that owns it.
	ForeignOwner string
	// Held are its rules in Scopes, whoever granted them.
	Held permissions.Held
}

// Facts is what the cluster holds of what a ClusterServiceVersion requires, by name; an absent name does
// not exist.
type Facts struct {
	KubernetesVersion string // such as v1.34.4
	CRDs              map[string]CRDFact
	APIServices       map[string]APIServiceFact // by <version>.<group>
	Accounts          map[string]AccountFact
	// Served are the served ones among the native APIs and the kinds of required API services.
	Served map[bundle.GVK]bool
	// Targets are the namespaces in which the permissions are to be held; [""] is the whole cluster.
	Targets []string
}

// Unmet returns the rows that are not satisfied.
func Unmet(rows []Requirement) []Requirement {
	return slices.DeleteFunc(slices.Clone(rows), func(r Requirement) bool {
		return r.Status == Present ||
			r.Status == DeploymentFound
	})
}

// Check returns every row of the table above in its order, each sort by name, each name once.
func Check(spec bundle.CSVSpec, f Facts) []Requirement {
	rows := checkVersion(spec.MinKubeVersion, f.KubernetesVersion)
	rows = append(rows, checkCRDs(spec, f)...)
	rows = append(rows, checkRequiredAPIs(spec, f)...)
	rows = append(rows, checkOwnedAPIs(spec)...)
	for _, a := range spec.NativeAPIs {
		r := Requirement{Group: a.Group, Version: a.Version, Kind: a.Kind, Status: Present}
		if !f.Served[a] {
			r.Status, r.Message = NotPresent, "Native API does not exist"
		}
		rows = append(rows, r)
	}
	return append(rows, checkAccounts(spec, f)...)
}

func checkVersion(minimum, have string) []Requirement {
	if minimum == "" {
		return nil
	}
	r := Requirement{
		Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ClusterServiceVersion",
		Name: "minKubeVersion", Status: Present,
	}
	if err := render.CheckKubernetes(minimum, have); err != nil {
		r.Status, r.Message = PresentNotSatisfied, err.Error()
	}
	return []Requirement{r}
}

// checkCRDs checks a CRD that is owned and required once, as an owned one.
func checkCRDs(spec bundle.CSVSpec, f Facts) []Requirement {
	owned := map[string]bool{}
	for _, d := range spec.CRDs.Owned {
		owned[d.Name] = true
	}
	var rows []Requirement
	for _, d := range byName(append(slices.Clone(spec.CRDs.Owned), spec.CRDs.Required...),
		func(d bundle.CRDDescription) string { return d.Name + "/" + d.Version }) {
		r := Requirement{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: d.Name,
			Status: Present,
		}
		c, ok := f.CRDs[d.Name]
		r.UUID = c.UID
		switch {
		case !ok:
			r.Status, r.Message = NotPresent, "CRD is not present"
		case !slices.Contains(c.Served, d.Version):
			r.Status, r.Message = NotPresent, "CRD version not served"
		case !c.Established:
			r.Status, r.Message = PresentNotAvailable,
				"CRD is present but the Established condition is False (not available)"
		case owned[d.Name] && len(c.Alongside) > 0:
			r.Status, r.Message = PresentNotSatisfied, "CRD installed alongside other CSV(s): "+
				strings.Join(c.Alongside, ", ")
		}
		rows = append(rows, r)
	}
	return once(rows)
}

func checkRequiredAPIs(spec bundle.CSVSpec, f Facts) []Requirement {
	var rows []Requirement
	for _, d := range byName(slices.Clone(spec.APIServices.Required), apiServiceKey) {
		r := apiServiceRow(d)
		fact, ok := f.APIServices[r.Name]
		switch {
		case !f.Served[bundle.GVK{Group: d.Group, Version: d.Version, Kind: d.Kind}]:
			r.Status, r.Message = NotPresent, "kind "+d.Kind+" is not served"
		case !ok:
			r.Status, r.Message = NotPresent, "APIService is not present"
		case !fact.Available:
			r.Status, r.Message = NotPresent, "APIService is not available"
		default:
			r.Status, r.UUID = Present, fact.UID
		}
		rows = append(rows, r)
	}
	return once(rows)
}

func checkOwnedAPIs(spec bundle.CSVSpec) []Requirement {
	var rows []Requirement
	for _, d := range byName(slices.Clone(spec.APIServices.Owned), apiServiceKey) {
		r := apiServiceRow(d)
		r.Status = DeploymentFound
		if !slices.ContainsFunc(spec.Install.Spec.Deployments,
			func(one bundle.Deployment) bool { return one.Name == d.DeploymentName }) {
			r.Status, r.Message = DeploymentNotFound, "deployment "+d.DeploymentName+" is not in the install strategy"
		}
		rows = append(rows, r)
	}
	return once(rows)
}

// APIServiceName is the name of the APIService of an aggregated API.
func APIServiceName(d bundle.APIDescription) string { return d.Version + "." + d.Group }

func apiServiceRow(d bundle.APIDescription) Requirement {
	return Requirement{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService", Name: APIServiceName(d)}
}

func apiServiceKey(d bundle.APIDescription) string {
	return APIServiceName(d) + "/" + d.Kind + "/" + d.DeploymentName
}

func byName[T any](list []T, key func(T) string) []T {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
	return list
}

// once drops neighbours that say the same: several kinds of an API and several versions of a CRD have one name.
func once(rows []Requirement) []Requirement {
	return slices.CompactFunc(rows, func(a, b Requirement) bool {
		return a.Kind == b.Kind && a.Name == b.Name && a.Status == b.Status && a.Message == b.Message
	})
}
