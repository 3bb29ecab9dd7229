package mirror

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// schema is the schema of a part of an object. `kubectl explain` shows what is written into it.
type schema = apiextensionsv1.JSONSchemaProps

// fields are the fields of an object by name.
type fields = map[string]schema

func typed(typ, doc string) schema { return schema{Type: typ, Description: doc} }

func text(doc string) schema { return typed("string", doc) }

func flag(doc string) schema { return typed("boolean", doc) }

func number(doc string) schema { return schema{Type: "integer", Format: "int64", Description: doc} }

func moment(doc string) schema {
	return schema{Type: "string", Format: "date-time", Description: doc}
}

func list(doc string, of schema) schema {
	return schema{Type: "array", Description: doc, Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &of}}
}

func texts(doc string) schema { return list(doc, schema{Type: "string"}) }

// dict has values of one type under any key.
func dict(doc string, of schema) schema {
	return schema{Type: "object", Description: doc, AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
		Allows: true, Schema: &of,
	}}
}

func object(doc string, f fields) schema {
	return schema{Type: "object", Description: doc, Properties: f}
}

// anything is an object of any content: a part that another API defines.
func anything(doc string) schema { return open(object(doc, nil)) }

// open keeps fields that a schema does not name: what authors write is kept as it is, and tools that read the objects
// may know more of them than Chandler needs to.
func open(s schema) schema {
	keep := true
	s.XPreserveUnknownFields = &keep
	return s
}

// whole is a part that one writer owns as a whole.
func whole(s schema) schema {
	atomic := "atomic"
	s.XMapType = &atomic
	return open(s)
}

// lenient takes null for every field: manifests have that, and it says nothing.
func lenient(s schema) schema {
	s.Nullable = true
	if s.Properties != nil {
		f := fields{}
		for name, p := range s.Properties {
			f[name] = lenient(p)
		}
		s.Properties = f
	}
	if s.Items != nil {
		of := lenient(*s.Items.Schema)
		s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &of}
	}
	return s
}

// condition is a condition as Kubernetes has them; of is what its type says.
func condition(types string) schema {
	return object("", fields{
		"type":               text(types),
		"status":             text("True, False or Unknown."),
		"reason":             text("Why, in one word."),
		"message":            text("Why, in a sentence."),
		"lastTransitionTime": moment("When the status came to be this one."),
		"lastUpdateTime":     moment("When it was written last."),
		"lastHeartbeatTime":  moment("When it was looked at last."),
	})
}

// reference names another object.
func reference(doc string) schema {
	return object(doc, fields{
		"apiVersion": text("Group and version of its kind."), "kind": text("Its kind."), "name": text("Its name."),
		"namespace": text("Its namespace."), "uid": text("Its UID."), "uuid": text("Its UID."),
		"resourceVersion": text("The version that was seen."), "fieldPath": text("The part of it that is meant."),
	})
}

func subscriptionSpec() schema {
	return object(
		"What is followed. Here it is only shown: change it in Chandler (chandler apply, or PUT on its address in "+
			"the API).", fields{
			"name":            text("The package that is followed."),
			"source":          text("The catalog that it comes from."),
			"sourceNamespace": text("Namespace of the catalog; empty for one of the whole fleet."),
			"channel": text(
				"The channel that is followed; empty for any channel of the package, its default channel first."),
			"startingCSV": text("The ClusterServiceVersion to begin with; empty for the newest."),
			"installPlanApproval": text(
				"Automatic: updates are installed without a person. Manual: each install plan waits for approval."),
			"config": anything(
				"How the operator's Deployments are configured. It is not shown, since it may hold secrets."),
		})
}

func subscriptionStatus() schema {
	return object("What is installed, and what is on its way.", fields{
		"currentCSV":   text("The ClusterServiceVersion that is installed or on its way."),
		"installedCSV": text("The ClusterServiceVersion that is installed."),
		"state": text(
			"AtLatestKnown, UpgradePending or UpgradeFailed; empty as long as nothing was found for it."),
		"reason":                text("Why it is in this state."),
		"installPlanRef":        reference("The newest install plan that moves the package."),
		"installplan":           reference("The same, as older tools read it."),
		"installPlanGeneration": number("Generation of that install plan."),
		"lastUpdated":           moment("When the status was written."),
		"conditions": list("What is out of order: a condition that is True says so.", condition(
			"CatalogSourcesUnhealthy, ResolutionFailed, InstallPlanPending, InstallPlanFailed, InstallPlanMissing, "+
				"BundleUnpacking, BundleUnpackFailed or ClusterCordoned.")),
		"catalogHealth": list("How the catalogs do that it is resolved from.", object("", fields{
			"catalogSourceRef": reference("The catalog."), "healthy": flag("Whether it can be used."),
			"lastUpdated": moment("When it was looked at."),
		})),
	})
}

func installPlanSpec() schema {
	return object(
		"What is to be installed. Here it is only shown: approve or reject the plan in Chandler (chandler approve, "+
			"chandler reject).", fields{
			"approval":                   text("Automatic: it needs nobody. Manual: it waits for approval."),
			"approved":                   flag("Whether it may be carried out."),
			"clusterServiceVersionNames": texts("The ClusterServiceVersions that it installs."),
			"generation":                 number("Counts the plans of the namespace."),
			"source":                     text("Not used."), "sourceNamespace": text("Not used."),
		})
}

