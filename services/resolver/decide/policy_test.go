package decide_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// policy is one that minds no rights.
func policy(name string, change func(*events.ApprovalPolicySpec)) decide.Policy {
	p := decide.Policy{Name: name, Spec: events.ApprovalPolicySpec{PermissionGrowth: "Ignore"}}
	change(&p.Spec)
	return p
}

// rules are change, mode, change, mode…
func rules(words ...string) func(*events.ApprovalPolicySpec) {
	return func(s *events.ApprovalPolicySpec) {
		for i := 0; i < len(words); i += 2 {
			s.Rules = append(s.Rules, events.ApprovalRule{Change: words[i], Mode: words[i+1]})
		}
	}
}

var (
	sundays = []events.Window{{Days: []string{"Sun"}, Start: "02:00", Minutes: 120, TimeZone: "Europe/Oslo"}}
	nights  = []events.Window{{Start: "22:00", Minutes: 480, TimeZone: "UTC"}}
	growing = decide.PermissionGrowth{{From: "sha256:c1", To: "sha256:c2"}: 3}
	level   = decide.PermissionGrowth{{From: "sha256:c1", To: "sha256:c2"}: 0}
)

func strictGrowth(s *events.ApprovalPolicySpec) { s.PermissionGrowth = "Manual" }

