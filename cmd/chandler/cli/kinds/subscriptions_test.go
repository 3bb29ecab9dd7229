package kinds

import (
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestDescribeNamesTheFleetSubscription: who cannot change a subscription by hand sees where it is changed, and how far
// it goes (issue 14, section 2).
func TestDescribeNamesTheFleetSubscription(t *testing.T) {
	t.Parallel()
	s := model.Subscription{
		Cluster: "east", Namespace: "ports", Name: "tides", Owner: "tides", CreatedAt: time.Unix(0, 0),
		Target: &model.SubscriptionTarget{Version: "1.2.0", CSV: "tidegauge.v1.2.0", Rollout: 3},
	}
	lines := func() string {
		var b strings.Builder
		p := printer.NewPage(&b, time.Now)
		describeSubscription(p, s)
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	got := lines()
	for _, want := range []string{"Owner: fleetsubscription/tides", "Target: tidegauge.v1.2.0 (rollout 3)"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	s.Owner, s.Target = "", nil
	if got := lines(); strings.Contains(got, "Owner") || strings.Contains(got, "Target") {
		t.Errorf("without an owner: %q", got)
	}
}
