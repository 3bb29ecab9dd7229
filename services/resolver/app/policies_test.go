package app_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// govern sets an approval policy that minds no rights.
func (f *fleet) govern(name string, change func(*events.ApprovalPolicySpec)) {
	f.t.Helper()
	spec := events.ApprovalPolicySpec{PermissionGrowth: "Ignore"}
	change(&spec)
	f.append(events.Gateway, events.KindPolicy, "approval/"+name, "approval/"+name,
		events.ApprovalPolicySet{Name: name, Spec: spec})
}

func (f *fleet) endPolicy(name string) {
	f.t.Helper()
	f.append(events.Gateway, events.KindPolicy, "approval/"+name, "approval/"+name, events.ApprovalPolicyDeleted{})
}

// settled is a fleet that runs the first version of buoy.
func settled(t *testing.T, v version) *fleet {
	t.Helper()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("buoy", v))
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	f.carryOut(f.livePlan())
	f.quiet()
	return f
}

// TestPinnedFleet: the catalog moves again and again, and what is pinned to what it has gets no plan, no failure and no
// event at all (P18).
func TestPinnedFleet(t *testing.T) {
	t.Parallel()
	f := settled(t, version{v: "1.0.0"})
	f.govern("freeze", func(s *events.ApprovalPolicySpec) {
		s.Versions.Pin, s.Selector.Packages = "1.0.0",
			[]string{"buoy"}
	})
	f.quiet()
	before := f.decided()
	versions, last := []version{{v: "1.0.0"}}, ""
	for i := range 50 {
		versions = append([]version{{v: fmt.Sprintf("1.%d.0", i+1), replaces: versions[0].v}}, versions...)
		last = f.publish("fleet", last, f.pkg("buoy", versions...))
		if i%10 == 0 {
			f.quiet()
		}
	}
	f.quiet()
	if after := f.decided(); !slices.Equal(before, after) {
		t.Errorf("decided %v", after[len(before):])
	}
	f.endPolicy("freeze")
	f.quiet()
	if got := csvs(f.livePlan()); len(got) != 1 || !strings.HasPrefix(got[0], "buoy.v1.") {
		t.Errorf("without the policy: %v", got)
	}
}

// TestNothingIsLeft: a bound that leaves nothing for a new subscription is a failure that names policy and bound, told
// once, and ends with the policy.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start()
	f.ready()
	f.addCatalog("fleet")
	f.publish("fleet", "", f.pkg("buoy", version{v: "2.0.0"}))
	f.govern("old-only", func(s *events.ApprovalPolicySpec) { s.Versions.Ceiling = "1.9.9" })
	f.subscribe("buoy", "buoy", "stable")
	f.quiet()
	var explained resolution.Explanation
	var raw json.RawMessage
	f.must(pg.Err(f.admin.QueryRow(f.ctx, `select document from resolver.explanations`).Scan(&raw)))
	f.must(json.Unmarshal(raw, &explained))
	forbids := slices.IndexFunc(explained.Statements,
		func(s resolution.Statement) bool { return s.Kind == resolution.PolicyForbids })
	if len(f.plans()) != 0 || forbids < 0 || explained.Statements[forbids].Policy != "old-only" ||
		!strings.Contains(explained.Statements[forbids].Text, "1.9.9") {
		t.Errorf("%d plans, explained by %+v", len(f.plans()), explained.Statements)
	}
	f.endPolicy("old-only")
	f.quiet()
	if got := csvs(f.livePlan()); !slices.Equal(got, []string{"buoy.v2.0.0 ChannelHead"}) {
		t.Errorf("without the policy: %v", got)
	}
}

// TestPolicyReplansWhatItChooses: another effective policy replaces a plan that has not begun; one elsewhere touches
// nothing.
func TestPolicyReplansWhatItChooses(t *testing.T) {
	t.Parallel()
	f := settled(t, version{v: "1.0.0"})
	f.publish("fleet", "", f.pkg("buoy", version{v: "1.0.1", replaces: "1.0.0"}, version{v: "1.0.0"}))
	f.quiet()
	first := f.livePlan()
	f.govern("elsewhere", func(s *events.ApprovalPolicySpec) {
		s.Selector.Clusters, s.Rules = []string{"other"}, []events.ApprovalRule{{Change: "Any", Mode: "Manual"}}
	})
	f.quiet()
	if got := f.livePlan(); got.Proposed.Plan != first.Proposed.Plan {
		t.Error("a policy of another cluster made another plan")
	}
	f.govern("patches", func(s *events.ApprovalPolicySpec) {
		s.Rules, s.Approvers = []events.ApprovalRule{{Change: "Patch", Mode: "Manual"}}, 2
	})
	f.quiet()
	second := f.livePlan()
	p := second.Proposed
	if p.Approval != installplan.Manual || p.Approvers != 2 ||
		!slices.Equal(p.ManualReasons, []string{"PatchUpgrade"}) || !slices.Equal(p.Policies, []string{"patches"}) {
		t.Errorf("proposed %+v", p)
	}
	if changed := installplan.Changes(first.Proposed, p); !slices.Equal(changed, []string{"approval policy"}) {
		t.Errorf("changed %v", changed)
	}
	f.endPolicy("patches")
	f.quiet()
	if got := f.livePlan().Proposed; got.Approval != installplan.Automatic ||
		got.Base.Policy != first.Proposed.Base.Policy {
		t.Errorf("proposed %+v", got)
	}
}

