package app_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestTokenAuth proves R-TOK-1: the mode of a cluster is shown, and whoever subscribes there to an operator that can
// use its tokens, or asks what that would do, is told which variables are missing; nothing is refused for it.
func TestTokenAuth(t *testing.T) {
	t.Parallel()
	b, _ := setupOracle(t)
	b.cluster("spoke")
	stream := must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		map[string]any{"name": "fleet", "source": map[string]string{
			"type": "directory", "path": "/catalogs/fleet",
		}})).Stream
	annotations := map[string]string{"features.operators.openshift.io/token-auth-azure": "true"}
	b.published("fleet", stream, "sha256:a", described("gauge", "Gauge", "Dock", "Measures.", annotations,
		"AllNamespaces"),
		described("plain", "Plain", "Dock", "Knows no cloud.", nil, "AllNamespaces"))
	create := func(path, name, pkg string, config string) answer {
		in := model.CreateSubscription{Name: name, SubscriptionSpec: model.SubscriptionSpec{
			Package: pkg, Catalog: "fleet", Approval: "Manual", Config: json.RawMessage(config),
		}}
		return b.do("POST", path, in)
	}
	if s := must[model.Subscription](b, 201, create(subscriptions, "before", "gauge", "null")); s.Warnings != nil {
		t.Errorf("warned before the mode is known: %v", s.Warnings)
	}

	b.fact(events.Installer, events.KindCluster, "spoke", "spoke",
		events.ClusterObserved{State: "Connected", TokenAuth: "Azure"})
	if c := must[model.Cluster](b, 200, b.do("GET", b.seen("/api/v1/clusters/spoke"), nil)); c.TokenAuth != "Azure" {
		t.Errorf("the cluster is in mode %q", c.TokenAuth)
	}
	const missing = "cluster spoke gives operators short-lived tokens of Azure, which gauge.v1.0.0 can use: " +
		"config.env lacks "
	const half = `{"env": [{"name": "CLIENTID", "value": "c"}]}`
	for _, c := range []struct {
		name, pkg, config string
		want              []string
	}{
		{"without", "gauge", "null", []string{missing + "CLIENTID, TENANTID, SUBSCRIPTIONID"}},
		{"half", "gauge", half, []string{missing + "TENANTID, SUBSCRIPTIONID"}},
		{
			"whole", "gauge",
			`{"env": [{"name": "CLIENTID", "value": "c"}, {"name": "TENANTID", "value": "t"}, {"name": "SUBSCRIPTIONID", "value": "s"}]}`, nil,
		},
		{"plain", "plain", "null", nil},
	} {
		if p := must[model.Preview](b, 200, create(subscriptions+"?dryRun=true", c.name, c.pkg,
			c.config)); !slices.Equal(p.Warnings, c.want) {
			t.Errorf("%s: a dry run warns of %q, want %q", c.name, p.Warnings, c.want)
		}
		if s := must[model.Subscription](b, 201, create(subscriptions, c.name, c.pkg, c.config)); !slices.Equal(
			s.Warnings, c.want) {
			t.Errorf("%s: warned of %q, want %q", c.name, s.Warnings, c.want)
		}
	}
	changed := must[model.Subscription](b, 200, b.do("PUT", subscriptions+"/whole",
		model.SubscriptionSpec{Package: "gauge", StartingCSV: "gauge.v1.0.0", Catalog: "fleet", Approval: "Manual"}))
	if !slices.Equal(changed.Warnings, []string{missing + "CLIENTID, TENANTID, SUBSCRIPTIONID"}) {
		t.Errorf("a change that takes the identity away warns of %q", changed.Warnings)
	}

	// R-TOK-2: that upgrades go by themselves is a warning, and refused where the caller wants it strict.
	byItself := model.SubscriptionSpec{
		Package: "gauge", Catalog: "fleet", Approval: "Automatic",
		Config: json.RawMessage(`{"env": [{"name": "ROLEARN", "value": "arn:aws:iam::123456789012:role/gauge"}]}`),
	}
	automatic := must[model.Subscription](b, 200, b.do("PUT", subscriptions+"/whole", byItself))
	if n := len(automatic.Warnings); n == 0 || !strings.Contains(automatic.Warnings[n-1], "approval should be Manual") {
		t.Errorf("an identity with automatic approval warns of %q", automatic.Warnings)
	}
	if p := must[problem](b, 400, b.do("PUT", subscriptions+"/whole?validate=strict", byItself)); len(p.Errors) != 1 ||
		p.Errors[0].Location != "body.approval" || p.Errors[0].Rule != "R-TOK-2" {
		t.Errorf("strictly: %v", p)
	}
	if s := must[model.Subscription](b, 200, b.do("PUT", subscriptions+"/whole?validate=lenient", byItself)); len(
		s.Warnings) != 0 {
		t.Errorf("leniently: %q", s.Warnings)
	}

	b.fact(events.Installer, events.KindCluster, "spoke", "spoke", events.ClusterObserved{State: "Connected"})
	if c := must[model.Cluster](b, 200, b.do("GET", b.seen("/api/v1/clusters/spoke"), nil)); c.TokenAuth != "" {
		t.Errorf("the cluster stays in mode %q", c.TokenAuth)
	}
}