func installPlanStatus() schema {
	return object("How far it is.", fields{
		"phase":          text("RequiresApproval, Installing, Complete or Failed."),
		"message":        text("What it waits for, or why it failed."),
		"startTime":      moment("When its first step began."),
		"catalogSources": texts("The catalogs that its bundles come from."),
		"attenuatedServiceAccountRef": reference(
			"The account that it is written through, where the operator group names one."),
		"conditions":    list("Whether it is installed.", condition("Installed.")),
		"bundleLookups": list("Not used: bundles are fetched before a plan is made.", anything("")),
		"plan": list("Its steps, shown at its end.", object("", fields{
			"resolving": text("The ClusterServiceVersion that it belongs to."),
			"status":    text("Unknown: not tried. Created: done."),
			"optional":  flag("Whether the plan goes on without it."),
			"resource": object("The object.", fields{
				"group": text("Group of its kind."), "version": text("Version of its kind."), "kind": text("Its kind."),
				"name": text("Its name."), "manifest": text("Left out: it is in the object itself."),
				"sourceName":      text("The catalog that it comes from."),
				"sourceNamespace": text("Namespace of that catalog."),
			}),
		})),
	})
}

// labelSelector is a selector as Kubernetes has them.
func labelSelector(doc string) schema {
	return object(doc, fields{
		"matchLabels": dict("Labels that must be there with these values.", schema{Type: "string"}),
		"matchExpressions": list("Further requirements.", object("", fields{
			"key": text("The label."), "operator": text("In, NotIn, Exists or DoesNotExist."),
			"values": texts("The values."),
		})),
	})
}

func operatorGroupSpec() schema {
	return object(
		"Which namespaces the operators of this namespace serve. Here it is only shown: change it in Chandler "+
			"(chandler apply, "+
			"or PUT on its address in the API).", fields{
			"targetNamespaces":   texts("These namespaces. With neither this nor a selector: all namespaces."),
			"selector":           labelSelector("The namespaces that bear these labels."),
			"serviceAccountName": text("The account whose rights bound what operators are installed with."),
			"staticProvidedAPIs": flag("Whether the provided APIs are written by a person."),
			"upgradeStrategy":    text("Default, or TechPreviewUnsafeFailForward: an upgrade may replace what failed."),
		})
}

func operatorGroupStatus() schema {
	return object("Which namespaces that comes to.", fields{
		"namespaces":        texts("The namespaces that are served; one empty name stands for all."),
		"serviceAccountRef": reference("The account."),
		"lastUpdated":       moment("When the status was written."),
		"conditions":        list("What is out of order.", condition("What is out of order, in one word.")),
	})
}

func operatorSpec() schema { return object("Nothing.", fields{}) }

func operatorStatus() schema {
	return object("All parts of an operator.", fields{
		"components": object("Its parts.", fields{
			"labelSelector": labelSelector("The label that all parts bear."),
			"refs": list("The parts.", object("", fields{
				"apiVersion": text("Group and version of its kind."), "kind": text("Its kind."),
				"name": text("Its name."), "namespace": text("Its namespace."),
				"conditions": list("How it does.", condition("What is said of it, in one word.")),
			})),
		}),
	})
}

func olmConfigSpec() schema {
	return object(
		"Whether ClusterServiceVersions are copied. This is the one kind of the group that is written here and obeyed.",
		fields{
			"features": object("What can be switched.", fields{
				"disableCopiedCSVs": flag(
					"False: each ClusterServiceVersion is copied to every namespace that its operator serves. True " +
						"or absent: " +
						"copies are made in no namespace, but those of operators that serve all namespaces in the " +
						"namespace openshift where there is one."),
				"packageServerSyncInterval": text("Without effect: what can be browsed is always current."),
			}),
		})
}

func olmConfigStatus() schema {
	return object("What holds.", fields{"conditions": list("What holds.", condition("DisabledCopiedCSVs."))})
}

func catalogSourceSpec() schema {
	return object(
		"Where packages come from. Here it is only shown: catalogs belong to the fleet, change them in Chandler "+
			"(chandler apply).", fields{
			"sourceType":     text("How it is served; grpc for all."),
			"image":          text("Left out: the fleet reads images itself."),
			"address":        text("Left out."),
			"configMap":      text("Left out."),
			"displayName":    text("The name to show."),
			"description":    text("What it is about."),
			"publisher":      text("Who publishes it."),
			"priority":       schema{Type: "integer", Format: "int32", Description: "A higher one is preferred."},
			"secrets":        texts("Left out."),
			"icon":           anything("Left out."),
			"updateStrategy": anything("Left out."),
			"grpcPodConfig":  anything("Left out: no pod serves it."),
			"runAsRoot":      flag("Not used."),
		})
}

func catalogSourceStatus() schema {
	return object("How it does.", fields{
		"message": text("Why it cannot be used."),
		"reason":  text("The same, in one word."),
		"connectionState": object("Whether it can be used.", fields{
			"lastObservedState": text(
				"READY: a revision is in service. CONNECTING: none is yet. TRANSIENT_FAILURE: none is, and looking " +
					"for one failed."),
			"address": text("Not used."), "lastConnect": moment("When it was looked at last."),
		}),
		"latestImageRegistryPoll": moment("Not used."),
		"registryService":         anything("Not used: no pod serves it."),
		"configMapReference":      anything("Not used."),
		"conditions":              list("Not used.", condition("Not used.")),
	})
}
