package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// terminal is the width that output of a thousand clusters fits into.
const terminal = 100

func narrow(t *testing.T, text string, most int) {
	t.Helper()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > most {
		t.Errorf("%d lines about a thousand clusters:\n%s", len(lines), text)
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > terminal {
			t.Errorf("a line of %d characters: %s", utf8.RuneCountInString(line), line)
		}
	}
}

// TestThousandClusters: what is equal shares a line, and lines fit a terminal (issue 14, section 2).
func TestThousandClusters(t *testing.T) {
	t.Parallel()
	v := fleetmodel.FleetPreview{
		FleetSubscription: "lighthouse", Change: events.ChangeVersion,
		Target: &fleetmodel.RolloutTarget{
			CSV: "lighthouse.v1.2.4", Channel: "steady", Catalog: "harbour",
			Content: "sha256:" + strings.Repeat("0", 64),
		},
		Waves:  []previewapi.FleetWave{{Name: "canary", Clusters: 10}, {Name: "rest", Clusters: 690, SoakSeconds: 600}},
		Totals: previewapi.FleetTotals{Clusters: 1000, Chosen: 700, Asked: 700},
	}
	one := tree{FleetSubscription: "lighthouse", Package: "lighthouse", Channel: "steady", Catalog: "harbour"}
	wave := waveTree{Name: "rest", State: fleetmodel.WaveProgressing, Done: "600/1000"}
	for i := range 1000 {
		c := previewapi.FleetCluster{Name: fmt.Sprintf("east-%04d", i), Reason: "LabelsDiffer"}
		branch := clusterTree{
			Name: c.Name, State: "Succeeded", Subscription: "harbour-ops/lighthouse", PlanPhase: "Complete",
			InstallPlan: fmt.Sprintf("install-%05d", i), Operator: "lighthouse.v1.2.4", Phase: "Succeeded",
		}
		if i < 700 {
			c.Chosen, c.Placed, c.Reason, c.Wave = true, true, "", "rest"
			c.Change, c.From, c.To = previewapi.FleetUpgrades, "lighthouse.v1.2.3", "lighthouse.v1.2.4"
		}
		if i == 0 {
			c.Change, c.Reason, c.Detail = previewapi.FleetConflicts, "SubscriptionExists", "beacon"
			c.From, c.To = "", ""
		}
		if i >= 600 {
			branch.State, branch.Reason, branch.Phase = "Failed", "DeadlineExceeded", "Installing"
		}
		v.Clusters = append(v.Clusters, c)
		wave.Clusters = append(wave.Clusters, branch)
	}
	var out bytes.Buffer
	p := printer.NewPage(&out, time.Now)
	showPreview(p, v)
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	narrow(t, out.String(), 20)
	one.Rollout = &rolloutTree{
		Number: 3, Change: events.ChangeVersion, CSV: "lighthouse.v1.2.4", Waves: []waveTree{wave},
	}
	narrow(t, strings.Join(one.lines(), "\n"), 8)
	lines := differences(v)
	narrow(t, strings.Join(lines, "\n"), 2)
	want := "~ 699 clusters: Upgrade from lighthouse.v1.2.3 to lighthouse.v1.2.4: "
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }) {
		t.Errorf("differences %q", lines)
	}
}

