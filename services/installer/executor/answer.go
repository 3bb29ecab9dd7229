package executor

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
	"github.com/chandler-fleet/chandler/services/installer/executor/group"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/podlogs"
)

// answer answers questions of the hub (protocol.RPCPrefix) while the cluster is held, signed by the session that holds
// it.
func (s *session) answer(ctx context.Context) {
	answers := map[string]rpc.Handler{
		protocol.RPCCheckPlan: s.answerCheck, protocol.RPCRemoval: s.uninstall.Answer,
		protocol.RPCLogs: podlogs.Reader{Client: s.client, Cluster: s.cfg.Cluster}.Answer,
	}
	choose := func(subject string) (rpc.Handler, bool) {
		fn, ok := answers[subject[strings.LastIndex(subject, ".")+1:]]
		return fn, ok
	}
	filter := protocol.RPCFilter(s.cfg.Tenant, s.cfg.ClusterID)
	by := rpc.Answerer{Verify: protocol.HubSigned(s.cfg.GrantKey), Sign: s.session.SignAnswer}
	for ctx.Err() == nil {
		if err := by.ServeAll(ctx, s.cfg.JetStream.Conn(), s.cfg.Log, filter, choose); err != nil && ctx.Err() == nil {
			s.cfg.Log.WarnContext(ctx, "questions are not answered for now", "error", err)
			pace.Sleep(ctx, errorPause)
		}
	}
}

// answerCheck says what would stand in the way of a plan now.
func (s *session) answerCheck(ctx context.Context, raw json.RawMessage) (any, error) {
	var q protocol.PlanQuestion
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question")
	}
	known, _, _ := s.inbox.Get(q.Namespace)
	sc := s.scope(protocol.ScopePlans{
		Scope: protocol.Scope{
			Tenant: s.cfg.Tenant, Cluster: s.cfg.Cluster, ClusterID: s.cfg.ClusterID,
			Namespace: q.Namespace,
		},
		OperatorGroups: q.OperatorGroups, OperatorGroup: q.OperatorGroup, Installed: known.Installed,
	})
	if err := s.logs.In(sc).Read(ctx); err != nil {
		return nil, err
	}
	if _, err := (group.Reader{Stage: s.group}).Reconcile(ctx, sc); err != nil {
		return nil, err
	}
	if err := sc.Load(ctx); err != nil {
		return nil, err
	}
	return s.plan.Check(ctx, sc, q.Plan)
}
