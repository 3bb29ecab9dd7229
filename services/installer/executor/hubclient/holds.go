package hubclient

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
)

// holdTimeout bounds one registration: the installer may have to take over from another replica meanwhile.
const holdTimeout = 10 * time.Second

// Holds registers the holds of an agent over NATS. Only the hub's answers are believed. It implements executor.Holds.
type Holds struct {
	conn *nats.Conn
	ask  rpc.Asker
}

// NewHolds returns one that believes the hub with these keys.
func NewHolds(conn *nats.Conn, hub keys.Accepted) *Holds {
	return &Holds{conn: conn, ask: rpc.Asker{Verify: protocol.HubSigned(hub)}}
}

// Register registers a hold. While the hub is away it is errs.Unavailable, and errs.NotFound or errs.Forbidden where
// the hub does not have the cluster served by an agent.
func (h *Holds) Register(ctx context.Context, hold protocol.Hold) (epoch int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, holdTimeout)
	defer cancel()
	var answer protocol.HoldAnswer
	subject := protocol.RPCHoldSubject(hold.Tenant, hold.ClusterID)
	if err := h.ask.Ask(ctx, h.conn, subject, hold, &answer); err != nil {
		return 0, err
	}
	if answer.Epoch < hold.Epoch || answer.Epoch > protocol.MaxEpoch {
		return 0, errs.New(errs.Internal, "the hub answers a hold of epoch %d with epoch %d", hold.Epoch, answer.Epoch)
	}
	return answer.Epoch, nil
}
