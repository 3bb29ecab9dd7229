package clusters

import (
	"cmp"
	"context"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/joining"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// defaultTokenLife is how long a join token may be used that says nothing itself: as long as it takes to bring it to
// the cluster.
const defaultTokenLife = time.Hour

// JoinTokens makes the credentials of who has a join token.
type JoinTokens interface {
	JoinToken(ctx context.Context, q protocol.JoinTokenQuestion) (protocol.JoinTokenAnswer, error)
}

// IssueJoinToken lets whoever has a token ask to become the agent of a cluster. The credentials are made first: they
// let nobody in before the token is in the log.
func (s *Service) IssueJoinToken(
	ctx context.Context, who model.Caller, name string, in model.IssueJoinToken,
) (out model.IssuedJoinToken, err error) {
	accept := cmp.Or(in.Accept, events.JoinManual)
	at := access.Target{Cluster: name}
	if accept == events.JoinAutomatic && !who.May(access.Update, access.Clusters, at) {
		return out, access.Denied(access.Update, access.Clusters, at)
	}
	life := cmp.Or(time.Duration(in.TTLSeconds)*time.Second, defaultTokenLife)
	ends := s.Units.Now().Add(life).Truncate(time.Second)
	id, err := s.registration(ctx, who, name)
	if err != nil {
		return out, err
	}
	made, err := s.JoinTokens.JoinToken(ctx, protocol.JoinTokenQuestion{
		Tenant: who.Tenant, ClusterID: id, Token: in.Key, Ends: ends,
	})
	if err != nil {
		return out, err
	}
	done, position, err := s.write(ctx, who, name,
		func(context.Context, *unit.Work, cluster.State) (cluster.Command, error) {
			return cluster.IssueJoinToken{Token: in.Key, Ends: ends, Accept: accept}, nil
		})
	if err != nil {
		return out, err
	}
	if done.Stream.UUID().String() != id {
		return out, errs.New(errs.Conflict, "cluster %q was removed and registered again meanwhile: ask again", name)
	}
	return model.IssuedJoinToken{
		Tenant: who.Tenant, Cluster: name, ClusterID: id, EndsAt: ends, JWT: made.JWT, NATSURL: made.URL,
		NATSCA: made.CA, HubKeys: made.HubKeys, Position: position,
	}, nil
}

// registration is the id of a cluster that an agent serves.
func (s *Service) registration(ctx context.Context, who model.Caller, name string) (id string, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		head, err := u.Latest(ctx, events.KindCluster, cluster.Subject(name))
		if err != nil {
			return err
		}
		now, _, err := unit.Load(ctx, u, aggregate, cluster.Subject(name), cluster.State{Name: name})
		if err != nil {
			return err
		}
		id = head.ID.UUID().String()
		_, err = cluster.Decide(now, cluster.IssueJoinToken{})
		return err
	})
	return id, err
}

// Agent is who serves a cluster from within, or wants to, by the log.
func (s *Service) Agent(ctx context.Context, who model.Caller, name string) (out model.Agent, err error) {
	err = s.Units.Once(ctx, who, func(u *unit.Work) error {
		now, _, err := unit.Load(ctx, u, aggregate, cluster.Subject(name), cluster.State{Name: name})
		if err == nil && !now.Registered {
			err = errs.New(errs.NotFound, "no cluster %q is registered", name)
		}
		out = agentOf(name, now.Joining)
		return err
	})
	return out, err
}

// DecideAgent accepts or rejects who asks to become the agent, or revokes all of it.
func (s *Service) DecideAgent(
	ctx context.Context, who model.Caller, name string, in model.DecideAgent,
) (model.Agent, error) {
	done, position, err := s.write(ctx, who, name,
		func(context.Context, *unit.Work, cluster.State) (cluster.Command, error) {
			return cluster.DecideAgent{Action: in.Action, Instance: in.Instance}, nil
		})
	out := agentOf(name, done.State.Joining)
	out.Position = position
	return out, err
}

func agentOf(name string, s joining.State) model.Agent {
	out := model.Agent{Cluster: name, Phase: string(s.Phase()), Asks: joinerOf(s.Asked), Agent: joinerOf(s.Agent)}
	if s.Token != nil {
		out.Token = &model.JoinToken{
			Key: s.Token.Key, EndsAt: s.Token.Ends, Accept: events.JoinManual, UsedBy: s.Token.UsedBy,
		}
		if s.Token.Automatic {
			out.Token.Accept = events.JoinAutomatic
		}
	}
	return out
}

func joinerOf(a *joining.Asked) *model.Joiner {
	if a == nil {
		return nil
	}
	j := model.Joiner(*a)
	return &j
}
