package mirror

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/chandlercrd"
)

// shape describes one of Chandler's own definitions of OLM's kinds.
type shape struct {
	kind gvk // and the version that is stored
	// revision is raised with every change of what is below (definition.Stamp).
	revision   int
	plural     string
	cluster    bool
	shortNames []string
	// also are further versions that are served, with the same schema: nothing is lost by reading or writing in one of
	// them.
	also    []string
	columns []apiextensionsv1.CustomResourceColumnDefinition
	spec    schema
	status  schema
}

func column(name, path, description string) apiextensionsv1.CustomResourceColumnDefinition {
	return apiextensionsv1.CustomResourceColumnDefinition{
		Name: name, Type: "string", JSONPath: path,
		Description: description,
	}
}

// CRDs are the definitions that a cluster needs for a setting of mirror, none over one of somebody else's (DESIGN,
// settled details). OperatorCondition is always among them (R-COND-1). Printer columns are OLM's.
func CRDs(mirror string) []*apiextensionsv1.CustomResourceDefinition {
	list := []shape{operatorCondition()}
	switch mirror {
	case events.MirrorCSV:
		list = append(list, clusterServiceVersion())
	case events.MirrorAll:
		list = append(list, clusterServiceVersion(), subscription(), installPlan(), operatorGroup(), operator(),
			catalogSource(), olmConfig())
	}
	out := make([]*apiextensionsv1.CustomResourceDefinition, len(list))
	for i, d := range list {
		out[i] = d.object()
	}
	return out
}

func clusterServiceVersion() shape {
	return shape{
		kind: GVKCSV, revision: 1, plural: "clusterserviceversions", shortNames: []string{"csv", "csvs"},
		columns: []apiextensionsv1.CustomResourceColumnDefinition{
			column("Display", ".spec.displayName", "The name to show"),
			column("Version", ".spec.version", "The version of the operator"),
			column("Release", ".spec.release", "The release of the version"),
			column("Replaces", ".spec.replaces", "The ClusterServiceVersion that this one follows"),
			column("Phase", ".status.phase", "Where it is in its life"),
		},
		spec: csvSpec(), status: csvStatus(),
	}
}

func subscription() shape {
	return shape{
		kind: GVKSubscription, revision: 2, plural: "subscriptions", shortNames: []string{"sub", "subs"},
		columns: []apiextensionsv1.CustomResourceColumnDefinition{
			column("Package", ".spec.name", "The package that is followed"),
			column("Source", ".spec.source", "The catalog that it comes from"),
			column("Channel", ".spec.channel", "The channel that is followed"),
		},
		spec: whole(subscriptionSpec()), status: whole(subscriptionStatus()),
	}
}

func installPlan() shape {
	return shape{
		kind: GVKInstallPlan, revision: 1, plural: "installplans", shortNames: []string{"ip"},
		columns: []apiextensionsv1.CustomResourceColumnDefinition{
			column("CSV", ".spec.clusterServiceVersionNames[0]", "The first ClusterServiceVersion of the plan"),
			column("Approval", ".spec.approval", "The approval mode"),
			column("Approved", ".spec.approved", "Whether it was approved"),
		},
		spec: whole(installPlanSpec()), status: whole(installPlanStatus()),
	}
}

func operatorGroup() shape {
	return shape{
		kind: GVKOperatorGroup, revision: 1, plural: "operatorgroups", shortNames: []string{"og"},
		spec: whole(operatorGroupSpec()), status: whole(operatorGroupStatus()),
	}
}

func operator() shape {
	return shape{
		kind: GVKOperator, revision: 1, plural: "operators", cluster: true, spec: whole(operatorSpec()),
		status: whole(operatorStatus()),
	}
}

func catalogSource() shape {
	return shape{
		kind: GVKCatalogSource, revision: 1, plural: "catalogsources", shortNames: []string{"catsrc"},
		columns: []apiextensionsv1.CustomResourceColumnDefinition{
			column("Display", ".spec.displayName", "The name to show"),
			column("Type", ".spec.sourceType", "How it is served"),
			column("Publisher", ".spec.publisher", "Who publishes it"),
			{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
		},
		spec: whole(catalogSourceSpec()), status: whole(catalogSourceStatus()),
	}
}

func olmConfig() shape {
	return shape{
		kind: GVKOLMConfig, revision: 1, plural: "olmconfigs", cluster: true,
		spec: whole(olmConfigSpec()), status: whole(olmConfigStatus()),
	}
}

// operatorCondition keeps nothing that it does not name: the operator, administrators and Chandler write into one
// object, each its own part. Operators that know version v1 write the status themselves, those that know v2 write the
// spec; both are served, the newer one is stored, and nothing is converted but the name of the version (as OLM has it).
func operatorCondition() shape {
	said := schema{
		Type: "object", Required: []string{"type", "status", "reason", "message"},
		Properties: fields{
			"type": text("Upgradeable; no other one has an effect."), "reason": text("Why, in one word."),
			"message": text("Why, in a sentence."), "status": {
				Type: "string", Description: "True, False or Unknown.",
				Enum: []apiextensionsv1.JSON{
					{Raw: []byte(`"True"`)},
					{Raw: []byte(`"False"`)},
					{Raw: []byte(`"Unknown"`)},
				},
			},
			"observedGeneration": number(
				"The generation of this object that it was said about; an older one does not count."),
			"lastTransitionTime": moment("When the status came to be this one."),
		},
	}
	return shape{
		kind: GVKOperatorCondition, revision: 1, plural: "operatorconditions", shortNames: []string{"condition"},
		also: []string{"v1"}, spec: object("What is said of the operator, and who may say it.", fields{
			"conditions": list("What the operator says of itself; Upgradeable False holds its upgrade back.",
				said),
			"overrides": list("What an administrator says instead; it goes before the operator's own word.",
				said),
			"deployments":     texts("The Deployments of the operator."),
			"serviceAccounts": texts("Who may write the conditions."),
		}),
		status: object("What counts.", fields{
			"conditions": list("The conditions of the spec, and what operators of version v1 write here.", said),
		}),
	}
}

// version is one version of the definition.
func (d shape) version(name string) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: true, Storage: name == d.kind.Version,
		Subresources: &apiextensionsv1.CustomResourceSubresources{
			Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
		},
		AdditionalPrinterColumns: d.columns,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema{
			Type: "object", Description: d.kind.Kind + " as Chandler keeps it in a cluster.",
			Properties: fields{
				"apiVersion": text("Group and version of the kind."), "kind": text("The kind."),
				"metadata": {Type: "object"}, "spec": d.spec, "status": d.status,
			},
		}},
	}
}

func (d shape) object() *apiextensionsv1.CustomResourceDefinition {
	scope := apiextensionsv1.NamespaceScoped
	if d.cluster {
		scope = apiextensionsv1.ClusterScoped
	}
	out := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{
			APIVersion: apiextensionsv1.SchemeGroupVersion.String(),
			Kind:       "CustomResourceDefinition",
		},
		ObjectMeta: metav1.ObjectMeta{
			Name:   d.plural + "." + d.kind.Group,
			Labels: map[string]string{render.LabelManaged: "true"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: d.kind.Group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: d.plural, Singular: strings.ToLower(d.kind.Kind), Kind: d.kind.Kind,
				ListKind: d.kind.Kind + "List", ShortNames: d.shortNames, Categories: []string{"olm"},
			},
		},
	}
	for _, name := range append([]string{d.kind.Version}, d.also...) {
		out.Spec.Versions = append(out.Spec.Versions, d.version(name))
	}
	chandlercrd.Stamp(out, d.revision)
	return out
}
