package eventlog_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pglocal"
)

// A decision appends in its own transaction, on the version of the stream that it has seen. The event has a position a
// moment later, and is then read by everybody who follows the log.
func Example() {
	ctx := context.Background()
	pool, stop, err := exampleDatabase(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	log := eventlog.New(pool)

	// Every service runs a candidate for the sequencer; one of them leads and gives positions.
	leading, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// returns nil
		_ = eventlog.NewSequencer(log, eventlog.Options{ID: "example", Log: slog.New(slog.DiscardHandler)}).Run(leading)
	}()
	defer func() { end(); <-ended }()

	var appended eventlog.Appended
	err = pool.Tx(ctx, func(tx pgx.Tx) error {
		head, err := log.Latest(ctx, tx, events.DefaultTenant, events.KindCluster, "east-1")
		if err != nil {
			return err
		}
		command := events.Meta{
			Tenant: events.DefaultTenant, Source: events.Gateway, Command: uuid.New(),
			Time: time.Now(),
		}
		appended, err = log.Append(ctx, tx, command, head.Create(), "east-1", 0,
			events.ClusterRegistered{Name: "east-1", Credential: "c1:00"},
			events.ClusterLabelsChanged{Labels: map[string]string{"region": "east"}})
		return err
	})
	if err != nil {
		fmt.Println(err) // a *ConflictError where somebody else was faster
		return
	}
	if _, _, err := log.Wait(ctx, appended, time.Minute); err != nil {
		fmt.Println(err)
		return
	}
	list, _, err := log.ReadAfter(ctx, pool, events.Position{}, eventlog.Filter{Tenant: events.DefaultTenant}, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range list {
		fmt.Println(e.Position, e.Subject, e.Version, e.Type)
	}

	// Output:
	// 1-1 east-1 1 cluster.registered.v1
	// 1-2 east-1 2 cluster.labels-changed.v1
}

// exampleDatabase is a PostgreSQL of its own with the schemas of Chandler, opened as the gateway.
func exampleDatabase(ctx context.Context) (pool *pg.Pool, stop func(), err error) {
	server, err := pglocal.Start(ctx, pglocal.Options{Log: quiet})
	if err != nil {
		return nil, nil, err
	}
	if err := migrate.Up(ctx, server.AdminURL(), migrate.Options{Log: quiet}); err != nil {
		return nil, nil, err
	}
	if pool, err = pg.Open(ctx, server.RoleURL("chandler_gateway")); err != nil {
		return nil, nil, err
	}
	return pool, func() {
		pool.Close()
		_ = server.Stop() // a temporary one: nothing is lost
	}, nil
}
