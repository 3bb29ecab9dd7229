package cluster_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestConditions: the state is the first condition, and says why and since when; a cordon is listed beside it, and is
// the state of a cluster with which nothing is wrong. A cluster that is held elsewhere is never Connected.
func TestConditions(t *testing.T) {
	t.Parallel()
	since := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	later := since.Add(time.Hour)
	for _, c := range []struct{ connection, reason, want string }{
		{"Registered", "NoReport", "Pending"},
		{"Connected", "", "Connected"},
		{"Connected", "OLMRunning", "OLMRunning"},
		{"Connected", "WorkFailing", "Degraded"},
		{"Unreachable", "ConnectionRefused", "Unreachable"},
		{"Unauthorized", "CredentialEnded", "Unreachable"},
		{"Refused", "KubernetesNotSupported", "Unreachable"},
		{"OfALaterRelease", "", "Unreachable"},
		{"Refused", "DuplicateCluster", "HeldElsewhere"},
		{"HeldElsewhere", "DuplicateCluster", "HeldElsewhere"},
		{"HeldElsewhere", "", "HeldElsewhere"},
	} {
		s := cluster.Seen{Connection: c.connection, Reason: c.reason, Since: since}
		want := model.ClusterCondition{Type: c.want, Reason: c.reason, Since: since}
		if diff := cmp.Diff([]model.ClusterCondition{want}, cluster.Conditions(s)); diff != "" {
			t.Errorf("%s, %s (-want +got):\n%s", c.connection, c.reason, diff)
		}
		s.Cordoned = &later
		cordoned := model.ClusterCondition{Type: "Cordoned", Since: later}
		both := []model.ClusterCondition{want, cordoned}
		if c.want == "Connected" {
			both = []model.ClusterCondition{cordoned, want}
		}
		if diff := cmp.Diff(both, cluster.Conditions(s)); diff != "" {
			t.Errorf("%s, %s, cordoned (-want +got):\n%s", c.connection, c.reason, diff)
		}
	}
	if got := cluster.Conditions(cluster.New(since))[0]; got.Type != "Pending" || !got.Since.Equal(since) {
		t.Errorf("just registered: %+v", got)
	}
}
