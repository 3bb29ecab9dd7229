// Package installerclient sends requests to the installer over the bus, and through it to the executors of clusters.
// The gateway never reaches a cluster itself.
package installerclient

import (
	"context"
	"log/slog"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Bus sends a request to a subject and decodes the reply.
type Bus interface {
	Call(ctx context.Context, subject string, in, out any) error
}

// Client sends requests to the installer.
type Client struct {
	Bus  Bus
	Slog *slog.Logger
}

// CheckPlan returns what would block an install plan in its cluster now. One that has ended is errs.Conflict; a
// cluster that cannot be asked is errs.Unavailable.
func (c Client) CheckPlan(ctx context.Context, who model.Caller, p model.InstallPlan) (model.PlanCheck, error) {
	if p.EndedAt != nil {
		return model.PlanCheck{}, errs.New(errs.Conflict,
			"install plan %s is %s: nothing can stand in its way any more", p.Name, p.Phase).At("id", "R-IP-43")
	}
	var out protocol.PlanCheck
	err := c.Bus.Call(ctx, protocol.RPCInstallerCheck, protocol.LivePlanQuestion{Tenant: who.Tenant, Plan: p.ID}, &out)
	if errs.Is(err, errs.Unavailable) {
		return model.PlanCheck{}, errs.New(errs.Unavailable,
			"cluster %q cannot be asked about install plan %s at the moment: %v", p.Cluster, p.Name, err)
	}
	return model.CheckOf(out), err
}

// RemovalPlan returns what uninstalling an operator would do in its cluster. The installer adds to the dependants those
// that need an API in the cluster.
func (c Client) RemovalPlan(
	ctx context.Context, who model.Caller, cluster string, q protocol.RemovalQuestion,
) (model.RemovalPlan, error) {
	var p model.RemovalPlan
	err := c.Bus.Call(ctx, protocol.RPCInstallerRemoval,
		protocol.OperatorQuestion{Tenant: who.Tenant, Cluster: cluster, RemovalQuestion: q}, &p)
	if errs.Is(err, errs.Unavailable) {
		c.Slog.WarnContext(ctx, "a cluster cannot be asked about a removal", "cluster", cluster, "error", err)
		return p, errs.New(errs.Unavailable,
			"cluster %q cannot be asked at the moment what would be removed; nothing was changed: try again in a "+
				"moment, or name the definitions and ask without a plan", cluster)
	}
	return p, err
}

// AgentConfig returns what the agent of a cluster is to know, encrypted to a public age key. A cluster that is hosted
// is errs.Conflict.
func (c Client) AgentConfig(
	ctx context.Context, who model.Caller, cluster, recipient string,
) (model.AgentConfig, error) {
	var out protocol.AgentConfigAnswer
	err := c.Bus.Call(ctx, protocol.RPCInstallerAgentConfig,
		protocol.AgentConfigQuestion{Tenant: who.Tenant, Cluster: cluster, Recipient: recipient}, &out)
	return model.AgentConfig(out), err
}

// Logs returns what pods of an operator have written.
func (c Client) Logs(
	ctx context.Context, who model.Caller, cluster string, q protocol.LogQuestion,
) (model.OperatorLogs, error) {
	var out protocol.LogAnswer
	err := c.Bus.Call(ctx, protocol.RPCInstallerLogs,
		protocol.OperatorLogQuestion{Tenant: who.Tenant, Cluster: cluster, LogQuestion: q}, &out)
	if errs.Is(err, errs.Unavailable) {
		return model.OperatorLogs{}, errs.New(errs.Unavailable, "cluster %q cannot be asked for logs at the moment: %v",
			cluster, err)
	}
	return model.LogsOf(out), err
}

// JoinToken returns the credentials of who has a join token. They let nobody in before the token is in the log.
func (c Client) JoinToken(ctx context.Context, q protocol.JoinTokenQuestion) (out protocol.JoinTokenAnswer, err error) {
	err = c.Bus.Call(ctx, protocol.RPCInstallerJoinToken, q, &out)
	return out, err
}
