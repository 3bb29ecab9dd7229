package holds

import (
	"context"
	"crypto"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
)

// limits: a hold has a key and some names. An agent registers once a minute, and again with growing pauses where that
// fails; two of its executors do while one takes over from the other.
var limits = rpc.Limits{Bytes: 4 << 10, Every: time.Second, Burst: 10}

// Serve registers the holds of agents until ctx ends. Whose hold it is says the subject, on which only the agent of
// that cluster may publish (libs/natsauth), whatever the question says. Answers are signed by the hub.
func (r Registry) Serve(ctx context.Context, conn *nats.Conn, hub crypto.Signer, log *slog.Logger) error {
	a := rpc.Answerer{Sign: protocol.HubSigns(hub), Limits: limits}
	all := protocol.RPCHoldSubject("*", "*")
	return a.ServeAll(ctx, conn, log, all, func(subject string) (rpc.Handler, bool) {
		whose := strings.Split(strings.TrimPrefix(subject, protocol.RPCHold+"."), ".")
		return func(ctx context.Context, raw json.RawMessage) (any, error) {
			var h protocol.Hold
			if err := json.Unmarshal(raw, &h); err != nil {
				return nil, errs.Wrap(errs.Invalid, err, "read a hold")
			}
			h.Tenant, h.ClusterID = whose[0], whose[1]
			epoch, err := r.registerAgent(ctx, h)
			return protocol.HoldAnswer{Epoch: epoch}, err
		}, len(whose) == 2
	})
}

// registerAgent registers a hold of a cluster that an agent serves. One that the hub hosts itself has no agent: nobody
// takes it away by a message.
func (r Registry) registerAgent(ctx context.Context, h protocol.Hold) (int64, error) {
	if err := h.Check(); err != nil {
		return 0, err
	}
	var agents bool
	err := r.Pool.QueryRow(ctx, `select exists (select from installer.clusters where tenant = $1 and cluster_id = $2
		and not removed and credential = '')`, h.Tenant, h.ClusterID).Scan(&agents)
	if err != nil {
		return 0, pg.Err(err)
	}
	if !agents {
		return 0, errs.New(errs.NotFound, "cluster %s is not registered as one that an agent serves", h.ClusterID)
	}
	return r.Register(ctx, h)
}
