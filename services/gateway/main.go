// Command gateway serves the REST interface: it takes intents into the record and answers from read
// models of it.
package main

import (
	"context"
	"os"

	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/gateway/app"
)

func main() {
	var cfg app.Config
	os.Exit(service.Main("gateway", &cfg, func(ctx context.Context, tel *telemetry.Telemetry) error {
		a, err := app.New(ctx, cfg, tel)
		if err != nil {
			return err
		}
		return a.Run(ctx)
	}))
}
