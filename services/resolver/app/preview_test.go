package app_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/previewapi"
)

// change is a supposed event and how it comes about in earnest.
type change struct {
	name string
	list []previewapi.Hypothesis
	do   func()
}

func (f *fleet) supposed(subject string, incarnation int, p events.Payload) previewapi.Hypothesis {
	f.t.Helper()
	h, err := previewapi.NewHypothesis(subject, incarnation, p)
	f.must(err)
	return h
}

// preview asks for all pages of a preview.
func (f *fleet) preview(q previewapi.Question) (previewapi.Page, []previewapi.ScopePreview) {
	f.t.Helper()
	q.Tenant, q.ID = tenant, uuid.New()
	var page previewapi.Page
	f.must(f.gateway.Call(f.ctx, previewapi.PreviewSubject, q, &page))
	all := page.Scopes
	for page.Next != nil {
		r := previewapi.PageRequest{Tenant: tenant, ID: q.ID, After: *page.Next, Limit: q.Limit}
		page = previewapi.Page{}
		f.must(f.gateway.Call(f.ctx, previewapi.ReadSubject, r, &page))
		all = append(all, page.Scopes...)
	}
	return page, all
}

// changed is what makes a preview void.
func (f *fleet) changed(id uuid.UUID) []string {
	f.t.Helper()
	var v previewapi.CheckResult
	f.must(f.gateway.Call(f.ctx, previewapi.CheckSubject, previewapi.PageRequest{Tenant: tenant, ID: id}, &v))
	out := []string{}
	for _, c := range v.Changed {
		out = append(out, c.What)
	}
	return out
}

// traces counts everything that a preview must not leave behind.
func (f *fleet) traces() string {
	f.t.Helper()
	var out string
	f.must(f.db.Pool(f.t, "admin").QueryRow(f.ctx,
		`select concat_ws(' ', (select count(*) from eventlog.appended), (select count(*) from eventlog.events),
		(select count(*) from resolver.dirty), (select count(*) from resolver.wanted_images), (select count(*) from resolver.plan_documents),
		(select count(*) from resolver.inputs), (select count(*) from resolver.explanations), (select sum(decisions) from resolver.scopes),
		(select count(*) from resolver.content_references), (select md5(string_agg(r::text, ' ' order by r::text)) from resolver.reads r))`).Scan(&out))
	return out
}

// decidedAfter are the plans that were proposed, the plans that were superseded, and the failures that were told,
// behind a number of recorded events.
func (f *fleet) decidedAfter(n int) []string {
	f.t.Helper()
	out := []string{}
	for _, e := range f.recorded()[n:] {
		switch p := e.Payload.(type) {
		case events.InstallPlanProposed:
			out = append(out, "plan "+p.Component+" "+p.Approval+" "+p.Digest)
		case events.InstallPlanSuperseded:
			out = append(out, "superseded")
		case events.ResolutionFailed:
			out = append(out, "failed "+strings.SplitN(e.Subject, "/", 3)[2]+" "+p.Reason)
		}
	}
	slices.Sort(out)
	return out
}

