package certs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
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
				map[string]any{"key": "old", "operator": "DoesNotExist"}, spared,
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
