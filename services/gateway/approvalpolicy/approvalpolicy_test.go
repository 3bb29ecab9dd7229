package approvalpolicy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/approvalpolicy"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/rule/ruletest"
)

type list = []events.Payload

// full is a policy that says everything, in the form in which it is kept.
func full() events.ApprovalPolicySpec {
	return events.ApprovalPolicySpec{
		Selector: events.PolicySelector{
			Clusters: []string{"east-*", "west"}, ClusterLabels: map[string]string{"stage": "production"},
			Namespaces: []string{"*"}, Packages: []string{"gauge"}, Catalogs: []string{"fleet", "own/tides"},
		},
		Versions:         events.PolicyVersions{Pin: "gauge.v1.4.2", Range: ">=1.4.0 <2.0.0", Ceiling: "1.9.9"},
		Rules:            []events.ApprovalRule{{Change: "Patch", Mode: "Automatic"}, {Change: "Any", Mode: "Manual"}},
		PermissionGrowth: "Manual", Approvers: 2, ApprovalSeconds: 3600,
		Windows: []events.Window{{Days: []string{"Sat", "Sun"}, Start: "22:00", Minutes: 360, TimeZone: "Europe/Oslo"}},
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	set := events.ApprovalPolicySet{Name: "production", Spec: full()}
	mixed := full()
	mixed.Selector.Clusters = []string{"west", "east-*", "west"}
	mixed.PermissionGrowth = ""
	other := full()
	other.Approvers = 3
	turned := full()
	slices.Reverse(turned.Rules)
	noted := events.Metadata{Labels: map[string]string{"team": "sea"}}
	named := events.ApprovalPolicyMetadataChanged{Metadata: noted}
	for _, c := range []struct {
		name  string
		given list
		when  approvalpolicy.Command
		then  list
		kind  errs.Kind
	}{
		{"set", nil, approvalpolicy.Set{Spec: full()}, list{set}, ""},
		{"set again", list{set}, approvalpolicy.Set{Spec: full()}, nil, ""},
		{"set to the same in other words", list{set}, approvalpolicy.Set{Spec: mixed}, nil, ""},
		{
			"set otherwise",
			list{set},
			approvalpolicy.Set{Spec: other},
			list{events.ApprovalPolicySet{Name: "production", Spec: other}},
			"",
		},
		{
			"set rules in an order that leaves one without effect",
			list{set},
			approvalpolicy.Set{Spec: turned},
			nil,
			errs.Invalid,
		},
		{
			"set after delete",
			list{set, events.ApprovalPolicyDeleted{}},
			approvalpolicy.Set{Spec: full()},
			list{set},
			"",
		},
		{
			"set the last that may be", nil,
			approvalpolicy.Set{Spec: full(), Others: approvalpolicy.MaxPolicies - 1},
			list{set},
			"",
		},
		{
			"set one too many", nil,
			approvalpolicy.Set{Spec: full(), Others: approvalpolicy.MaxPolicies},
			nil,
			errs.Unprocessable,
		},
		{
			"change one of too many",
			list{set},
			approvalpolicy.Set{Spec: other, Others: approvalpolicy.MaxPolicies},
			list{events.ApprovalPolicySet{Name: "production", Spec: other}},
			"",
		},
		{"set with labels", nil, approvalpolicy.Set{Spec: full(), Metadata: noted}, list{set, named}, ""},
		{"set with the same labels", list{set, named}, approvalpolicy.Set{Spec: full(), Metadata: noted}, nil, ""},
		{"set with labels alone", list{set}, approvalpolicy.Set{Spec: full(), Metadata: noted}, list{named}, ""},
		{
			"set without labels",
			list{set, named},
			approvalpolicy.Set{Spec: full()},
			list{events.ApprovalPolicyMetadataChanged{}},
			"",
		},
		{
			"set otherwise, with its labels",
			list{set, named},
			approvalpolicy.Set{Spec: other, Metadata: noted},
			list{events.ApprovalPolicySet{Name: "production", Spec: other}},
			"",
		},
		{
			"labels end with it",
			list{set, named, events.ApprovalPolicyDeleted{}},
			approvalpolicy.Set{Spec: full()},
			list{set},
			"",
		},
		{"delete", list{set}, approvalpolicy.Delete{}, list{events.ApprovalPolicyDeleted{}}, ""},
		{"delete what is not there", nil, approvalpolicy.Delete{}, nil, errs.NotFound},
		{"delete twice", list{set, events.ApprovalPolicyDeleted{}}, approvalpolicy.Delete{}, nil, errs.NotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := approvalpolicy.State{Name: "production"}
			var err error
			for _, e := range c.given {
				if s, err = approvalpolicy.Evolve(s, e); err != nil {
					t.Fatal(err)
				}
			}
			got, err := approvalpolicy.Decide(s, c.when)
			if errs.KindOf(err) != c.kind {
				t.Fatalf("error %v, want kind %q", err, c.kind)
			}
			if diff := cmp.Diff(c.then, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := approvalpolicy.Evolve(approvalpolicy.State{}, events.CatalogHealthSet{}); err == nil {
		t.Error("an event of another stream was taken")
	}
}

// TestCheck: what is wrong is named by place and rule, with what is wanted.
func TestCheck(t *testing.T) {
	t.Parallel()
	type spec = events.ApprovalPolicySpec
	for name, c := range map[string]struct {
		change func(*spec)
		at     string
		rule   string
		says   string
	}{
		"pattern": {
			func(s *spec) { s.Selector.Clusters = []string{"*east"} }, "/selector/clusters/0",
			approvalpolicy.RulePattern, "followed by '*'",
		},
		"empty pattern": {
			func(s *spec) { s.Selector.Packages = []string{"a", ""} }, "/selector/packages/0",
			rule.Required, "empty",
		},
		"long pattern": {
			func(s *spec) { s.Selector.Catalogs = []string{strings.Repeat("a", 400)} },
			"/selector/catalogs/0", rule.MaxLength, "400",
		},
		"many patterns": {
			func(s *spec) { s.Selector.Namespaces = numbered(approvalpolicy.MaxPatterns + 1) },
			"/selector/namespaces", rule.MaxItems, "101",
		},
		"label": {
			func(s *spec) { s.Selector.ClusterLabels = map[string]string{"a b": ""} },
			"/selector/clusterLabels/a b", rule.LabelKey, "a b",
		},
		"pin": {func(s *spec) { s.Versions.Pin = "1.0 .0" }, "/versions/pin", rule.Token, "printable"},
		"range": {
			func(s *spec) { s.Versions.Range = "at least 1" }, "/versions/range",
			approvalpolicy.RuleRange, ">=1.4.0 <2.0.0",
		},
		"ceiling": {
			func(s *spec) { s.Versions.Ceiling = "1.4" }, "/versions/ceiling",
			approvalpolicy.RuleVersion, "1.4.2",
		},
		"change": {
			func(s *spec) { s.Rules[0].Change = "patch" }, "/rules/0/change", rule.OneOf,
			"Install, Patch",
		},
		"mode": {
			func(s *spec) { s.Rules[1].Mode = "Ask" }, "/rules/1/mode", rule.OneOf,
			"Automatic, Manual",
		},
		"same rule twice": {
			func(s *spec) { s.Rules[1].Change = "Patch" }, "/rules/1/change",
			approvalpolicy.RuleShadowed, "first that fits",
		},
		"growth": {
			func(s *spec) { s.PermissionGrowth = "Never" }, "/permissionGrowth", rule.OneOf,
			"Manual, Ignore",
		},
		"window's zone": {
			func(s *spec) { s.Windows[0].TimeZone = "CEST" }, "/windows/0/timeZone",
			approvalpolicy.RuleWindow, "IANA",
		},
		"window's days": {
			func(s *spec) { s.Windows[0].Days = []string{"Sat", "sun"} }, "/windows/0/days",
			approvalpolicy.RuleWindow, "sun",
		},
		"window's start": {
			func(s *spec) { s.Windows[0].Start = "22" }, "/windows/0/start",
			approvalpolicy.RuleWindow, "HH:MM",
		},
		"window's length": {
			func(s *spec) { s.Windows[0].Minutes = 0 }, "/windows/0/minutes",
			approvalpolicy.RuleWindow, "want 5",
		},
		"many windows": {
			func(s *spec) { s.Windows = make([]events.Window, 15) }, "/windows", rule.MaxItems,
			"15",
		},
		"approvers":         {func(s *spec) { s.Approvers = 6 }, "/approvers", approvalpolicy.RuleBounds, "1 to 5"},
		"fewer than nobody": {func(s *spec) { s.Approvers = -1 }, "/approvers", approvalpolicy.RuleBounds, "1 to 5"},
		"too short a time": {
			func(s *spec) { s.ApprovalSeconds = 10 }, "/approvalSeconds", approvalpolicy.RuleBounds,
			"300",
		},
		"too long a time": {
			func(s *spec) { s.ApprovalSeconds = 40 * 24 * 3600 }, "/approvalSeconds",
			approvalpolicy.RuleBounds, "30 days",
		},
		"nothing": {
			func(s *spec) { *s = spec{PermissionGrowth: "Ignore"} }, "/permissionGrowth",
			approvalpolicy.RuleSaysThing, "says nothing",
		},
		"six rules": {
			func(s *spec) { s.Rules = make([]events.ApprovalRule, 6) }, "/rules", rule.MaxItems,
			"6",
		},
		"a version as ceiled": {
			func(s *spec) { s.Versions.Ceiling = ">1.0.0" }, "/versions/ceiling",
			approvalpolicy.RuleVersion, "1.4.2",
		},
	} {
		s := full()
		c.change(&s)
		_, err := approvalpolicy.Decide(approvalpolicy.State{Name: "production"}, approvalpolicy.Set{Spec: s})
		all := ruletest.All(err)
		if len(all) != 1 || all[0].Field != c.at || all[0].Rule != c.rule || !strings.Contains(all[0].Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := approvalpolicy.Decide(approvalpolicy.State{Name: "Production"},
		approvalpolicy.Set{Spec: full()}); ruletest.All(err)[0].Field != "path.name" {
		t.Errorf("name: %v", err)
	}
}

func numbered(n int) []string {
	var out []string
	for i := range n {
		out = append(out, "ns-"+strings.Repeat("a", i+1))
	}
	return out
}
