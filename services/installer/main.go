// Command installer tells executors which plans are approved, records what they did, and serves the
// clusters whose kubeconfigs are stored.
package main

import (
	"context"
	"os"

	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/installer/app"
)

func main() {
	var cfg app.Config
	os.Exit(service.Main("installer", &cfg, func(ctx context.Context, tel *telemetry.Telemetry) error {
		a, err := app.New(ctx, cfg, tel)
		if err != nil {
			return err
		}
		return a.Run(ctx)
	}))
}
