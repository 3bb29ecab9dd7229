package fleet_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/override"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/resolver/fleet"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
)

func target(version string) events.RolloutTarget {
	return events.RolloutTarget{CSV: "buoy.v" + version, Version: version, Content: "sha256:" + version}
}

// state is a fleet subscription for three clusters, of which the first has 1.0.0.
func state() fleet.State {
	s := fleet.State{
		Name: "buoy", Version: 3, Clusters: map[string]fleet.Cluster{}, Placed: map[string]fleet.Placed{},
		Spec: events.FleetSubscriptionSpec{
			Package: "buoy", Namespace: "ports", Placement: events.FleetPlacement{Clusters: []string{"east-*"}},
			Strategy: events.RolloutStrategy{
				Waves: []events.RolloutWaveSpec{{Name: "first", Size: "1"}, {Name: "none", Selector: "ring=9"}},
			},
		},
	}
	for i := range 3 {
		name := fmt.Sprintf("east-%d", i+1)
		s.Clusters[name] = fleet.Cluster{Cluster: placement.Cluster{Name: name}}
	}
	s.Placed["east-1"] = fleet.Placed{
		Spec: events.SubscriptionSpec{Package: "buoy"}, Target: target("1.0.0"),
	}
	return s
}

// TestBegin: a rollout is for those who do not have what is wanted, and what was tried is not tried again (issue 14,
// section 2).
func TestBegin(t *testing.T) {
	t.Parallel()
	// tried is the rollout number 4, that ended.
	tried := func(version string, stream int64, outcomes map[string]string) map[string]fleet.Try {
		out := map[string]fleet.Try{}
		for name, outcome := range outcomes {
			out[name] = fleet.Try{Version: stream, Target: target(version), Outcome: outcome}
		}
		return out
	}
	last := func(version string, stream int64) rollout.State {
		return rollout.State{Phase: rollout.Aborted, Started: events.RolloutStarted{
			Number: 4, Version: stream, Target: target(version),
		}}
	}
	succeeded := map[string]string{"east-1": events.ClusterSucceeded}
	all := []string{"east-1", "east-2", "east-3"}
	for _, c := range []struct {
		name, to, change string
		last             rollout.State
		tried            map[string]fleet.Try
		want             []string
	}{
		{"the first", "1.0.0", events.ChangeIntent, rollout.State{}, nil, []string{"east-2", "east-3"}},
		{"another version", "1.1.0", events.ChangeVersion, last("1.0.0", 3), tried("1.0.0", 3, succeeded), all},
		{
			"another intent", "1.0.0", events.ChangeIntent, last("1.0.0", 2), tried("1.0.0", 2, succeeded),
			[]string{"east-2", "east-3"},
		},
		{
			"one that came", "1.0.0", events.ChangeMembership, last("1.0.0", 3),
			tried("1.0.0", 3, map[string]string{"east-2": events.ClusterFailed}),
			[]string{"east-3"},
		},
		{
			"tried all", "1.0.0", "", last("1.0.0", 3),
			tried("1.0.0", 3, map[string]string{
				"east-1": "", "east-2": events.ClusterFailed, "east-3": events.ClusterSkipped,
			}), nil,
		},
		{
			"left and came back", "1.0.0", events.ChangeMembership, last("1.0.0", 3),
			tried("1.0.0", 3, map[string]string{"east-2": events.ClusterSucceeded, "east-3": ""}),
			[]string{"east-2"},
		},
		// What a change of the intent may not do is to bring to all what failed on the first, or has not shown itself.
		{
			"another intent after a failure", "1.0.0", events.ChangeIntent, last("1.0.0", 2),
			tried("1.0.0", 2, map[string]string{"east-1": events.ClusterFailed}), all,
		},
		{
			"another intent meanwhile", "1.0.0", events.ChangeIntent, last("1.0.0", 2),
			tried("1.0.0", 2, map[string]string{"east-1": ""}), all,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := state()
			s.Last, s.Tried = c.last, c.tried
			members, err := s.Members()
			if err != nil || !slices.Equal(members, all) {
				t.Fatalf("members %v, %v", members, err)
			}
			got, begins, err := s.Begin(members, target(c.to))
			var names []string
			for _, w := range got.Waves {
				names = append(names, w.Clusters...)
			}
			if err != nil || begins != (c.want != nil) || !slices.Equal(names, c.want) || got.Change != c.change {
				t.Errorf("begins %v with %v (%s), %v; want %v (%s)", begins, names, got.Change, err, c.want, c.change)
			}
			if begins && (got.Number != c.last.Started.Number+1 || got.MaxConcurrent != fleet.DefaultMaxConcurrent ||
				got.DeadlineSeconds != fleet.DefaultDeadlineSeconds || len(got.Waves[0].Clusters) != 1) {
				t.Errorf("the rollout is %+v", got)
			}
		})
	}
}

