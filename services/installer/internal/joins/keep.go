package joins

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/joining"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/natsjwt"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

const (
	// keepEvery is how often it is looked for what NATS has not been told: who is revoked is cut off within seconds.
	keepEvery = time.Second
	// keepAgain is after how long NATS is told again what it should know: a server whose folder was lost lets agents in
	// again then. Of 10,000 agents that is some 20 messages a second.
	keepAgain = 10 * time.Minute
	// keepAtOnce bounds the agents of one transaction, which holds a lock on each.
	keepAtOnce = 20
	// keepTimeout bounds telling NATS of them.
	keepTimeout = 10 * time.Second
)

// Keep tells NATS of every change, until ctx ends. While NATS or PostgreSQL are away it goes on trying.
func (s *Server) Keep(ctx context.Context, push func(ctx context.Context, accounts []string) error) error {
	t := time.NewTicker(keepEvery)
	defer t.Stop()
	failing := false
	for {
		n, err := s.keepOnce(ctx, push)
		if (err != nil) != failing && ctx.Err() == nil {
			if failing = err != nil; failing {
				s.Log.WarnContext(ctx, "NATS cannot be told who is an agent; trying again", "error", err)
			} else {
				s.Log.InfoContext(ctx, "NATS is told again who is an agent")
			}
		}
		if err == nil && n == keepAtOnce {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// keepOnce tells NATS of some agents whose state has changed, or was told long ago.
func (s *Server) keepOnce(ctx context.Context, push func(ctx context.Context, accounts []string) error) (
	n int, err error,
) {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	err = s.Pool.Tx(ctx, func(tx pgx.Tx) error {
		// Changes first. The lock holds until NATS knows, so that no replica tells it something older afterwards.
		rows, err := tx.Query(ctx, `select tenant, cluster_id::text, state from installer.agents
			where pushed is null or pushed < $1 order by pushed nulls first limit $2 for update skip locked`,
			s.Now().Add(-keepAgain), keepAtOnce)
		if err != nil {
			return err
		}
		agents, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (a natsjwt.Agent, err error) {
			var state joining.State
			err = r.Scan(&a.Tenant, &a.ClusterID, &state)
			a.Key, a.Joiner = state.AgentKey(), state.Joiner()
			return a, err
		})
		if err != nil {
			return err
		}
		n = len(agents)
		for _, a := range agents {
			accounts, err := s.Authority.Accounts(a)
			if err != nil {
				return err
			}
			if err := push(ctx, accounts); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `update installer.agents set pushed = $3 where tenant = $1 and cluster_id = $2`,
				a.Tenant, a.ClusterID, s.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	return n, pg.Err(err)
}

// JoinToken answers the gateway: credentials of who has a token. They let nobody in before the token is in the log.
func (s *Server) JoinToken(_ context.Context, raw json.RawMessage) (any, error) {
	var q protocol.JoinTokenQuestion
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question about a join token")
	}
	if s.Authority == nil {
		return nil, errs.New(errs.Conflict, "join tokens need a NATS server in operator mode, and the installer its "+
			"CHANDLER_NATS_AGENTS (chandler keys nats --jwt); without them an agent gets in by chandler keys agent and "+
			"chandler keys nats --agent").At("cluster", "nats-operator-mode")
	}
	token, err := s.Authority.JoinJWT(natsjwt.Agent{Tenant: q.Tenant, ClusterID: q.ClusterID, Joiner: q.Token},
		q.Ends.Sub(s.Now())+protocol.JoinLife)
	if err != nil {
		return nil, err
	}
	answer := protocol.JoinTokenAnswer{JWT: token, URL: s.URL, CA: s.CA}
	for _, k := range s.Hub.Public() {
		answer.HubKeys = append(answer.HubKeys, keys.PublicEntry(k))
	}
	return answer, nil
}

const (
	// straggler is for how long a question may be under way: one of a process that has ended meanwhile comes no later.
	straggler = time.Minute
	// maxProcesses bounds the processes of an agent that are remembered: restarts of some weeks, as a rule.
	maxProcesses = 64
)

// renew gives the agent of a cluster a newer JWT, unless two live processes have its credentials.
func (s *Server) renew(ctx context.Context, at place, raw json.RawMessage) (any, error) {
	var q protocol.RenewQuestion
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read a request for newer credentials")
	}
	process, err := uuid.Parse(q.Process)
	if err != nil {
		return nil, errs.New(errs.Invalid, "process %.80q is no UUID", q.Process).At("process", "uuid")
	}
	_, state, err := s.decide(ctx, at, func(tx pgx.Tx, _ string, now joining.State) ([]events.Payload, error) {
		if now.Agent == nil {
			return nil, nil
		}
		cloned, err := s.seen(ctx, tx, at, now.Agent.Key, process)
		if err != nil || !cloned {
			return nil, err
		}
		return []events.Payload{events.ClusterAgentCloned{Instance: now.Agent.Instance}}, nil
	})
	if err != nil {
		return nil, err
	}
	if state.Agent == nil {
		return nil, errs.New(errs.Forbidden, "the credentials of this agent are withdrawn: it joins anew with another token").
			At("process", "agent-withdrawn")
	}
	token, err := s.Authority.AgentJWT(natsjwt.Agent{
		Tenant: at.tenant, ClusterID: at.clusterID, Key: state.Agent.Key,
	}, protocol.AgentJWTLife)
	return protocol.RenewAnswer{JWT: token}, err
}

// seen notes a process of an agent and reports whether it lives beside another one: it was followed by that, and is
// heard again later than a question of its own can have been under way. No clock but this one counts.
func (s *Server) seen(ctx context.Context, tx pgx.Tx, at place, key string, process uuid.UUID) (
	cloned bool, err error,
) {
	now := s.Now().UTC()
	var first time.Time
	err = tx.QueryRow(ctx, `select first from installer.agent_processes
		where tenant = $1 and cluster_id = $2 and key = $3 and process = $4`,
		at.tenant, at.clusterID, key, process).Scan(&first)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return false, err
	}
	if err == nil {
		if err := tx.QueryRow(ctx, `select exists (select from installer.agent_processes where tenant = $1
			and cluster_id = $2 and key = $3 and first > $4 and first < $5)`, at.tenant, at.clusterID, key, first,
			now.Add(-straggler)).Scan(&cloned); err != nil || cloned {
			return cloned, err
		}
	}
	if _, err := tx.Exec(ctx, `insert into installer.agent_processes (tenant, cluster_id, key, process, first, last)
		values ($1, $2, $3, $4, $5, $5) on conflict (tenant, cluster_id, key, process) do update set last = excluded.last`,
		at.tenant, at.clusterID, key, process, now); err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, `delete from installer.agent_processes where tenant = $1 and cluster_id = $2
		and (key <> $3 or process in (select process from installer.agent_processes where tenant = $1
		and cluster_id = $2 and key = $3 order by last desc offset $4))`, at.tenant, at.clusterID, key, maxProcesses)
	return false, err
}
