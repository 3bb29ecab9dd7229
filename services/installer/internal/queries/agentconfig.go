package queries

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// ServeAgentConfigs answers questions about what the agent of a cluster is to know. The answer has a secret: it is
// encrypted to who asks, so that neither gateway nor bus can read it.
func (q Server) ServeAgentConfigs(ctx context.Context) error {
	return q.Bus.ServeWith(ctx, protocol.RPCInstallerAgentConfig, limits, q.agentConfig)
}

func (q Server) agentConfig(ctx context.Context, raw json.RawMessage) (any, error) {
	var in protocol.AgentConfigQuestion
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question about an agent")
	}
	recipient, err := seal.ParseRecipient(in.Recipient)
	if err != nil {
		return nil, errs.New(errs.Invalid, "recipient: %v", err).At("recipient", "age-recipient")
	}
	id, err := q.agentCluster(ctx, in.Tenant, in.Cluster)
	if err != nil {
		return nil, err
	}
	config, err := q.Agent(in.Tenant, in.Cluster, id)
	if err != nil {
		return nil, err
	}
	text, err := config.Encode()
	if err != nil {
		return nil, err
	}
	sealed, err := recipient.Seal(text)
	return protocol.AgentConfigAnswer{ClusterID: id, Sealed: sealed}, err
}

// agentCluster is the id of a cluster that an agent serves.
func (q Server) agentCluster(ctx context.Context, tenant, cluster string) (id string, err error) {
	var hosted bool
	err = q.Pool.QueryRow(ctx, `select cluster_id::text, credential <> '' from installer.clusters
		where tenant = $1 and name = $2 and not removed`, tenant, cluster).Scan(&id, &hosted)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", errs.New(errs.NotFound, "no cluster %q is registered", cluster).At("cluster", "cluster-registered")
	case err != nil:
		return "", pg.Err(err)
	case hosted:
		return "", errs.New(errs.Conflict, "cluster %q is hosted: it was registered with a kubeconfig, and has no agent",
			cluster).At("cluster", "cluster-access")
	}
	return id, nil
}
