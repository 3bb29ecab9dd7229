package app_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/whatif"
)

// shadow runs all pages of a shadow run.
func (f *fleet) shadow(q whatif.ShadowQuestion) (same, missing int, list []string) {
	f.t.Helper()
	q.Tenant, q.Limit = tenant, 2
	for {
		var page whatif.ShadowPage
		f.must(f.nats.Bus.Ask(f.ctx, whatif.ShadowSubject, q, &page))
		same, missing = same+page.Same, missing+page.Missing
		for _, d := range page.Differences {
			if len(d.Why) == 0 {
				f.t.Errorf("no reason for %+v", d)
			}
			list = append(list, fmt.Sprintf("%s/%s: %s %s%s → %s %s%s", d.Namespace, d.Subscription, d.Before.Kind, d.Before.CSV, d.Before.Reason, d.After.Kind, d.After.CSV, d.After.Reason))
		}
		if page.Next == "" {
			return same, missing, list
		}
		q.After = page.Next
	}
}

// TestShadowListsWhatWouldComeOutDifferently: recorded decisions are the same by this build, and differ beside a
// catalog's other revision or a policy exactly where these matter; nothing is written (capability 3).
func TestShadowListsWhatWouldComeOutDifferently(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.addCatalog("staging", func(c *events.CatalogAdded) { c.Visibility.Cluster = "nowhere" })
	gauge := f.pkg("gauge", version{v: "1.0.0"})
	one := []version{{v: "1.0.0"}}
	two := []version{{v: "2.0.0", replaces: "1.0.0"}, {v: "1.0.0"}}
	rev := f.publish("fleet", "", f.pkg("buoy", one...), gauge, f.pkg("tide", version{v: "1.0.0", requires: []string{"Wind"}}))
	f.subscribe("buoy", "buoy", "stable", manual)
	f.subscribe("gauge", "gauge", "stable")
	f.subscribe("tide", "tide", "stable")
	f.subscribe("typo", "buoi", "stable")
	f.quiet()
	f.publish("staging", rev, f.pkg("buoy", two...), gauge, f.pkg("tide", version{v: "1.0.0", requires: []string{"Wind"}}), f.pkg("wind", version{v: "1.0.0", provides: []string{"Wind"}}))
	f.quiet()
	var next string
	f.must(f.pools[events.Resolver].QueryRow(f.ctx, `select revision from resolver.catalog_revisions where subject = 'staging'`).Scan(&next))

	before := f.traces()
	if same, missing, list := f.shadow(whatif.ShadowQuestion{}); same != 4 || missing != 0 || list != nil {
		t.Errorf("by this build: %d the same, %d missing, differences %v", same, missing, list)
	}
	if same, _, list := f.shadow(whatif.ShadowQuestion{From: &events.Position{Epoch: 1}}); same < 4 || list != nil {
		t.Errorf("by this build, from the beginning: %d the same, differences %v", same, list)
	}
	same, _, list := f.shadow(whatif.ShadowQuestion{Catalog: "fleet", Revision: next})
	want := []string{
		"coast-ops/buoy: Planned buoy.v1.0.0 → Planned buoy.v2.0.0",
		"coast-ops/tide: Failed ConstraintsNotSatisfiable → Planned tide.v1.0.0",
	}
	if diff := cmp.Diff(want, list); diff != "" || same != 2 {
		t.Errorf("beside the revision: %d the same, differences (-want +got):\n%s", same, diff)
	}
	policy := &events.ApprovalPolicySet{Name: "pinned", Spec: events.ApprovalPolicySpec{
		Selector: events.PolicySelector{Packages: []string{"gauge"}}, Versions: events.PolicyVersions{Ceiling: "0.9.0"},
	}}
	same, _, list = f.shadow(whatif.ShadowQuestion{Policy: policy})
	if len(list) != 1 || same != 3 {
		t.Errorf("beside the policy: %d the same, differences %v", same, list)
	}
	if after := f.traces(); after != before {
		t.Errorf("left %s, before %s", after, before)
	}
	var page whatif.ShadowPage
	err := f.nats.Bus.Ask(f.ctx, whatif.ShadowSubject, whatif.ShadowQuestion{Tenant: tenant, Catalog: "fleet"}, &page)
	if !errs.Is(err, errs.Invalid) {
		t.Errorf("a catalog without a revision gives %v", err)
	}
}
