package cli

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// installed CLUSTER/NAMESPACE/CSV PACKAGE records what an executor reports of an operator that is installed: a script
// has no cluster.
func installed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("want: installed CLUSTER/NAMESPACE/CSV PACKAGE")
	}
	at := strings.Split(args[0], "/")
	if len(at) != 3 {
		ts.Fatalf("%q is no cluster/namespace/name", args[0])
	}
	ts.Check(record(context.Background(), ts.Getenv("CHANDLER_DATABASE_URL"), args[0], events.CSVPhaseChanged{
		Cluster: at[0], Namespace: at[1], Name: at[2], Package: args[1], Version: "1.2.0", Phase: "Succeeded",
		Reason: "InstallSucceeded",
	}))
}

// record appends a fact of the installer to the stream of a new ClusterServiceVersion.
func record(ctx context.Context, databaseURL, subject string, p events.Payload) error {
	pool, err := pg.Open(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	log := eventlog.New(pool)
	return pool.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select set_config('chandler.tenant', $1, true)`, events.DefaultTenant); err != nil {
			return err
		}
		head, err := log.Latest(ctx, tx, events.DefaultTenant, events.KindCSV, subject)
		if err != nil {
			return err
		}
		m := events.Meta{
			Tenant: events.DefaultTenant, Source: events.Installer, Command: uuid.New(), Time: time.Now(),
		}
		_, err = log.Append(ctx, tx, m, head.Create(), subject, 0, p)
		return err
	})
}
