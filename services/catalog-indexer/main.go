// Command catalog-indexer reads operator catalogs, stores their content once by digest, and records
// what differs from the revision before.
package main

import (
	"context"
	"os"

	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/app"
)

func main() {
	var cfg app.Config
	os.Exit(service.Main("catalog-indexer", &cfg, func(ctx context.Context, tel *telemetry.Telemetry) error {
		a, err := app.New(ctx, cfg, tel)
		if err != nil {
			return err
		}
		return a.Run(ctx)
	}))
}
