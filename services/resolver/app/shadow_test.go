package app_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
)

// shadow runs all pages of a shadow run.
func (f *fleet) shadow(q previewapi.ShadowQuestion) (same, missing int, list []string) {
	f.t.Helper()
	q.Tenant, q.Limit = tenant, 2
	for {
		var page previewapi.ShadowPage
		f.must(f.gateway.Call(f.ctx, previewapi.ShadowSubject, q, &page))
		same, missing = same+page.Same, missing+page.Missing
		for _, d := range page.Differences {
			if len(d.Why) == 0 {
				f.t.Errorf("no reason for %+v", d)
			}
			list = append(list, fmt.Sprintf("%s/%s: %s %s%s → %s %s%s", d.Namespace, d.Subscription, d.Before.Kind,
				d.Before.CSV, d.Before.Reason, d.After.Kind, d.After.CSV, d.After.Reason))
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
	rev := f.publish("fleet", "", f.pkg("buoy", one...), gauge,
		f.pkg("tide", version{v: "1.0.0", requires: []string{"Wind"}}))
	f.subscribe("buoy", "buoy", "stable", manual)
	f.subscribe("gauge", "gauge", "stable")
	f.subscribe("tide", "tide", "stable")
	f.subscribe("typo", "buoi", "stable")
	f.quiet()
	f.publish("staging", rev, f.pkg("buoy", two...), gauge,
		f.pkg("tide", version{v: "1.0.0", requires: []string{"Wind"}}),
		f.pkg("wind", version{v: "1.0.0", provides: []string{"Wind"}}))
	f.quiet()
	var next string
	f.must(f.pools[events.Resolver].QueryRow(f.ctx,
		`select revision from resolver.catalog_revisions where subject = 'staging'`).Scan(&next))

	before := f.traces()
	if same, missing, list := f.shadow(previewapi.ShadowQuestion{}); same != 4 || missing != 0 || list != nil {
		t.Errorf("by this build: %d the same, %d missing, differences %v", same, missing, list)
	}
	if same, _, list := f.shadow(previewapi.ShadowQuestion{From: &events.Position{Epoch: 1}}); same < 4 || list != nil {
		t.Errorf("by this build, from the beginning: %d the same, differences %v", same, list)
	}
	same, _, list := f.shadow(previewapi.ShadowQuestion{Catalog: "fleet", Revision: next})
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
	same, _, list = f.shadow(previewapi.ShadowQuestion{Policy: policy})
	if len(list) != 1 || same != 3 {
		t.Errorf("beside the policy: %d the same, differences %v", same, list)
	}
	if after := f.traces(); after != before {
		t.Errorf("left %s, before %s", after, before)
	}
	var page previewapi.ShadowPage
	err := f.gateway.Call(f.ctx, previewapi.ShadowSubject, previewapi.ShadowQuestion{Tenant: tenant, Catalog: "fleet"},
		&page)
	if !errs.Is(err, errs.Invalid) {
		t.Errorf("a catalog without a revision gives %v", err)
	}
}

// TestQuestionsAboutWhatIsNotThereAreRefused: a catalog that is misspelt, disabled or offered elsewhere, a revision
// that is not stored and an operator that is not installed are named; "nothing would change" would be true and
// misleading (P19, capability 3).
func TestQuestionsAboutWhatIsNotThereAreRefused(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.addCatalog("off", func(c *events.CatalogAdded) { c.Disabled = true })
	f.addCatalog("elsewhere", func(c *events.CatalogAdded) { c.Visibility.Cluster = "nowhere" })
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	var known string
	f.must(f.pools[events.Resolver].QueryRow(f.ctx,
		`select revision from resolver.catalog_revisions where subject = 'fleet'`).Scan(&known))
	revision := func(catalog, r string) previewapi.Hypothesis {
		return f.supposed(catalog, 0, events.CatalogRevisionPublished{Revision: r})
	}
	on := f.supposed("off", 0, events.CatalogChanged{SourceType: "directory"})
	for _, c := range []struct {
		name, rule string
		kind       errs.Kind
		catalog    string // of a shadow run; "" for none
		revision   string
		list       []previewapi.Hypothesis
	}{
		{"a misspelt catalog", "catalog-known", errs.NotFound, "fleeet", known, nil},
		{"a disabled catalog", "catalog-offered", errs.Unprocessable, "off", known, nil},
		{"a catalog of other clusters", "catalog-offered", errs.Unprocessable, "elsewhere", known, nil},
		{"an unknown revision", "revision-known", errs.NotFound, "fleet", "sha256:none", nil},
		{
			"an operator that is not there", "operator-known", errs.NotFound, "", "",
			[]previewapi.Hypothesis{f.supposed(scoped("buoy.v9"), 0, events.CSVRemoved{})},
		},
		{
			"a disabled catalog that is enabled, too", "", "", "", "",
			[]previewapi.Hypothesis{on, revision("off", known)},
		},
		{"what is there", "", "", "fleet", known, nil},
	} {
		question := c.list
		if c.catalog != "" {
			question = []previewapi.Hypothesis{revision(c.catalog, c.revision)}
			err := f.gateway.Call(f.ctx, previewapi.ShadowSubject, previewapi.ShadowQuestion{
				Tenant: tenant, Cluster: cluster, Namespace: namespace, Catalog: c.catalog, Revision: c.revision,
			}, &previewapi.ShadowPage{})
			f.refused("a shadow run beside "+c.name, err, c.kind, c.rule)
		}
		err := f.gateway.Call(f.ctx, previewapi.PreviewSubject, previewapi.Question{
			Tenant: tenant, ID: uuid.New(), Cluster: cluster, Namespace: namespace, Hypotheses: question,
		}, &previewapi.Page{})
		f.refused("a preview of "+c.name, err, c.kind, c.rule)
	}
}

// refused wants an error of a kind and rule; none where the rule is "".
func (f *fleet) refused(what string, err error, kind errs.Kind, rule string) {
	f.t.Helper()
	if rule == "" {
		f.must(err)
		return
	}
	if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind != kind || e.Rule != rule {
		f.t.Errorf("%s gives %v", what, err)
	}
}
