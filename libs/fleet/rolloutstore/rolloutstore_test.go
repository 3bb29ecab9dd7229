package rolloutstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/libs/fleet/rolloutstore"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

// TestFold: what is in the tables after each event is what the rules make of all events so far, and an event that comes
// again changes nothing (issue 14, section 2).
func TestFold(t *testing.T) {
	t.Parallel()
	pool := pgtest.DB(t).Pool(t, "resolver")
	at := time.Date(2026, 11, 20, 9, 30, 15, 123456000, time.UTC)
	var want rollout.State
	for i, p := range []events.Payload{
		events.RolloutStarted{
			FleetSubscription: "buoy", Number: 2, Waves: []events.RolloutWave{
				{Name: "first", Clusters: []string{"east-1", "east-2"}}, {Name: "rest", Clusters: []string{"east-3"}},
			},
		},
		events.RolloutWaveOpened{},
		events.RolloutClusterDirected{Cluster: "east-1", Attempt: 1, Directive: "d1"},
		events.RolloutClusterSettled{Cluster: "east-1", Outcome: events.ClusterFailed, Reason: "x"},
		events.RolloutHalted{Reason: rollout.ReasonWaveFailures},
		events.RolloutClusterRetried{Cluster: "east-1"},
		events.RolloutClusterSkipped{Cluster: "east-2", Reason: "c1:0"},
		events.RolloutResumed{},
		events.RolloutClusterDirected{Cluster: "east-1", Attempt: 2, Directive: "d2"},
		events.RolloutClusterSettled{Cluster: "east-1", Outcome: events.ClusterSucceeded},
		events.RolloutPromoted{},
		events.RolloutWavePassed{},
		events.RolloutAborted{},
		events.RolloutRollbackRequested{To: 1, Reason: "c1:0"},
	} {
		e := eventlog.Recorded{Payload: p}
		e.ID, e.Tenant, e.Subject, e.Version = fmt.Sprint(i), events.DefaultTenant, "buoy/2", int64(i+1)
		e.Time = at.Add(time.Duration(i) * time.Minute)
		var err error
		if want, err = rollout.Evolve(want, p, e.Time); err != nil {
			t.Fatal(err)
		}
		err = pool.Tx(t.Context(), func(tx pgx.Tx) error {
			for range 2 {
				if err := rolloutstore.Fold(t.Context(), tx, "resolver", e); err != nil {
					return err
				}
			}
			got, err := rolloutstore.Load(t.Context(), tx, "resolver", events.DefaultTenant, "buoy", 2)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", p.EventType(), diff)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestSubject: a subject that is none is an error that names it.
func TestSubject(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{"", "buoy", "buoy/", "buoy/x", "buoy/0"} {
		if fleet, number, err := rolloutstore.Subject(subject); err == nil {
			t.Errorf("%q is %s, %d", subject, fleet, number)
		}
	}
}
