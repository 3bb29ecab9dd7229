package kube

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// installedSpec are the fields of a ClusterServiceVersion's spec that decide anything. The others are for people,
// can be large, and are in the bundle.
var installedSpec = []string{
	"version", "release", "displayName", "replaces", "skips", "minKubeVersion", "installModes", "install",
	"customresourcedefinitions", "apiservicedefinitions", "nativeAPIs", "webhookdefinitions", "cleanup",
}

// apiFields are the same of one entry of customresourcedefinitions and apiservicedefinitions.
var apiFields = []string{"name", "group", "version", "kind", "displayName", "deploymentName", "containerPort"}

// InstalledOperator turns a ClusterServiceVersion's manifest, in place, into the object that stands for the
// installed operator in the cluster. It keeps the name, the namespace and the labels, no annotations, and of
// the spec what decides anything.
func InstalledOperator(body *unstructured.Unstructured) {
	body.SetGroupVersionKind(GVKInstalledOperator)
	body.SetAnnotations(nil)
	spec, ok := body.Object["spec"].(map[string]any)
	if !ok {
		return
	}
	keep(spec, installedSpec)
	for _, key := range []string{"customresourcedefinitions", "apiservicedefinitions"} {
		lists, ok := spec[key].(map[string]any)
		if !ok {
			continue
		}
		for _, name := range []string{"owned", "required"} {
			entries, ok := lists[name].([]any)
			if !ok {
				continue
			}
			for _, e := range entries {
				if entry, ok := e.(map[string]any); ok {
					keep(entry, apiFields)
				}
			}
		}
	}
}

func keep(m map[string]any, fields []string) {
	maps.DeleteFunc(m, func(field string, _ any) bool { return !slices.Contains(fields, field) })
}

// SetOwner makes the InstalledOperator the owner of what lies in its namespace, so that the cluster removes it
// with it, even without Chandler (R-IP-23, R-CSV-52).
func SetOwner(body *unstructured.Unstructured, name, uid string) {
	meta, ok := body.Object["metadata"].(map[string]any)
	if !ok {
		return
	}
	meta["ownerReferences"] = []any{map[string]any{
		"apiVersion": GVKInstalledOperator.GroupVersion().String(), "kind": GVKInstalledOperator.Kind, "name": name,
		"uid": uid, "blockOwnerDeletion": false, "controller": false,
	}}
}
