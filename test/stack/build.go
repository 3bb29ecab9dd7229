package stack

import (
	"context"
	"fmt"

	"github.com/chandler-fleet/chandler/test/internal/gotool"
)

// Services are the four, in the order in which they are started.
var Services = []string{"catalog-indexer", "resolver", "installer", "gateway"}

// Build compiles the services, the CLI and nats-server into dir. It has no bound but that of ctx.
func Build(ctx context.Context, dir string) error {
	if err := gotool.Build(ctx, dir, append([]string{gotool.CLI}, gotool.Services...), func(string) {}); err != nil {
		return fmt.Errorf("build the services: %w", err)
	}
	return nil
}

// Root is the folder that holds go.work.
var Root = gotool.Root
