package preflight

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/removedapi"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// RemovedAPIs are the kinds of Kubernetes that objects of a plan use and that the cluster no longer serves once it is
// upgraded by one minor version (R-CSV-61), object by object in the plan's order:
//
//	every object             its own kind
//	ClusterServiceVersion    spec.nativeAPIs
//	webhook configurations   what their rules name by group, version and resource
//
// What an operator asks for while it runs cannot be known: its rights name groups and resources, but no versions.
func RemovedAPIs(kubernetesVersion string, objects []render.Object) []protocol.RemovedAPI {
	var out []protocol.RemovedAPI
	for _, o := range objects {
		used := append([]removedapi.Kind{{Group: o.GVK.Group, Version: o.GVK.Version, Kind: o.GVK.Kind}}, usedBy(o)...)
		for _, k := range removedapi.Gone(kubernetesVersion, used) {
			version, _ := removedapi.In(k)
			out = append(out, protocol.RemovedAPI{
				Group: k.Group, Version: k.Version, Kind: k.Kind,
				Removed: version.String(), For: o.String(),
			})
		}
	}
	return out
}

func usedBy(o render.Object) []removedapi.Kind {
	switch o.GVK {
	case kube.GVKCSV:
		var out []removedapi.Kind
		for _, a := range objectsIn(o.Body, "spec", "nativeAPIs") {
			out = append(out, removedapi.Kind{
				Group: text(a, "group"), Version: text(a, "version"),
				Kind: text(a, "kind"),
			})
		}
		return out
	case render.GVKValidatingWebhook, render.GVKMutatingWebhook:
		var out []removedapi.Kind
		for _, webhook := range objectsIn(o.Body, "webhooks") {
			for _, rule := range objectsIn(webhook, "rules") {
				out = append(out, ruled(rule)...)
			}
		}
		return out
	}
	return nil
}

// ruled are the removed kinds that a rule names. One for every version or every group names none in particular.
func ruled(rule map[string]any) []removedapi.Kind {
	groups, versions := texts(rule, "apiGroups"), texts(rule, "apiVersions")
	var resources []string
	for _, r := range texts(rule, "resources") {
		resource, _, _ := strings.Cut(r, "/") // of a subresource
		resources = append(resources, resource)
	}
	var out []removedapi.Kind
	for _, k := range removedapi.Kinds() {
		plural, _ := meta.UnsafeGuessKindToResource(
			schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind})
		if slices.Contains(groups, k.Group) && slices.Contains(versions, k.Version) &&
			slices.Contains(resources, plural.Resource) {
			out = append(out, k)
		}
	}
	return out
}

// objectsIn are the objects of a list; what has another form is left to the API server.
func objectsIn(body map[string]any, path ...string) []map[string]any {
	list, _, err := unstructured.NestedFieldNoCopy(body, path...)
	items, ok := list.([]any)
	if err != nil || !ok {
		return nil
	}
	var out []map[string]any
	for _, i := range items {
		if m, ok := i.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func text(m map[string]any, key string) string {
	s, _, err := unstructured.NestedString(m, key)
	if err != nil {
		return ""
	}
	return s
}

func texts(m map[string]any, key string) []string {
	list, _, err := unstructured.NestedStringSlice(m, key)
	if err != nil {
		return nil
	}
	return list
}
