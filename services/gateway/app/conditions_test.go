package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// lastEvent is the id and the time of the newest event of a type.
func (b *bench) lastEvent(t events.Payload) (id string, at time.Time) {
	b.t.Helper()
	page := must[struct{ Items []model.Event }](b, 200,
		b.do("GET", "/api/v1/events?limit=1000&type="+string(t.EventType()), nil))
	if len(page.Items) == 0 {
		b.t.Fatalf("no event of type %s", t.EventType())
	}
	e := page.Items[len(page.Items)-1]
	return e.ID, e.Time
}

// TestEveryConditionNamesItsEvent walks the table of R-SUB §4.5: each condition is there while its meaning holds and
// gone when it does not, and names the event that set it, with its time (R-SUB-40, R-SUB-41, R-SUB-42, P3).
func TestEveryConditionNamesItsEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	const subject = "spoke/ops/tidegauge"
	must[model.Subscription](b, 201, b.do("POST", subscriptions, subscribe("tidegauge", "tidegauge")))
	// holds wants one condition, set by the newest event of a type; by nil wants that it does not hold.
	holds := func(typ, reason string, by events.Payload) model.Condition {
		t.Helper()
		s := must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"), nil))
		for _, c := range s.Status.Conditions {
			if c.Type != typ || c.Status != "True" {
				continue
			}
			if by == nil {
				t.Errorf("%s holds still: %+v", typ, c)
				return c
			}
			if id, at := b.lastEvent(by); c.Reason != reason || c.Event != id ||
				!c.Since.Equal(at.Truncate(time.Second)) {
				// as answers have it
				t.Errorf("%s: reason %q of event %s at %s, want %q of %s at %s", typ, c.Reason, c.Event, c.Since,
					reason, id, at)
			}
			return c
		}
		if by != nil {
			t.Errorf("%s does not hold: %s", typ, conditionsOf(s))
		}
		return model.Condition{}
	}
	b.position = ""
	b.until(func() bool { return b.do("GET", subscriptions+"/tidegauge", nil).status == 200 })
	holds("CatalogSourcesUnhealthy", "NoCatalogSourcesFound", events.SubscriptionCreated{})
	other := must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		model.AddCatalog{Name: "other", Source: model.CatalogSource{Type: "directory", Path: "/o"}}))
	b.position = other.Position
	b.do("GET", b.seen("/api/v1/catalogs"), nil)
	holds("CatalogSourcesUnhealthy", "UnhealthyCatalogSourceFound", events.SubscriptionCreated{})
	fleet := must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		model.AddCatalog{Name: "fleet", Source: model.CatalogSource{Type: "directory", Path: "/f"}}))
	b.position = fleet.Position
	holds("CatalogSourcesUnhealthy", "CatalogSourcesAdded", events.CatalogAdded{})
	b.published("fleet", fleet.Stream, "sha256:"+strings.Repeat("1", 64), tidegauge(), buoy())
	holds("CatalogSourcesUnhealthy", "", nil)

	fail := func(reason string) {
		b.fact(events.Resolver, events.KindSubscription, subject, subject,
			events.ResolutionFailed{Reason: reason, Explanation: "sha256:" + reason})
	}
	for reason, want := range map[string][2]string{
		"ConstraintsNotSatisfiable": {"ResolutionFailed", "ConstraintsNotSatisfiable"},
		"ErrorPreventedResolution":  {"ResolutionFailed", "ErrorPreventedResolution"},
		"BundleUnpacking":           {"BundleUnpacking", "UnpackingInProgress"},
		"BundleUnpackFailed":        {"BundleUnpackFailed", "BundleUnpackFailed"},
		"CatalogSourcesUnhealthy":   {"CatalogSourcesUnhealthy", "UnhealthyCatalogSourceFound"},
	} {
		fail(reason)
		holds(want[0], want[1], events.ResolutionFailed{})
		b.fact(events.Resolver, events.KindSubscription, subject, subject,
			events.ResolutionSucceeded{Outcome: "Planned", CSV: "tidegauge.v1.1.0", Plan: "p"})
		holds(want[0], "", nil)
	}

	plan := uuid.NewString()
	p := proposed(plan, "install-aaaaa", "tidegauge.v1.1.0", "tidegauge")
	p.Generation = 7
	p.Windows = []events.WindowGroup{{Policy: "never", Windows: []events.Window{
		{Days: []string{weekdayInThreeDays()}, Start: "12:00", Minutes: 10, TimeZone: "UTC"},
	}}}
	about := func(e ...events.Payload) {
		b.fact(events.Installer, events.KindInstallPlan, plan, "spoke/ops/install-aaaaa", e...)
	}
	b.fact(events.Resolver, events.KindInstallPlan, plan, "spoke/ops/install-aaaaa", p)
	holds("InstallPlanPending", "RequiresApproval", events.InstallPlanProposed{})
	b.fact(events.Gateway, events.KindInstallPlan, plan, "spoke/ops/install-aaaaa",
		events.InstallPlanApproved{Digest: p.Digest, Base: p.Base, Expires: time.Now().Add(96 * time.Hour)})
	if c := holds("InstallPlanPending", "MaintenanceWindow", events.InstallPlanApproved{}); !strings.Contains(
		c.Message, "opens at ") || !strings.Contains(c.Message, "T12:00:00Z") {
		t.Errorf("message %q", c.Message)
	}
	b.fact(events.Gateway, events.KindInstallPlan, plan, "spoke/ops/install-aaaaa",
		events.InstallPlanApproved{Digest: p.Digest, Base: p.Base, Expires: time.Now().Add(-time.Second)})
	if s := must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"),
		nil)); s.Status.InstallPlan.Phase != "RequiresApproval" ||
		!strings.Contains(conditionsOf(s), "InstallPlanPending=True:RequiresApproval") {
		t.Errorf("an approval that expired: %+v", s.Status)
	}
	about(events.InstallPlanStarted{Steps: 3})
	holds("InstallPlanPending", "Installing", events.InstallPlanStarted{})
	about(events.InstallPlanBlocked{Class: "transient", Reason: "ClusterUnreachable"})
	if c := holds("InstallPlanPending", "Installing", events.InstallPlanBlocked{}); !strings.Contains(
		c.Message, "waits: ClusterUnreachable") {
		t.Errorf("message %q", c.Message)
	}
	about(events.InstallPlanFailed{Step: 2, Reason: "Invalid"})
	holds("InstallPlanFailed", "Invalid", events.InstallPlanFailed{})
	holds("InstallPlanPending", "", nil)
	s := must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"), nil))
	if s.Status.InstallPlanGeneration != 7 || len(s.Status.CatalogHealth) != 2 || !s.Status.CatalogHealth[0].Healthy ||
		s.Status.CatalogHealth[0].Event == "" ||
		s.Status.CatalogHealth[1].Catalog != "other" || s.Status.CatalogHealth[1].Healthy ||
		s.Status.CatalogHealth[1].State != "Loading" {
		t.Errorf("status %+v", s.Status)
	}

	second := uuid.NewString()
	b.fact(events.Resolver, events.KindInstallPlan, second, "spoke/ops/install-bbbbb",
		proposed(second, "install-bbbbb", "tidegauge.v1.1.0", "tidegauge"))
	holds("InstallPlanFailed", "", nil)
	b.fact(events.Resolver, events.KindInstallPlan, second, "spoke/ops/install-bbbbb", events.InstallPlanSuperseded{})
	holds("InstallPlanMissing", "ReferencedInstallPlanNotFound", events.InstallPlanSuperseded{})
	b.fact(events.Resolver, events.KindSubscription, subject, subject,
		events.ResolutionSucceeded{Outcome: "AtLatestKnown", CSV: "tidegauge.v1.1.0"})
	holds("InstallPlanMissing", "", nil)

	// A start that crossed the end of its plan is true all the same: the subscription refers to the plan again.
	third := uuid.NewString()
	about = func(e ...events.Payload) {
		b.fact(events.Installer, events.KindInstallPlan, third, "spoke/ops/install-ccccc", e...)
	}
	crossed := proposed(third, "install-ccccc", "tidegauge.v1.1.0", "tidegauge")
	crossed.Generation = 9
	b.fact(events.Resolver, events.KindInstallPlan, third, "spoke/ops/install-ccccc", crossed,
		events.InstallPlanSuperseded{})
	holds("InstallPlanMissing", "ReferencedInstallPlanNotFound", events.InstallPlanSuperseded{})
	if s := must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"),
		nil)); s.Status.InstallPlan != nil || s.Status.InstallPlanGeneration != 0 {
		t.Errorf("a superseded plan is referred to: %+v", s.Status)
	}
	about(events.InstallPlanStarted{Steps: 3})
	holds("InstallPlanMissing", "", nil)
	holds("InstallPlanPending", "Installing", events.InstallPlanStarted{})
	if s := must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"),
		nil)); s.Status.InstallPlan == nil || s.Status.InstallPlan.Name != "install-ccccc" ||
		s.Status.InstallPlanGeneration != 9 {
		t.Errorf("a plan that is carried out is not referred to: %+v", s.Status)
	}
	about(events.InstallPlanFinished{Steps: 3})
	b.fact(events.Resolver, events.KindSubscription, subject, subject,
		events.ResolutionSucceeded{Outcome: "AtLatestKnown", CSV: "tidegauge.v1.1.0"})

	// Deprecations: by the event that deprecates, or by the one that made it matter, whichever came later.
	const csv = "spoke/ops/tidegauge.v1.1.0"
	b.fact(events.Installer, events.KindCSV, csv, csv, events.CSVPhaseChanged{
		Cluster: "spoke", Namespace: "ops",
		Name: "tidegauge.v1.1.0", Package: "tidegauge", Phase: "Succeeded",
	})
	fast := subscribe("tidegauge", "tidegauge").SubscriptionSpec
	fast.Channel = "fast"
	b.position = must[model.Subscription](b, 200, b.do("PUT", subscriptions+"/tidegauge", fast)).Position
	holds("ChannelDeprecated", "Deprecated", events.SubscriptionChanged{})
	holds("Deprecated", "Deprecated", events.SubscriptionChanged{})
	old := tidegauge()
	old.Deprecations[0].Schema, old.Deprecations[0].Name = "olm.bundle", "tidegauge.v1.1.0"
	revision := "sha256:" + strings.Repeat("2", 64)
	b.published("fleet", fleet.Stream, revision, old, buoy())
	b.fact(events.Indexer, events.KindCatalog, "fleet", "fleet",
		events.CatalogRevisionPublished{Revision: revision, Previous: "x", Changes: []events.PackageChange{{
			Package: "tidegauge", Change: "changed", Deprecated: []string{"olm.bundle/tidegauge.v1.1.0"},
			Undeprecated: []string{"olm.channel/fast"},
		}}})
	holds("ChannelDeprecated", "", nil)
	deprecated := holds("BundleDeprecated", "Deprecated", events.CatalogRevisionPublished{})
	b.fact(events.Indexer, events.KindCatalog, "fleet", "fleet",
		events.CatalogRevisionPublished{
			Revision: "sha256:3", Previous: revision,
			Changes: []events.PackageChange{{Package: "buoy", Change: "changed"}},
		})
	s = must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"), nil))
	if c := s.Status.Conditions[len(s.Status.Conditions)-1]; c.Type != "Deprecated" || c.Event != deprecated.Event {
		t.Errorf("an unrelated revision moved the condition: %+v", c)
	}

	b.broken("fleet", events.CatalogLoadFailed{Reason: "InvalidCatalog"})
	holds("CatalogSourcesUnhealthy", "UnhealthyCatalogSourceFound", events.CatalogLoadFailed{})
	b.position = must[model.Removed](b, 200, b.do("DELETE", "/api/v1/catalogs/fleet", nil)).Position
	b.do("GET", b.seen("/api/v1/catalogs"), nil)
	holds("CatalogSourcesUnhealthy", "CatalogSourcesDeleted", events.CatalogRemoved{})
}

