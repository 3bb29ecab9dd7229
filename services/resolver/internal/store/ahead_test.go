package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
)

// TestLogAheadOfTheTables: a plan that is folded up to its end, while the log has what came of its operators already,
// is not planned once more: they are expected. One that has gone meanwhile is not.
func TestLogAheadOfTheTables(t *testing.T) {
	t.Parallel()
	b := policed(t)
	installer := b.db.Pool(t, "installer")
	log := eventlog.New(installer)
	for i, c := range []struct {
		namespace string
		gone      bool
		want      int
	}{{"tides", false, 1}, {"store", true, 0}} {
		id := uuid.NewString()
		b.apply(t, id, 1, events.InstallPlanProposed{
			Plan: id, Name: "install-7x2kq", Cluster: "harbour", Namespace: c.namespace, Generation: 1,
			Component: "gauge", Approval: "Automatic", Digest: "sha256:d", Bundles: []events.PlannedBundle{
				{CSV: "gauge.v1", Package: "gauge", Version: "1.0.0", Content: "sha256:c"},
			},
		})
		b.apply(t, id, 2, events.InstallPlanStarted{Steps: 1})
		subject := "harbour/" + c.namespace + "/gauge.v1"
		facts := []events.Payload{events.CSVPhaseChanged{
			Cluster: "harbour", Namespace: c.namespace, Name: "gauge.v1", Package: "gauge", Version: "1.0.0",
			Phase: "Succeeded", Content: "sha256:c", Plan: id,
		}}
		if c.gone {
			facts = append(facts, events.CSVRemoved{Reason: "Deleted"})
		}
		err := installer.Tx(t.Context(), func(tx pgx.Tx) error {
			_, err := log.Append(t.Context(), tx, events.Meta{
				Tenant: tenant, Source: events.Installer, Command: uuid.New(), Time: time.Now(),
			}, events.StreamID{
				Kind: events.KindCSV, Key: events.Key(tenant, events.KindCSV, subject), Incarnation: 1,
			}, subject, 0, facts...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		b.apply(t, id, 3, events.InstallPlanFinished{Steps: 1, StepLog: "log"})
		if got := b.load(t, c.namespace).Installed; len(got) != c.want {
			t.Errorf("%d: installed in %s: %+v, want %d", i, c.namespace, got, c.want)
		}
	}
}
