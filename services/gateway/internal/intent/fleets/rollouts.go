package fleets

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/services/gateway/fleetsubscription"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// rollouts decides what people say of a rollout. The fleet controller writes to the same streams: who loses the race
// decides again.
var rollouts = unit.Aggregate[fleetmodel.RolloutState, rollout.Command]{
	Kind: events.KindRollout,
	Subject: func(s fleetmodel.RolloutState) string {
		return fleetmodel.RolloutSubject(s.Started.FleetSubscription, s.Started.Number)
	},
	Decide: func(s fleetmodel.RolloutState, c rollout.Command) ([]events.Payload, error) {
		return rollout.Decide(s.State, c)
	},
	Evolve: func(s fleetmodel.RolloutState, r eventlog.Recorded) (fleetmodel.RolloutState, error) {
		return s.Evolve(r.Payload, r.Time)
	},
}

// Rollout names a rollout.
type Rollout struct {
	FleetSubscription string
	Number            int
}

// Pause has no further cluster changed.
func (s *Service) Pause(ctx context.Context, who model.Caller, of Rollout) (fleetmodel.Rollout, error) {
	return s.decide(ctx, who, of, always(rollout.Pause{}))
}

// Resume has a paused or halted rollout go on.
func (s *Service) Resume(ctx context.Context, who model.Caller, of Rollout) (fleetmodel.Rollout, error) {
	return s.decide(ctx, who, of, always(rollout.Resume{}))
}

// Abort ends a rollout; nothing is undone.
func (s *Service) Abort(ctx context.Context, who model.Caller, of Rollout) (fleetmodel.Rollout, error) {
	return s.decide(ctx, who, of, always(rollout.Abort{}))
}

// Retry has a cluster tried again that failed or was skipped.
func (s *Service) Retry(ctx context.Context, who model.Caller, of Rollout, cluster string) (fleetmodel.Rollout, error) {
	return s.decide(ctx, who, of, always(rollout.Retry{Cluster: cluster}))
}

// Promote lets the wave after the open one begin. Who names a wave promotes no other one: it may have passed meanwhile.
func (s *Service) Promote(
	ctx context.Context, who model.Caller, of Rollout, in fleetmodel.PromoteRollout,
) (fleetmodel.Rollout, error) {
	return s.decide(ctx, who, of, func(_ context.Context, _ *unit.Work, now rollout.State) (rollout.Command, error) {
		open := ""
		if now.Wave >= 0 && now.Wave < len(now.Started.Waves) {
			open = now.Started.Waves[now.Wave].Name
		}
		if in.Wave != "" && in.Wave != open && !now.Phase.Ended() {
			return nil, errs.New(errs.Conflict, "wave %q of rollout %s is not the open one, which is %q", in.Wave,
				fleetmodel.RolloutSubject(of.FleetSubscription, of.Number), open).At("body.wave",
				fleetsubscription.RuleWaveOpen)
		}
		return rollout.Promote{}, nil
	})
}

// Skip leaves a cluster out. The words of whoever asks stay outside of the log, and are kept only where an event names
// them: else nobody could erase them.
func (s *Service) Skip(
	ctx context.Context, who model.Caller, of Rollout, cluster string, in fleetmodel.SkipCluster,
) (fleetmodel.Rollout, error) {
	return s.decideFor(ctx, who, of, in.Reason, func(reason string) rollout.Command {
		return rollout.Skip{Cluster: cluster, Reason: reason}
	})
}

// PassGate lets the open wave go on without one of its gates. The words of whoever asks are kept as those of Skip.
func (s *Service) PassGate(
	ctx context.Context, who model.Caller, of Rollout, gate string, in fleetmodel.PassGate,
) (fleetmodel.Rollout, error) {
	return s.decideFor(ctx, who, of, in.Reason, func(reason string) rollout.Command {
		return rollout.PassGate{Gate: gate, Reason: reason}
	})
}

// decideFor decides with the commitment to a reason, which is stored only where the command leads to an event.
func (s *Service) decideFor(
	ctx context.Context, who model.Caller, of Rollout, reason string, command func(reason string) rollout.Command,
) (fleetmodel.Rollout, error) {
	said, err := words(reason)
	if err != nil {
		return fleetmodel.Rollout{}, err
	}
	return s.decide(ctx, who, of, func(ctx context.Context, u *unit.Work, now rollout.State) (rollout.Command, error) {
		return withReason(ctx, u, now, said, command)
	})
}

// withReason is a command with the commitment to what was said, which is stored where the command leads to an event.
func withReason(ctx context.Context, u *unit.Work, now rollout.State, said string,
	command func(reason string) rollout.Command,
) (rollout.Command, error) {
	comes, err := rollout.Decide(now, command(""))
	if err != nil || len(comes) == 0 {
		return command(""), err
	}
	commitment, err := bodies.Commit(ctx, u, store.KindPlanReason, []byte(said), "")
	return command(commitment), err
}

type decider func(ctx context.Context, u *unit.Work, now rollout.State) (rollout.Command, error)

func always(c rollout.Command) decider {
	return func(context.Context, *unit.Work, rollout.State) (rollout.Command, error) { return c, nil }
}

func (s *Service) decide(
	ctx context.Context, who model.Caller, of Rollout, command decider,
) (fleetmodel.Rollout, error) {
	return s.write(ctx, who, func(ctx context.Context, u *unit.Work) (unit.Decision[fleetmodel.RolloutState], error) {
		return decideIn(ctx, u, of, command)
	})
}

// decideIn is decide in a unit of work.
func decideIn(
	ctx context.Context, u *unit.Work, of Rollout, command decider,
) (unit.Decision[fleetmodel.RolloutState], error) {
	return unit.Decide(ctx, u, rollouts, fleetmodel.RolloutSubject(of.FleetSubscription, of.Number),
		fleetmodel.RolloutState{}, func(now fleetmodel.RolloutState) (rollout.Command, error) {
			if now.Phase == "" {
				return nil, fleetsubscription.NoRollout(of.FleetSubscription, of.Number)
			}
			return command(ctx, u, now.State)
		})
}

func (s *Service) write(ctx context.Context, who model.Caller,
	do func(ctx context.Context, u *unit.Work) (unit.Decision[fleetmodel.RolloutState], error),
) (fleetmodel.Rollout, error) {
	out, position, err := unit.Write(ctx, s.Units, who, span, do)
	if err != nil {
		return fleetmodel.Rollout{}, err
	}
	answer := fleetmodel.WholeRollout(out.State.State)
	answer.StartedAt, answer.UpdatedAt = out.State.StartedAt, out.State.UpdatedAt
	answer.Version, answer.Position = out.Version, position
	return answer, nil
}
