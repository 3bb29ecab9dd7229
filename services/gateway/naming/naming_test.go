package naming_test

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/naming"
)

// TestFind: people name a thing by its package, its subscription or its ClusterServiceVersion; what is ambiguous is an
// error that lists what it may be.
func TestFind(t *testing.T) {
	t.Parallel()
	w := naming.World{
		Cluster: "east", Namespace: "ports",
		Subscriptions: []naming.Subscription{
			{Name: "tides", Package: "tidegauge", Installed: "tidegauge.v1", Current: "tidegauge.v2"},
			{Name: "buoy", Package: "lighthouse"},
			{Name: "lamp", Package: "lighthouse", Installed: "lighthouse.v1"},
			{Name: "floats", Package: "buoy"},
			{Name: "crane", Package: "crane", Current: "crane.v2"},
		},
		Operators: []naming.Operator{
			{Name: "tidegauge.v1", Package: "tidegauge"},
			{Name: "tidegauge.v2", Package: "tidegauge"},
			{Name: "lighthouse.v1", Package: "lighthouse"},
			{Name: "crane.v1", Package: "crane"},
			{Name: "stray.v1", Package: "stray"},
		},
	}
	for _, c := range []struct {
		kind naming.Kind
		name string
		want string
		err  errs.Kind
	}{
		{naming.KindSubscription, "tides", "tides", ""},
		{naming.KindSubscription, "tidegauge", "tides", ""},
		{naming.KindSubscription, "tidegauge.v1", "tides", ""},
		{naming.KindSubscription, "tidegauge.v2", "tides", ""},
		{naming.KindSubscription, "buoy", "buoy", ""}, // its own name before the package of another
		{naming.KindSubscription, "lighthouse", "buoy, lamp", errs.Conflict},
		{naming.KindSubscription, "lighthouse.v1", "lamp", ""},
		{naming.KindSubscription, "crane.v1", "crane", ""}, // by the package of what is installed
		{naming.KindSubscription, "stray.v1", "", errs.NotFound},
		{naming.KindSubscription, "anchor", "", errs.NotFound},
		{naming.KindOperator, "tidegauge.v2", "tidegauge.v2", ""},
		{naming.KindOperator, "tides", "tidegauge.v1", ""},
		{naming.KindOperator, "tidegauge", "tidegauge.v1, tidegauge.v2", errs.Conflict},
		{naming.KindOperator, "crane", "crane.v1", ""},
		{naming.KindOperator, "lamp", "lighthouse.v1", ""},
		{naming.KindOperator, "stray", "stray.v1", ""},
		{naming.KindOperator, "floats", "", errs.NotFound},
		{naming.KindOperator, "", "", errs.NotFound},
	} {
		got, err := w.Find(c.kind, c.name)
		switch {
		case errs.KindOf(err) != c.err:
			t.Errorf("%s %q: error %v, want kind %q", c.kind, c.name, err, c.err)
		case c.err == errs.Conflict && !strings.Contains(err.Error(), c.want):
			t.Errorf("%s %q: %v does not list %s", c.kind, c.name, err, c.want)
		case c.err == "" && got != c.want:
			t.Errorf("%s %q is %q, want %q", c.kind, c.name, got, c.want)
		}
	}
}
