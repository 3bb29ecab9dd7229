package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/test/fleetsim/spokes"
	"github.com/chandler-fleet/chandler/test/stack"
)

// idleFor is how long nothing happens while what a hub at rest needs is measured.
const idleFor = 30 * time.Second

// play is one run.
type play struct {
	options
	out     io.Writer
	hub     *stack.Stack
	api     stack.Client
	record  *pgx.Conn // of the database's administrator
	fleet   *spokes.Fleet
	catalog string
}

// scene is a part of it that is measured.
type scene struct {
	title string
	do    func(*play, context.Context) error
}

var scenes = []scene{
	{"register the clusters, until all are connected", (*play).connect},
	{"install every operator everywhere, a rollout for each", (*play).install},
	{"nothing happens", (*play).rest},
	{"a new version of one operator, in four waves", (*play).upgrade},
	{"NATS is restarted: all agents come back", (*play).reconnect},
	{"all services are restarted", (*play).restart},
}

func (p *play) all(ctx context.Context) error {
	for _, s := range scenes {
		if err := p.forgetStatements(ctx); err != nil {
			return err
		}
		before, err := measure(p.hub)
		if err != nil {
			return err
		}
		bounded, cancel := context.WithTimeoutCause(ctx, p.bound, fmt.Errorf("%s: not within %s", s.title, p.bound))
		err = s.do(p, bounded)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
		after, err := measure(p.hub)
		if err != nil {
			return err
		}
		p.show(s.title, before, after)
		if err := p.showStatements(ctx); err != nil {
			return err
		}
	}
	return nil
}

// show prints what a scene took.
func (p *play) show(title string, before, after usage) {
	took := after.at.Sub(before.at)
	cpu, byPart := after.since(before)
	memory, ofParts := after.memory()
	fmt.Fprintf(p.out, "\n%s\n  %.1f s; the hub used %.1f s of processors (%.0f %% of one) and holds %d MB\n", title,
		took.Seconds(), cpu, 100*cpu/took.Seconds(), memory>>20)
	fmt.Fprintf(p.out, "  processor seconds: %s\n  megabytes:         %s\n", byPart, ofParts)
}

// ring has one cluster of a hundred as a canary.
func ring(name string) map[string]string {
	if strings.HasSuffix(name, "00") {
		return map[string]string{"ring": "canary"}
	}
	return map[string]string{"ring": "main"}
}

func (p *play) connect(ctx context.Context) error {
	if err := p.fleet.Join(ctx, p.api, ring); err != nil {
		return err
	}
	return p.connected(ctx)
}

// connected waits until all clusters are.
func (p *play) connected(ctx context.Context) error {
	return spokes.Until(ctx, func(ctx context.Context) (string, bool, error) {
		n, err := p.count(ctx, `select count(*) from installer.observations where state->>'state' = 'Connected'`)
		return fmt.Sprintf("%d of %d clusters are connected", n, p.clusters), n == p.clusters, err
	})
}

// count asks the database: thousands of rows over the API would be most of what is measured.
func (p *play) count(ctx context.Context, query string, args ...any) (n int, err error) {
	err = p.record.QueryRow(ctx, query, args...).Scan(&n)
	return n, err
}

func (p *play) install(ctx context.Context) error {
	err := p.api.Post(ctx, "/api/v1/catalogs", map[string]any{
		"name": "sim", "source": map[string]any{"type": "directory", "path": p.catalog},
	}, nil)
	if err != nil {
		return err
	}
	// Fleets are changed faster here than people do.
	unbounded := map[string]any{"changed": 0, "leaving": 0}
	if err := p.api.Do(ctx, http.MethodPut, "/api/v1/fleet/budget", unbounded, nil); err != nil {
		return err
	}
	for n := range p.operators {
		if err := p.subscribe(ctx, packageName(n)); err != nil {
			return err
		}
	}
	for n := range p.operators {
		if err := p.rolledOut(ctx, packageName(n), 1); err != nil {
			return err
		}
	}
	return nil
}

