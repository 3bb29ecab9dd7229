package kinds

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
)

func TestSelectorText(t *testing.T) {
	t.Parallel()
	s := events.LabelSelector{
		MatchLabels: map[string]string{"b": "2", "a": "1"},
		MatchExpressions: []events.LabelRequirement{
			{Key: "sea", Operator: "NotIn", Values: []string{"x", "y"}},
			{Key: "e", Operator: "Exists"},
			{Key: "f", Operator: "DoesNotExist"},
		},
	}
	if got := namespaceSelector(s); got != "a=1,b=2,sea notin (x,y),e,!f" {
		t.Errorf("selector %s", got)
	}
	if got := namespaceSelector(events.LabelSelector{}); got != "" {
		t.Errorf("no selector: %s", got)
	}
}