// TestPoliciesShapeProposals: the mode comes from the subscription, then from rules by what the change is, then
// from the rights that are gained; of several policies the strictest holds (issue: approval policy).
func TestPoliciesShapeProposals(t *testing.T) {
	t.Parallel()
	type want struct {
		Approval  string
		Policies  []string
		Reasons   []string
		Approvers int
		Seconds   int64
		Windows   []events.WindowGroup
	}
	upgrade := func(version string) *scene { return newScene().installed("a.v1", version, "Succeeded") }
	patchOnly := rules("Patch", "Automatic", "Any", "Manual")
	cases := []struct {
		name     string
		scene    *scene
		mode     string // of the subscription; "" is Automatic
		gains    decide.PermissionGrowth
		policies []decide.Policy
		want     want
	}{
		{"no policy", upgrade("1.0.0"), "Manual", nil, nil, want{Approval: "Manual"}},
		{
			"one that says nothing", upgrade("1.0.0"), "", nil,
			[]decide.Policy{policy("p", rules())},
			want{Approval: "Automatic", Policies: []string{"p"}},
		},
		{
			"install", newScene(), "", nil,
			[]decide.Policy{policy("p", rules("Install", "Manual"))},
			want{Approval: "Manual", Policies: []string{"p"}, Reasons: []string{"Install"}},
		},
		{
			"patch", upgrade("2.0.0-rc1"), "", nil,
			[]decide.Policy{policy("p", patchOnly)},
			want{Approval: "Automatic", Policies: []string{"p"}},
		},
		{
			"patch of a Manual subscription", upgrade("2.0.0-rc1"), "Manual", nil,
			[]decide.Policy{policy("p", patchOnly)},
			want{Approval: "Automatic", Policies: []string{"p"}},
		},
		{
			"minor is not patch", upgrade("1.9.0"), "", nil,
			[]decide.Policy{policy("p", rules("Minor", "Manual"))},
			want{Approval: "Automatic", Policies: []string{"p"}},
		},
		{
			"major", upgrade("1.9.0"), "", nil,
			[]decide.Policy{policy("p", patchOnly)},
			want{Approval: "Manual", Policies: []string{"p"}, Reasons: []string{"MajorUpgrade"}},
		},
		{
			"no version is major", upgrade("one"), "", nil,
			[]decide.Policy{policy("p", patchOnly)},
			want{Approval: "Manual", Policies: []string{"p"}, Reasons: []string{"MajorUpgrade"}},
		},
		{
			"back is major", upgrade("2.0.1"), "", nil,
			[]decide.Policy{policy("p", patchOnly)},
			want{Approval: "Manual", Policies: []string{"p"}, Reasons: []string{"MajorUpgrade"}},
		},
		{
			"the first rule that fits", upgrade("1.0.0"), "", nil,
			[]decide.Policy{policy("p", rules("Major", "Automatic", "Major", "Manual"))},
			want{Approval: "Automatic", Policies: []string{"p"}},
		},
		{
			"Manual wins", upgrade("1.0.0"), "", nil,
			[]decide.Policy{policy("q", rules("Any", "Manual")), policy("p", rules("Any", "Automatic"))},
			want{Approval: "Manual", Policies: []string{"p", "q"}, Reasons: []string{"MajorUpgrade"}},
		},
		{
			"rights grow", upgrade("2.0.0-rc1"), "", growing,
			[]decide.Policy{policy("p", func(s *events.ApprovalPolicySpec) { patchOnly(s); strictGrowth(s) })},
			want{Approval: "Manual", Policies: []string{"p"}, Reasons: []string{"PermissionGrowth"}},
		},
		{
			"rights grow, nobody minds", upgrade("2.0.0-rc1"), "", growing,
			[]decide.Policy{policy("p", patchOnly)},
			want{Approval: "Automatic", Policies: []string{"p"}},
		},
		{
			"rights do not grow", upgrade("2.0.0-rc1"), "", level,
			[]decide.Policy{policy("p", func(s *events.ApprovalPolicySpec) { patchOnly(s); strictGrowth(s) })},
			want{Approval: "Automatic", Policies: []string{"p"}},
		},
		{
			"rights are not known", upgrade("2.0.0-rc1"), "", nil,
			[]decide.Policy{policy("p", strictGrowth)},
			want{Approval: "Manual", Policies: []string{"p"}, Reasons: []string{"PermissionGrowthUnknown"}},
		},
		{
			"rights of an installation", newScene(), "", nil,
			[]decide.Policy{policy("p", strictGrowth)},
			want{Approval: "Automatic", Policies: []string{"p"}},
		},
		{
			"most approvers, shortest time, all windows", upgrade("1.0.0"), "Manual", nil,
			[]decide.Policy{
				policy("p", func(s *events.ApprovalPolicySpec) {
					s.Approvers, s.ApprovalSeconds, s.Windows = 2, 7200,
						nights
				}),
				policy("q", func(s *events.ApprovalPolicySpec) {
					s.Approvers, s.ApprovalSeconds, s.Windows = 3, 3600,
						sundays
				}),
			},
			want{
				Approval: "Manual", Policies: []string{"p", "q"}, Approvers: 3, Seconds: 3600,
				Windows: []events.WindowGroup{{Policy: "p", Windows: nights}, {Policy: "q", Windows: sundays}},
			},
		},
		{
			"approvers mean nothing where nobody is asked", upgrade("1.0.0"), "", nil,
			[]decide.Policy{policy("p", func(s *events.ApprovalPolicySpec) { s.Approvers, s.ApprovalSeconds = 2, 60 })},
			want{Approval: "Automatic", Policies: []string{"p"}},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.scene.Policies, c.scene.PermissionGrowth = c.policies, c.gains
			if c.mode != "" {
				c.scene.Subscriptions[0].Spec.Approval = c.mode
			}
			e := c.scene.decide(t).Proposals[0].Event
			got := want{e.Approval, e.Policies, e.ManualReasons, e.Approvers, e.ApprovalSeconds, e.Windows}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("proposal (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSelectors: all that a selector gives must fit; a list fits by name or by prefix.
func TestSelectors(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"stage": "production", "zone": "north"}
	for name, c := range map[string]struct {
		selector events.PolicySelector
		chooses  bool
	}{
		"everything":        {events.PolicySelector{}, true},
		"cluster":           {events.PolicySelector{Clusters: []string{"other", "harbour"}}, true},
		"cluster by prefix": {events.PolicySelector{Clusters: []string{"har*"}}, true},
		"any cluster":       {events.PolicySelector{Clusters: []string{"*"}}, true},
		"another cluster":   {events.PolicySelector{Clusters: []string{"harbou"}}, false},
		"labels":            {events.PolicySelector{ClusterLabels: labels}, true},
		"one label differs": {events.PolicySelector{
			ClusterLabels: map[string]string{"stage": "production", "zone": "south"},
		}, false},
		"a label is missing":    {events.PolicySelector{ClusterLabels: map[string]string{"owner": ""}}, false},
		"namespace":             {events.PolicySelector{Namespaces: []string{"op*"}}, true},
		"another namespace":     {events.PolicySelector{Namespaces: []string{"dev"}}, false},
		"package":               {events.PolicySelector{Packages: []string{"a"}}, true},
		"another package":       {events.PolicySelector{Packages: []string{"b*"}}, false},
		"catalog":               {events.PolicySelector{Catalogs: []string{"fleet"}}, true},
		"a namespace's catalog": {events.PolicySelector{Catalogs: []string{"ops/fleet"}}, false},
		"all of it": {events.PolicySelector{
			Clusters: []string{"harbour"}, ClusterLabels: labels,
			Namespaces: []string{"ops"}, Packages: []string{"a"}, Catalogs: []string{"f*"},
		}, true},
		"all of it but the label": {
			events.PolicySelector{
				Clusters:      []string{"harbour"},
				ClusterLabels: map[string]string{"stage": "test"}, Namespaces: []string{"ops"}, Packages: []string{"a"},
			},
			false,
		},
	} {
		s := newScene()
		s.Labels = labels
		s.Policies = []decide.Policy{
			policy("p", func(p *events.ApprovalPolicySpec) { rules("Any", "Manual")(p); p.Selector = c.selector }),
		}
		if e := s.decide(t).Proposals[0].Event; (e.Approval == "Manual") != c.chooses ||
			(len(e.Policies) > 0) != c.chooses {
			t.Errorf("%s: proposal is %s by %v", name, e.Approval, e.Policies)
		}
	}
}

// TestPolicyChangeVoidsApprovals: another effective policy makes another plan, whose refusal of the old approval
// says so; a change that makes no difference to the plan makes no event.
func TestPolicyChangeVoidsApprovals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*events.ApprovalPolicySpec)
		new    bool
	}{
		"more approvers":             {func(s *events.ApprovalPolicySpec) { s.Approvers = 2 }, true},
		"a window":                   {func(s *events.ApprovalPolicySpec) { s.Windows = nights }, true},
		"a shorter time":             {func(s *events.ApprovalPolicySpec) { s.ApprovalSeconds = 60 }, true},
		"no reason any more":         {func(s *events.ApprovalPolicySpec) { s.Rules = nil }, true},
		"a rule for another change":  {rules("Minor", "Automatic"), false},
		"a bound that all is within": {func(s *events.ApprovalPolicySpec) { s.Versions.Ceiling = "9.0.0" }, false},
		"a name for what fits anyway": {
			func(s *events.ApprovalPolicySpec) { s.Selector.Packages = []string{"a"} },
			false,
		},
		"it does not choose it at all": {
			func(s *events.ApprovalPolicySpec) { s.Selector.Packages = []string{"b"} },
			true,
		},
	} {
		s := newScene().installed("a.v1", "1.0.0", "Succeeded")
		s.Policies = []decide.Policy{policy("p", rules("Major", "Manual"))}
		s.plan()
		was := s.Plans[0].State.Proposed
		approval, err := installplan.Decide(s.Plans[0].State,
			installplan.Approve{Digest: was.Digest, Actor: "a", Now: approved.Expires.AddDate(0, 0, -1)})
		if err != nil {
			t.Fatal(err)
		}
		s.Plans[0].State = mustEvolve(s.Plans[0].State, approval...)
		s.Subscriptions[0].Outcome = decide.Outcome{Kind: decide.OutcomePlanned, CSV: "a.v2", Plan: was.Plan}
		c.change(&s.Policies[0].Spec)
		d := s.decide(t)
		if !c.new {
			if !d.Empty() {
				t.Errorf("%s: %+v", name, d)
			}
			continue
		}
		if len(d.Proposals) != 1 || len(d.Superseded) != 1 {
			t.Errorf("%s: %d proposals, %d superseded", name, len(d.Proposals), len(d.Superseded))
			continue
		}
		is := d.Proposals[0].Event
		if diff := cmp.Diff([]string{"approval policy"}, installplan.Changes(was, is)); diff != "" ||
			was.Digest == is.Digest {
			t.Errorf("%s: what changed (-want +got):\n%s", name, diff)
		}
	}
}

