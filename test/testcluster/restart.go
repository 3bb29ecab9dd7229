package testcluster

import (
	"context"
	"fmt"

	"github.com/chandler-fleet/chandler/test/testcluster/binaries"
)

// RestartAPIServer ends the API server at once, as a crash does, and returns when it works again at its old address.
// Whoever has a connection sees it end.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	if c.shared {
		return fmt.Errorf("restart the API server of cluster %s: %w", c.Name(), ErrShared)
	}
	p := c.plane
	p.spoiled.Store(true)
	p.apiServer.Kill()
	process, err := p.run(binaries.APIServer, p.apiServerArgs())
	if err != nil {
		return fmt.Errorf("restart the API server of cluster %s: %w", c.Name(), err)
	}
	p.apiServer = process
	if err := p.await(ctx, p.apiServerReady); err != nil {
		return fmt.Errorf("restart the API server of cluster %s: %w", c.Name(), err)
	}
	return nil
}
