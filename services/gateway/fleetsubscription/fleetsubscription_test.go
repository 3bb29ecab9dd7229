package fleetsubscription_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/gate"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
	"github.com/chandler-fleet/chandler/services/gateway/approvalpolicy"
	"github.com/chandler-fleet/chandler/services/gateway/fleetsubscription"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/rule/ruletest"
)

type list = []events.Payload

// full is a fleet subscription that says everything, in the form in which it is kept.
func full() events.FleetSubscriptionSpec {
	return events.FleetSubscriptionSpec{
		Package: "tidegauge", Channel: "steady", Catalog: "fleet", Versions: events.PolicyVersions{Ceiling: "1.9.9"},
		Namespace: "ports", Approval: "Automatic", Config: "c1:00", Adopt: true, DeletionPolicy: "Orphan",
		OperatorGroup: events.FleetOperatorGroup{
			Name: "ports", Spec: events.OperatorGroupSpec{TargetNamespaces: []string{"ports", "quay"}},
		},
		Overrides: []events.FleetOverride{
			{Name: "edge", Selector: "site=edge", Config: "c1:01", MergedConfig: "c1:02"},
			{Name: "west", Clusters: []string{"west", "west-*"}, MergedConfig: "c1:00", Approval: "Manual"},
		},
		Placement: events.FleetPlacement{
			Clusters: []string{"east-*", "west"}, Selector: "stage in (production)", Except: []string{"east-9"},
			Tolerations: []events.FleetToleration{{Key: "edge", Value: "slow"}}, Count: 9, SpreadBy: "site",
			Prefer: []events.FleetPreference{{Selector: "tier=gold", Weight: 3}},
		},
		Strategy: events.RolloutStrategy{
			Waves: []events.RolloutWaveSpec{
				{
					Name: "canary", Selector: "ring=0", Size: "10%", SoakSeconds: 60, Promotion: "Manual",
					MaxFailures: "1", Gates: []events.RolloutGate{
						{
							Name: "answers", Type: events.GateHTTP, When: events.GateAfter, Status: 200, Successes: 1,
							URL: "https://ports.example.com/health", FailurePolicy: events.GateWaits,
							IntervalSeconds: 30, TimeoutSeconds: 10, DeadlineSeconds: 1800,
						},
					},
				},
				{Name: "early", Promotion: "Automatic"},
			},
			MaxConcurrent: 5, MaxFailures: "5%", MaxUnreachable: "10%", DeadlineSeconds: 600,
			Windows: []events.Window{{Start: "22:00", Minutes: 60, TimeZone: "UTC"}},
		},
	}
}

