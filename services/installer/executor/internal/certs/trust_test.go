package certs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
)

// TestNamespaces holds the rows of R-CSV-44, as Namespaces lists them. None has Chandler's own namespace (DESIGN D7:
// the lease lies there).
func TestNamespaces(t *testing.T) {
	t.Parallel()
	chosen := events.LabelSelector{
		MatchLabels: map[string]string{"sea": "north"},
		MatchExpressions: []events.LabelRequirement{
			{Key: "tier", Operator: "In", Values: []string{"a", "b"}},
			{Key: "old", Operator: "DoesNotExist"},
		},
	}
	spared := map[string]any{
		"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []any{"chandler-system"},
	}
	for name, c := range map[string]struct {
		spec events.OperatorGroupSpec
		want map[string]any
	}{
		"explicit targets": {
			events.OperatorGroupSpec{TargetNamespaces: []string{"a", "b"}, Selector: chosen},
			map[string]any{"matchLabels": map[string]any{"group/id": ""}, "matchExpressions": []any{spared}},
		},
		"a selector": {events.OperatorGroupSpec{Selector: chosen}, map[string]any{
			"matchLabels": map[string]any{"sea": "north"},
			"matchExpressions": []any{
				map[string]any{"key": "tier", "operator": "In", "values": []any{"a", "b"}},
				map[string]any{"key": "old", "operator": "DoesNotExist"},
				spared,
			},
		}},
		"neither": {events.OperatorGroupSpec{}, map[string]any{"matchExpressions": []any{spared}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, certs.Namespaces("group/id", c.spec)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestTrustNarrows: every webhook that is written has the selector and the conditions that keep it from what Chandler
// lives on (DESIGN D7), also where its author wrote others; a real API server judges them in test/executor.
func TestTrustNarrows(t *testing.T) {
	t.Parallel()
	for _, gvk := range []schema.GroupVersionKind{render.GVKValidatingWebhook, render.GVKMutatingWebhook} {
		hook := func(name string) any {
			return map[string]any{
				"name": name, "clientConfig": map[string]any{"service": map[string]any{"name": "tide"}},
				"matchConditions": []any{map[string]any{"name": "all", "expression": "true"}},
			}
		}
		o := &unstructured.Unstructured{Object: map[string]any{"webhooks": []any{hook("a"), hook("b")}}}
		o.SetGroupVersionKind(gvk)
		fatal(t, certs.Trust(o, nil, certs.Namespaces("group/id", events.OperatorGroupSpec{})))
		hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		fatal(t, err)
		for _, h := range hooks {
			text := fmt.Sprint(h)
			for _, want := range []string{
				"NotIn", "chandler-system", "chandler-fleet.io", "coordination.k8s.io", "rbac.authorization.k8s.io",
				"chandler-epoch",
			} {
				if !strings.Contains(text, want) {
					t.Errorf("%s says nothing of %s: %s", gvk.Kind, want, text)
				}
			}
		}
	}
}
