package app

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// checks say whether the service can do its work. NATS is none of them: without it consumers go on
// from Postgres.
func (a *App) checks(intents, clusters *bus.Consumer) []httpserver.Check {
	return []httpserver.Check{
		{Name: "postgres", Check: func(ctx context.Context) error { return pg.Err(a.pool.Ping(ctx)) }},
		{Name: "intents", Check: intents.Check},
		{Name: "clusters", Check: clusters.Check},
	}
}