// TestDecide: a fleet subscription is set whole, in one form, and what says the same is no event (issue 14, section 2).
func TestDecide(t *testing.T) {
	t.Parallel()
	set := events.FleetSubscriptionSet{Name: "gauges", Spec: full()}
	mixed := full()
	mixed.Placement.Clusters = []string{"west", "east-*", "west"}
	mixed.Overrides[1].Clusters = []string{"west-*", "west", "west"}
	mixed.OperatorGroup.Spec.TargetNamespaces = []string{"quay", "ports"}
	mixed.Approval, mixed.DeletionPolicy, mixed.Strategy.Waves[1].Promotion = "", "", ""
	g := &mixed.Strategy.Waves[0].Gates[0]
	g.When, g.Status, g.Successes, g.FailurePolicy, g.IntervalSeconds, g.TimeoutSeconds = "", 0, 0, "", 0, 0
	other := full()
	other.Strategy.MaxConcurrent = 6
	another := full()
	another.Package = "foghorn"
	for _, c := range []struct {
		name  string
		given list
		when  fleetsubscription.Command
		then  list
		kind  errs.Kind
	}{
		{"set", nil, fleetsubscription.Set{Spec: full()}, list{set}, ""},
		{"set the same in other words", list{set}, fleetsubscription.Set{Spec: mixed}, nil, ""},
		{
			"set otherwise",
			list{set},
			fleetsubscription.Set{Spec: other},
			list{events.FleetSubscriptionSet{Name: "gauges", Spec: other}},
			"",
		},
		{"another package", list{set}, fleetsubscription.Set{Spec: another}, nil, errs.Invalid},
		{
			"another package after it was deleted",
			list{set, events.FleetSubscriptionDeleted{}},
			fleetsubscription.Set{Spec: another},
			list{events.FleetSubscriptionSet{Name: "gauges", Spec: another}},
			"",
		},
		{
			"one too many", nil,
			fleetsubscription.Set{Spec: full(), Others: fleetsubscription.MaxFleetSubscriptions},
			nil,
			errs.Unprocessable,
		},
		{
			"one of too many",
			list{set},
			fleetsubscription.Set{Spec: other, Others: fleetsubscription.MaxFleetSubscriptions},
			list{events.FleetSubscriptionSet{Name: "gauges", Spec: other}},
			"",
		},
		{"delete", list{set}, fleetsubscription.Delete{}, list{events.FleetSubscriptionDeleted{}}, ""},
		{"delete none", nil, fleetsubscription.Delete{}, nil, errs.NotFound},
		{
			"delete twice",
			list{set, events.FleetSubscriptionDeleted{}},
			fleetsubscription.Delete{},
			nil,
			errs.NotFound,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := fleetsubscription.State{Name: "gauges"}
			var err error
			for _, e := range c.given {
				if s, err = fleetsubscription.Evolve(s, e); err != nil {
					t.Fatal(err)
				}
			}
			got, err := fleetsubscription.Decide(s, c.when)
			if errs.KindOf(err) != c.kind {
				t.Fatalf("error %v, want kind %q", err, c.kind)
			}
			if diff := cmp.Diff(c.then, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := fleetsubscription.Evolve(fleetsubscription.State{}, events.CatalogHealthSet{}); err == nil {
		t.Error("an event of another stream was taken")
	}
}

// TestCheck: what is wrong is named by place and rule, and what is taken the fleet controller can read.
func TestCheck(t *testing.T) {
	t.Parallel()
	type spec = events.FleetSubscriptionSpec
	wave := func(change func(*events.RolloutWaveSpec)) func(*spec) {
		return func(s *spec) { change(&s.Strategy.Waves[0]) }
	}
	for name, c := range map[string]struct {
		change func(*spec)
		at     string
		rule   string
	}{
		"package":   {func(s *spec) { s.Package = "" }, "/package", rule.Required},
		"catalog":   {func(s *spec) { s.Catalog = "No" }, "/catalog", rule.DNSSubdomain},
		"channel":   {func(s *spec) { s.Channel = "a b" }, "/channel", rule.Token},
		"versions":  {func(s *spec) { s.Versions.Range = "some" }, "/versions/range", approvalpolicy.RuleRange},
		"namespace": {func(s *spec) { s.Namespace = events.SystemNamespace }, "/namespace", rule.Reserved},
		"approval":  {func(s *spec) { s.Approval = "Ask" }, "/approval", rule.OneOf},
		"removal":   {func(s *spec) { s.DeletionPolicy = "Delete" }, "/deletionPolicy", rule.OneOf},
		"group of no name": {
			func(s *spec) { s.OperatorGroup.Name = "" }, "/operatorGroup/name",
			rule.Required,
		},
		"group": {
			func(s *spec) { s.OperatorGroup.Spec.TargetNamespaces = []string{"A"} },
			"/operatorGroup/spec/targetNamespaces/0", rule.DNSLabel,
		},
		"nothing chosen": {
			func(s *spec) { s.Placement.Clusters, s.Placement.Selector = nil, "" }, "/placement",
			fleetsubscription.RuleChooses,
		},
		"pattern": {
			func(s *spec) { s.Placement.Except = []string{"*-1"} }, "/placement/except/0",
			approvalpolicy.RulePattern,
		},
		"selector": {
			func(s *spec) { s.Placement.Selector = "a in" }, "/placement/selector",
			fleetsubscription.RuleSelector,
		},
		"long selector": {
			func(s *spec) { s.Placement.Selector = strings.Repeat("a", fleetsubscription.MaxSelector+1) },
			"/placement/selector", rule.MaxLength,
		},
		"toleration": {
			func(s *spec) { s.Placement.Tolerations[0].Key = "a b" }, "/placement/tolerations/0/a b", rule.LabelKey,
		},
		"count":  {func(s *spec) { s.Placement.Count = -1 }, "/placement/count", approvalpolicy.RuleBounds},
		"spread": {func(s *spec) { s.Placement.SpreadBy = "a b" }, "/placement/spreadBy/a b", rule.LabelKey},
		"preference": {
			func(s *spec) { s.Placement.Prefer[0].Selector = "=" }, "/placement/prefer/0/selector",
			fleetsubscription.RuleSelector,
		},
		"weight": {
			func(s *spec) { s.Placement.Prefer[0].Weight = 1001 }, "/placement/prefer/0/weight",
			approvalpolicy.RuleBounds,
		},
		"failures": {
			func(s *spec) { s.Strategy.MaxFailures = "101%" }, "/strategy/maxFailures",
			fleetsubscription.RuleAmount,
		},
		"away": {
			func(s *spec) { s.Strategy.MaxUnreachable = "few" }, "/strategy/maxUnreachable",
			fleetsubscription.RuleAmount,
		},
		"deadline": {
			func(s *spec) { s.Strategy.DeadlineSeconds = 59 }, "/strategy/deadlineSeconds",
			approvalpolicy.RuleBounds,
		},
		"at a time": {
			func(s *spec) { s.Strategy.MaxConcurrent = -1 }, "/strategy/maxConcurrent",
			approvalpolicy.RuleBounds,
		},
		"waves": {
			func(s *spec) { s.Strategy.Waves = make([]events.RolloutWaveSpec, fleetsubscription.MaxWaves+1) },
			"/strategy/waves", rule.MaxItems,
		},
		"wave's name": {
			wave(func(w *events.RolloutWaveSpec) { w.Name = "" }), "/strategy/waves/0/name",
			rule.Required,
		},
		"wave of the rest": {
			wave(func(w *events.RolloutWaveSpec) { w.Name = placement.RestName }),
			"/strategy/waves/0/name", rule.Unique,
		},
		"wave twice": {
			wave(func(w *events.RolloutWaveSpec) { w.Name = "early" }), "/strategy/waves/1/name",
			rule.Unique,
		},
		"wave's selector": {
			wave(func(w *events.RolloutWaveSpec) { w.Selector = "!" }), "/strategy/waves/0/selector",
			fleetsubscription.RuleSelector,
		},
		"wave's size": {
			wave(func(w *events.RolloutWaveSpec) { w.Size = "-1" }), "/strategy/waves/0/size",
			fleetsubscription.RuleAmount,
		},
		"wave's soak": {
			wave(func(w *events.RolloutWaveSpec) { w.SoakSeconds = -1 }), "/strategy/waves/0/soakSeconds",
			approvalpolicy.RuleBounds,
		},
		"wave's promotion": {
			wave(func(w *events.RolloutWaveSpec) { w.Promotion = "Never" }), "/strategy/waves/0/promotion",
			rule.OneOf,
		},
		"window": {
			func(s *spec) { s.Strategy.Windows[0].TimeZone = "CEST" }, "/strategy/windows/0/timeZone",
			approvalpolicy.RuleWindow,
		},
		"overrides": {
			func(s *spec) { s.Overrides = make([]events.FleetOverride, fleetsubscription.MaxOverrides+1) },
			"/overrides", rule.MaxItems,
		},
		"override's name": {func(s *spec) { s.Overrides[0].Name = "" }, "/overrides/0/name", rule.Required},
		"override twice":  {func(s *spec) { s.Overrides[0].Name = "west" }, "/overrides/1/name", rule.Unique},
		"override of all": {
			func(s *spec) { s.Overrides[0].Selector = "" }, "/overrides/0", fleetsubscription.RuleOverrideChooses,
		},
		"override's pattern": {
			func(s *spec) { s.Overrides[1].Clusters = []string{"*-1"} }, "/overrides/1/clusters/0",
			approvalpolicy.RulePattern,
		},
		"override's selector": {
			func(s *spec) { s.Overrides[0].Selector = "a in" }, "/overrides/0/selector",
			fleetsubscription.RuleSelector,
		},
		"override of nothing": {
			func(s *spec) { s.Overrides[0].Config = "" }, "/overrides/0", fleetsubscription.RuleOverrideChanges,
		},
		"override's approval": {
			func(s *spec) { s.Overrides[1].Approval = "Ask" }, "/overrides/1/approval", rule.OneOf,
		},
		"gates": {
			wave(func(w *events.RolloutWaveSpec) { w.Gates = make([]events.RolloutGate, gate.MaxGates+1) }),
			"/strategy/waves/0/gates", rule.MaxItems,
		},
		"gate's name": {
			wave(func(w *events.RolloutWaveSpec) { w.Gates = append(w.Gates, w.Gates[0]) }),
			"/strategy/waves/0/gates/1/name", rule.Unique,
		},
		"gate's type": {
			wave(func(w *events.RolloutWaveSpec) { w.Gates[0] = events.RolloutGate{Name: "a", Type: "Person"} }),
			"/strategy/waves/0/gates/0/type", rule.OneOf,
		},
		"gate's expression": {
			wave(func(w *events.RolloutWaveSpec) { w.Gates[0].Expression = "body.a ==" }),
			"/strategy/waves/0/gates/0/expression", fleetsubscription.RuleGate,
		},
	} {
		s := full()
		c.change(&s)
		_, err := fleetsubscription.Decide(fleetsubscription.State{Name: "gauges"}, fleetsubscription.Set{Spec: s})
		all := ruletest.All(err)
		if len(all) != 1 || all[0].Field != c.at || all[0].Rule != c.rule {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := fleetsubscription.Decide(fleetsubscription.State{Name: "a/1"},
		fleetsubscription.Set{Spec: full()}); ruletest.All(err)[0].Field != "path.name" {
		t.Errorf("name: %v", err)
	}
}
