package removedapi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/removedapi"
)

// TestGone proves the comparison behind R-CSV-61: what the next minor version drops is named, and what is gone already.
func TestGone(t *testing.T) {
	t.Parallel()
	cron := removedapi.Kind{Group: "batch", Version: "v1beta1", Kind: "CronJob"}
	psp := removedapi.Kind{Group: "policy", Version: "v1beta1", Kind: "PodSecurityPolicy"}
	scaler := removedapi.Kind{Group: "autoscaling", Version: "v2beta2", Kind: "HorizontalPodAutoscaler"}
	all := []removedapi.Kind{
		scaler, cron, psp, cron,
		{Group: "batch", Version: "v1", Kind: "CronJob"},
		{Version: "v1", Kind: "Pod"},
	}
	for _, c := range []struct {
		version string
		want    []removedapi.Kind
	}{
		{"v1.23.17", nil},
		{"v1.24.17+k3s1", []removedapi.Kind{cron, psp}},
		{"1.25", []removedapi.Kind{scaler, cron, psp}},
		{"v1.37.0-gke.100", []removedapi.Kind{scaler, cron, psp}},
		{"v1.9.11", nil}, // 9 comes before 24
		{"v2.0.0", []removedapi.Kind{scaler, cron, psp}},
		{"", nil},
		{"v1.x", nil},
		{"v1.25beta", nil},
	} {
		if diff := cmp.Diff(c.want, removedapi.Gone(c.version, all)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.version, diff)
		}
	}
	if v, ok := removedapi.In(cron); !ok || v.String() != "1.25" || cron.String() != "CronJob.v1beta1.batch" {
		t.Errorf("%s goes in %s, %v", cron, v, ok)
	}
	if len(removedapi.Kinds()) < 90 {
		t.Errorf("%d kinds", len(removedapi.Kinds()))
	}
}