// weekdayInThreeDays is a day whose window is not open now, whatever the time.
func weekdayInThreeDays() string {
	return time.Now().UTC().Add(72 * time.Hour).Weekday().String()[:3]
}

// TestHealthOfAVariant: a cluster's subscription is told of the variant of a templated catalog that the cluster sees,
// whatever becomes of the others (R-CAT-92, P3).
func TestHealthOfAVariant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.fact(events.Installer, events.KindCluster, "spoke", "spoke",
		events.ClusterObserved{State: "Connected", KubernetesVersion: "v1.34.2"})
	b.do("GET", b.seen("/api/v1/clusters"), nil)
	must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs",
		`{"name": "fleet", "source": {"type": "image", "template": "registry.example.test/a:v{kube_major_version}.{kube_minor_version}"}}`))
	must[model.Subscription](b, 201, b.do("POST", subscriptions, subscribe("tidegauge", "tidegauge")))
	b.fact(events.Indexer, events.KindCatalog, "fleet", "fleet",
		events.CatalogRevisionPublished{Revision: "sha256:a", Variant: "1.34"},
		events.CatalogLoadFailed{Reason: "TemplateUnresolved", Variant: "1.9"})
	s := must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"), nil))
	if conditionsOf(s) != "CatalogSourcesUnhealthy=False:AllCatalogSourcesHealthy" {
		t.Errorf("the variant of another cluster counts: %s", conditionsOf(s))
	}
	b.fact(events.Indexer, events.KindCatalog, "fleet", "fleet",
		events.CatalogLoadFailed{Reason: "InvalidCatalog", Variant: "1.34", Input: "2"})
	s = must[model.Subscription](b, 200, b.do("GET", b.seen(subscriptions+"/tidegauge"), nil))
	if conditionsOf(s) != "CatalogSourcesUnhealthy=True:UnhealthyCatalogSourceFound" {
		t.Errorf("the own variant does not count: %s", conditionsOf(s))
	}
}