// TestPermissionGrowth: an upgrade that gains rights waits for a person though its rule is Automatic, and one that does
// not goes on; the resolver compares what the indexer has not compared yet.
func TestPermissionGrowth(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		next     version
		approval string
		reasons  []string
	}{
		"gains a right": {
			version{v: "1.0.1", replaces: "1.0.0", verbs: []string{"get", "list"}},
			installplan.Manual,
			[]string{"PermissionGrowth"},
		},
		"as before":     {version{v: "1.0.1", replaces: "1.0.0", verbs: []string{"get"}}, installplan.Automatic, nil},
		"loses a right": {version{v: "1.0.1", replaces: "1.0.0"}, installplan.Automatic, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := settled(t, version{v: "1.0.0", verbs: []string{"get"}})
			f.govern("patches", func(s *events.ApprovalPolicySpec) {
				s.Rules, s.PermissionGrowth = []events.ApprovalRule{{Change: "Patch", Mode: "Automatic"}}, "Manual"
			})
			f.publish("fleet", "", f.pkg("buoy", c.next, version{v: "1.0.0", verbs: []string{"get"}}))
			f.quiet()
			if p := f.livePlan().Proposed; p.Approval != c.approval || !slices.Equal(p.ManualReasons, c.reasons) {
				t.Errorf("proposed %s, %v", p.Approval, p.ManualReasons)
			}
		})
	}
}

// TestSamePoliciesSamePlans: the log of one fleet, told again to another, leads to the same plans, digest by digest
// (P11).
func TestSamePoliciesSamePlans(t *testing.T) {
	t.Parallel()
	first, second := newFleet(t), newFleet(t)
	for _, f := range []*fleet{first, second} {
		f.start()
	}
	first.ready()
	first.addCatalog("fleet")
	first.publish("fleet", "", first.pkg("buoy", version{v: "2.0.0", replaces: "1.0.0"}, version{v: "1.0.0"}),
		first.pkg("kelp", version{v: "0.1.0"}))
	first.subscribe("buoy", "buoy", "stable")
	first.subscribe("kelp", "kelp", "stable", manual)
	first.quiet()
	first.govern("all", func(s *events.ApprovalPolicySpec) {
		s.Rules, s.Windows = []events.ApprovalRule{{Change: "Install", Mode: "Manual"}},
			[]events.Window{{Start: "22:00", Minutes: 60, TimeZone: "Europe/Oslo"}}
	})
	first.quiet()
	first.govern("kelp", func(s *events.ApprovalPolicySpec) {
		s.Selector.Packages, s.Approvers, s.ApprovalSeconds = []string{"k*"}, 3, 600
	})
	first.quiet()
	first.endPolicy("all")
	first.quiet()

	// What the indexer stores beside the log is there before the log is told.
	second.pkg("buoy", version{v: "2.0.0", replaces: "1.0.0"}, version{v: "1.0.0"})
	second.pkg("kelp", version{v: "0.1.0"})
	rows, err := first.admin.Query(first.ctx, `select 'packages', digest, package, document from catalog.packages
		union all
		select 'revision_packages', revision || ' ' || digest, package, null from catalog.revision_packages`)
	first.must(pg.Err(err))
	var table, key, name string
	var document []byte
	_, err = pgx.ForEachRow(rows, []any{&table, &key, &name, &document}, func() error {
		if table == "packages" {
			_, err := second.admin.Exec(second.ctx, `insert into catalog.packages (tenant, digest, package, document)
				values ($1, $2, $3, $4)`, tenant, key, name, document)
			return err
		}
		_, err := second.admin.Exec(second.ctx, `insert into catalog.revision_packages (tenant, revision, package,
			digest)
			values ($1, split_part($2, ' ', 1), $3, split_part($2, ' ', 2))`, tenant, key, name)
		return err
	})
	first.must(pg.Err(err))
	for _, e := range first.recorded() {
		if d, _ := events.Lookup(e.Type); d.Writer != events.Resolver {
			second.append(d.Writer, d.Kind, e.Subject, e.Subject, e.Payload)
			second.quiet()
		}
	}

	told := func(f *fleet) (out []string) {
		for _, p := range f.plans() {
			e := p.Proposed
			out = append(out, fmt.Sprintf("%s %s %v %d %d %s %s", e.Component, e.Approval, e.ManualReasons, e.Approvers,
				e.ApprovalSeconds, e.Digest, p.Phase))
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	was, is := told(first), told(second)
	if len(was) < 5 || !slices.Equal(was, is) {
		t.Errorf("first\n%s\nsecond\n%s", strings.Join(was, "\n"), strings.Join(is, "\n"))
	}
}
