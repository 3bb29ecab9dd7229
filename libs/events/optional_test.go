package events_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
)

// TestOptional: which kinds operators run without, and what may be said of them.
func TestOptional(t *testing.T) {
	t.Parallel()
	const monitoring, console = "monitoring.coreos.com", "console.openshift.io"
	for _, c := range []struct {
		setting, group, kind string
		want                 bool
	}{
		{"", monitoring, "ServiceMonitor", true},
		{"", monitoring, "PrometheusRule", true},
		{"", console, "ConsolePlugin", false},
		{"", "", "ConfigMap", false},
		{"", "sub." + monitoring, "ServiceMonitor", false},
		{"none", monitoring, "ServiceMonitor", false},
		{monitoring + ", " + console, console, "ConsoleLink", true},
		{console + "/ConsolePlugin", console, "ConsolePlugin", true},
		{console + "/ConsolePlugin", console, "ConsoleLink", false},
		{console + "/ConsolePlugin", monitoring, "ServiceMonitor", false},
	} {
		if got := (events.ClusterSettings{Optional: c.setting}).IsOptional(c.group, c.kind); got != c.want {
			t.Errorf("%q: %s/%s is optional: %v", c.setting, c.group, c.kind, got)
		}
	}
	for setting, good := range map[string]bool{
		"": true, "none": true, monitoring: true, monitoring + "," + console + "/ConsolePlugin": true,
		"monitoring": false, "/ServiceMonitor": false, monitoring + "/": false, monitoring + "/A/B": false,
		monitoring + ",": false, "a b.c": false,
	} {
		if why := events.CheckOptional(setting); (why == "") != good {
			t.Errorf("%q: %q", setting, why)
		}
	}
}

// TestEventsSetting: Kubernetes Events are on where anything is mirrored, unless something else is said.
func TestEventsSetting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given events.ClusterSettings
		want  string
	}{
		{events.ClusterSettings{}, events.EventsOn},
		{events.ClusterSettings{Mirror: events.MirrorAll}, events.EventsOn},
		{events.ClusterSettings{Mirror: events.MirrorAll, Events: events.EventsOff}, events.EventsOff},
		{events.ClusterSettings{Mirror: events.MirrorNone}, events.EventsOff},
		{events.ClusterSettings{Mirror: events.MirrorNone, Events: events.EventsOn}, events.EventsOff},
	} {
		if got := c.given.WithDefaults().Events; got != c.want {
			t.Errorf("%+v: %s, want %s", c.given, got, c.want)
		}
	}
}
