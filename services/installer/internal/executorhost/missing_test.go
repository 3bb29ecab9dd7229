package executorhost_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
)

// TestLostRegistrationsAreNotGivenBack: a cluster whose registration is lost with commits, or is missing while the
// tables are read again, keeps its executor; once that is settled it is stopped and still not given back. One that was
// removed is given back, also where the hub has deleted its row before the host looked.
func TestLostRegistrationsAreNotGivenBack(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.run()
	serve := func(name string) (id string) {
		t.Helper()
		id = e.register(name)
		e.credential(name, e.seal(e.identity.Recipient(), kubeconfig("t", "")))
		e.next("begin " + name + " t")
		return id
	}
	lost, removed := serve("east"), serve("west")
	e.exec(e.own, `delete from installer.clusters where cluster_id = $1`, lost)
	serve("north")
	serve("south") // in a later round than the one that first missed east
	_, err := e.own.Exec(t.Context(), `select eventlog.take_checkpoint($1)`, "installer.test")
	if err != nil {
		t.Fatal(err)
	}
	e.host.Wake()
	e.next("end east t")

	log := eventlog.New(e.gateway)
	stream := events.StreamID{
		Kind: events.KindCluster, Key: events.Key(events.DefaultTenant, events.KindCluster, "west"), Incarnation: 1,
	}
	if err := e.gateway.Tx(t.Context(), func(tx pgx.Tx) error {
		_, err := log.Append(t.Context(), tx, events.Meta{
			Tenant: events.DefaultTenant, Source: events.Gateway, Command: uuid.New(), Time: time.Now(),
		}, stream, "west", 0, events.ClusterRegistered{Name: "west", Credential: "c"},
			events.ClusterRemoved{Name: "west"})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	e.exec(e.own, `delete from installer.clusters where cluster_id = $1`, removed)
	e.host.Wake()
	e.next("end west t")
	select {
	case got := <-e.letGo:
		if got != "west t" {
			t.Errorf("%s was given back, though nobody removed it", got)
		}
	case <-time.After(patience):
		t.Error("the removed cluster was not given back")
	}
}