// TestTold: a history names waves as people do, and puts clusters together to which the same happened in a row.
func TestTold(t *testing.T) {
	t.Parallel()
	var all []model.Event
	add := func(subject, actor string, p events.Payload) {
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, model.Event{Subject: subject, Actor: actor, Type: string(p.EventType()), Data: raw})
	}
	add("gauges", "person-a", events.FleetSubscriptionDeleted{})
	add("gauges/2", "", events.RolloutStarted{Waves: []events.RolloutWave{{Name: "canary"}, {Name: "rest"}}})
	add("gauges/2", "", events.RolloutWaveOpened{Wave: 1})
	for _, name := range []string{"east-1", "east-2", "east-3"} {
		add("gauges/2", "", events.RolloutClusterDirected{Cluster: name, Attempt: 1})
	}
	add("gauges/2", "", events.RolloutClusterSettled{Cluster: "east-1", Outcome: events.ClusterSucceeded})
	add("gauges/2", "", events.RolloutClusterSettled{
		Cluster: "east-2", Outcome: events.ClusterFailed, Reason: "Removed",
	})
	add("gauges/2", "person-a", events.RolloutClusterSkipped{Cluster: "east-3"})
	add("gauges/2", "person-b", events.RolloutClusterSkipped{Cluster: "east-2"})
	var got []string
	for _, h := range told("gauges", all) {
		got = append(got, fmt.Sprintf("%d %s|%s|%s", h.Rollout, h.Actor, h.Text, strings.Join(h.Clusters, " ")))
	}
	want := []string{
		"0 person-a|fleet subscription deleted; what is on its clusters stays|",
		"2 |rollout of  to 0 clusters in 2 waves began: |",
		"2 |wave rest begins|",
		"2 |the change is asked of 3 clusters|east-1 east-2 east-3",
		"2 |cluster east-1: Succeeded|east-1",
		"2 |cluster east-2: Failed (Removed)|east-2",
		"2 person-a|cluster east-3 is left out|east-3",
		"2 person-b|cluster east-2 is left out|east-2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestMap: each cluster is one mark, in its wave, by name and in groups of ten; a line fits the screen, and where
// nobody knows the screen a usual one.
func TestMap(t *testing.T) {
	t.Parallel()
	members := func(state string, n int) (list []fleetmodel.RolloutCluster) {
		for range n {
			list = append(list, fleetmodel.RolloutCluster{State: state})
		}
		return list
	}
	r := fleetmodel.Rollout{
		FleetSubscription: "gauges", Number: 2, Phase: "Halted", Reason: "TooManyFailures",
		Target:   fleetmodel.RolloutTarget{CSV: "gauges.v2.0.0"},
		Clusters: fleetmodel.RolloutCounts{Total: 30, Succeeded: 1},
		Waves: []fleetmodel.RolloutWave{
			{
				Name: "canary", State: fleetmodel.WaveStopped,
				Clusters: fleetmodel.RolloutCounts{
					Total: 6, Succeeded: 1, Failed: 1, Unreachable: 1, Changing: 1, Skipped: 1, Waiting: 1,
				},
				Members: slices.Concat(members(events.ClusterSucceeded, 1), members(events.ClusterFailed, 1),
					members(events.ClusterUnreachable, 1), members(fleetmodel.ClusterChanging, 1),
					members(events.ClusterSkipped, 1), members(fleetmodel.ClusterWaiting, 1)),
			},
			{
				Name: "rest", State: fleetmodel.WaveWaiting, Clusters: fleetmodel.RolloutCounts{Total: 24, Waiting: 24},
				Members: members(fleetmodel.ClusterWaiting, 24),
			},
		},
	}
	want := []string{
		"gauges  rollout 2  Halted (TooManyFailures), 1/30: gauges.v2.0.0",
		"canary  Stopped: 1 succeeded, 1 failed, 1 changing, 1 waiting, 1 unreachable, 1 skipped",
		"  #!?>-.",
		"rest    Waiting: 24 waiting",
		"  .......... ..........",
		"  ....",
		"not asked by this rollout: 11",
		"  ========== =",
		mapLegend,
	}
	if diff := cmp.Diff(want, mapLines(r, 11, 30)); diff != "" {
		t.Errorf("drawn (-want +got):\n%s", diff)
	}
	r.Waves[1].Members = members(fleetmodel.ClusterWaiting, 1000)
	for _, columns := range []int{0, 1, 79, 100, 400} {
		all, wide := strings.Join(mapLines(r, 0, columns), "\n"), 0
		for line := range strings.SplitSeq(all, "\n") {
			if strings.HasPrefix(line, "  ") {
				wide = max(wide, len(line))
			}
		}
		most := columns
		if columns == 0 || columns > terminal {
			most = terminal
		}
		if wide > max(most, 12) || strings.Count(all, ".") < 1000 {
			t.Errorf("on %d columns a line has %d:\n%s", columns, wide, all)
		}
	}
}

// TestRollbacksAreDescribed: what is taken back, to what, why, and who is left alone, by name and reason (issue 14,
// section 2).
func TestRollbacksAreDescribed(t *testing.T) {
	t.Parallel()
	r := fleetmodel.Rollout{
		FleetSubscription: "gauges", Number: 5, RolledBack: &fleetmodel.RolledBack{To: 2, By: "person-a"},
		Rollback: &fleetmodel.RolloutRollback{
			Of: 4, From: "gauge.v2", To: 3, LeftAlone: []fleetmodel.RolloutLeftAlone{
				{Name: "east-1", Reason: "NothingBefore"},
				{Name: "east-2", Reason: "NotChosen"},
				{Name: "east-3", Reason: "NothingBefore"},
			},
		},
	}
	var out bytes.Buffer
	p := printer.NewPage(&out, time.Now)
	describeRollback(p, r)
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"what rollout 2 brought", "person-a", "it was erased", "4, which brought gauge.v2", "what rollout 3 brought",
		"east-1, east-3: what the others go back to never succeeded there (NothingBefore)",
		"east-2: the placement chooses it no more (NotChosen)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if got := whyLeftAlone(r, "east-2"); !strings.Contains(got, "leaves cluster east-2 as it is") ||
		whyLeftAlone(r, "west") != "" {
		t.Errorf("why: %q", got)
	}
	waits := fleetmodel.FleetSubscription{Name: "gauges", Status: fleetmodel.FleetStatus{WaitsFor: "RolledBack"}}
	if !strings.Contains(afterRollback(waits), "gauges") || afterRollback(fleetmodel.FleetSubscription{}) != "" {
		t.Errorf("what a person may do: %q", afterRollback(waits))
	}
}
