package mirror

import "maps"

// csvSpec is what an author writes. It asks for nothing and keeps everything: what fits into a bundle must be shown.
func csvSpec() schema { //nolint:funlen // one table: a row for each field
	described := func(what string) schema {
		return list(what, object("", fields{
			"path": text("Where it is in the object."), "displayName": text("The name to show."),
			"description": text("What it is for."), "x-descriptors": texts("How tools show it."),
			"value": schema{Description: "Its value.", XPreserveUnknownFields: yes()},
		}))
	}
	api := func(more fields) schema {
		f := fields{
			"name": text("Name of the definition, or of the API."), "version": text("Its version."),
			"kind": text("Its kind."), "displayName": text("The name to show."), "description": text("What it is for."),
			"resources": list("What an object of it brings about.", object("", fields{
				"kind": text("A kind."), "name": text("A name."), "version": text("A version."),
			})),
			"specDescriptors":   described("Fields of the spec."),
			"statusDescriptors": described("Fields of the status."), "actionDescriptors": described("Actions."),
		}
		maps.Copy(f, more)
		return open(object("", f))
	}
	served := api(fields{
		"group": text("Its group."), "deploymentName": text("The Deployment that serves it."),
		"containerPort": schema{Type: "integer", Format: "int32", Description: "The port on which it is served."},
	})
	spec := object(
		"What the author of the bundle wrote. Here it is only shown: change the operator by its subscription in "+
			"Chandler.", fields{
			"displayName": text("The name to show."),
			"description": text("What the operator does, in Markdown."),
			"version":     text("The version of the operator."),
			"release":     text("The release of the version."),
			"replaces": text(
				"The ClusterServiceVersion that this one follows, as the plan that installed it decided."),
			"skips":          texts("ClusterServiceVersions that need not be installed on the way here."),
			"maturity":       text("How ripe the author says it is."),
			"minKubeVersion": text("The lowest version of Kubernetes that it runs on."),
			"keywords":       texts("Words to be found by."),
			"labels":         dict("Labels to be found by.", schema{Type: "string"}),
			"annotations":    dict("Annotations of the author.", schema{Type: "string"}),
			"selector":       labelSelector("Which objects belong to it."),
			"provider": open(object("Who provides it.",
				fields{"name": text("The name."), "url": text("The address.")})),
			"maintainers": list("Who maintains it.",
				open(object("", fields{"name": text("The name."), "email": text("The address.")}))),
			"links": list("Where to read more.",
				open(object("", fields{"name": text("What is there."), "url": text("The address.")}))),
			"icon": list("Pictures of it.", open(object("", fields{
				"base64data": text("The picture."), "mediatype": text("Its media type."),
			}))),
			"installModes": list("Which sets of namespaces it can serve.", open(object("", fields{
				"type":      text("OwnNamespace, SingleNamespace, MultiNamespace or AllNamespaces."),
				"supported": flag("Whether it can."),
			}))),
			"install": open(object("How it is installed.", fields{
				"strategy": text("deployment; there is no other."),
				"spec": open(object("What is installed.", fields{
					"deployments": list("Its Deployments.",
						open(object("", fields{
							"name":  text("Name of the Deployment."),
							"label": dict("Its labels.", schema{Type: "string"}), "spec": anything("Its spec."),
						}))),
					"permissions": list("Rights in the namespaces that it serves.",
						open(object("", permission()))),
					"clusterPermissions": list("Rights in the whole cluster.", open(object("", permission()))),
				})),
			})),
			"customresourcedefinitions": open(object("The APIs that come as CustomResourceDefinitions.", fields{
				"owned":    list("Those that it brings.", api(nil)),
				"required": list("Those that must be there.", api(nil)),
			})),
			"apiservicedefinitions": open(object("The APIs that are served by an API server of its own.", fields{
				"owned": list("Those that it brings.", served), "required": list("Those that must be there.", served),
			})),
			"nativeAPIs": list("Other APIs that must be there.", open(object("", fields{
				"group": text("The group."), "version": text("The version."), "kind": text("The kind."),
			}))),
			"webhookdefinitions": list("Its webhooks.", open(object("", fields{
				"type":           text("ValidatingAdmissionWebhook, MutatingAdmissionWebhook or ConversionWebhook."),
				"generateName":   text("What its name begins with."),
				"deploymentName": text("The Deployment that answers."), "webhookPath": text("The path that is asked."),
				"conversionCRDs":          texts("The definitions that it converts."),
				"failurePolicy":           text("Fail or Ignore where it does not answer."),
				"sideEffects":             text("Whether asking it has effects."),
				"admissionReviewVersions": texts("The versions that it speaks."),
			}))),
			"relatedImages": list("All images that it may use.",
				open(object("", fields{"name": text("What it is."), "image": text("The image.")}))),
			"cleanup": open(object("Declared, and without effect.", fields{"enabled": flag("Without effect.")})),
		})
	return whole(lenient(spec))
}

func yes() *bool {
	is := true
	return &is
}

func permission() fields {
	return fields{
		"serviceAccountName": text("The account that gets them."),
		"rules": list("The rights.", open(object("", fields{
			"apiGroups": texts("Groups."), "resources": texts("Resources."),
			"resourceNames": texts("Names; all where there are none."), "verbs": texts("What may be done."),
			"nonResourceURLs": texts("Paths that are no resources."),
		}))),
	}
}

func csvStatus() schema {
	happened := func(doc string) fields {
		return fields{
			"phase": text(
				"None, Pending, InstallReady, Installing, Succeeded, Failed, Unknown, Replacing or Deleting."),
			"reason": text("Why, in one word."), "message": text("Why, in a sentence."),
			"lastUpdateTime": moment("When it was written last."), "lastTransitionTime": moment(doc),
		}
	}
	f := happened("When the phase came to be this one.")
	f["conditions"] = list("The phases that it went through, oldest first.",
		open(object("", happened("When that was."))))
	f["requirementStatus"] = list("What it needs, and whether that is there.", open(object("", fields{
		"group": text("Group of the kind."), "version": text("Version of the kind."), "kind": text("The kind."),
		"name": text("The name."), "status": text(
			"Present, NotPresent, Satisfied, NotSatisfied or PresentNotSatisfied."), "message": text("Why."),
		"uuid": text("The UID."),
		"dependents": list("The single rules.", open(object("", fields{
			"group": text("Group of the kind."), "version": text("Version of the kind."), "kind": text("The kind."),
			"status": text("Satisfied or NotSatisfied."), "message": text("What is asked for."),
			"uuid": text("The UID."),
		}))),
	})))
	f["certsLastUpdated"], f["certsRotateAt"] = moment("When its certificates were made."),
		moment("When they are made anew.")
	f["cleanup"] = anything("Not used.")
	return whole(lenient(object("Where it is in its life.", f)))
}
