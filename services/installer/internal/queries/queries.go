// Package queries answers the gateway's questions about a cluster: it finds the id under which the cluster is
// registered, and asks the executor that holds it. No question changes anything.
package queries

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/agentconfig"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
	"github.com/chandler-fleet/chandler/services/installer/removal"
)

// Bus serves questions of other services.
type Bus interface {
	ServeWith(ctx context.Context, subject string, limits rpc.Limits, fn rpc.Handler) error
	Conn() *nats.Conn
}

// Server answers questions until its context ends.
type Server struct {
	Pool  pg.Querier
	Bus   Bus
	Plans Plans
	// Shares are one for all questions of the process.
	Shares *Shares
	// Agent is what the agent of a cluster is to know.
	Agent func(tenant, cluster, clusterID string) (agentconfig.Config, error)
	// Key signs questions to executors, which answer the hub alone.
	Key crypto.Signer
	// SessionKey is the key of the session that holds a cluster (package holds). A cluster that nobody holds is
	// errs.Unavailable.
	SessionKey func(ctx context.Context, tenant, clusterID string) (ed25519.PublicKey, error)
}

// executorTimeout bounds a question to an executor: less than the gateway waits, so that it hears what was the matter.
const executorTimeout = 12 * time.Second

// ServeRemovalPreviews answers questions about what an uninstall would do.
func (q Server) ServeRemovalPreviews(ctx context.Context) error {
	return q.Bus.ServeWith(ctx, protocol.RPCInstallerRemoval, limits, q.removal)
}

func (q Server) removal(ctx context.Context, raw json.RawMessage) (any, error) {
	var in protocol.OperatorQuestion
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question about a removal")
	}
	var out protocol.RemovalPreview
	if err := q.askExecutor(ctx, in.Tenant, in.Cluster, protocol.RPCRemoval, in.RemovalQuestion,
		&out.RemovalPlan); err != nil {
		return nil, err
	}
	d, err := removal.Digest(out.RemovalPlan)
	out.Digest = string(d)
	return out, err
}

// ServeLogs answers questions about what pods of operators have written. Nothing of an answer is kept or logged.
func (q Server) ServeLogs(ctx context.Context) error {
	return q.Bus.ServeWith(ctx, protocol.RPCInstallerLogs, limits, q.logs)
}

func (q Server) logs(ctx context.Context, raw json.RawMessage) (any, error) {
	var in protocol.OperatorLogQuestion
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question about logs")
	}
	var out protocol.LogAnswer
	err := q.askExecutor(ctx, in.Tenant, in.Cluster, protocol.RPCLogs, in.LogQuestion, &out)
	return out, err
}

// askExecutor sends a question to the executor of a cluster. Only what the session signed that holds the cluster is
// believed: what an approver is shown comes from the cluster. An executor that took over while it was asked is
// errs.Unavailable.
func (q Server) askExecutor(ctx context.Context, tenant, cluster, question string, in, out any) error {
	id, err := q.clusterID(ctx, tenant, cluster)
	if err != nil {
		return err
	}
	key, err := q.SessionKey(ctx, tenant, id)
	if err == nil {
		by := rpc.Asker{Sign: protocol.HubSigns(q.Key), Verify: protocol.SessionSigned(key)}
		var answer json.RawMessage
		ask := func(ctx context.Context) (a json.RawMessage, err error) {
			err = by.Ask(ctx, q.Bus.Conn(), protocol.RPCSubject(tenant, id, question), in, &a)
			return a, err
		}
		answer, err = q.Shares.Do(ctx, tenant, id, question, in, ask)
		if err == nil {
			return errs.Wrap(errs.Internal, json.Unmarshal(answer, out), "read the answer of cluster %q", cluster)
		}
	}
	if errs.Is(err, errs.Unavailable) {
		return errs.New(errs.Unavailable, "the executor of cluster %q does not answer: see the state of the cluster, "+
			"and try again (%v)", cluster, err)
	}
	return err
}

func (q Server) clusterID(ctx context.Context, tenant, cluster string) (id string, err error) {
	err = q.Pool.QueryRow(ctx, `select cluster_id::text from installer.clusters where tenant = $1 and name = $2
		and not removed`, tenant, cluster).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", errs.New(errs.NotFound, "no cluster %q is registered", cluster).At("cluster", "cluster-registered")
	}
	return id, pg.Err(err)
}
