package app_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// spokeID is the id of cluster spoke.
const spokeID = "11111111-1111-5111-8111-111111111111"

// reported is a gateway with an operator on cluster spoke, of which its executor may have told.
func reported(t *testing.T) *bench {
	t.Helper()
	b := setup(t)
	b.cluster("spoke")
	b.installed()
	b.exec("installer",
		`insert into installer.clusters (tenant, name, cluster_id, stream, credential) values ('default', 'spoke', $1, '', '')`, spokeID)
	return b
}

// TestWhatIsLeftOutIsShown: who looks at an operator is told how much of it its cluster's report went without, and why
// something differs that could not be put right; nothing where the report is whole.
func TestWhatIsLeftOutIsShown(t *testing.T) {
	t.Parallel()
	b := reported(t)
	b.exec("installer",
		`insert into installer.operator_details (tenant, cluster_id, namespace, name, drift, components, cut, updated) values ('default', $1, 'ops', $2,
		'[{"kind": "Role", "name": "gauge", "reason": "the API server refuses trials", "since": "2031-02-03T04:05:06Z"}]', '[]', '{"components": 30}', now())`, spokeID, gauge)
	details := func() model.OperatorDetails {
		o := must[model.Operator](b, 200, b.do("GET", b.seen(gaugePath), nil))
		if o.Details == nil {
			t.Fatal("no details")
		}
		return *o.Details
	}
	got := details()
	if diff := cmp.Diff(&protocol.Cut{Components: 30}, got.LeftOut); diff != "" || len(got.Drift) != 1 ||
		got.Drift[0].Reason != "the API server refuses trials" {
		t.Errorf("got %+v; (-want +got):\n%s", got, diff)
	}
	b.exec("installer", `update installer.operator_details set cut = null`)
	if got := details(); got.LeftOut != nil {
		t.Errorf("of a whole report %+v is left out", got.LeftOut)
	}
}

// TestOperatorConditions: R-CAT-53: that an operator runs without objects of optional kinds is a condition of it, in
// lists and in the answer about it alone; an operator of which nothing is told has none.
func TestOperatorConditions(t *testing.T) {
	t.Parallel()
	b := reported(t)
	b.exec("installer",
		`insert into installer.operator_details (tenant, cluster_id, namespace, name, drift, components, conditions, updated) values ('default', $1, 'ops', $2,
		'[]', '[]', '[{"type": "OptionalKindsNotServed", "status": "True", "reason": "APINotServed", "message": "m", "lastTransitionTime": "2031-02-03T04:05:06Z"}]', now())`, spokeID, gauge)
	one := must[model.Operator](b, 200, b.do("GET", b.seen(gaugePath), nil))
	list := must[struct{ Items []model.Operator }](b, 200, b.do("GET", b.seen("/api/v1/operators"), nil)).Items
	found := false
	for _, o := range append(list, one) {
		switch {
		case o.Conditions == nil:
			t.Errorf("%s has no list of conditions", o.Name)
		case o.Name == gauge:
			found = true
			want := []model.Condition{{
				Type: "OptionalKindsNotServed", Status: "True", Reason: "APINotServed",
				Message: "m", Since: time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC),
			}}
			if diff := cmp.Diff(want, o.Conditions); diff != "" {
				t.Error(diff)
			}
		case len(o.Conditions) > 0:
			t.Errorf("%s has %+v", o.Name, o.Conditions)
		}
	}
	if !found || len(list) == 0 {
		t.Errorf("the operator is not listed: %+v", list)
	}
}
