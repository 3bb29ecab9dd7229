package intent

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/effects"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Effects says whether plans of the fleet, or of one cluster, may take steps.
func (s *Service) Effects(ctx context.Context, who model.Caller, cluster string) (model.Effects, error) {
	out := model.Effects{Scope: effects.Scope(cluster)}
	err := s.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		head, err := s.Log.Latest(ctx, tx, who.Tenant, events.KindAccess, out.Scope)
		if err != nil || !head.Exists() {
			return err
		}
		state, err := replay(ctx, s, tx, who.Tenant, switches(out.Scope), head, effects.State{})
		if state.Stopped {
			out.Stopped, out.Reason, out.Since = true, state.Reason, &state.Since
		}
		return err
	})
	if err != nil {
		return out, err
	}
	err = s.lostCommits(ctx, &out)
	return out, err
}

// lostCommits adds what the record itself says: it stops everything, whoever asks.
func (s *Service) lostCommits(ctx context.Context, out *model.Effects) error {
	head, err := s.Log.Head(ctx, s.Pool)
	if err != nil {
		return err
	}
	out.Epoch = head.Epoch
	stop, stopped, err := s.Log.EffectsStopped(ctx)
	if err != nil || !stopped {
		return err
	}
	out.Stopped, out.Scope, out.Reason, out.Since, out.Epoch = true, effects.Fleet, stop.Reason, &stop.Since, stop.Epoch
	out.Detail = stop.String()
	return nil
}

// SetEffects stops effects or lets them go on.
func (s *Service) SetEffects(ctx context.Context, who model.Caller, in model.EffectsRequest) (model.Effects, error) {
	var c effects.Command = effects.Stop{Reason: effects.ReasonOperator}
	if in.Action == "resume" {
		lost, err := s.resumeRecord(ctx, who, in)
		if err != nil {
			return model.Effects{}, err
		}
		head, err := s.Log.Head(ctx, s.Pool)
		if err != nil {
			return model.Effects{}, err
		}
		c = effects.Resume{Epoch: in.Epoch, Record: head.Epoch, Lost: lost}
	}
	scope := effects.Scope(in.Cluster)
	out, err := run(ctx, s, who, switches(scope), scope, effects.State{},
		func(ctx context.Context, tx pgx.Tx, _ effects.State) (effects.Command, error) {
			if in.Cluster == "" {
				return c, nil
			}
			return c, s.clusterExists(ctx, tx, who.Tenant, in.Cluster)
		})
	if err != nil {
		return model.Effects{}, err
	}
	answer, err := s.Effects(ctx, who, in.Cluster)
	answer.Position = out.Position
	return answer, err
}

// resumeRecord ends a stop that the record made itself. Only resuming the whole fleet does that.
func (s *Service) resumeRecord(ctx context.Context, who model.Caller, in model.EffectsRequest) (lost bool, err error) {
	stop, stopped, err := s.Log.EffectsStopped(ctx)
	if err != nil || !stopped {
		return false, err
	}
	if in.Cluster != "" {
		return false, errs.New(errs.Conflict, "the whole fleet is stopped (%s): resume the fleet first", stop.Reason)
	}
	return true, s.Log.Resume(ctx, in.Epoch, who.Actor)
}

// lookForLoss is how often the gateway looks whether the record has stopped effects. The event is what
// the other services act on and what the story tells later.
const lookForLoss = 2 * time.Second

// recordActor stands where a person's id stands in what people decide.
const recordActor = "record"

// errResumed ends telling: there is nothing to tell any more.
var errResumed = errors.New("effects were resumed")

// TellLostCommits puts into the log of every tenant that the record itself has stopped effects, once
// for each stop, until ctx ends. It returns nil.
func (s *Service) TellLostCommits(ctx context.Context) error {
	tick := time.NewTicker(lookForLoss)
	defer tick.Stop()
	for {
		if err := s.tellLostCommits(ctx); err != nil && ctx.Err() == nil && !errs.Is(err, errs.Unavailable) {
			s.Slog.WarnContext(ctx, "cannot tell that effects are stopped; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Service) tellLostCommits(ctx context.Context) error {
	_, stopped, err := s.Log.EffectsStopped(ctx)
	if err != nil || !stopped {
		return err
	}
	tenants, err := s.Tenants.List(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		who := model.Caller{Tenant: tenant, Actor: recordActor}
		_, err := run(ctx, s, who, switches(effects.Fleet), effects.Fleet, effects.State{},
			func(ctx context.Context, _ pgx.Tx, _ effects.State) (effects.Command, error) {
				// Asked again behind the read of the state: a person who resumes does so in the record first, so
				// that whoever sees the switch as resumed sees the record so, too.
				if _, stopped, err := s.Log.EffectsStopped(ctx); err != nil || !stopped {
					return nil, errors.Join(errResumed, err)
				}
				return effects.Stop{Reason: effects.ReasonLost}, nil
			})
		if err != nil && !errors.Is(err, errResumed) && !errs.Is(err, errs.AlreadyExists) { // another gateway told it
			return err
		}
	}
	return nil
}

func switches(scope string) aggregate[effects.State, effects.Command] {
	return aggregate[effects.State, effects.Command]{
		kind:    events.KindAccess,
		subject: func(effects.State) string { return scope },
		decide:  effects.Decide,
		evolve: func(s effects.State, r eventlog.Recorded) (effects.State, error) {
			return effects.Evolve(s, r.Payload, r.Time)
		},
	}
}
