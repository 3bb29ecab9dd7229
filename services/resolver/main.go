// Command resolver decides what each namespace should run: it follows intents, catalogs and facts, and
// proposes install plans or explains why there is none.
package main

import (
	"context"
	"os"

	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/resolver/app"
)

func main() {
	var cfg app.Config
	os.Exit(service.Main("resolver", &cfg, func(ctx context.Context, tel *telemetry.Telemetry) error {
		a, err := app.New(ctx, cfg, tel)
		if err != nil {
			return err
		}
		return a.Run(ctx)
	}))
}
