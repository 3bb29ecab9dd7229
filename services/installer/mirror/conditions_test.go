package mirror_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

var noon = time.Date(2031, 2, 3, 12, 0, 0, 0, time.UTC)

// said are the conditions of a status, each as type=status/reason.
func said(t *testing.T, status map[string]any) (out []string) {
	t.Helper()
	list, ok := status["conditions"].([]any)
	if !ok {
		t.Fatalf("no conditions in %v", status)
	}
	for _, c := range list {
		m, ok := c.(map[string]any)
		if !ok || m["lastTransitionTime"] == nil {
			t.Fatalf("condition %v", c)
		}
		out = append(out, fmt.Sprintf("%s=%s/%s", m["type"], m["status"], m["reason"]))
	}
	return out
}

// TestSubscriptionConditions: R-SUB-42: each row of the table.
func TestSubscriptionConditions(t *testing.T) {
	t.Parallel()
	const healthy, missing = "CatalogSourcesUnhealthy=False/AllCatalogSourcesHealthy",
		"CatalogSourcesUnhealthy=True/UnhealthyCatalogSourceFound"
	ready := &protocol.CatalogState{State: "Ready"}
	bundles := []events.PlannedBundle{{Package: "tide", CSV: "tide.v2"}}
	for name, c := range map[string]struct {
		s    protocol.Subscription
		plan mirror.Plan
		want []string
	}{
		"nothing is wrong": {protocol.Subscription{Catalog: ready}, mirror.Plan{}, []string{healthy}},
		"no such catalog":  {protocol.Subscription{}, mirror.Plan{}, []string{missing}},
		"catalog that failed": {protocol.Subscription{
			Catalog: &protocol.CatalogState{State: "Failed", Reason: "Unreachable"},
		}, mirror.Plan{}, []string{missing}},
		"catalog that is loaded": {
			protocol.Subscription{Catalog: &protocol.CatalogState{State: "Loading"}},
			mirror.Plan{},
			[]string{"CatalogSourcesUnhealthy=True/CatalogSourcesAdded"},
		},
		"does not resolve": {
			protocol.Subscription{Catalog: ready, Failed: "ConstraintsNotSatisfiable"},
			mirror.Plan{},
			[]string{healthy, "ResolutionFailed=True/ConstraintsNotSatisfiable"},
		},
		"its bundle is fetched": {
			protocol.Subscription{Catalog: ready, Failed: "BundleUnpacking"},
			mirror.Plan{},
			[]string{healthy, "BundleUnpacking=True/UnpackingInProgress"},
		},
		"its bundle cannot be had": {
			protocol.Subscription{Catalog: ready, Failed: "BundleUnpackFailed"},
			mirror.Plan{},
			[]string{healthy, "BundleUnpackFailed=True/BundleUnpackFailed"},
		},
		"catalog fails it": {
			protocol.Subscription{Failed: "CatalogSourcesUnhealthy"},
			mirror.Plan{},
			[]string{missing},
		},
		"waits for approval": {
			protocol.Subscription{Catalog: ready},
			mirror.Plan{Phase: mirror.PlanWaiting},
			[]string{healthy, "InstallPlanPending=True/RequiresApproval"},
		},
		"not begun": {protocol.Subscription{Catalog: ready}, mirror.Plan{}, []string{healthy}},
		"under way": {
			protocol.Subscription{Catalog: ready},
			mirror.Plan{Phase: protocol.PlanStarted},
			[]string{healthy, "InstallPlanPending=True/Installing"},
		},
		"blocked": {
			protocol.Subscription{Catalog: ready},
			mirror.Plan{Phase: protocol.PlanBlocked},
			[]string{healthy, "InstallPlanPending=True/Installing"},
		},
		"failed": {
			protocol.Subscription{Catalog: ready},
			mirror.Plan{Phase: protocol.PlanFailed},
			[]string{healthy, "InstallPlanFailed=True/InstallComponentFailed"},
		},
		"finished": {
			protocol.Subscription{Catalog: ready},
			mirror.Plan{Phase: protocol.PlanFinished},
			[]string{healthy},
		},
	} {
		c.s.Name, c.s.Spec = "tide", events.SubscriptionSpec{Package: "tide", Catalog: "fleet"}
		var plans []mirror.Plan
		if c.plan.Phase != "" {
			c.plan.ID, c.plan.Name, c.plan.Bundles = "p", "install-abcde", bundles
			plans = append(plans, c.plan)
		}
		o := mirror.Subscription("coast", c.s, mirror.Known{Plans: plans}, noon)
		if diff := cmp.Diff(c.want, said(t, o.Status)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestWaiting: R-IP-5, R-IP-10, R-SUB-21: a plan that waits is shown with its phase, and its subscription as pending.
func TestWaiting(t *testing.T) {
	t.Parallel()
	bundles := []events.PlannedBundle{{Package: "tide", CSV: "tide.v2"}}
	plans := mirror.Waiting([]protocol.WaitingPlan{
		{ID: "a", Name: "install-a", Bundles: bundles}, {
			ID: "b", Name: "install-b", Bundles: bundles, Approved: true,
			Message: "it waits for its maintenance window",
		},
	})
	manual := []protocol.Subscription{{Name: "tide", Spec: events.SubscriptionSpec{
		Package: "tide", Catalog: "fleet",
		Approval: "Manual",
	}}}
	for i, want := range []struct {
		approved bool
		phase    string
	}{{false, "RequiresApproval"}, {true, "Installing"}} {
		o := mirror.InstallPlan("coast", plans[i], manual)
		spec, _ := o.Body["spec"].(map[string]any)
		if spec["approved"] != want.approved || spec["approval"] != "Manual" || o.Status["phase"] != want.phase {
			t.Errorf("shown as %v, %v", spec, o.Status)
		}
	}
	s := mirror.Subscription("coast", manual[0], mirror.Known{Plans: plans[:1]}, noon)
	ref, _ := s.Status["installPlanRef"].(map[string]any)
	if s.Status["currentCSV"] != "tide.v2" || s.Status["state"] != "UpgradePending" || ref["name"] != "install-a" {
		t.Errorf("shown as %v", s.Status)
	}
}

// TestCatalogSources: each catalog that is there is shown once, beside the subscriptions that name it.
func TestCatalogSources(t *testing.T) {
	t.Parallel()
	of := func(catalog string, state *protocol.CatalogState) protocol.Subscription {
		return protocol.Subscription{Name: catalog, Spec: events.SubscriptionSpec{Catalog: catalog}, Catalog: state}
	}
	list := mirror.CatalogSources("coast", []protocol.Subscription{
		of("fleet", &protocol.CatalogState{
			State: "Ready", Priority: 3, DisplayName: "Fleet operators",
			Publisher: "Dock Ltd",
		}),
		of("fleet", &protocol.CatalogState{State: "Ready", Priority: 3}), of("gone", nil),
		of("away", &protocol.CatalogState{State: "Failed", Reason: "Unreachable"}),
		of("new", &protocol.CatalogState{State: "Loading"}),
	})
	var got []string
	for _, o := range list {
		c, _ := o.Status["connectionState"].(map[string]any)
		got = append(got, fmt.Sprint(o.Namespace, "/", o.Name, " ", c["lastObservedState"]))
	}
	// R-CAT-84
	want := map[string]any{
		"sourceType": "grpc", "priority": int64(3), "displayName": "Fleet operators",
		"publisher": "Dock Ltd",
	}
	if diff := cmp.Diff(want, list[0].Body["spec"]); diff != "" {
		t.Error(diff)
	}
	if want := []string{"coast/fleet READY", "coast/away TRANSIENT_FAILURE", "coast/new CONNECTING"}; !slices.Equal(
		got, want) {
		t.Errorf("got %q", got)
	}
}

// TestNamespaceToCome: what is on its way into a namespace that is not there is shown where it can be.
func TestNamespaceToCome(t *testing.T) {
	t.Parallel()
	o := mirror.OperatorOf("coast", "tide", nil, true, noon)
	text := fmt.Sprint(o.Status)
	if o.Namespace != "" || o.Name != "tide.coast" || !strings.Contains(text, "NamespaceToCome") {
		t.Errorf("shown as %s", text)
	}
}

// TestDeprecationConditions: R-CAT-15, R-SUB-41: what the catalog deprecates is told of the package, the channel that
// is followed and the bundle that is installed, with a roll-up; nothing of a channel where none is named, nor of what
// is not installed.
func TestDeprecationConditions(t *testing.T) {
	t.Parallel()
	all := []protocol.Deprecation{
		{Schema: "olm.package", Name: "tide", Message: "use buoy"},
		{Schema: "olm.channel", Name: "steady", Message: "use fast"},
		{Schema: "olm.bundle", Name: "tide.v1", Message: "upgrade"},
	}
	installed := []mirror.Operator{{Name: "tide.v1", Package: "tide"}}
	for name, c := range map[string]struct {
		channel   string
		installed []mirror.Operator
		list      []protocol.Deprecation
		want      []string
	}{
		"nothing": {"steady", installed, nil, nil},
		"all": {"steady", installed, all, []string{
			"PackageDeprecated: olm.package/tide: use buoy", "ChannelDeprecated: olm.channel/steady: use fast",
			"BundleDeprecated: olm.bundle/tide.v1: upgrade",
			"Deprecated: olm.package/tide: use buoy; olm.channel/steady: use fast; olm.bundle/tide.v1: upgrade",
		}},
		"no channel is named": {"", installed, all[1:2], nil},
		"another bundle is installed by now": {
			"fast",
			[]mirror.Operator{{Name: "tide.v2", Package: "tide"}},
			all[1:],
			nil,
		},
		"not installed": {"steady", nil, all[2:], nil},
	} {
		s := protocol.Subscription{
			Spec:         events.SubscriptionSpec{Package: "tide", Channel: c.channel},
			Deprecations: c.list, Catalog: &protocol.CatalogState{State: "Ready"},
		}
		var got []string
		list, ok := mirror.Subscription("coast", s, mirror.Known{Installed: c.installed},
			noon).Status["conditions"].([]any)
		if !ok {
			t.Fatalf("%s: no conditions", name)
		}
		for _, e := range list {
			if m, ok := e.(map[string]any); ok && m["reason"] == "Deprecated" && m["status"] == "True" {
				got = append(got, fmt.Sprintf("%s: %s", m["type"], m["message"]))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestOverrides: R-COND-2, R-COND-6: only the overrides are written, whole as every version of the kind wants them and
// the same each time; none take them back.
func TestOverrides(t *testing.T) {
	t.Parallel()
	got := mirror.Overrides("ops", "tide.v1", &protocol.Overrides{
		Conditions: []events.ConditionOverride{{Type: "Upgradeable", Status: "True", Reason: "Tested"}}, Since: noon,
	})
	want := map[string]any{"overrides": []any{map[string]any{
		"type": "Upgradeable", "status": "True", "reason": "Tested", "message": mirror.OverrideMessage,
		"lastTransitionTime": noon.UTC().Format(time.RFC3339),
	}}}
	if diff := cmp.Diff(want, got.Body["spec"]); diff != "" || got.Body["apiVersion"] != "operators.coreos.com/v2" {
		t.Errorf("of %v (-want +got):\n%s", got.Body["apiVersion"], diff)
	}
	if _, says := mirror.Overrides("ops", "tide.v1", nil).Body["spec"]; says {
		t.Error("no overrides say something")
	}
}
