package app_test

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
)

// TestCatalogOfOneNamespace is R-CAT-85 and R-NAD-4: what a namespace's own catalog offers is planned there, and in
// no other namespace, whether a subscription there names the catalog or none.
func TestCatalogOfOneNamespace(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.groupIn("elsewhere", events.OperatorGroupSpec{})
	own := scoped("curated")
	f.addCatalog(own, func(c *events.CatalogAdded) {
		c.Visibility = events.CatalogVisibility{Cluster: cluster, Namespace: namespace}
	})
	f.publish(own, "", f.pkg("gauge", version{v: "1.0.0"}))
	for in, catalogs := range map[string][]string{namespace: {"curated"}, "elsewhere": {"curated", ""}} {
		for _, name := range catalogs {
			spec := events.SubscriptionSpec{
				Package: "gauge", Channel: "stable", Catalog: name,
				Approval: installplan.Automatic,
			}
			if name != "" {
				spec.CatalogNamespace = namespace
			}
			subject := cluster + "/" + in + "/gauge" + name
			f.append(events.Gateway, events.KindSubscription, subject, subject,
				events.SubscriptionCreated{Cluster: cluster, Namespace: in, Name: "gauge" + name, Spec: spec})
		}
	}
	f.quiet()
	if p := f.livePlan().Proposed; p.Namespace != namespace || p.Bundles[0].CSV != "gauge.v1.0.0" {
		t.Errorf("planned %+v", p)
	}
	var told []string
	for _, e := range f.recorded() {
		if p, ok := e.Payload.(events.ResolutionFailed); ok {
			told = append(told, e.Subject+": "+f.explanation(p.Explanation))
		}
	}
	all := strings.Join(told, "\n")
	if len(told) != 2 || strings.Contains(all, namespace+"/gauge:") ||
		!strings.Contains(all, "no such catalog is visible here") {
		t.Errorf("told:\n%s", all)
	}
}

// TestHiddenCatalogIsNotTheFleets: a subscription that names another namespace's own catalog is told that none is
// visible, and is not planned from the fleet's catalog of that name; it is, once nobody has a catalog there
// (R-CAT-85, R-CAT-86).
func TestHiddenCatalogIsNotTheFleets(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.groupIn("elsewhere", events.OperatorGroupSpec{})
	f.addCatalog("curated")
	f.publish("curated", "", f.pkg("gauge", version{v: "2.0.0"}))
	own := scoped("curated")
	f.addCatalog(own, func(c *events.CatalogAdded) {
		c.Visibility = events.CatalogVisibility{Cluster: cluster, Namespace: namespace}
	})
	subject := cluster + "/elsewhere/gauge"
	f.append(events.Gateway, events.KindSubscription, subject, subject, events.SubscriptionCreated{
		Cluster: cluster, Namespace: "elsewhere", Name: "gauge",
		Spec: events.SubscriptionSpec{
			Package: "gauge", Channel: "stable", Catalog: "curated",
			CatalogNamespace: namespace, Approval: installplan.Automatic,
		},
	})
	f.quiet()
	told := ""
	for _, e := range f.recorded() {
		switch p := e.Payload.(type) {
		case events.ResolutionFailed:
			told += f.explanation(p.Explanation)
		case events.InstallPlanProposed:
			t.Errorf("planned from another catalog: %+v", p.Bundles)
		}
	}
	if !strings.Contains(told, "from catalog "+namespace+
		"/curated referenced by subscription gauge: no such catalog is visible here") {
		t.Errorf("told %q", told)
	}
	f.append(events.Gateway, events.KindCatalog, own, own, events.CatalogRemoved{})
	f.quiet()
	if p := f.livePlan().Proposed; p.Namespace != "elsewhere" || p.Bundles[0].CSV != "gauge.v2.0.0" ||
		p.Bundles[0].Catalog != "curated" {
		t.Errorf("planned %+v", p)
	}
}
