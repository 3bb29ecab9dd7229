package cluster_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestPlatformUpgrade proves R-CSV-60: the lowest limit counts, as a number of two parts, and who sets one is named.
func TestPlatformUpgrade(t *testing.T) {
	t.Parallel()
	limit := func(csv, value string) cluster.Limit {
		return cluster.Limit{Namespace: "ops", CSV: csv, Value: json.RawMessage(value)}
	}
	named := func(csv, version string) model.PlatformLimit {
		return model.PlatformLimit{Namespace: "ops", Name: csv, MaxVersion: version}
	}
	cases := []struct {
		name   string
		limits []cluster.Limit
		want   *model.PlatformUpgrade
	}{
		{"nobody says anything", nil, nil},
		{"4.9 is below 4.15", []cluster.Limit{limit("a.v1", `"4.15"`), limit("b.v1", `4.9`)}, &model.PlatformUpgrade{
			Reason: cluster.ReasonIncompatible, MaxVersion: "4.9", Operators: []model.PlatformLimit{named("a.v1", "4.15"), named("b.v1", "4.9")},
			Message: "the platform must not be upgraded beyond 4.9 before these operators are",
		}},
		{"said twice", []cluster.Limit{limit("a.v1", `"4.15"`), limit("a.v1", `"4.15"`)}, &model.PlatformUpgrade{
			Reason: cluster.ReasonErrorChecking, MaxVersion: "4.15", Operators: []model.PlatformLimit{named("a.v1", "4.15")},
			Message: "property olm.maxOpenShiftVersion cannot be read: ops/a.v1 has several of them",
		}},
		{"no version", []cluster.Limit{limit("a.v1", `"soon"`)}, &model.PlatformUpgrade{
			Reason: cluster.ReasonErrorChecking, Message: `property olm.maxOpenShiftVersion cannot be read: ops/a.v1 has "soon", which is not <major>.<minor>`,
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, cluster.PlatformUpgrade(c.limits)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