// TestUpgradesAreAskedFor: what upgrades gain is asked only where a policy minds, and once.
func TestUpgradesAreAskedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scene    *scene
		policies []decide.Policy
		want     []decide.Upgrade
	}{
		"no policy": {newScene().installed("a.v1", "1.0.0", "Succeeded"), nil, nil},
		"nobody minds": {
			newScene().installed("a.v1", "1.0.0", "Succeeded"),
			[]decide.Policy{policy("p", rules())},
			nil,
		},
		"two mind": {
			newScene().installed("a.v1", "1.0.0", "Succeeded"),
			[]decide.Policy{policy("p", strictGrowth), policy("q", strictGrowth)},
			[]decide.Upgrade{{From: "sha256:c1", To: "sha256:c2"}},
		},
		"nothing to replace": {newScene(), []decide.Policy{policy("p", strictGrowth)}, nil},
		"another's package": {
			newScene().installed("a.v1", "1.0.0", "Succeeded"),
			[]decide.Policy{policy("p", func(s *events.ApprovalPolicySpec) {
				strictGrowth(s)
				s.Selector.Packages = []string{"b"}
			})},
			nil,
		},
	} {
		c.scene.Policies = c.policies
		if diff := cmp.Diff(c.want, c.scene.Upgrades(resolve.Resolve(c.scene.Input(c.scene)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestBoundsAreNarrowed: a resolution is given the bounds of policies that may choose something of its scope, by
// name, and no others: a policy elsewhere is no part of its input.
func TestBoundsAreNarrowed(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.Policies = []decide.Policy{
		policy("z", func(p *events.ApprovalPolicySpec) { p.Versions.Ceiling = "1.9.9" }),
		policy("elsewhere", func(p *events.ApprovalPolicySpec) {
			p.Versions.Pin, p.Selector.Clusters = "1.0.0", []string{"west"}
		}),
		policy("m", rules("Any", "Manual")),
		policy("a", func(p *events.ApprovalPolicySpec) {
			p.Versions.Range, p.Selector.Packages, p.Selector.Catalogs = ">=1.0.0", []string{"a*"}, []string{"fleet"}
		}),
	}
	want := []resolution.Bound{
		{Policy: "a", Packages: []string{"a*"}, Catalogs: []string{"fleet"}, Range: ">=1.0.0"},
		{Policy: "z", Ceiling: "1.9.9"},
	}
	if diff := cmp.Diff(want, s.Input(s).Policy.Bounds); diff != "" {
		t.Errorf("bounds (-want +got):\n%s", diff)
	}
}

// TestSamePolicySameDecisions: the same text of policies, folded twice from the stored bytes of the record, gives
// decisions equal byte for byte, whatever the order in which they were read (P11).
func TestSamePolicySameDecisions(t *testing.T) {
	t.Parallel()
	recorded := [][]byte{}
	for _, p := range []decide.Policy{
		policy("b", func(s *events.ApprovalPolicySpec) { strictGrowth(s); s.Approvers, s.Windows = 2, nights }),
		policy("a", func(s *events.ApprovalPolicySpec) {
			rules("Patch", "Automatic", "Any", "Manual")(s)
			s.Windows = sundays
		}),
	} {
		raw, err := json.Marshal(events.ApprovalPolicySet{Name: p.Name, Spec: p.Spec})
		if err != nil {
			t.Fatal(err)
		}
		recorded = append(recorded, raw)
	}
	replay := func(order ...int) []byte {
		s := newScene().installed("a.v1", "1.0.0", "Succeeded")
		s.PermissionGrowth = growing
		for _, i := range order {
			var e events.ApprovalPolicySet
			if err := json.Unmarshal(recorded[i], &e); err != nil {
				t.Fatal(err)
			}
			s.Policies = append(s.Policies, decide.Policy{Name: e.Name, Spec: e.Spec})
		}
		d := s.decide(t)
		out, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if e := d.Proposals[0].Event; e.Approval != "Manual" || len(e.Policies) != 2 {
			t.Fatalf("proposal %+v", e)
		}
		return out
	}
	if diff := cmp.Diff(string(replay(0, 1)), string(replay(1, 0))); diff != "" {
		t.Errorf("decided differently:\n%s", diff)
	}
}

// TestPendingPlansFollowTheirTerms: a plan whose component waits for something outside ends when what it stands on
// changes, and not because its operator is away or a catalog moves: nothing begins under terms that hold no more, and a
// flap voids nothing (D6, P10).
func TestPendingPlansFollowTheirTerms(t *testing.T) {
	t.Parallel()
	policyOf := func(s *scene) *events.ApprovalPolicySpec { return &s.Policies[0].Spec }
	changes := map[string]struct {
		change func(*scene)
		ends   bool
	}{
		"nothing":                     {func(*scene) {}, false},
		"the catalog moves":           {func(s *scene) { s.rev = "r2" }, false},
		"the policy is renamed":       {func(s *scene) { s.Policies[0].Name = "q" }, false},
		"what it gains becomes known": {func(s *scene) { s.PermissionGrowth = growing }, false},
		"a bound that it is within":   {func(s *scene) { policyOf(s).Versions.Ceiling = "2.0.0" }, false},
		"approvers":                   {func(s *scene) { policyOf(s).Approvers = 2 }, true},
		"windows":                     {func(s *scene) { policyOf(s).Windows = sundays }, true},
		"a ceiling below it":          {func(s *scene) { policyOf(s).Versions.Ceiling = "1.9.9" }, true},
		"a pin by name":               {func(s *scene) { policyOf(s).Versions.Pin = "a.v1" }, true},
		"no rule any more": {func(s *scene) {
			policyOf(s).Rules, policyOf(s).PermissionGrowth = nil,
				"Ignore"
		}, true},
		"the subscription's mode":   {func(s *scene) { s.Subscriptions[0].Spec.Approval = "Manual" }, true},
		"configuration":             {func(s *scene) { s.Subscriptions[0].Spec.Config = "c" }, true},
		"channel":                   {func(s *scene) { s.Subscriptions[0].Spec.Channel = "fast" }, true},
		"catalog":                   {func(s *scene) { s.Subscriptions[0].Spec.Catalog = "other" }, true},
		"the group":                 {func(s *scene) { s.Groups[0].Spec.TargetNamespaces = []string{"x"} }, true},
		"deleted and created again": {func(s *scene) { s.Subscriptions[0].Incarnation++ }, true},
	}
	pending := map[string]struct {
		happens func(*scene)
		kind    decide.Kind
	}{
		"held": {func(s *scene) { s.Installed[0].Phase = "Pending" }, decide.Held},
		"fetching": {func(s *scene) {
			s.byImage, s.image = true, resolution.Fetched{}
		}, decide.Fetching},
	}
	for name, c := range changes {
		for word, p := range pending {
			s := newScene().installed("a.v1", "1.0.0", "Succeeded")
			s.Policies = []decide.Policy{
				policy("p", func(spec *events.ApprovalPolicySpec) { rules("Any", "Manual")(spec); strictGrowth(spec) }),
			}
			s.plan()
			p.happens(s)
			if v := s.assess(t); v[0].Kind != p.kind {
				t.Fatalf("%s: verdict %s", word, v[0].Kind)
			}
			c.change(s)
			d := s.decide(t)
			if len(d.Superseded) > 0 != c.ends || len(d.Proposals) > 0 {
				t.Errorf("%s, %s: %d superseded, want it to end: %v; %d proposed", word, name, len(d.Superseded),
					c.ends, len(d.Proposals))
			}
		}
	}
}

// TestReasonsVoidNothing: another reason for asking a person who is asked anyway, and other names of the same windows,
// keep the plan and what was approved of it (D6, R-IP-10).
func TestReasonsVoidNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*scene){
		"another reason": func(s *scene) {
			s.PermissionGrowth, s.Policies[0].Spec.PermissionGrowth = growing,
				"Manual"
		},
		"a reason is not known": func(s *scene) { s.Policies[0].Spec.PermissionGrowth = "Manual" },
		"the policy is renamed": func(s *scene) { s.Policies[0].Name = "renamed" },
		"it is said twice": func(s *scene) {
			s.Policies = append(
				s.Policies, decide.Policy{Name: "q", Spec: s.Policies[0].Spec})
		},
	} {
		s := newScene().installed("a.v1", "1.0.0", "Succeeded")
		s.Policies = []decide.Policy{
			policy("p", func(spec *events.ApprovalPolicySpec) { rules("Any", "Manual")(spec); spec.Windows = nights }),
		}
		s.plan(approved)
		change(s)
		if d := s.decide(t); len(d.Proposals)+len(d.Superseded) > 0 {
			t.Errorf("%s: %d proposed, %d superseded", name, len(d.Proposals), len(d.Superseded))
		}
	}
	s := newScene().installed("a.v1", "1.0.0", "Succeeded")
	s.Subscriptions[0].Spec.Approval = "Manual"
	s.plan(approved)
	s.Policies = []decide.Policy{policy("p", rules("Any", "Manual"))}
	if d := s.decide(t); len(d.Proposals)+len(d.Superseded) > 0 {
		t.Errorf("a policy that asks for what the subscription does: %d proposed, %d superseded", len(d.Proposals),
			len(d.Superseded))
	}
}
