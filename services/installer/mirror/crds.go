package mirror

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/render"
)

// definition describes one of Chandler's own minimal definitions of OLM's kinds. They keep what they do not know:
// the tools that read the objects know more of them than Chandler needs to.
type definition struct {
	kind       schema.GroupVersionKind
	plural     string
	cluster    bool
	shortNames []string
	columns    []apiextensionsv1.CustomResourceColumnDefinition
	spec       apiextensionsv1.JSONSchemaProps
	status     apiextensionsv1.JSONSchemaProps
}

func column(name, path, description string) apiextensionsv1.CustomResourceColumnDefinition {
	return apiextensionsv1.CustomResourceColumnDefinition{Name: name, Type: "string", JSONPath: path, Description: description}
}

// open is an object of any content that one writer owns whole.
func open(doc string) apiextensionsv1.JSONSchemaProps {
	keep, atomic := true, "atomic"
	return apiextensionsv1.JSONSchemaProps{Type: "object", Description: doc, XPreserveUnknownFields: &keep, XMapType: &atomic}
}

// CRDs are the definitions that a cluster needs for a setting of mirror, none over an existing one (DESIGN §1).
// OperatorCondition is always among them (R-COND-1). Printer columns are OLM's.
func CRDs(mirror string) []*apiextensionsv1.CustomResourceDefinition {
	list := []definition{operatorCondition()}
	switch mirror {
	case events.MirrorCSV:
		list = append(list, clusterServiceVersion())
	case events.MirrorAll:
		list = append(list, clusterServiceVersion(), subscription(), installPlan(), operatorGroup(), operator(), olmConfig())
	}
	out := make([]*apiextensionsv1.CustomResourceDefinition, len(list))
	for i, d := range list {
		out[i] = d.object()
	}
	return out
}

func clusterServiceVersion() definition {
	return definition{
		kind: GVKCSV, plural: "clusterserviceversions", shortNames: []string{"csv", "csvs"},
		columns: []apiextensionsv1.CustomResourceColumnDefinition{
			column("Display", ".spec.displayName", "The name to show"),
			column("Version", ".spec.version", "The version of the operator"),
			column("Release", ".spec.release", "The release of the version"),
			column("Replaces", ".spec.replaces", "The ClusterServiceVersion that this one follows"),
			column("Phase", ".status.phase", "Where it is in its life"),
		},
		spec: open("What the bundle's author wrote."), status: open("Phase, reason and the history of transitions."),
	}
}

func subscription() definition {
	return definition{
		kind: GVKSubscription, plural: "subscriptions", shortNames: []string{"sub", "subs"},
		columns: []apiextensionsv1.CustomResourceColumnDefinition{
			column("Package", ".spec.name", "The package that is followed"),
			column("Source", ".spec.source", "The catalog that it comes from"),
			column("Channel", ".spec.channel", "The channel that is followed"),
		},
		spec: open("What is followed."), status: open("What is installed, and what is on its way."),
	}
}

func installPlan() definition {
	return definition{
		kind: GVKInstallPlan, plural: "installplans", shortNames: []string{"ip"},
		columns: []apiextensionsv1.CustomResourceColumnDefinition{
			column("CSV", ".spec.clusterServiceVersionNames[0]", "The first ClusterServiceVersion of the plan"),
			column("Approval", ".spec.approval", "The approval mode"),
			column("Approved", ".spec.approved", "Whether it was approved"),
		},
		spec: open("What is installed."), status: open("Phase and steps."),
	}
}

func operatorGroup() definition {
	return definition{
		kind: GVKOperatorGroup, plural: "operatorgroups", shortNames: []string{"og"},
		spec: open("Which namespaces are served."), status: open("Which namespaces that comes to."),
	}
}

func operator() definition {
	return definition{kind: GVKOperator, plural: "operators", cluster: true, spec: open("Nothing."), status: open("All parts of an operator.")}
}

func olmConfig() definition {
	return definition{
		kind: GVKOLMConfig, plural: "olmconfigs", cluster: true,
		spec: open("Whether ClusterServiceVersions are copied."), status: open("What holds."),
	}
}

// operatorCondition has a schema: the operator, administrators and Chandler write into one object, each its own part.
func operatorCondition() definition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	condition := apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"type", "status", "reason", "message"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"type": text, "reason": text, "message": text,
			"status":             {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"True"`)}, {Raw: []byte(`"False"`)}, {Raw: []byte(`"Unknown"`)}}},
			"observedGeneration": {Type: "integer", Format: "int64"},
			"lastTransitionTime": {Type: "string", Format: "date-time"},
		},
	}
	list := func(doc string, of apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "array", Description: doc, Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &of}}
	}
	return definition{
		kind: GVKOperatorCondition, plural: "operatorconditions", shortNames: []string{"condition"},
		spec: apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"conditions":      list("What the operator says of itself.", condition),
			"overrides":       list("What an administrator says instead.", condition),
			"deployments":     list("The Deployments of the operator.", text),
			"serviceAccounts": list("Who may write the conditions.", text),
		}},
		status: apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"conditions": list("What the operator says of itself.", condition),
		}},
	}
}

func (d definition) object() *apiextensionsv1.CustomResourceDefinition {
	scope := apiextensionsv1.NamespaceScoped
	if d.cluster {
		scope = apiextensionsv1.ClusterScoped
	}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: d.plural + "." + d.kind.Group, Labels: map[string]string{render.LabelManaged: "true"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: d.kind.Group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: d.plural, Singular: strings.ToLower(d.kind.Kind), Kind: d.kind.Kind, ListKind: d.kind.Kind + "List",
				ShortNames: d.shortNames, Categories: []string{"olm"},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: d.kind.Version, Served: true, Storage: true,
				Subresources:             &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				AdditionalPrinterColumns: d.columns,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "metadata": {Type: "object"},
						"spec": d.spec, "status": d.status,
					},
				}},
			}},
		},
	}
}
