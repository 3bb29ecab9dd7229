package record_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/record"
)

// TestFacts: facts are recorded when they are known and when they change, and then at most once in FactsEvery. A report
// without them changes nothing.
func TestFacts(t *testing.T) {
	t.Parallel()
	now := start
	var s record.Cluster
	step := func(what string, after time.Duration, nodes int64, want int, settled bool) {
		t.Helper()
		now = now.Add(after)
		r := protocol.ClusterReport{State: "Connected", APIs: []string{"v1"}}
		if nodes > 0 {
			r.Facts = &events.ClusterFacts{Nodes: nodes, Architectures: map[string]int64{"amd64": nodes}}
		}
		var payloads []events.Payload
		payloads, s = record.DecideCluster(s, r, now)
		payloads = slices.DeleteFunc(payloads, func(p events.Payload) bool {
			_, other := p.(events.ClusterObserved)
			return other
		})
		if len(payloads) != want || s.Settled() != settled {
			t.Errorf("%s: %+v, settled %v", what, payloads, s.Settled())
		}
	}
	step("not known", 0, 0, 0, true)
	step("known", time.Second, 3, 1, true)
	step("the same", time.Hour, 3, 0, true)
	step("without", time.Second, 0, 0, true)
	step("another node", time.Second, 4, 1, true)
	step("and another", time.Minute, 5, 0, false)
	step("back again", time.Second, 4, 0, true)
	step("more", time.Second, 6, 0, false)
	step("more, later", record.FactsEvery, 6, 1, true)
	if s.Facts.Nodes != 6 || !slices.Equal(s.APIs, []string{"v1"}) || s.State != "Connected" {
		t.Errorf("recorded: %+v", s)
	}
}

// TestSanitizeFacts: what a hostile cluster says of itself is bounded, and the digest of its APIs is the hub's.
func TestSanitizeFacts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	r := protocol.ClusterReport{
		Facts: &events.ClusterFacts{
			ClusterUID: long, Nodes: -1, APIs: "forged", APICount: 7, Architectures: map[string]int64{},
			Missing: map[string]string{long: long, "nodes": long},
		},
		APIs: []string{"b/v1", "a/v1", "b/v1"},
	}
	for i := range 100 {
		r.Facts.Architectures[fmt.Sprint(i)] = -5
	}
	one := record.SanitizeCluster(r, start)
	f := one.Facts
	if len(f.ClusterUID) >= 5000 || f.Nodes != 0 || len(f.Architectures) > 16 || f.Architectures["0"] != 0 ||
		len(f.Missing) != 1 || len(f.Missing["nodes"]) >= 5000 {
		t.Errorf("facts %+v", f)
	}
	if diff := cmp.Diff([]string{"a/v1", "b/v1"}, one.APIs); diff != "" || f.APICount != 2 ||
		!strings.HasPrefix(f.APIs, "sha256:") {
		t.Errorf("APIs %s of %d: %s", f.APIs, f.APICount, diff)
	}
	many := protocol.ClusterReport{Facts: &events.ClusterFacts{}}
	for i := range 3000 {
		many.APIs = append(many.APIs, fmt.Sprint(i))
	}
	if got := record.SanitizeCluster(many, start); len(got.APIs) != 1000 || got.Facts.APICount != 1000 {
		t.Errorf("%d APIs are kept", len(got.APIs))
	}
}
