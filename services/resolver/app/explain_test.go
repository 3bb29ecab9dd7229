package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/app"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/suggestion"
	"github.com/chandler-fleet/chandler/services/resolver/why"
)

func (f *fleet) explain(q app.ExplainQuestion) app.ExplainAnswer {
	f.t.Helper()
	q.Tenant, q.Cluster, q.Namespace = tenant, cluster, namespace
	var a app.ExplainAnswer
	f.must(f.gateway.Call(f.ctx, app.ExplainSubject, q, &a))
	return a
}

func (f *fleet) why(operator string) why.Answer {
	f.t.Helper()
	var l why.Answer
	f.must(f.gateway.Call(f.ctx, app.WhySubject, app.WhyQuestion{
		Tenant: tenant, Cluster: cluster, Namespace: namespace,
		Operator: operator,
	}, &l))
	return l
}

// TestExplainOffersWhatHelps: a failure is explained as it was recorded, made again with the same bytes, with changes
// that help now, although the catalog moved on since (P1; capability 1 of PEERS §3).
func TestExplainOffersWhatHelps(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	buoy := f.pkg("buoy", version{v: "1.0.0", requires: []string{"Gauge"}})
	rev := f.publish("fleet", "", buoy)
	f.subscribe("buoy", "buoy", "stable")
	f.subscribe("kelp", "kelt", "stable")
	f.quiet()
	a := f.explain(app.ExplainQuestion{Subscription: "buoy"})
	if !a.Agrees || a.Recorded.Reason != "ConstraintsNotSatisfiable" || a.Explanation == nil ||
		len(a.Suggestions.Suggestions) != 0 {
		t.Errorf("buoy: %+v", a)
	}
	f.publish("fleet", rev, buoy, f.pkg("kelp", version{v: "1.0.0"}))
	f.quiet()
	a = f.explain(app.ExplainQuestion{Subscription: "kelp"})
	if !a.Agrees || len(a.Suggestions.Suggestions) != 1 ||
		a.Suggestions.Suggestions[0].Kind != suggestion.PackageName ||
		a.Suggestions.Suggestions[0].Text != "let subscription kelp name package kelp instead of kelt" {
		t.Errorf("kelp: %+v, %+v", a, a.Suggestions)
	}
	_, err := f.db.Pool(t, "admin").Exec(f.ctx, `update resolver.subscriptions set outcome = jsonb_set(outcome,
		'{explanation}', '"sha256:forged"') where name = 'kelp'`)
	f.must(pg.Err(err))
	a = f.explain(app.ExplainQuestion{Subscription: "kelp"})
	if a.Agrees || len(a.Differences) != 1 || a.Differences[0].What != "explanation" ||
		a.Differences[0].Recorded != "sha256:forged" {
		t.Errorf("a forged record: %+v", a.Differences)
	}
}

// TestExplainPlans: every plan of a life, ended or not, is made again and agrees with its digest; one that was
// tampered with does not, and it is said what differs (DESIGN D5).
func TestExplainPlans(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	gauge := f.pkg("gauge", version{v: "1.0.0", provides: []string{"Gauge"}})
	rev := f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0", requires: []string{"Gauge"}}), gauge)
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	f.carryOut(f.livePlan())
	f.quiet()
	f.publish("fleet", rev, gauge, f.pkg("buoy", version{v: "1.2.0", replaces: "1.1.0"},
		version{v: "1.1.0", replaces: "1.0.0", requires: []string{"Gauge"}},
		version{v: "1.0.0", requires: []string{"Gauge"}}))
	f.quiet()
	plans := f.plans()
	if len(plans) != 2 {
		t.Fatalf("%d plans", len(plans))
	}
	for _, p := range plans {
		a := f.explain(app.ExplainQuestion{Plan: p.Proposed.Plan})
		if !a.Agrees || a.Recorded.Digest != p.Proposed.Digest || a.Input != p.Proposed.Input {
			t.Errorf("plan %s: %+v", p.Proposed.Name, a)
		}
	}
	live := f.explain(app.ExplainQuestion{Plan: plans[1].Proposed.Plan})
	if len(live.Why) != 1 || live.Why[0].CSV != "buoy.v1.1.0" || len(live.Why[0].NotTaken) != 1 ||
		live.Why[0].NotTaken[0].Reasons[0].Code != why.OneStep {
		t.Errorf("why of the live plan: %+v", live.Why)
	}
	for what, sql := range map[string]string{
		"bundles": `update resolver.plans set state = jsonb_set(state, '{Proposed,bundles,0,csv}', '"buoy.v1.1.0"')
			where plan = $1 and state #>> '{Proposed,bundles,1,csv}' = 'buoy.v1.0.0'`,
		"digest": `update resolver.plans set state = jsonb_set(state, '{Proposed,digest}', '"sha256:forged"')
			where plan = $1`,
	} {
		p := plans[0]
		if what == "digest" {
			p = plans[1]
		}
		tag, err := f.db.Pool(t, "admin").Exec(f.ctx, sql, p.Proposed.Plan)
		f.must(pg.Err(err))
		if tag.RowsAffected() != 1 {
			t.Fatalf("%s: nothing was tampered with", what)
		}
		a := f.explain(app.ExplainQuestion{Plan: p.Proposed.Plan})
		if a.Agrees || len(a.Differences) != 1 || a.Differences[0].What != what {
			t.Errorf("%s tampered with: %+v", what, a.Differences)
		}
	}
	var a app.ExplainAnswer
	if err := f.gateway.Call(f.ctx, app.ExplainSubject, app.ExplainQuestion{Tenant: tenant, Plan: "none"},
		&a); !errs.Is(err, errs.NotFound) {
		t.Errorf("an unknown plan gives %v", err)
	}
}

