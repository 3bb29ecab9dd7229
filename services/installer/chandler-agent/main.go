// Command chandler-agent serves the cluster in which it runs: it connects to the hub's NATS, applies the plans that the
// hub has granted, and reports. It needs no way from the hub to the cluster, and no database.
package main

import (
	"context"
	"os"

	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/installer/agent"
)

func main() {
	var cfg agent.Config
	os.Exit(service.Main("chandler-agent", &cfg, func(ctx context.Context, tel *telemetry.Telemetry) error {
		a, err := agent.New(ctx, cfg, tel)
		if err != nil {
			return err
		}
		return a.Run(ctx)
	}))
}
