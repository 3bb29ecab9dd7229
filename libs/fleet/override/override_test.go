package override_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/override"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
)

// over is an override whose configuration is its name.
func over(name, selector string, clusters ...string) events.FleetOverride {
	return events.FleetOverride{Name: name, Clusters: clusters, Selector: selector, MergedConfig: "c1:" + name}
}

func read(t *testing.T, list ...events.FleetOverride) override.Rules {
	t.Helper()
	rules, err := override.Read(events.FleetSubscriptionSpec{Approval: "Automatic", Config: "c1:all", Overrides: list})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestFor: the most particular override holds, whatever the order of the list; those that are as particular and differ
// are a conflict, which names them (issue 14, section 2).
func TestFor(t *testing.T) {
	t.Parallel()
	edge := placement.Cluster{Name: "east-1", Labels: map[string]string{"site": "edge", "tier": "gold"}}
	twin := over("twin", "site=edge")
	twin.MergedConfig = "c1:edge" // the same as that of edge
	strict := twin
	strict.Name, strict.Approval = "strict", "Manual"
	for name, c := range map[string]struct {
		list []events.FleetOverride
		want string // the name, or names of a conflict
	}{
		"none": {nil, ""},
		"none that fits": {
			[]events.FleetOverride{over("west", "", "west-*"), over("hub", "site=hub")},
			"",
		},
		"one that chooses nothing": {[]events.FleetOverride{over("empty", "")}, ""},
		"labels":                   {[]events.FleetOverride{over("edge", "site=edge")}, "edge"},
		"more requirements": {
			[]events.FleetOverride{over("edge", "site=edge"), over("gold", "site=edge,tier=gold")},
			"gold",
		},
		"a set is one requirement": {
			[]events.FleetOverride{over("two", "site in (edge,hub,core)"), over("gold", "tier,site=edge")},
			"gold",
		},
		"a name before labels": {
			[]events.FleetOverride{over("gold", "site=edge,tier=gold"), over("this", "", "east-1")},
			"this",
		},
		"a name before its beginning": {
			[]events.FleetOverride{over("east", "site=edge,tier=gold", "east-*"), over("this", "", "east-1")},
			"this",
		},
		"a beginning before labels": {
			[]events.FleetOverride{over("gold", "site=edge,tier=gold"), over("east", "", "east-*")},
			"east",
		},
		"a longer beginning": {
			[]events.FleetOverride{over("east", "site=edge", "e*"), over("ones", "", "east-1*")},
			"ones",
		},
		"the beginning of all": {
			[]events.FleetOverride{over("edge", "site=edge"), over("all", "", "*")},
			"all",
		},
		"the best of its names": {
			[]events.FleetOverride{over("list", "", "e*", "east-1"), over("east", "", "east-*")},
			"list",
		},
		"a name and labels": {
			[]events.FleetOverride{over("this", "", "east-1"), over("both", "site=edge", "east-1")},
			"both",
		},
		"a name and labels that differ": {
			[]events.FleetOverride{over("edge", "site=edge"), over("both", "site=hub", "east-1")},
			"edge",
		},
		"conflict of labels": {
			[]events.FleetOverride{over("gold", "tier=gold"), over("edge", "site=edge")},
			"edge,gold",
		},
		"conflict of names": {
			[]events.FleetOverride{over("b", "", "east-1"), over("a", "", "east-1"), over("c", "tier")},
			"a,b",
		},
		"conflict of beginnings": {
			[]events.FleetOverride{over("b", "", "east*", "west-1"), over("a", "", "east*")},
			"a,b",
		},
		"no conflict below the best": {
			[]events.FleetOverride{over("b", "tier"), over("a", "site"), over("this", "", "east-1")},
			"this",
		},
		"as particular, and the same": {[]events.FleetOverride{twin, over("edge", "site=edge")}, "edge"},
		"conflict of approvals":       {[]events.FleetOverride{strict, twin}, "strict,twin"},
		"three, of which two are equal": {
			[]events.FleetOverride{over("edge", "site"), twin, over("gold", "tier=gold")},
			"edge,gold,twin",
		},
	} {
		for range 2 {
			got := read(t, c.list...).For(edge)
			if got.Key() != c.want || (len(got.Conflict) > 0) != strings.Contains(c.want, ",") {
				t.Errorf("%s: %+v, want %q", name, got, c.want)
			}
			slices.Reverse(c.list)
		}
	}
	base := events.SubscriptionSpec{Package: "buoy", Approval: "Automatic", Config: "c1:all"}
	if got := read(t).For(edge).Spec(base); got != base {
		t.Errorf("without an override: %+v", got)
	}
	want := events.SubscriptionSpec{Package: "buoy", Approval: "Manual", Config: "c1:edge"}
	if got := read(t, strict).For(edge).Spec(base); got != want {
		t.Errorf("with one: %+v", got)
	}
	if _, err := override.Read(events.FleetSubscriptionSpec{
		Overrides: []events.FleetOverride{over("odd", "a in")},
	}); err == nil {
		t.Error("a selector that cannot be read was taken")
	}
}

// TestFreeze: what a rollout wrote down about a cluster is what held for it then.
func TestFreeze(t *testing.T) {
	t.Parallel()
	rules := read(t, over("edge", "site=edge"), over("gold", "tier=gold"), over("this", "", "east-9"))
	clusters := []placement.Cluster{
		{Name: "east-9"},
		{Name: "east-3", Labels: map[string]string{"site": "edge"}},
		{Name: "east-2", Labels: map[string]string{"site": "edge", "tier": "gold"}},
		{Name: "east-1", Labels: map[string]string{"site": "edge"}},
		{Name: "east-0"},
	}
	choices := map[string]override.Choice{}
	for _, c := range clusters {
		choices[c.Name] = rules.For(c)
	}
	var r events.RolloutStarted
	r.Overrides, r.Conflicts = override.Freeze(choices)
	if diff := cmp.Diff(events.RolloutStarted{
		Overrides: []events.RolloutOverride{
			{Name: "edge", Clusters: []string{"east-1", "east-3"}, Config: "c1:edge", Approval: "Automatic"},
			{Name: "this", Clusters: []string{"east-9"}, Config: "c1:this", Approval: "Automatic"},
		},
		Conflicts: []events.RolloutConflict{{Cluster: "east-2", Overrides: []string{"edge", "gold"}}},
	}, r); diff != "" {
		t.Errorf("frozen (-want +got):\n%s", diff)
	}
	for _, c := range clusters {
		if diff := cmp.Diff(rules.For(c), override.Of(r, c.Name)); diff != "" {
			t.Errorf("%s (-held +frozen):\n%s", c.Name, diff)
		}
	}
}

// TestMerge: env is merged by the names of variables, each as a whole; every other key takes the place of the other's,
// and null takes it away.
func TestMerge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ base, over, want string }{
		"nothing":      {``, ``, ``},
		"nothing over": {`{"env":[{"name":"A","value":"1"}]}`, ``, `{"env":[{"name":"A","value":"1"}]}`},
		"over nothing": {``, `{"nodeSelector":{"a":"b"}}`, `{"nodeSelector":{"a":"b"}}`},
		"other keys stay": {
			`{"nodeSelector":{"a":"b"}}`,
			`{"resources":{}}`,
			`{"nodeSelector":{"a":"b"},"resources":{}}`,
		},
		"a key is whole": {
			`{"nodeSelector":{"a":"b","c":"d"}}`,
			`{"nodeSelector":{"a":"x"}}`,
			`{"nodeSelector":{"a":"x"}}`,
		},
		"null takes away": {`{"nodeSelector":{"a":"b"},"resources":{}}`, `{"nodeSelector":null}`, `{"resources":{}}`},
		"null of all":     {`{"resources":{}}`, `{"resources":null}`, ``},
		"null of nothing": {``, `{"resources":null}`, ``},
		"env is kept":     {`{"env":[{"name":"A","value":"1"}]}`, `{"env":null}`, ``},
		"env by name": {
			`{"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}`,
			`{"env":[{"name":"C","value":"3"},{"name":"A","value":"9"}]}`,
			`{"env":[{"name":"A","value":"9"},{"name":"B","value":"2"},{"name":"C","value":"3"}]}`,
		},
		"a variable whole": {
			`{"env":[{"name":"A","value":"1"}]}`,
			`{"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]}`,
			`{"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]}`,
		},
		"a name twice": {
			`{"env":[{"name":"A","value":"1"},{"name":"B"},{"name":"A","value":"2"}]}`,
			`{"env":[{"name":"A","value":"9"}]}`,
			`{"env":[{"name":"A","value":"9"},{"name":"B"}]}`,
		},
	} {
		got, err := override.Merge([]byte(c.base), []byte(c.over))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
	for _, bad := range [][2]string{
		{`[]`, `{}`}, {`{}`, `"a"`}, {`{"env":{}}`, `{"env":[]}`}, {`{}`, `{"env":[1]}`},
	} {
		if got, err := override.Merge([]byte(bad[0]), []byte(bad[1])); err == nil {
			t.Errorf("%s over %s is %s", bad[1], bad[0], got)
		}
	}
}
