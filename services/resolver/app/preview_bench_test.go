package app_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/previewapi"
)

// BenchmarkPreview measures a dry run of one subscription, the pages of 200 namespaces that a revision touches, the
// check of them while nothing changed, and a page of a shadow run over as many decisions.
func BenchmarkPreview(b *testing.B) {
	f := newFleet(b)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.addCatalog("staging", func(c *events.CatalogAdded) { c.Visibility.Cluster = "nowhere" })
	rev := f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	for i := range previewapi.MaxPageScopes {
		ns := fmt.Sprintf("ns-%d", i)
		at := cluster + "/" + ns + "/"
		f.append(events.Gateway, events.KindOperatorGroup, at+"og", at+"og",
			events.OperatorGroupCreated{Cluster: cluster, Namespace: ns, Name: "og"})
		f.append(events.Gateway, events.KindSubscription, at+"buoy", at+"buoy", events.SubscriptionCreated{
			Cluster: cluster, Namespace: ns, Name: "buoy",
			Spec: events.SubscriptionSpec{
				Package: "buoy", Channel: "stable", Catalog: "fleet",
				Approval: installplan.Manual,
			},
		})
	}
	next := f.publish("staging", rev, f.pkg("buoy", version{v: "1.1.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
	f.quiet()
	ask := func(b *testing.B, subject string, in, out any) {
		b.Helper()
		if err := f.gateway.Call(f.ctx, subject, in, out); err != nil {
			b.Fatal(err)
		}
	}
	one := f.supposed(scoped("buoy"), 1, events.SubscriptionCreated{
		Cluster: cluster, Namespace: namespace, Name: "buoy",
		Spec: events.SubscriptionSpec{
			Package: "buoy", Channel: "stable", Catalog: "fleet",
			Approval: installplan.Manual,
		},
	})
	b.Run("subscription", func(b *testing.B) {
		for b.Loop() {
			var page previewapi.Page
			ask(b, previewapi.PreviewSubject, previewapi.Question{
				Tenant: tenant, ID: uuid.New(), Cluster: cluster,
				Namespace: namespace, Hypotheses: []previewapi.Hypothesis{one},
			}, &page)
			if page.Totals.Plans != 1 {
				b.Fatalf("previewed %+v", page.Totals)
			}
		}
	})
	q := previewapi.Question{
		Tenant: tenant, Limit: previewapi.MaxPageScopes,
		Hypotheses: []previewapi.Hypothesis{f.supposed("fleet", 0, events.CatalogRevisionPublished{Revision: next})},
	}
	b.Run("revision/200-namespaces", func(b *testing.B) {
		for b.Loop() {
			var page previewapi.Page
			q.ID = uuid.New()
			ask(b, previewapi.PreviewSubject, q, &page)
			for page.Next != nil {
				r := previewapi.PageRequest{
					Tenant: tenant, ID: q.ID, After: *page.Next,
					Limit: previewapi.MaxPageScopes,
				}
				page = previewapi.Page{}
				ask(b, previewapi.ReadSubject, r, &page)
			}
			if page.Totals.Plans != previewapi.MaxPageScopes {
				b.Fatalf("previewed %+v", page.Totals)
			}
		}
	})
	b.Run("check/200-namespaces", func(b *testing.B) {
		for b.Loop() {
			var v previewapi.CheckResult
			ask(b, previewapi.CheckSubject, previewapi.PageRequest{
				Tenant: tenant, ID: q.ID, Limit: previewapi.MaxPageScopes,
			}, &v)
			if len(v.Changed) > 0 {
				b.Fatalf("changed %v", v.Changed)
			}
		}
	})
	b.Run("shadow/200-decisions", func(b *testing.B) {
		for b.Loop() {
			var page previewapi.ShadowPage
			ask(b, previewapi.ShadowSubject, previewapi.ShadowQuestion{
				Tenant: tenant, Catalog: "fleet", Revision: next,
				Limit: previewapi.MaxPageScopes,
			}, &page)
			if len(page.Differences) != previewapi.MaxPageScopes {
				b.Fatalf("%d differences", len(page.Differences))
			}
		}
	})
}
