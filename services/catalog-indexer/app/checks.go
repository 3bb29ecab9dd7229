package app

import (
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/httpserver"
)

// checks say whether the service can do its work. NATS is none of them: without it consumers go on
// from Postgres.
func (a *App) checks(intents, clusters *bus.Consumer) []httpserver.Check {
	return []httpserver.Check{
		a.PostgresCheck(),
		{Name: "intents", Check: intents.Check},
		{Name: "clusters", Check: clusters.Check},
	}
}
