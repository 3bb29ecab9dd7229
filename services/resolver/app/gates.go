package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/services/resolver/internal/gates"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store/fleetstore"
)

const (
	// gatesEvery is how often gates are looked for that are to be evaluated again: that is every five seconds at most.
	gatesEvery = 2 * time.Second
	// maxGatesAtOnce bounds what one replica asks at a time: who does not answer holds a place for half a minute.
	maxGatesAtOnce = 16
)

// gateKeeper evaluates gates of rollouts. Each replica has one; who holds a gate evaluates it. Nothing is decided here:
// what was evaluated is noted, and the fleet controller records it.
type gateKeeper struct {
	fleets *fleetstore.Fleets
	ask    *gates.Evaluator
	log    *slog.Logger
	now    func() time.Time
	// decide has the fleet controller look at what was evaluated.
	decide func()
	woken  chan struct{}
}

func newGateKeeper(
	fleets *fleetstore.Fleets, ask *gates.Evaluator, log *slog.Logger, decide func(),
) *gateKeeper {
	return &gateKeeper{
		fleets: fleets, ask: ask, log: log, now: time.Now, decide: decide, woken: make(chan struct{}, 1),
	}
}

// wake has gates looked for now.
func (k *gateKeeper) wake() {
	select {
	case k.woken <- struct{}{}:
	default:
	}
}

// run evaluates until ctx ends. An evaluation holds up no other.
func (k *gateKeeper) run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	places := make(chan struct{}, maxGatesAtOnce)
	t := time.NewTicker(gatesEvery)
	defer t.Stop()
	for {
		claims, err := k.fleets.ClaimGates(ctx, maxGatesAtOnce-len(places))
		if err != nil && ctx.Err() == nil {
			k.log.WarnContext(ctx, "cannot look for gates that are due; trying again", "error", err)
		}
		for _, c := range claims {
			places <- struct{}{}
			running.Go(func() {
				defer func() { <-places }()
				k.evaluate(ctx, c)
			})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		case <-k.woken:
		}
	}
}

func (k *gateKeeper) evaluate(ctx context.Context, c fleetstore.GateClaim) {
	begun := k.now().UTC()
	result := k.ask.Evaluate(ctx, gates.Asked{
		FleetSubscription: c.Fleet, Rollout: c.Number, Wave: c.State.Started.Waves[c.State.Wave].Name, Round: c.Round,
		Evaluation: c.Evaluation, Gate: c.Gate, Target: c.State.Started.Target, Clusters: c.Clusters,
	})
	if ctx.Err() != nil { // what it came to was cut off: somebody evaluates it again
		return
	}
	if err := k.fleets.EvaluateGate(ctx, c, result, begun, k.now().UTC()); err != nil {
		k.log.WarnContext(ctx, "cannot note what a gate says; it is evaluated again", "error", err)
		return
	}
	k.decide()
}
