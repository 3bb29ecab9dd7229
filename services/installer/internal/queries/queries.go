// Package queries answers the gateway's questions about a cluster: it finds the id under which the cluster is
// registered, and asks the executor that holds it. No question changes anything.
package queries

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
	"github.com/chandler-fleet/chandler/services/installer/removal"
)

// Bus sends questions and serves them.
type Bus interface {
	Call(ctx context.Context, subject string, in, out any) error
	Serve(ctx context.Context, subject string, fn rpc.Handler) error
}

// Server answers questions until its context ends.
type Server struct {
	Pool  pg.Querier
	Bus   Bus
	Plans Plans
}

// ServeRemovalPreviews answers questions about what an uninstall would do.
func (q Server) ServeRemovalPreviews(ctx context.Context) error {
	return q.Bus.Serve(ctx, protocol.RPCInstallerRemoval, q.removal)
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

// askExecutor sends a question to the executor of a cluster.
func (q Server) askExecutor(ctx context.Context, tenant, cluster, question string, in, out any) error {
	id, err := q.clusterID(ctx, tenant, cluster)
	if err != nil {
		return err
	}
	err = q.Bus.Call(ctx, protocol.RPCSubject(tenant, id, question), in, out)
	if errs.Is(err, errs.Unavailable) {
		return errs.New(errs.Unavailable,
			"the executor of cluster %q does not answer: see the state of the cluster, and try again", cluster)
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
