package namelookup_test

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/namelookup"
)

// TestFind: people name a thing by its package, its subscription or its ClusterServiceVersion; what is ambiguous is an
// error that lists what it may be.
func TestFind(t *testing.T) {
	t.Parallel()
	w := namelookup.Namespace{
		Cluster: "east", Namespace: "ports",
		Subscriptions: []namelookup.Subscription{
			{Name: "tides", Package: "tidegauge", Installed: "tidegauge.v1", Current: "tidegauge.v2"},
			{Name: "buoy", Package: "lighthouse"},
			{Name: "lamp", Package: "lighthouse", Installed: "lighthouse.v1"},
			{Name: "floats", Package: "buoy"},
			{Name: "crane", Package: "crane", Current: "crane.v2"},
		},
		Operators: []namelookup.Operator{
			{Name: "tidegauge.v1", Package: "tidegauge"},
			{Name: "tidegauge.v2", Package: "tidegauge"},
			{Name: "lighthouse.v1", Package: "lighthouse"},
			{Name: "crane.v1", Package: "crane"},
			{Name: "stray.v1", Package: "stray"},
		},
	}
	for _, c := range []struct {
		kind namelookup.Kind
		name string
		want string
		err  errs.Kind
	}{
		{namelookup.KindSubscription, "tides", "tides", ""},
		{namelookup.KindSubscription, "tidegauge", "tides", ""},
		{namelookup.KindSubscription, "tidegauge.v1", "tides", ""},
		{namelookup.KindSubscription, "tidegauge.v2", "tides", ""},
		{namelookup.KindSubscription, "buoy", "buoy", ""}, // its own name before the package of another
		{namelookup.KindSubscription, "lighthouse", "buoy, lamp", errs.Conflict},
		{namelookup.KindSubscription, "lighthouse.v1", "lamp", ""},
		{namelookup.KindSubscription, "crane.v1", "crane", ""}, // by the package of what is installed
		{namelookup.KindSubscription, "stray.v1", "", errs.NotFound},
		{namelookup.KindSubscription, "anchor", "", errs.NotFound},
		{namelookup.KindOperator, "tidegauge.v2", "tidegauge.v2", ""},
		{namelookup.KindOperator, "tides", "tidegauge.v1", ""},
		{namelookup.KindOperator, "tidegauge", "tidegauge.v1, tidegauge.v2", errs.Conflict},
		{namelookup.KindOperator, "crane", "crane.v1", ""},
		{namelookup.KindOperator, "lamp", "lighthouse.v1", ""},
		{namelookup.KindOperator, "stray", "stray.v1", ""},
		{namelookup.KindOperator, "floats", "", errs.NotFound},
		{namelookup.KindOperator, "", "", errs.NotFound},
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