// TestBeginWithOverrides: a change of an override is for the clusters that it holds for, whether the fleet
// subscription or labels have changed; what a rollout asks is written down with it; and clusters on which overrides
// are a conflict fail, and are left alone until that changes (issue 14, section 2).
func TestBeginWithOverrides(t *testing.T) {
	t.Parallel()
	s := state()
	site := func(name, value string) {
		c := s.Clusters[name]
		c.Labels = map[string]string{"site": value, "tier": value}
		s.Clusters[name] = c
	}
	over := func(name, selector, config string) events.FleetOverride {
		return events.FleetOverride{Name: name, Selector: selector, Config: config, MergedConfig: config}
	}
	begin := func() (events.RolloutStarted, []string) {
		t.Helper()
		members, err := s.Members()
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := s.Begin(members, target("1.0.0"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, w := range got.Waves {
			names = append(names, w.Clusters...)
		}
		slices.Sort(names)
		return got, names
	}
	// done plays a rollout to its end.
	done := func(r events.RolloutStarted, failed ...string) {
		for _, w := range r.Waves {
			for _, name := range w.Clusters {
				try := fleet.Try{
					Version: r.Version, Target: r.Target, Outcome: events.ClusterSucceeded,
					Choice: override.Of(r, name),
				}
				if slices.Contains(failed, name) {
					try.Outcome = events.ClusterFailed
				} else {
					asked := fleet.Ask(r, name)
					s.Placed[name] = fleet.Placed{Spec: asked.Spec, Target: asked.Target}
				}
				s.Tried[name] = try
			}
		}
		s.Last = rollout.State{Phase: rollout.Succeeded, Started: r}
	}
	want := func(what string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
	s.Tried = map[string]fleet.Try{}
	s.Spec.Config, s.Spec.Approval = "c1:all", "Automatic"
	site("east-2", "edge")
	s.Spec.Overrides = []events.FleetOverride{over("edge", "site=edge", "c1:edge")}
	r, asked := begin()
	want("at first", asked, []string{"east-1", "east-2", "east-3"})
	for name, config := range map[string]string{"east-1": "c1:all", "east-2": "c1:edge", "east-3": "c1:all"} {
		if got := fleet.Ask(r, name).Spec; got.Config != config || got.Package != "buoy" {
			t.Errorf("%s is asked for %+v, want %s", name, got, config)
		}
	}
	done(r)
	_, asked = begin()
	want("then", asked, nil)

	s.Version, s.Spec.Overrides[0].MergedConfig = 4, "c1:other"
	r, asked = begin()
	want("another override", asked, []string{"east-2"})
	if r.Change != events.ChangeIntent {
		t.Errorf("it is because of %s", r.Change)
	}
	done(r)
	site("east-3", "edge")
	r, asked = begin()
	want("other labels", asked, []string{"east-3"})
	if r.Change != events.ChangeMembership || fleet.Ask(r, "east-3").Spec.Config != "c1:other" {
		t.Errorf("other labels begin %+v", r)
	}
	done(r)

	// The other override says the same as the first one at first.
	s.Version = 5
	s.Spec.Overrides = append(s.Spec.Overrides, over("gold", "tier=edge", "c1:other"))
	_, asked = begin()
	want("as particular, and the same", asked, nil)
	s.Version, s.Spec.Overrides[1].MergedConfig = 6, "c1:gold"
	r, asked = begin()
	want("in conflict", asked, []string{"east-2", "east-3"})
	s.Last = rollout.State{Phase: rollout.Progressing, Started: r, Clusters: map[string]rollout.Cluster{"east-2": {}}}
	if got := s.World()["east-2"].Refused; got != override.ReasonConflict {
		t.Errorf("in conflict it is refused for %q", got)
	}
	whole, list, err := s.Preview(target("1.0.0"), "")
	if err != nil || len(whole.Waves) == 0 || list[0].Override != "" || list[2].Reason != override.ReasonConflict ||
		list[2].Detail != "edge, gold" || list[2].Change != previewapi.FleetConflicts {
		t.Errorf("the preview is %+v, %+v, %v", whole, list, err)
	}
	done(r, "east-2", "east-3")
	_, asked = begin()
	want("what is in conflict still", asked, nil)
	site("east-3", "hub")
	r, asked = begin()
	want("out of the conflict", asked, []string{"east-3"})
	if got := fleet.Ask(r, "east-3").Spec.Config; got != "c1:all" || r.Conflicts != nil {
		t.Errorf("out of the conflict it is asked for %s, %+v", got, r.Conflicts)
	}
}

// TestSuperseded: a rollout ends by another intent (issue 14, section 2). A version counts within its stream.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	s := state()
	s.Stream = "fleetsubscription/buoy/1"
	s.Last = rollout.State{
		Phase: rollout.Progressing, Started: events.RolloutStarted{Stream: s.Stream, Version: s.Version},
	}
	if s.Superseded() {
		t.Error("nothing changed, and the rollout is superseded")
	}
	again := s
	again.Stream = "fleetsubscription/buoy/2"
	if !again.Superseded() {
		t.Error("the same version of another stream does not supersede the rollout")
	}
	s.Version++
	if !s.Superseded() {
		t.Error("another version does not supersede the rollout")
	}
}

// TestLeaving: who is chosen no more is let go, and all are when the fleet subscription ends.
func TestLeaving(t *testing.T) {
	t.Parallel()
	s := state()
	s.Strays = []fleet.Place{{Cluster: "east-2", Namespace: "old"}}
	s.Spec.Placement.Except = []string{"east-1"}
	members, err := s.Members()
	want := []fleet.Place{{Cluster: "east-1", Namespace: "ports"}, {Cluster: "east-2", Namespace: "old"}}
	if got := s.Leaving(members); err != nil || !slices.Equal(got, want) {
		t.Errorf("leaving %v, %v; want %v", got, err, want)
	}
	s.Deleted, s.Strays = true, nil
	if members, err = s.Members(); err != nil || len(members) != 0 || len(s.Leaving(members)) != 1 {
		t.Errorf("after the end members %v, %v, leaving %v", members, err, s.Leaving(members))
	}
}

// TestChoose: the target is the first bundle from the head of the channel that the versions allow.
func TestChoose(t *testing.T) {
	t.Parallel()
	p := offer.Index(catalog.Package{
		Name: "buoy", DefaultChannel: "stable", Channels: []catalog.Channel{
			{Name: "stable", Entries: []catalog.Entry{{Name: "v1"}, {Name: "v2", Replaces: "v1"}}},
			{Name: "edge", Entries: []catalog.Entry{{Name: "v3"}}},
		}, Bundles: []catalog.Bundle{
			{Name: "v1", Version: "1.0.0"}, {Name: "v2", Version: "2.0.0"}, {Name: "v3", Version: "3.0.0"},
		},
	}, "sha256:d")
	for _, c := range []struct {
		channel  string
		versions events.PolicyVersions
		csv, on  string
		waits    string
	}{
		{csv: "v2", on: "stable"},
		{channel: "edge", csv: "v3", on: "edge"},
		{versions: events.PolicyVersions{Ceiling: "1.9.0"}, csv: "v1", on: "stable"},
		{versions: events.PolicyVersions{Range: ">=3.0.0"}, waits: fleet.WaitsForVersion},
		{versions: events.PolicyVersions{Pin: "v1"}, csv: "v1", on: "stable"},
		{channel: "none", waits: fleet.WaitsForChannel},
	} {
		spec := events.FleetSubscriptionSpec{Channel: c.channel, Versions: c.versions}
		bundle, channel, waits := fleet.Choose(spec, p)
		name := ""
		if bundle != nil {
			name = bundle.Name
		}
		if name != c.csv || channel != c.on || waits != c.waits {
			t.Errorf("%+v gives %q of %q, waits %q", c, name, channel, waits)
		}
	}
	if _, _, waits := fleet.Choose(events.FleetSubscriptionSpec{}, nil); waits != fleet.WaitsForPackage {
		t.Errorf("without the package it waits for %q", waits)
	}
}
