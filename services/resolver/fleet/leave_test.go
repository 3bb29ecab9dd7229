package fleet_test

import (
	"reflect"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/fleet"
)

// TestRelease: what becomes of the operator of a cluster that leaves is what the deletion policy says, unless others
// need it, and not before the cluster has done what it is at (issue 14, section 2).
func TestRelease(t *testing.T) {
	t.Parallel()
	buoy := decide.Installed{
		Name: "buoy.v1", Package: "buoy", Version: "1.0.0", Phase: "Succeeded",
		Properties: []catalog.Property{{Type: "olm.package", Value: []byte(`{"packageName":"buoy","version":"1.0.0"}`)}},
	}
	old := decide.Installed{Name: "buoy.v0", Package: "buoy", Version: "0.9.0", Phase: "Replacing"}
	other := decide.Installed{Name: "lamp.v1", Package: "lamp", Version: "1.0.0", Phase: "Succeeded"}
	needs := other
	needs.Properties = []catalog.Property{
		{Type: "olm.package.required", Value: []byte(`{"packageName":"buoy","versionRange":">=1.0.0"}`)},
	}
	installed := func(list ...decide.Installed) decide.State { return decide.State{Installed: list} }
	atWork := installed(buoy)
	atWork.Plans = []decide.Plan{{State: installplan.State{
		Begun: true, Phase: installplan.Installing,
		Proposed: events.InstallPlanProposed{Bundles: []events.PlannedBundle{{Package: "buoy"}}},
	}}}
	waiting := atWork
	waiting.Plans = []decide.Plan{{State: atWork.Plans[0].State}}
	waiting.Plans[0].State.Begun = false
	here, before := fleet.Place{Cluster: "east-1", Namespace: "ports"}, fleet.Place{Cluster: "east-1", Namespace: "old"}
	gone := func(p fleet.Place, crds ...string) fleet.Release {
		return fleet.Release{Place: p, End: true, Remove: []string{"buoy.v1"}, CRDs: crds}
	}
	for name, c := range map[string]struct {
		policy  string
		deleted bool
		place   fleet.Place
		there   decide.State
		want    fleet.Release
		later   bool
	}{
		"orphan":            {"Orphan", false, here, atWork, fleet.Release{Place: here}, false},
		"written before":    {"", false, here, atWork, fleet.Release{Place: here}, false},
		"keeps definitions": {"KeepCRDs", false, here, installed(old, buoy, other), gone(here), false},
		"removes all":       {"Remove", false, here, installed(old, buoy, other), gone(here, "*"), false},
		"moves elsewhere":   {"Remove", false, before, installed(buoy), gone(before), false},
		"moved, then ended": {"Remove", true, before, installed(buoy), gone(before, "*"), false},
		"nothing is there": {"Remove", false, here, installed(other), fleet.Release{
			Place: here, End: true, CRDs: []string{"*"},
		}, false},
		"others need it": {"Remove", false, here, installed(buoy, needs), fleet.Release{
			Place: here, Kept: events.KeptRequired,
		}, false},
		"let go of already": {
			"Remove", false,
			fleet.Place{Cluster: "gone", Namespace: "ports"},
			installed(buoy),
			fleet.Release{Place: fleet.Place{Cluster: "gone", Namespace: "ports"}},
			false,
		},
		"at work":         {"KeepCRDs", false, here, atWork, fleet.Release{Place: here}, true},
		"a plan may wait": {"KeepCRDs", false, here, waiting, gone(here), false},
	} {
		s := state()
		s.Spec.DeletionPolicy, s.Deleted = c.policy, c.deleted
		got, now := s.Release(c.place, c.there)
		if now == c.later || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, now %v; want %+v", name, got, now, c.want)
		}
	}
}