// previewed is the same of a preview.
func previewed(list []previewapi.ScopePreview) []string {
	out := []string{}
	for _, o := range list {
		for _, p := range o.Plans {
			out = append(out, "plan "+p.Component+" "+p.Approval+" "+p.Digest)
		}
		for range o.Superseded {
			out = append(out, "superseded")
		}
		for _, x := range o.Failures {
			if x.News {
				for _, s := range x.Subscriptions {
					out = append(out, "failed "+s+" "+x.Reason)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestPreviewedPlansAreThoseProposed: over a random run, what a preview announces is what the real thing leads to,
// digest by digest, in every round; and asking leaves no trace (P19, capability 3).
func TestPreviewedPlansAreThoseProposed(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	w := &randomChanges{
		fleet: f, random: rand.New(rand.NewPCG(4, 1)), live: map[string]int{},
		versions: map[string]int{},
	}
	f.addCatalog("fleet")
	f.addCatalog("staging", func(c *events.CatalogAdded) { c.Visibility.Cluster = "nowhere" })
	w.revision = f.publish("fleet", "", w.packages()...)
	f.subscribe("buoy", "buoy", "stable")
	w.live["buoy"] = 1
	f.quiet()
	plans := 0
	const rounds = 40
	for round := range rounds {
		c := w.next()
		before, recorded := f.traces(), len(f.recorded())
		page, previews := f.preview(previewapi.Question{Hypotheses: c.list})
		if after := f.traces(); after != before {
			t.Fatalf("round %d: asking what comes of %s left traces: %s, before %s", round, c.name, after, before)
		}
		if changed := f.changed(page.ID); len(changed) > 0 {
			t.Fatalf("round %d: void at once: %v", round, changed)
		}
		if got := len(f.recorded()); got != recorded {
			t.Fatalf("round %d: %d events were recorded", round, got-recorded)
		}
		c.do()
		f.quiet()
		if diff := cmp.Diff(previewed(previews), f.decidedAfter(recorded)); diff != "" {
			t.Fatalf("round %d: %s (-previewed +decided):\n%s", round, c.name, diff)
		}
		plans += page.Totals.Plans
		if w.random.IntN(4) > 0 {
			for _, p := range f.plans() {
				if p.Live() {
					f.carryOut(p)
					f.quiet()
				}
			}
		}
	}
	if plans < rounds/4 {
		t.Errorf("only %d plans were previewed in %d rounds: the run proves little", plans, rounds)
	}
}

// TestPreviewIsVoidWhenWhatItRestsOnChanged: the check names what changed, and only what matters makes it void.
func TestPreviewIsVoidWhenWhatItRestsOnChanged(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	buoy := f.pkg("buoy", version{v: "1.0.0"})
	rev := f.publish("fleet", "", buoy)
	f.quiet()
	spec := events.SubscriptionSpec{Package: "buoy", Channel: "stable", Catalog: "fleet", Approval: installplan.Manual}
	h := f.supposed(scoped("buoy"), 1, events.SubscriptionCreated{
		Cluster: cluster, Namespace: namespace, Name: "buoy",
		Spec: spec,
	})
	page, previews := f.preview(previewapi.Question{
		Cluster: cluster, Namespace: namespace,
		Hypotheses: []previewapi.Hypothesis{h},
	})
	if len(previews) != 1 || len(previews[0].Plans) != 1 || previews[0].Plans[0].Approval != installplan.Manual ||
		len(previews[0].Plans[0].Document) == 0 {
		t.Fatalf("previewed %+v", previews)
	}
	f.append(events.Gateway, events.KindOperatorGroup, scoped("og"), scoped("og"),
		events.OperatorGroupChanged{Spec: events.OperatorGroupSpec{TargetNamespaces: []string{"other"}}})
	f.quiet()
	if diff := cmp.Diff([]string{"operator group og"}, f.changed(page.ID)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	page, _ = f.preview(previewapi.Question{
		Cluster: cluster, Namespace: namespace,
		Hypotheses: []previewapi.Hypothesis{h},
	})
	f.publish("fleet", rev, f.pkg("buoy", version{v: "1.1.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
	f.quiet()
	if diff := cmp.Diff([]string{"catalog fleet"}, f.changed(page.ID)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var v previewapi.CheckResult
	err := f.gateway.Call(f.ctx, previewapi.CheckSubject, previewapi.PageRequest{Tenant: "another", ID: page.ID}, &v)
	if !errs.Is(err, errs.NotFound) {
		t.Errorf("the preview of another tenant gives %v", err)
	}
}

// TestPreviewOfManyNamespaces: a revision is followed to every namespace that its difference touches, page by page;
// catalogs that are switched off, moved or removed, and operators that go, can be supposed, too.
func TestPreviewOfManyNamespaces(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.addCatalog("staging", func(c *events.CatalogAdded) { c.Visibility.Cluster = "nowhere" })
	buoy, gauge := f.pkg("buoy", version{v: "1.0.0"}), f.pkg("gauge", version{v: "1.0.0"})
	rev := f.publish("fleet", "", buoy, gauge)
	const namespaces = 7
	for i := range namespaces {
		ns := fmt.Sprintf("ns-%d", i)
		at := cluster + "/" + ns + "/"
		f.append(events.Gateway, events.KindOperatorGroup, at+"og", at+"og",
			events.OperatorGroupCreated{Cluster: cluster, Namespace: ns, Name: "og"})
		pkg := "buoy"
		if i == 3 {
			pkg = "gauge"
		}
		f.append(events.Gateway, events.KindSubscription, at+pkg, at+pkg, events.SubscriptionCreated{
			Cluster: cluster, Namespace: ns, Name: pkg,
			Spec: events.SubscriptionSpec{
				Package: pkg, Channel: "stable", Catalog: "fleet",
				Approval: installplan.Manual,
			},
		})
	}
	f.quiet()
	next := f.publish("staging", rev, f.pkg("buoy", version{v: "1.1.0", replaces: "1.0.0"}, version{v: "1.0.0"}), gauge)
	f.quiet()
	suppose := func(subject string, p events.Payload) previewapi.Question {
		return previewapi.Question{Limit: 2, Hypotheses: []previewapi.Hypothesis{f.supposed(subject, 0, p)}}
	}
	page, previews := f.preview(suppose("fleet", events.CatalogRevisionPublished{Revision: next}))
	want := previewapi.Totals{Scopes: namespaces - 1, Plans: namespaces - 1, Superseded: namespaces - 1}
	if diff := cmp.Diff(want, page.Totals); diff != "" || len(previews) != namespaces-1 {
		t.Errorf("%d previews, totals (-want +got):\n%s", len(previews), diff)
	}
	var again previewapi.Page
	f.must(f.gateway.Call(f.ctx, previewapi.ReadSubject, previewapi.PageRequest{Tenant: tenant, ID: page.ID, Limit: 4},
		&again))
	if len(again.Scopes) != 4 || again.Next == nil || !slices.IsSortedFunc(
		again.Scopes, func(a, b previewapi.ScopePreview) int { return a.Scope().Compare(b.Scope()) }) {
		t.Errorf("read again: %d scopes, next %v", len(again.Scopes), again.Next)
	}
	page, _ = f.preview(suppose("fleet", events.CatalogRemoved{}))
	if page.Totals.Failures != namespaces || page.Totals.Superseded != namespaces {
		t.Errorf("removing the catalog: %+v", page.Totals)
	}
	page, _ = f.preview(suppose("fleet", events.CatalogChanged{SourceType: "directory", Disabled: true}))
	if page.Totals.Failures != namespaces {
		t.Errorf("disabling the catalog: %+v", page.Totals)
	}
	page, _ = f.preview(suppose("fleet", events.CatalogChanged{SourceType: "directory", Priority: 7}))
	if page.Totals.Unchanged != page.Totals.Scopes {
		t.Errorf("another priority: %+v", page.Totals)
	}
	q := suppose("fleet", events.CatalogRevisionPublished{Revision: "sha256:none"})
	q.Tenant, q.ID = tenant, uuid.New()
	if err := f.gateway.Call(f.ctx, previewapi.PreviewSubject, q, &again); !errs.Is(err, errs.NotFound) {
		t.Errorf("a revision that is not stored gives %v", err)
	}
}

// TestAnswersDecideOnABoundedNumber: however many namespaces one asks for, an answer decides on some of them and says
// where to go on; a check decides again on those alone of which something moved (P19).
func TestAnswersDecideOnABoundedNumber(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	rev := f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	const namespaces = previewapi.MaxDecisions + 5
	for i := range namespaces {
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
	f.quiet()
	q := previewapi.Question{
		Tenant: tenant, ID: uuid.New(), Limit: previewapi.MaxPageScopes,
		Hypotheses: []previewapi.Hypothesis{f.supposed("fleet", 0, events.CatalogRemoved{})},
	}
	var page previewapi.Page
	f.must(f.gateway.Call(f.ctx, previewapi.PreviewSubject, q, &page))
	if page.Totals.Scopes != previewapi.MaxDecisions || page.Next == nil {
		t.Errorf("the first page: %+v, next %v", page.Totals, page.Next)
	}
	f.must(f.gateway.Call(f.ctx, previewapi.ReadSubject,
		previewapi.PageRequest{Tenant: tenant, ID: q.ID, After: *page.Next, Limit: previewapi.MaxPageScopes}, &page))
	if page.Totals.Scopes != namespaces {
		t.Errorf("both pages: %+v", page.Totals)
	}
	check := func(after previewapi.Scope) previewapi.CheckResult {
		var v previewapi.CheckResult
		f.must(f.gateway.Call(f.ctx, previewapi.CheckSubject,
			previewapi.PageRequest{Tenant: tenant, ID: q.ID, After: after, Limit: previewapi.MaxPageScopes}, &v))
		return v
	}
	if v := check(previewapi.Scope{}); v.Next != nil || len(v.Changed) != 0 {
		t.Errorf("where nothing moved, all is compared at once: %+v", v)
	}
	f.publish("fleet", rev, f.pkg("buoy", version{v: "1.1.0", replaces: "1.0.0"}, version{v: "1.0.0"}))
	f.quiet()
	first := check(previewapi.Scope{})
	if first.Next == nil || len(first.Changed) != previewapi.MaxChanges {
		t.Fatalf("where all moved: %d changes, next %v", len(first.Changed), first.Next)
	}
	if rest := check(*first.Next); rest.Next != nil || len(rest.Changed) == 0 {
		t.Errorf("the rest: %d changes, next %v", len(rest.Changed), rest.Next)
	}
}

// TestPreviewSaysWhatIsNotFetched: steps of bundles in images are not known before these are fetched, and a preview
// asks for none of them.
func TestPreviewSaysWhatIsNotFetched(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0", bare: true, image: "registry.test/buoy:1"}))
	f.quiet()
	before := f.traces()
	_, previews := f.preview(previewapi.Question{Hypotheses: []previewapi.Hypothesis{
		f.supposed(scoped("buoy"), 1, events.SubscriptionCreated{
			Cluster: cluster, Namespace: namespace, Name: "buoy",
			Spec: events.SubscriptionSpec{
				Package: "buoy", Channel: "stable", Catalog: "fleet",
				Approval: installplan.Automatic,
			},
		}),
	}})
	if len(previews) != 1 || len(previews[0].Waiting) != 1 || previews[0].Waiting[0].For != previewapi.WaitImage ||
		!strings.Contains(previews[0].Waiting[0].Sentences[0], "registry.test/buoy:1") {
		t.Errorf("previewed %+v", previews)
	}
	if after := f.traces(); after != before {
		t.Errorf("left %s, before %s", after, before)
	}
}

// TestPreviewKnowsWhatWasJustWritten: a question waits until the tables hold what was in the log when it came, so
// that a portal may write one thing and try the next.
func TestPreviewKnowsWhatWasJustWritten(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	rev := f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0"}))
	f.quiet()
	for i := 1; i < 6; i++ {
		v := fmt.Sprintf("1.%d.0", i)
		rev = f.publish("fleet", rev, f.pkg("buoy", version{v: v}))
		f.until("the sequencer", func() bool {
			var n int
			f.must(f.db.Pool(t, "admin").QueryRow(f.ctx, `select count(*) from eventlog.appended`).Scan(&n))
			return n == 0
		})
		_, previews := f.preview(previewapi.Question{
			Hypotheses: []previewapi.Hypothesis{f.supposed(scoped("buoy"), 1, events.SubscriptionCreated{
				Cluster: cluster, Namespace: namespace, Name: "buoy",
				Spec: events.SubscriptionSpec{
					Package: "buoy", Channel: "stable", Catalog: "fleet",
					Approval: installplan.Automatic,
				},
			})},
		})
		if len(previews) != 1 || len(previews[0].Plans) != 1 || previews[0].Plans[0].Bundles[0].Version != v {
			t.Fatalf("after %s was published: %+v", v, previews)
		}
	}
}

// TestExpiredPreviewsAreDeleted: they are refused from the moment they expire, and deleted with all their scopes.
func TestExpiredPreviewsAreDeleted(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	stop := f.start()
	f.ready()
	f.quiet()
	group := f.supposed(scoped("og"), 0, events.OperatorGroupDeleted{})
	page, _ := f.preview(previewapi.Question{Hypotheses: []previewapi.Hypothesis{group}})
	pool := f.pools[events.Resolver]
	_, err := pool.Exec(f.ctx, `update resolver.previews set expires = now()`)
	f.must(err)
	if err := f.gateway.Call(f.ctx, previewapi.ReadSubject, previewapi.PageRequest{Tenant: tenant, ID: page.ID},
		&page); !errs.Is(err, errs.NotFound) {
		t.Errorf("an expired preview gives %v", err)
	}
	stop()
	f.start() // sweeps when it starts
	f.until("the sweep", func() bool {
		var n int
		f.must(pool.QueryRow(f.ctx,
			`select (select count(*) from resolver.previews) + (select count(*) from resolver.preview_scopes)`).Scan(
			&n))
		return n == 0
	})
}
