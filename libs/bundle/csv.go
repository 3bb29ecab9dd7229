package bundle

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// StrategyDeployment is the only install strategy (R-CSV-2).
const StrategyDeployment = "deployment"

// CSV is what Chandler reads of a ClusterServiceVersion (R-CSV-1). Raw is the whole manifest: what
// goes into a cluster is derived from it, so that fields unknown here are kept.
type CSV struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
	Spec        CSVSpec
	Raw         json.RawMessage
}

// CSVSpec is the part of spec that Chandler acts upon or shows.
type CSVSpec struct {
	Version     string   `json:"version"`
	Release     string   `json:"release,omitempty"`
	Replaces    string   `json:"replaces,omitempty"`
	Skips       []string `json:"skips,omitempty"`
	DisplayName string   `json:"displayName,omitempty"`
	Description string   `json:"description,omitempty"`
	Maturity    string   `json:"maturity,omitempty"`
	Keywords    []string `json:"keywords,omitempty"`
	Provider    Link     `json:"provider,omitzero"`
	Links       []Link   `json:"links,omitempty"`
	Maintainers []struct {
		Name  string `json:"name,omitempty"`
		Email string `json:"email,omitempty"`
	} `json:"maintainers,omitempty"`
	Icon []struct {
		Data      string `json:"base64data"`
		MediaType string `json:"mediatype"`
	} `json:"icon,omitempty"`
	MinKubeVersion string            `json:"minKubeVersion,omitempty"`
	InstallModes   []InstallMode     `json:"installModes,omitempty"`
	Install        Install           `json:"install"`
	CRDs           CRDDescriptions   `json:"customresourcedefinitions,omitzero"`
	APIServices    APIDescriptions   `json:"apiservicedefinitions,omitzero"`
	NativeAPIs     []GVK             `json:"nativeAPIs,omitempty"`
	Webhooks       []json.RawMessage `json:"webhookdefinitions,omitempty"`
	RelatedImages  []RelatedImage    `json:"relatedImages,omitempty"`
}

// Link is a name with an address.
type Link struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
}

// RelatedImage is an image that the operator can use.
type RelatedImage struct {
	Name  string `json:"name,omitempty"`
	Image string `json:"image"`
}

// GVK names an API.
type GVK struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// InstallMode says whether a way to watch namespaces is supported (R-CSV §6.6).
type InstallMode struct {
	Type      string `json:"type"` // OwnNamespace, SingleNamespace, MultiNamespace, AllNamespaces
	Supported bool   `json:"supported"`
}

// Install is the install strategy.
type Install struct {
	Strategy string  `json:"strategy"`
	Spec     Details `json:"spec,omitzero"`
}

// Details of strategy "deployment".
type Details struct {
	Deployments        []Deployment  `json:"deployments,omitempty"`
	Permissions        []Permissions `json:"permissions,omitempty"`
	ClusterPermissions []Permissions `json:"clusterPermissions,omitempty"`
}

// Deployment is one Deployment of the strategy. Spec is kept as it was written: it is rendered from
// there, so that digests do not move with the version of the Kubernetes API types.
type Deployment struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"label,omitempty"`
	Spec   json.RawMessage   `json:"spec"`
}

// Typed decodes the spec into the API type, and so checks its form.
func (d Deployment) Typed() (appsv1.DeploymentSpec, error) {
	var s appsv1.DeploymentSpec
	if err := json.Unmarshal(d.Spec, &s); err != nil {
		return s, errs.New(errs.Invalid, "deployment %s: %v", d.Name, err).At(
			"/spec/install/spec/deployments", "R-CSV-20")
	}
	return s, nil
}

// Permissions are the rules that a service account is given.
type Permissions struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

// CRDDescriptions name the CRDs that an operator brings and needs.
type CRDDescriptions struct {
	Owned    []CRDDescription `json:"owned,omitempty"`
	Required []CRDDescription `json:"required,omitempty"`
}

// CRDDescription names one version of a CRD.
type CRDDescription struct {
	Name        string `json:"name"` // plural.group
	Version     string `json:"version"`
	Kind        string `json:"kind"`
	DisplayName string `json:"displayName,omitempty"`
	Description string `json:"description,omitempty"`
}

// APIDescriptions name the aggregated APIs that an operator brings and needs.
type APIDescriptions struct {
	Owned    []APIDescription `json:"owned,omitempty"`
	Required []APIDescription `json:"required,omitempty"`
}

// APIDescription names one aggregated API.
type APIDescription struct {
	Name           string `json:"name"`
	Group          string `json:"group"`
	Version        string `json:"version"`
	Kind           string `json:"kind"`
	DeploymentName string `json:"deploymentName,omitempty"`
	ContainerPort  int32  `json:"containerPort,omitempty"`
}

// CSV returns the bundle's one ClusterServiceVersion (R-CAT-51).
func (c Content) CSV() (CSV, error) {
	found, err := c.filter(func(o Object) bool { return o.Kind == KindCSV })
	if err != nil {
		return CSV{}, err
	}
	if len(found) != 1 {
		return CSV{}, errs.New(errs.Invalid, "bundle has %d ClusterServiceVersions, want exactly 1", len(found)).At(
			"", "R-CAT-51")
	}
	return ParseCSV(found[0].Raw)
}

// ParseCSV reads one ClusterServiceVersion manifest (JSON), for instance one read from a cluster.
func ParseCSV(raw json.RawMessage) (CSV, error) {
	var m struct {
		Metadata struct {
			Name        string            `json:"name"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec CSVSpec `json:"spec"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return CSV{}, errs.New(errs.Invalid, "ClusterServiceVersion: %v", err).At("", "R-CSV-1")
	}
	csv := CSV{
		Name: m.Metadata.Name, Labels: m.Metadata.Labels, Annotations: m.Metadata.Annotations, Spec: m.Spec,
		Raw: raw,
	}
	for i, d := range csv.Spec.Install.Spec.Deployments {
		if d.Name == "" || len(d.Spec) == 0 {
			return CSV{}, errs.New(errs.Invalid, "ClusterServiceVersion %s: deployment %d lacks name or spec", csv.Name,
				i+1).
				At(fmt.Sprintf("/spec/install/spec/deployments/%d", i), "R-CSV-20")
		}
	}
	return csv, nil
}
