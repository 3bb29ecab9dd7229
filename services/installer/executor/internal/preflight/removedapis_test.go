package preflight

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/removedapi"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// lifecycle is what generated types of Kubernetes say of themselves.
type lifecycle interface {
	APILifecycleRemoved() (major, minor int)
}

// TestRemovedKinds compares the table behind R-CSV-61 with the types of Kubernetes, both ways: what the types say, and
// what the table has of groups and versions that there are types for.
func TestRemovedKinds(t *testing.T) {
	t.Parallel()
	types := maps.Clone(scheme.Scheme.AllKnownTypes())
	types[apiextensionsv1beta1.SchemeGroupVersion.WithKind(
		"CustomResourceDefinition")] = reflect.TypeFor[apiextensionsv1beta1.CustomResourceDefinition]()
	for gvk, typ := range types {
		l, ok := reflect.TypeAssert[lifecycle](reflect.New(typ))
		if !ok || strings.HasSuffix(gvk.Kind, "List") {
			continue
		}
		major, minor := l.APILifecycleRemoved()
		got, _ := removedapi.In(removedapi.Kind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind})
		if want := (removedapi.Version{Major: major, Minor: minor}); got != want {
			t.Errorf("%s is removed in %s, the table says %s", gvk, want, got)
		}
	}
	for _, k := range removedapi.Kinds() {
		typ, ok := types[schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}]
		if !ok {
			continue // no longer in k8s.io/api, or never
		}
		if _, says := reflect.TypeAssert[lifecycle](reflect.New(typ)); !says {
			t.Errorf("the table has %s, and its type says nothing", k)
		}
	}
}

// TestRemovedAPIs proves what of a plan is looked at for R-CSV-61.
func TestRemovedAPIs(t *testing.T) {
	t.Parallel()
	object := func(group, version, kind, name string, body map[string]any) render.Object {
		return render.Object{
			GVK:       schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
			Namespace: "ports", Name: name, Body: body,
		}
	}
	webhook := func(gvk schema.GroupVersionKind, versions ...any) render.Object {
		return render.Object{GVK: gvk, Name: "check", Body: map[string]any{
			"webhooks": []any{map[string]any{"rules": []any{
				map[string]any{
					"apiGroups": []any{"networking.k8s.io"}, "apiVersions": versions,
					"resources": []any{"ingresses/status"},
				},
			}}},
		}}
	}
	budget := object("policy", "v1beta1", "PodDisruptionBudget", "gauge", nil)
	csv := object(kube.GVKCSV.Group, kube.GVKCSV.Version, kube.GVKCSV.Kind, "gauge.v1",
		map[string]any{"spec": map[string]any{"nativeAPIs": []any{
			map[string]any{"group": "batch", "version": "v1beta1", "kind": "CronJob"},
			map[string]any{"group": "batch", "version": "v1", "kind": "Job"},
			"odd",
		}}})
	removed := func(group, kind, version, in string) protocol.RemovedAPI {
		return protocol.RemovedAPI{Group: group, Version: version, Kind: kind, Removed: in, For: kind + " ports/gauge"}
	}
	native := removed("batch", "CronJob", "v1beta1", "1.25")
	native.For = "ClusterServiceVersion ports/gauge.v1"
	ingress := removed("networking.k8s.io", "Ingress", "v1beta1", "1.22")
	ingress.For = "ValidatingWebhookConfiguration check"
	for name, c := range map[string]struct {
		version string
		object  render.Object
		want    []protocol.RemovedAPI
	}{
		"in the next version": {
			"v1.24.3", budget,
			[]protocol.RemovedAPI{removed("policy", "PodDisruptionBudget", "v1beta1", "1.25")},
		},
		"later":                 {"v1.23.3", budget, nil},
		"another version of it": {"v1.24.3", object("policy", "v1", "PodDisruptionBudget", "gauge", nil), nil},
		"a native API":          {"v1.24.3", csv, []protocol.RemovedAPI{native}},
		"a webhook's rule": {
			"v1.24.3", webhook(render.GVKValidatingWebhook, "v1", "v1beta1"),
			[]protocol.RemovedAPI{ingress},
		},
		"a webhook for every version": {"v1.24.3", webhook(render.GVKMutatingWebhook, "*"), nil},
		"of a custom resource":        {"v1.24.3", object("sea.test", "v1beta1", "CronJob", "gauge", nil), nil},
		"the version is not known":    {"", budget, nil},
		"a ClusterServiceVersion bare": {"v1.24.3", object(kube.GVKCSV.Group, kube.GVKCSV.Version, kube.GVKCSV.Kind,
			"gauge.v1", nil), nil},
	} {
		if diff := cmp.Diff(c.want, RemovedAPIs(c.version, []render.Object{c.object})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
