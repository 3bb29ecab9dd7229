package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/chandler-fleet/chandler/test/demo/internal/handover"
)

// coast are the scenes of a fleet. They stand in docs/fleet.md as well.
var coast = []scene{
	{"Postgres, NATS and the four services start; the catalog is added", (*play).services},
	{"Three real Kubernetes control planes start: one is hosted, two join by their agents", of(rolling.real)},
	{"Simulated clusters join, each with an agent of its own", of(rolling.simulated)},
	{
		"One fleet subscription brings lighthouse to all: the real ones first, then a tenth, then the rest",
		of(rolling.everywhere),
	},
	{
		"The publisher releases a version that cannot be installed: the rollout stops in its first wave",
		of(rolling.stops),
	},
	{"Why it stopped, and where every cluster stands", of(rolling.whyStopped)},
	{
		"The rollout is taken back: the real clusters have the version before, and nobody gets the bad one",
		of(rolling.back),
	},
	{"The objects in the real clusters", (*play).seen},
}

// defaultSpokes is how many simulated clusters there are unless somebody says another number.
const defaultSpokes = 200

// mostSpokes is what one page of the API lists.
const mostSpokes = 450

// rolling is the play of a rollout.
type rolling struct{ *play }

// of is a part of it as a scene plays it.
func of(part func(rolling, context.Context) error) func(*play, context.Context) error {
	return func(p *play, ctx context.Context) error { return part(rolling{p}, ctx) }
}

const fleetSubscription = "lighthouse"

// real registers the real clusters: changes are tried on them.
func (p rolling) real(ctx context.Context) error {
	if err := p.awaitKeeper(ctx, "the clusters start", handover.ClustersFile, &p.clusters); err != nil {
		return err
	}
	hosted, person, token := p.names[0], p.names[1], p.names[2]
	const labels = "coast=north,ring=canary"
	err := p.run(ctx, "cluster", "add", hosted, "--kubeconfig", p.clusters[hosted], "--label", labels)
	if err != nil {
		return err
	}
	for _, name := range p.names[1:] {
		if err := p.run(ctx, "cluster", "add", name, "--agent", "--label", labels); err != nil {
			return err
		}
	}
	if err := p.joins(ctx, person); err != nil {
		return err
	}
	if err := p.asks(ctx, person); err != nil {
		return err
	}
	if err := p.run(ctx, "cluster", "accept", person); err != nil {
		return err
	}
	if err := p.joins(ctx, token, "--accept"); err != nil {
		return err
	}
	for _, name := range p.names {
		if err := p.connected(ctx, name); err != nil {
			return err
		}
	}
	return p.run(ctx, "get", "clusters", "-l", "ring=canary")
}

// joins has the manifest of a join token written. The keeper applies it to the cluster.
func (p rolling) joins(ctx context.Context, cluster string, flags ...string) error {
	args := append([]string{"cluster", "join-token", cluster}, flags...)
	file := handover.ManifestFile(cluster)
	p.typed(append(args, ">", filepath.Join(p.dir, file))...)
	var manifest string
	err := p.await(ctx, "a join token for "+cluster, connectBound, func(ctx context.Context) (string, bool, error) {
		out, err := p.quiet(ctx, args...)
		manifest = out
		return fmt.Sprint(err), err == nil, nil // the installer is a little behind
	})
	if err != nil {
		return err
	}
	p.say("  applied to " + cluster + "; its nodes run no containers, so the demo runs chandler-agent beside it")
	return handover.WriteText(p.dir, file, []byte(manifest))
}

// asks waits until the agent of a cluster asks to be accepted.
func (p rolling) asks(ctx context.Context, cluster string) error {
	return p.await(ctx, "the agent of "+cluster+" asks", connectBound, func(ctx context.Context) (string, bool, error) {
		var agent struct{ Phase string }
		err := p.api.Get(ctx, "/api/v1/clusters/"+cluster+"/agent", &agent)
		return agent.Phase, agent.Phase == "Pending", err
	})
}

