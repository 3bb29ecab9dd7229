package csv_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
)

// TestConditions: R-CAT-53: objects of optional kinds that are left out are a condition of their operator.
func TestConditions(t *testing.T) {
	t.Parallel()
	waits := func(kind, name string) protocol.Component {
		return protocol.Component{
			ObjectRef: protocol.ObjectRef{Group: "monitoring.coreos.com", Kind: kind, Name: name},
			Status:    protocol.ComponentWaiting,
		}
	}
	if got := csv.Conditions(nil, noon); got != nil {
		t.Errorf("of an operator that has everything: %+v", got)
	}
	want := []protocol.Condition{{
		Type: "OptionalKindsNotServed", Status: "True", Reason: "APINotServed", Since: noon,
		Message: "the cluster does not serve PrometheusRule (monitoring.coreos.com), ServiceMonitor " +
			"(monitoring.coreos.com): 3 objects are left out, which the operator runs without, and written when it does",
	}}
	if diff := cmp.Diff(want, csv.Conditions([]protocol.Component{
		waits("ServiceMonitor", "b"), waits("PrometheusRule", "a"), waits("ServiceMonitor", "a"),
	}, noon)); diff != "" {
		t.Error(diff)
	}
	var many []protocol.Component
	for i := range 12 {
		many = append(many, waits(fmt.Sprintf("Kind%02d", i), "a"))
	}
	if got := csv.Conditions(many, noon)[0].Message; !strings.Contains(
		got, "Kind09 (monitoring.coreos.com) and 2 more: 12 objects") {
		t.Error(got)
	}
}
