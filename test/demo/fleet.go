package main

import (
	"context"
	"fmt"

	"github.com/chandler-fleet/chandler/test/demo/internal/handover"
)

// coast are the scenes of a fleet. They stand in docs/fleet.md as well.
var coast = []scene{
	{"Postgres, NATS and the four services start; the catalog is added", (*play).services},
	{"Three real Kubernetes control planes start and are registered; changes are tried on canary", of(rolling.ring)},
	{"One fleet subscription brings lighthouse to all of them, canary first", of(rolling.everywhere)},
	{"The publisher releases a version that cannot be installed: the rollout stops after canary", of(rolling.stops)},
	{"Why it stopped, and what canary was asked", of(rolling.whyStopped)},
	{"The publisher releases the next one: the rollout that stopped is ended, and all go to 1.3.1", of(rolling.mended)},
	{"The objects in the clusters", (*play).seen},
}

// rolling is the play of a rollout.
type rolling struct{ *play }

// of is a part of it as a scene plays it.
func of(part func(rolling, context.Context) error) func(*play, context.Context) error {
	return func(p *play, ctx context.Context) error { return part(rolling{p}, ctx) }
}

const fleetSubscription = "lighthouse"

// ring registers the clusters and says which one changes are tried on.
func (p rolling) ring(ctx context.Context) error {
	if err := p.register(ctx); err != nil {
		return err
	}
	for _, name := range p.names {
		label := "ring=main"
		if name == handover.FleetNames[0] {
			label = "ring=canary"
		}
		if err := p.run(ctx, "label", "cluster", name, "coast=north", label); err != nil {
			return err
		}
	}
	return nil
}

func (p rolling) everywhere(ctx context.Context) error {
	if err := p.run(ctx, "apply", "-f", p.example("fleet", "lighthouse.yaml")); err != nil {
		return err
	}
	if err := p.rolledOut(ctx, 1, "Succeeded"); err != nil {
		return err
	}
	return p.run(ctx, "fleet", "status", fleetSubscription)
}

// release lays a revision over the catalog.
func (p rolling) release(ctx context.Context, what string) error {
	if err := overlayFS(p.catalogDir, p.example("fleet", what)); err != nil {
		return err
	}
	return p.run(ctx, "catalog", "refresh", "harbour")
}

func (p rolling) stops(ctx context.Context) error {
	if err := p.release(ctx, "catalog-bad"); err != nil {
		return err
	}
	if err := p.rolledOut(ctx, 2, "Halted"); err != nil {
		return err
	}
	if err := p.run(ctx, "fleet", "status", fleetSubscription); err != nil {
		return err
	}
	return p.run(ctx, "get", "operators")
}

func (p rolling) whyStopped(ctx context.Context) error {
	return p.run(ctx, "fleet", "why", fleetSubscription, handover.FleetNames[0])
}

func (p rolling) mended(ctx context.Context) error {
	if err := p.run(ctx, "fleet", "abort", fleetSubscription); err != nil {
		return err
	}
	if err := p.release(ctx, "catalog-fixed"); err != nil {
		return err
	}
	if err := p.rolledOut(ctx, 3, "Succeeded"); err != nil {
		return err
	}
	return p.run(ctx, "fleet", "status", fleetSubscription)
}

// rolledOut waits until a rollout is in a phase.
func (p rolling) rolledOut(ctx context.Context, number int, phase string) error {
	return p.await(ctx, fmt.Sprintf("rollout %d is %s", number, phase), installBound,
		func(ctx context.Context) (string, bool, error) {
			var list struct {
				Items []struct {
					Number int
					Phase  string
				}
			}
			if err := p.api.Get(ctx, "/api/v1/fleet/rollouts?subscription="+fleetSubscription, &list); err != nil {
				return "", false, err
			}
			for _, r := range list.Items {
				if r.Number == number {
					return r.Phase, r.Phase == phase, nil
				}
			}
			return "not begun", false, nil
		})
}
