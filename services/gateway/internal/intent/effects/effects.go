// Package effects carries out intents about the stop switch: whether install plans may change clusters. The log stops
// them itself where it has lost commits; that is recorded as an event for every tenant.
package effects

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/effects"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Service carries out intents about the stop switch.
type Service struct {
	Units   *unit.Runner
	Tenants *store.Tokens // names every tenant
	Slog    *slog.Logger
}

type decision = unit.Decision[effects.State]

func aggregate(scope string) unit.Aggregate[effects.State, effects.Command] {
	return unit.Aggregate[effects.State, effects.Command]{
		Kind:    events.KindAccess,
		Subject: func(effects.State) string { return scope },
		Decide:  effects.Decide,
		Evolve: func(s effects.State, r eventlog.Recorded) (effects.State, error) {
			return effects.Evolve(s, r.Payload, r.Time)
		},
	}
}

// Get returns whether plans of the fleet, or of one cluster, may take steps.
func (s *Service) Get(ctx context.Context, who model.Caller, cluster string) (model.Effects, error) {
	out := model.Effects{Scope: effects.Scope(cluster)}
	err := s.Units.Once(ctx, who, func(u *unit.Work) error {
		state, _, err := unit.Load(ctx, u, aggregate(out.Scope), out.Scope, effects.State{})
		if state.Stopped {
			out.Stopped, out.Reason, out.Since = true, state.Reason, &state.Since
		}
		return err
	})
	if err != nil {
		return out, err
	}
	err = s.addLostCommits(ctx, &out)
	return out, err
}

// addLostCommits adds a stop by the log itself: it holds for everybody.
func (s *Service) addLostCommits(ctx context.Context, out *model.Effects) error {
	log := s.Units.Log
	head, err := log.Head(ctx, s.Units.Pool)
	if err != nil {
		return err
	}
	out.Epoch = head.Epoch
	stop, stopped, err := log.EffectsStopped(ctx)
	if err != nil || !stopped {
		return err
	}
	out.Stopped, out.Scope, out.Reason, out.Since, out.Epoch = true, effects.Fleet, stop.Reason, &stop.Since, stop.Epoch
	out.Detail = stop.String()
	return nil
}

// Set stops effects or lets them go on.
func (s *Service) Set(ctx context.Context, who model.Caller, in model.EffectsRequest) (model.Effects, error) {
	var c effects.Command = effects.Stop{Reason: effects.ReasonOperator}
	if in.Action == "resume" {
		lost, err := s.resumeLog(ctx, who, in)
		if err != nil {
			return model.Effects{}, err
		}
		head, err := s.Units.Log.Head(ctx, s.Units.Pool)
		if err != nil {
			return model.Effects{}, err
		}
		c = effects.Resume{Epoch: in.Epoch, Record: head.Epoch, Lost: lost}
	}
	scope := effects.Scope(in.Cluster)
	_, position, err := unit.Write(ctx, s.Units, who, "intent access",
		func(ctx context.Context, u *unit.Work) (decision, error) {
			if in.Cluster != "" {
				if err := clusters.MustExist(ctx, u, in.Cluster); err != nil {
					return decision{}, err
				}
			}
			return unit.Decide(ctx, u, aggregate(scope), scope, effects.State{},
				func(effects.State) (effects.Command, error) { return c, nil })
		})
	if err != nil {
		return model.Effects{}, err
	}
	answer, err := s.Get(ctx, who, in.Cluster)
	answer.Position = position
	return answer, err
}

// resumeLog ends a stop by the log itself. Only resuming the whole fleet does that, and only an administrator of the
// tenant of the installation: such a stop holds for all tenants.
func (s *Service) resumeLog(ctx context.Context, who model.Caller, in model.EffectsRequest) (lost bool, err error) {
	stop, stopped, err := s.Units.Log.EffectsStopped(ctx)
	if err != nil || !stopped {
		return false, err
	}
	if in.Cluster != "" {
		return false, errs.New(errs.Conflict, "the whole fleet is stopped (%s): resume the fleet first", stop.Reason)
	}
	if who.Tenant != events.DefaultTenant {
		return false, errs.New(errs.Forbidden, "the record stopped effects for all tenants (%s): an administrator of the tenant %q "+
			"ends that", stop.Reason, events.DefaultTenant)
	}
	return true, s.Units.Log.Resume(ctx, in.Epoch, who.Person())
}

// lossInterval is how often the gateway checks whether the log has stopped effects. The event is what the other
// services act on and what the history shows.
const lossInterval = 2 * time.Second

// logActor takes the place of a person's id in events.
const logActor = "record"

// errResumed ends recording a stop that is over.
var errResumed = errors.New("effects were resumed")

// RecordLostCommits appends for every tenant that the log itself has stopped effects, once for each stop, until ctx
// ends. It returns nil.
func (s *Service) RecordLostCommits(ctx context.Context) error {
	tick := time.NewTicker(lossInterval)
	defer tick.Stop()
	for {
		if err := s.recordLostCommits(ctx); err != nil && ctx.Err() == nil && !errs.Is(err, errs.Unavailable) {
			s.Slog.WarnContext(ctx, "cannot record that effects are stopped; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Service) recordLostCommits(ctx context.Context) error {
	_, stopped, err := s.Units.Log.EffectsStopped(ctx)
	if err != nil || !stopped {
		return err
	}
	tenants, err := s.Tenants.List(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		who := model.Caller{Tenant: tenant, Actor: logActor}
		err := s.Units.Run(ctx, who, "intent access", s.recordStop)
		if err != nil && !errors.Is(err, errResumed) && !errs.Is(err,
			errs.AlreadyExists) { // another gateway recorded it
			return err
		}
	}
	return nil
}

func (s *Service) recordStop(ctx context.Context, u *unit.Work) error {
	_, err := unit.Decide(ctx, u, aggregate(effects.Fleet), effects.Fleet, effects.State{},
		func(effects.State) (effects.Command, error) {
			// Asked again after the state was read: a person who resumes does so in the log first, so that whoever sees
			// the switch as resumed sees the log so, too.
			if _, stopped, err := s.Units.Log.EffectsStopped(ctx); err != nil || !stopped {
				return nil, errors.Join(errResumed, err)
			}
			return effects.Stop{Reason: effects.ReasonLost}, nil
		})
	return err
}
