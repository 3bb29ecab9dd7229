package hubtest

import (
	"context"
	"sync"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Holds takes down who holds one cluster, by the rules of the hub's table (services/installer/internal/holds): the
// highest epoch holds it. Its zero value knows nobody.
type Holds struct {
	mu   sync.Mutex
	last protocol.Hold
}

// Register implements executor.Holds.
func (h *Holds) Register(_ context.Context, hold protocol.Hold) (int64, error) {
	if err := hold.Check(); err != nil {
		return 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if hold.Epoch > h.last.Epoch {
		h.last = hold
	}
	return h.last.Epoch, nil
}

// Last is the hold with the highest epoch.
func (h *Holds) Last() protocol.Hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// Holds are those of the cluster of this hub.
func (h *Hub) Holds() *Holds { return h.holds }
