package fleetsubscription

import (
	"fmt"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/gate"
	"github.com/chandler-fleet/chandler/libs/installplan/window"
	"github.com/chandler-fleet/chandler/services/gateway/approvalpolicy"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// RuleGate is of gates of waves.
const RuleGate = "rollout-gate"

// normalGates writes out the defaults of gates.
func normalGates(s *events.RolloutStrategy) {
	if len(s.Windows) == 0 {
		s.Windows = nil
	}
	for i, w := range s.Waves {
		var gates []events.RolloutGate
		for _, g := range w.Gates {
			gates = append(gates, gate.Normal(g))
		}
		s.Waves[i].Gates = gates
	}
}

func checkWindows(v *rule.Violations, list []events.Window) {
	if !checkItems(v, "/strategy/windows", len(list), approvalpolicy.MaxWindows) {
		return
	}
	for i, w := range list {
		for _, p := range window.Check(w) {
			v.Addf(fmt.Sprintf("/strategy/windows/%d/%s", i, p.Field), approvalpolicy.RuleWindow, "%s", p.Text)
		}
	}
}

// checkGates compiles what the fleet controller evaluates later, so that whoever sets it hears of it.
func checkGates(v *rule.Violations, at string, list []events.RolloutGate) {
	if !checkItems(v, at, len(list), gate.MaxGates) {
		return
	}
	names := map[string]bool{}
	for i, g := range list {
		here := fmt.Sprintf("%s/%d", at, i)
		v.DNSLabelName(here+"/name", g.Name)
		if names[g.Name] {
			v.Addf(here+"/name", rule.Unique, "two gates of the wave have the name %q", g.Name)
		}
		names[g.Name] = true
		v.OneOf(here+"/type", g.Type, gate.Types()...)
		v.OneOf(here+"/when", g.When, events.GateAfter, events.GateBefore)
		v.OneOf(here+"/failurePolicy", g.FailurePolicy, events.GateWaits, events.GateFails)
		for _, p := range gate.Check(g) {
			v.Addf(here+"/"+p.Field, RuleGate, "%s", p.Text)
		}
	}
}
