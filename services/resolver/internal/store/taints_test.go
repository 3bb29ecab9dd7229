package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/events"
)

// TestTaints: the resolver knows the taints of a cluster that was registered last under its name. No scope is worked on
// again for them (issue 14, section 1).
func TestTaints(t *testing.T) {
	t.Parallel()
	b := policed(t)
	taints := func() (out map[string]string) {
		err := b.pool.Tx(t.Context(), func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `select taints from resolver.clusters where tenant = $1 and name = 'harbour'`,
				tenant).Scan(&out)
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	none, some := map[string]string{}, map[string]string{"edge": "slow", "probation": ""}
	for i, c := range []struct {
		what  string
		event events.Payload
		want  map[string]string
	}{
		{"tainted", events.ClusterTaintsChanged{Taints: some}, some},
		{"one is taken away", events.ClusterTaintsChanged{Taints: map[string]string{"edge": "slow"}}, map[string]string{
			"edge": "slow",
		}},
		{"labels changed", events.ClusterLabelsChanged{}, map[string]string{"edge": "slow"}},
		{"all are taken away", events.ClusterTaintsChanged{}, none},
		{"tainted again", events.ClusterTaintsChanged{Taints: some}, some},
	} {
		if got := b.apply(t, "harbour", int64(i+2), c.event); len(got) > 0 {
			t.Errorf("%s: %v are worked on again", c.what, got)
		}
		if diff := cmp.Diff(c.want, taints()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
	b.apply(t, "harbour", 7, events.ClusterRemoved{Name: "harbour"})
	b.apply(t, "harbour", 1, events.ClusterRegistered{Name: "harbour"})
	if diff := cmp.Diff(none, taints()); diff != "" {
		t.Errorf("registered again (-want +got):\n%s", diff)
	}
	b.apply(t, "nowhere", 1, events.ClusterTaintsChanged{Taints: some})
}
