package kube

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/services/installer/chandlercrd"
)

// Kinds that the executor itself reads and writes.
var (
	// GVKInstalledOperator is the authority over an operator that Chandler installed: its annotations say where it
	// comes from, its spec is the ClusterServiceVersion's without what is only shown, its status is
	// csv.Status, and what lies in its namespace is owned by it. A ClusterServiceVersion is a copy for
	// those who read it, and uninstalls nothing when it goes.
	GVKInstalledOperator = schema.GroupVersionKind{Group: "chandler-fleet.io", Version: "v1", Kind: "InstalledOperator"}
	GVKCSV               = schema.GroupVersionKind{
		Group: "operators.coreos.com", Version: "v1alpha1",
		Kind: "ClusterServiceVersion",
	}
	gvkExecution = schema.GroupVersionKind{Group: "chandler-fleet.io", Version: "v1", Kind: "PlanExecution"}
)

// crdSpec describes one of the minimal CRDs that Chandler brings.
type crdSpec struct {
	Name string
	// revision is raised with every change of what is below (definition.Stamp).
	revision  int
	kind      schema.GroupVersionKind
	plural    string
	short     []string
	category  []string
	columns   []apiextensionsv1.CustomResourceColumnDefinition
	specDoc   string
	statusDoc string
}

func column(name, path, description string) apiextensionsv1.CustomResourceColumnDefinition {
	return apiextensionsv1.CustomResourceColumnDefinition{
		Name: name, Type: "string", JSONPath: path,
		Description: description,
	}
}

// OwnDefinitions are the names of Chandler's own definitions.
func OwnDefinitions() []string {
	var names []string
	for _, crd := range ownCRDs() {
		names = append(names, crd.Name)
	}
	return names
}

// ownCRDs are the minimal definitions. They keep unknown fields: what is
// installed and its step log must outlive the version of Chandler that wrote them.
func ownCRDs() []crdSpec {
	return []crdSpec{
		{
			Name: "installedoperators.chandler-fleet.io", revision: 1, kind: GVKInstalledOperator,
			plural: "installedoperators", short: []string{"iop"}, category: []string{"chandler"},
			columns: []apiextensionsv1.CustomResourceColumnDefinition{
				column("Display", ".spec.displayName", "The name to show"),
				column("Version", ".spec.version", "The version of the operator"),
				column("Replaces", ".spec.replaces", "The installed operator that this one follows"),
				column("Phase", ".status.phase", "Where it is in its life"),
				column("Reason", ".status.reason", "Why it is there"),
			},
			specDoc:   "What decides anything of the ClusterServiceVersion that the bundle's author wrote.",
			statusDoc: "Phase, reason and the history of transitions.",
		},
		{
			Name: "planexecutions.chandler-fleet.io", revision: 1, kind: gvkExecution, plural: "planexecutions",
			short: []string{"planexec"}, category: []string{"chandler"},
			columns: []apiextensionsv1.CustomResourceColumnDefinition{
				column("Plan", ".spec.name", "The install plan"),
				column("Component", ".spec.component", "The operators planned together"),
				column("Phase", ".status.phase", "How far it is"),
				column("Reason", ".status.reason", "Why it waits or failed"),
			},
			specDoc: "The plan that is carried out.", statusDoc: "The step log.",
		},
	}
}

func (c crdSpec) object() *apiextensionsv1.CustomResourceDefinition {
	keep, atomic := true, "atomic"
	open := func(doc string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{
			Type: "object", Description: doc, XPreserveUnknownFields: &keep,
			XMapType: &atomic,
		}
	}
	out := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: GVKCRD.GroupVersion().String(), Kind: GVKCRD.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: ownLabels()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: c.kind.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: c.plural, Kind: c.kind.Kind, ListKind: c.kind.Kind + "List", ShortNames: c.short,
				Categories: c.category,
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: c.kind.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
				AdditionalPrinterColumns: c.columns,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "metadata": {Type: "object"},
						"spec": open(c.specDoc), "status": open(c.statusDoc),
					},
				}},
			}},
		},
	}
	chandlercrd.Stamp(out, c.revision)
	return out
}