// subscribe makes a fleet subscription to a package for all clusters, in four waves.
func (p *play) subscribe(ctx context.Context, pkg string) error {
	return p.api.Do(ctx, http.MethodPut, "/api/v1/fleet/subscriptions/"+pkg, map[string]any{
		"package": pkg, "channel": channel, "catalog": "sim", "namespace": pkg,
		"operatorGroup": map[string]any{"name": pkg, "spec": map[string]any{"targetNamespaces": []string{pkg}}},
		"placement":     map[string]any{"clusters": []string{"*"}},
		"strategy": map[string]any{
			"maxConcurrent": p.clusters,
			"waves": []map[string]any{
				{"name": "canary", "selector": "ring=canary"},
				{"name": "tenth", "size": "10%"},
				{"name": "half", "size": "50%"},
			},
		},
	}, nil)
}

// rolledOut waits until a rollout has succeeded.
func (p *play) rolledOut(ctx context.Context, pkg string, number int) error {
	return spokes.Until(ctx, func(ctx context.Context) (string, bool, error) {
		var list struct {
			Items []struct {
				Number int
				Phase  string
			}
		}
		if err := p.api.Get(ctx, "/api/v1/fleet/rollouts?subscription="+pkg, &list); err != nil {
			return "", false, err
		}
		for _, r := range list.Items {
			if r.Number == number {
				return fmt.Sprintf("rollout %d of %s is %s", number, pkg, r.Phase), r.Phase == "Succeeded", nil
			}
		}
		return fmt.Sprintf("rollout %d of %s has not begun", number, pkg), false, nil
	})
}

func (*play) rest(ctx context.Context) error {
	select {
	case <-time.After(idleFor):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *play) upgrade(ctx context.Context) error {
	if err := release(p.catalog, packageName(0), "1.0.0", "1.1.0"); err != nil {
		return err
	}
	if err := p.api.Post(ctx, "/api/v1/catalogs/sim/refresh", nil, nil); err != nil {
		return err
	}
	return p.rolledOut(ctx, packageName(0), 2)
}

// reconnect ends NATS with all connections and starts it again. Each cluster is heard of again when the installer has
// taken a report that its agent wrote since.
func (p *play) reconnect(ctx context.Context) error {
	p.hub.Kill(natsPart)
	began := time.Now()
	if err := p.hub.StartNATS(ctx); err != nil {
		return err
	}
	return p.heardSince(ctx, began)
}

// natsPart is the name of NATS among the parts of a stack.
const natsPart = "nats-server"

// heardSince waits until every cluster was heard of after a time.
func (p *play) heardSince(ctx context.Context, began time.Time) error {
	return spokes.Until(ctx, func(ctx context.Context) (string, bool, error) {
		n, err := p.count(ctx, `select count(*) from installer.holders where heard > $1`, began)
		return fmt.Sprintf("%d of %d clusters were heard of", n, p.clusters), n == p.clusters, err
	})
}

// restart ends all services and starts them again. They have taken up where they were when each is ready and the
// recorder has claimed every cluster anew: agents, to which nothing happened, have nothing to say.
func (p *play) restart(ctx context.Context) error {
	if _, err := p.record.Exec(ctx, `create temporary table claims as
		select cluster_id, recorder_epoch from installer.holders`); err != nil {
		return err
	}
	for _, name := range stack.Services {
		p.hub.Kill(name)
	}
	for _, name := range stack.Services {
		if err := p.hub.Launch(name); err != nil {
			return err
		}
	}
	for _, name := range stack.Services {
		if err := p.hub.Ready(ctx, name); err != nil {
			return err
		}
	}
	return spokes.Until(ctx, func(ctx context.Context) (string, bool, error) {
		n, err := p.count(ctx, `select count(*) from installer.holders h join claims c using (cluster_id)
			where h.recorder_epoch > c.recorder_epoch`)
		return fmt.Sprintf("%d of %d clusters are claimed", n, p.clusters), n == p.clusters, err
	})
}