// simulated waits for the simulated clusters.
func (p rolling) simulated(ctx context.Context) error {
	all := p.spokes + len(p.names)
	err := p.await(ctx, "all clusters are connected", spokesBound, everySecond(
		func(ctx context.Context) (string, bool, error) {
			var list struct{ Items []struct{} }
			err := p.api.Get(ctx, "/api/v1/clusters?state=Connected&limit="+strconv.Itoa(all+1), &list)
			if failure := p.keeper.Failure(); failure != nil {
				err = failure
			}
			return fmt.Sprintf("%d of %d", len(list.Items), all), len(list.Items) == all, err
		}))
	if err != nil {
		return err
	}
	if err := p.run(ctx, "status"); err != nil {
		return err
	}
	// A person has said so much before: within an hour a slip reaches 100 clusters at most.
	return p.run(ctx, "fleet", "budget", "set", "--changed", strconv.Itoa(all))
}

func (p rolling) everywhere(ctx context.Context) error {
	file := p.example("fleet", "lighthouse.yaml")
	if err := p.run(ctx, "fleet", "preview", "-f", file); err != nil {
		return err
	}
	if err := p.run(ctx, "apply", "-f", file); err != nil {
		return err
	}
	if err := p.half(ctx, 1); err != nil {
		return err
	}
	if err := p.run(ctx, "fleet", "map", fleetSubscription); err != nil {
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
	return p.run(ctx, "fleet", "map", fleetSubscription)
}

func (p rolling) whyStopped(ctx context.Context) error {
	if err := p.run(ctx, "fleet", "why", fleetSubscription, p.names[0]); err != nil {
		return err
	}
	return p.run(ctx, "fleet", "tree", fleetSubscription)
}

func (p rolling) back(ctx context.Context) error {
	err := p.run(ctx, "fleet", "rollback", fleetSubscription, "--reason", "1.3.0 cannot be installed")
	if err != nil {
		return err
	}
	if err := p.rolledOut(ctx, 3, "Succeeded"); err != nil {
		return err
	}
	if err := p.run(ctx, "fleet", "rollouts", fleetSubscription); err != nil {
		return err
	}
	if err := p.run(ctx, "fleet", "status", fleetSubscription); err != nil {
		return err
	}
	return p.run(ctx, "fleet", "map", fleetSubscription)
}

// rollout is one as the API lists it.
type rollout struct {
	Number   int
	Phase    string
	Clusters struct{ Total, Succeeded int }
}

func (r rollout) String() string {
	return fmt.Sprintf("%s, %d of %d clusters", r.Phase, r.Clusters.Succeeded, r.Clusters.Total)
}

// half waits until half of the clusters of a rollout have what they should.
func (p rolling) half(ctx context.Context, number int) error {
	return p.rollout(ctx, number, "has changed half of its clusters", func(r rollout) bool {
		return r.Clusters.Succeeded > 0 && 2*r.Clusters.Succeeded >= r.Clusters.Total
	})
}

// rolledOut waits until a rollout is in a phase.
func (p rolling) rolledOut(ctx context.Context, number int, phase string) error {
	return p.rollout(ctx, number, "is "+phase, func(r rollout) bool { return r.Phase == phase })
}

// rollout waits for something of a rollout.
func (p rolling) rollout(ctx context.Context, number int, what string, reached func(rollout) bool) error {
	return p.await(ctx, fmt.Sprintf("rollout %d %s", number, what), rolloutBound, everySecond(
		func(ctx context.Context) (string, bool, error) {
			var list struct{ Items []rollout }
			if err := p.api.Get(ctx, "/api/v1/fleet/rollouts?subscription="+fleetSubscription, &list); err != nil {
				return "", false, err
			}
			for _, r := range list.Items {
				if r.Number == number {
					return r.String(), reached(r), nil
				}
			}
			return "not begun", false, nil
		}))
}

// everySecond looks once a second at most: some hundreds of clusters are no small answer, and the hub has work to do.
func everySecond(look func(context.Context) (string, bool, error)) func(context.Context) (string, bool, error) {
	var next time.Time
	var detail string
	return func(ctx context.Context) (string, bool, error) {
		if time.Now().Before(next) {
			return detail, false, nil
		}
		next = time.Now().Add(time.Second)
		var ok bool
		var err error
		detail, ok, err = look(ctx)
		return detail, ok, err
	}
}