// TestExplainPlanBesideAFailure: of two subscriptions to one package one fails, and its component comes first; the
// plan of the other one is made again all the same (DESIGN D5, R-SUB-23).
func TestExplainPlanBesideAFailure(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0", replaces: "0.9.0"},
		version{v: "0.9.0", requires: []string{"Nothing"}}))
	f.subscribe("a", "buoy", "stable", func(s *events.SubscriptionSpec) { s.StartingCSV = "buoy.v0.9.0" })
	f.subscribe("z", "buoy", "stable", manual)
	f.quiet()
	p := f.livePlan()
	a := f.explain(app.ExplainQuestion{Plan: p.Proposed.Plan})
	if !a.Agrees || len(a.Component.Bundles) != 1 || len(a.Why) != 1 {
		t.Errorf("%+v is made again as %+v; why %+v", a.Recorded, a.Component, a.Why)
	}
	if a = f.explain(app.ExplainQuestion{Subscription: "a"}); !a.Agrees || a.Recorded.Outcome != decide.OutcomeFailed {
		t.Errorf("the failure beside it: %+v", a)
	}
}

// TestWhy: what is newer and why it is not taken, and why a dependency came in (capability 10 of PEERS §3).
func TestWhy(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	gauge := f.pkg("gauge", version{v: "1.0.0", provides: []string{"Gauge"}})
	rev := f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.0", requires: []string{"Gauge"}}), gauge)
	f.subscribe("buoy", "buoy", "stable", manual)
	f.quiet()
	first := f.livePlan()
	l := f.why("buoy")
	if len(l.NotTaken) != 1 || l.NotTaken[0].Reasons[0].Code != why.Approval ||
		l.NotTaken[0].Reasons[0].Plan != first.Proposed.Name {
		t.Errorf("before the approval: %+v", l)
	}
	f.append(events.Gateway, events.KindInstallPlan, scoped(first.Proposed.Name), first.Proposed.Plan,
		events.InstallPlanApproved{
			Digest: first.Proposed.Digest, Base: first.Proposed.Base, Expires: time.Now().Add(time.Hour),
		})
	f.carryOut(first)
	f.quiet()
	l = f.why("gauge")
	var texts []string
	for _, b := range l.Because {
		texts = append(texts, b.Text)
	}
	if all := strings.Join(texts, "\n"); l.CSV != "gauge.v1.0.0" || len(l.NotTaken) != 0 ||
		!strings.Contains(all, "subscription buoy asks for buoy.v1.0.0") ||
		!strings.Contains(all, "buoy.v1.0.0 requires an operator") {
		t.Errorf("gauge: %+v", l)
	}
	f.publish("fleet", rev, gauge, f.pkg("buoy", version{v: "2.0.0", replaces: "1.0.0", requires: []string{"Nothing"}},
		version{v: "1.0.0", requires: []string{"Gauge"}}))
	f.quiet()
	l = f.why("buoy.v1.0.0")
	if len(l.NotTaken) != 1 || l.NotTaken[0].Reasons[0].Code != why.Dependency || l.NotTaken[0].Revision == "" {
		t.Errorf("buoy: %+v", l)
	}
	err := f.gateway.Call(f.ctx, app.WhySubject, app.WhyQuestion{
		Tenant: tenant, Cluster: cluster, Namespace: namespace,
		Operator: "none",
	}, nil)
	if !errs.Is(err, errs.NotFound) {
		t.Errorf("an unknown operator gives %v", err)
	}
}

// TestPinnedThroughFiftyMoves: a catalog moves 50 times; a pinned namespace gets no plan beyond its first, and 50
// entries that name the policy (P18).
func TestPinnedThroughFiftyMoves(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.append(events.Gateway, events.KindPolicy, "approval/freeze", "approval/freeze", events.ApprovalPolicySet{
		Name: "freeze", Spec: events.ApprovalPolicySpec{
			Versions:         events.PolicyVersions{Pin: "1.0.0"},
			PermissionGrowth: "Ignore",
		},
	})
	list := []version{{v: "1.0.0"}}
	rev := f.publish("fleet", "", f.pkg("buoy", list...))
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	f.carryOut(f.livePlan())
	f.quiet()
	const moves = 50
	for i := range moves {
		list = append([]version{{v: fmt.Sprintf("1.%d.0", i+1), replaces: list[0].v}}, list...)
		rev = f.publish("fleet", rev, f.pkg("buoy", list...))
		if i%10 == 0 {
			f.quiet()
		}
	}
	f.quiet()
	if n := len(f.plans()); n != 1 {
		t.Errorf("%d plans", n)
	}
	l := f.why("buoy")
	if len(l.NotTaken) != moves {
		t.Fatalf("%d entries", len(l.NotTaken))
	}
	for _, n := range l.NotTaken {
		if r := n.Reasons[0]; r.Code != why.Policy || r.Policy != "freeze" {
			t.Errorf("%s: %+v", n.CSV, n.Reasons)
		}
	}
}
