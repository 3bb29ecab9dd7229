package fleet_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/placement"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
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
	tried := func(version string, stream int64, outcomes map[string]string) rollout.State {
		last := rollout.State{Phase: rollout.Aborted, Clusters: map[string]rollout.Cluster{}}
		last.Started = events.RolloutStarted{Number: 4, Version: stream, Target: target(version)}
		for name, outcome := range outcomes {
			last.Clusters[name] = rollout.Cluster{Outcome: outcome}
		}
		return last
	}
	all := []string{"east-1", "east-2", "east-3"}
	for _, c := range []struct {
		name, to, change string
		last             rollout.State
		want             []string
	}{
		{"the first", "1.0.0", events.ChangeIntent, rollout.State{}, []string{"east-2", "east-3"}},
		{"another version", "1.1.0", events.ChangeVersion, tried("1.0.0", 3, nil), all},
		{"another intent", "1.0.0", events.ChangeIntent, tried("1.0.0", 2, nil), []string{"east-2", "east-3"}},
		{
			"one that came", "1.0.0", events.ChangeMembership,
			tried("1.0.0", 3, map[string]string{"east-2": events.ClusterFailed}),
			[]string{"east-3"},
		},
		{
			"tried all", "1.0.0", "",
			tried("1.0.0", 3, map[string]string{"east-2": events.ClusterFailed, "east-3": events.ClusterSkipped}), nil,
		},
		{
			"left and came back", "1.0.0", events.ChangeMembership,
			tried("1.0.0", 3, map[string]string{"east-2": events.ClusterSucceeded, "east-3": ""}),
			[]string{"east-2"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := state()
			s.Last = c.last
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
