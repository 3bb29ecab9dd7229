package app_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestWhatIsLeftOutIsShown: who looks at an operator is told how much of it its cluster's report went without, and why
// something differs that could not be put right; nothing where the report is whole.
func TestWhatIsLeftOutIsShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.installed()
	const id = "11111111-1111-5111-8111-111111111111"
	b.exec("installer", `insert into installer.clusters (tenant, name, cluster_id, stream, credential) values ('default', 'spoke', $1, '', '')`, id)
	b.exec("installer", `insert into installer.operator_details (tenant, cluster_id, namespace, name, drift, components, cut, updated) values ('default', $1, 'ops', $2,
		'[{"kind": "Role", "name": "gauge", "reason": "the API server refuses trials", "since": "2031-02-03T04:05:06Z"}]', '[]', '{"components": 30}', now())`, id, gauge)
	details := func() model.OperatorDetails {
		o := must[model.Operator](b, 200, b.do("GET", b.seen(gaugePath), nil))
		if o.Details == nil {
			t.Fatal("no details")
		}
		return *o.Details
	}
	got := details()
	if diff := cmp.Diff(&protocol.Cut{Components: 30}, got.LeftOut); diff != "" || len(got.Drift) != 1 || got.Drift[0].Reason != "the API server refuses trials" {
		t.Errorf("got %+v; (-want +got):\n%s", got, diff)
	}
	b.exec("installer", `update installer.operator_details set cut = null`)
	if got := details(); got.LeftOut != nil {
		t.Errorf("of a whole report %+v is left out", got.LeftOut)
	}
}
