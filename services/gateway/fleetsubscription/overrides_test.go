package fleetsubscription_test

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
	"github.com/chandler-fleet/chandler/services/gateway/fleetsubscription"
	"github.com/chandler-fleet/chandler/services/gateway/rule/ruletest"
)

// TestOverrideConflicts: a conflict that can be seen when a fleet subscription is set is refused, with both overrides
// and a cluster; what concerns no cluster that may be chosen is none (issue 14, section 2).
func TestOverrideConflicts(t *testing.T) {
	t.Parallel()
	over := func(name, config, selector string, clusters ...string) events.FleetOverride {
		return events.FleetOverride{
			Name: name, Selector: selector, Clusters: clusters, Config: config, MergedConfig: config,
		}
	}
	clusters := []placement.Cluster{
		{Name: "east-1", Labels: map[string]string{"site": "edge", "tier": "gold"}},
		{
			Name: "east-2", Labels: map[string]string{"site": "edge", "tier": "gold"},
			Taints: map[string]string{"a": "b"},
		},
		{Name: "east-9", Labels: map[string]string{"size": "s", "age": "old"}}, // which is excepted
		{Name: "north", Labels: map[string]string{"zone": "a", "ring": "0"}},   // which is not named
	}
	for name, c := range map[string]struct {
		list []events.FleetOverride
		at   string // "" where it is taken
		says []string
	}{
		"labels": {
			[]events.FleetOverride{over("a", "1", "site=edge"), over("b", "2", "tier=gold")},
			"/overrides/1",
			[]string{"overrides a and b", "cluster east-1 and 1 more"},
		},
		"the same to say": {
			[]events.FleetOverride{over("a", "1", "site=edge"), over("b", "1", "tier=gold")},
			"",
			nil,
		},
		"a more particular": {
			[]events.FleetOverride{over("a", "1", "site=edge"), over("b", "2", "tier=gold,site")},
			"",
			nil,
		},
		"one excepted":         {[]events.FleetOverride{over("a", "1", "size=s"), over("b", "2", "age=old")}, "", nil},
		"one not chosen":       {[]events.FleetOverride{over("a", "1", "zone=a"), over("b", "2", "ring=0")}, "", nil},
		"labels of no cluster": {[]events.FleetOverride{over("a", "1", "p=q"), over("b", "2", "r=s")}, "", nil},
		"names of no cluster yet": {
			[]events.FleetOverride{over("a", "1", "", "east-7"), over("c", "3", "site"), over("b", "2", "", "east-7")},
			"/overrides/2",
			[]string{"overrides a and b", "every cluster"},
		},
		"three": {
			[]events.FleetOverride{
				over("a", "1", "", "east-1"),
				over("c", "3", "", "east-1"),
				over("b", "2", "", "east-1", "west"),
			},
			"/overrides/2",
			[]string{"overrides a and b and c", "cluster east-1,"},
		},
	} {
		s := full()
		s.Placement.Clusters, s.Placement.Selector, s.Placement.Count = []string{"east-*", "west"}, "", 1
		s.Overrides = c.list
		_, err := fleetsubscription.Decide(fleetsubscription.State{Name: "gauges"},
			fleetsubscription.Set{Spec: s, Clusters: clusters})
		if c.at == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		all := ruletest.All(err)
		if len(all) == 0 || all[0].Field != c.at || all[0].Rule != fleetsubscription.RuleOverrideConflict {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(all[0].Error(), part) {
				t.Errorf("%s: %v does not say %q", name, all[0], part)
			}
		}
	}
}
