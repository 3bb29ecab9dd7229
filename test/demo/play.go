package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/test/stack"
)

// Bounds of what a scene waits for. On two idle cores each takes seconds.
const (
	connectBound = time.Minute
	indexBound   = 5 * time.Minute // a catalog of hundreds of packages may be given
	installBound = 2 * time.Minute
)

// namespace is where the demo's operators live on both clusters.
const namespace = "harbour-ops"

// play is the state of the scenes.
type play struct {
	*narrator
	api stack.Client
	dir string
}

// harbour plays the scenes with the catalog that ships with Chandler.
func (p *play) harbour(ctx context.Context) error {
	root, err := stack.Root()
	if err != nil {
		return err
	}
	examples := filepath.Join(root, "examples")
	catalog := filepath.Join(p.dir, "catalog")
	if err := os.CopyFS(catalog, os.DirFS(filepath.Join(examples, "catalog"))); err != nil {
		return err
	}
	return p.scenes(ctx, []func(context.Context) error{
		p.clusters,
		func(ctx context.Context) error { return p.catalog(ctx, "harbour", catalog) },
		func(ctx context.Context) error { return p.automatic(ctx, filepath.Join(examples, "demo", "east.yaml")) },
		func(ctx context.Context) error { return p.manual(ctx, filepath.Join(examples, "demo", "west.yaml")) },
		func(ctx context.Context) error { return p.seen(ctx, clusterNames...) },
		func(ctx context.Context) error {
			return p.revision(ctx, catalog, filepath.Join(examples, "catalog-next"))
		},
		func(ctx context.Context) error { return p.story(ctx, "west") },
		func(ctx context.Context) error { return p.reasons(ctx, "east", "tidegauge") },
		func(ctx context.Context) error { return p.removal(ctx, "east", "tidegauge.v1.2.1") },
	})
}

func (p *play) scenes(ctx context.Context, scenes []func(context.Context) error) error {
	for _, scene := range scenes {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *play) clusters(ctx context.Context) error {
	p.title("Register both clusters")
	for _, name := range clusterNames {
		if _, err := p.run(ctx, "cluster", "add", name, "--kubeconfig", p.state.Clusters[name].Kubeconfig); err != nil {
			return err
		}
	}
	for _, name := range clusterNames {
		err := p.await(ctx, name+" is connected", connectBound, func(ctx context.Context) (string, bool, error) {
			var c struct{ State, Message string }
			err := p.api.Get(ctx, "/api/v1/clusters/"+name, &c)
			return c.State + " " + c.Message, c.State == "Connected", err
		})
		if err != nil {
			return err
		}
	}
	_, err := p.run(ctx, "cluster", "list")
	return err
}

func (p *play) catalog(ctx context.Context, name, dir string) error {
	p.title("Add a catalog")
	if _, err := p.run(ctx, "catalog", "add", name, "--directory", dir); err != nil {
		return err
	}
	if err := p.catalogReady(ctx, name, ""); err != nil {
		return err
	}
	if _, err := p.run(ctx, "catalog", "list"); err != nil {
		return err
	}
	_, err := p.run(ctx, "catalog", "packages", name)
	return err
}

// catalogReady waits for a revision other than the one before.
func (p *play) catalogReady(ctx context.Context, name, before string) error {
	return p.await(ctx, "catalog "+name+" is ready", indexBound, func(ctx context.Context) (string, bool, error) {
		var c struct{ State, Reason, Revision string }
		err := p.api.Get(ctx, "/api/v1/catalogs/"+name, &c)
		if c.State == "Failed" {
			return "", false, fmt.Errorf("the catalog cannot be read: %s; see chandler describe catalog %s", c.Reason, name)
		}
		return c.State, c.State == "Ready" && c.Revision != before, err
	})
}

func (p *play) automatic(ctx context.Context, file string) error {
	p.title("East subscribes to buoy, Automatic; its dependency tidegauge comes along")
	if _, err := p.run(ctx, "apply", "-f", file, "--cluster", "east"); err != nil {
		return err
	}
	if err := p.succeeded(ctx, "east", "buoy", "tidegauge"); err != nil {
		return err
	}
	if err := p.showPlan(ctx, "east"); err != nil {
		return err
	}
	_, err := p.run(ctx, "get", "operators", "--cluster", "east")
	return err
}

func (p *play) manual(ctx context.Context, file string) error {
	p.title("West subscribes to lighthouse, Manual; nothing happens before somebody has seen the plan")
	if _, err := p.run(ctx, "apply", "-f", file, "--cluster", "west"); err != nil {
		return err
	}
	if err := p.approve(ctx, "west"); err != nil {
		return err
	}
	return p.succeeded(ctx, "west", "lighthouse")
}

// approve waits for a plan that wants to be approved, shows it and approves it.
func (p *play) approve(ctx context.Context, cluster string) error {
	var waiting plan
	err := p.await(ctx, "a plan for "+cluster+" waits for approval", installBound, func(ctx context.Context) (string, bool, error) {
		plans, err := p.plans(ctx, cluster)
		i := slices.IndexFunc(plans, func(q plan) bool { return q.Phase == "RequiresApproval" })
		if i >= 0 {
			waiting = plans[i]
		}
		return fmt.Sprintf("%d plans", len(plans)), i >= 0, err
	})
	if err != nil {
		return err
	}
	if _, err := p.run(ctx, "describe", "installplan", waiting.Name, "--cluster", cluster, "-n", namespace); err != nil {
		return err
	}
	_, err = p.run(ctx, "approve", waiting.Name, "--cluster", cluster, "-n", namespace)
	return err
}

func (p *play) showPlan(ctx context.Context, cluster string) error {
	plans, err := p.plans(ctx, cluster)
	if err != nil {
		return err
	}
	if len(plans) == 0 {
		return errors.New("no plan for " + cluster)
	}
	_, err = p.run(ctx, "describe", "installplan", plans[0].Name, "--cluster", cluster, "-n", namespace)
	return err
}

// revision lays the second revision over the first, and shows what each cluster makes of it.
func (p *play) revision(ctx context.Context, catalog, overlay string) error {
	p.title("The publisher releases new versions: east upgrades, west is asked")
	var before struct{ Revision string }
	if err := p.api.Get(ctx, "/api/v1/catalogs/harbour", &before); err != nil {
		return err
	}
	if err := overlayFS(catalog, overlay); err != nil {
		return err
	}
	if _, err := p.run(ctx, "catalog", "refresh", "harbour"); err != nil {
		return err
	}
	if err := p.catalogReady(ctx, "harbour", before.Revision); err != nil {
		return err
	}
	if err := p.approve(ctx, "west"); err != nil {
		return err
	}
	if err := p.upgraded(ctx, "east", "tidegauge.v1.2.1"); err != nil {
		return err
	}
	if err := p.upgraded(ctx, "west", "lighthouse.v1.3.0"); err != nil {
		return err
	}
	_, err := p.run(ctx, "get", "operators")
	return err
}

// overlayFS copies files over those that are there.
func overlayFS(dir, overlay string) error {
	return filepath.WalkDir(overlay, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(overlay, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, content, 0o644)
	})
}

func (p *play) story(ctx context.Context, cluster string) error {
	p.title("What the event log tells of %s", cluster)
	_, err := p.run(ctx, "events", "--cluster", cluster)
	return err
}

// reasons asks why an operator is there, and has the newest decision about west made again.
func (p *play) reasons(ctx context.Context, cluster, operator string) error {
	p.title("Why an operator is there, and what was approved for west, decided again from the record")
	if _, err := p.run(ctx, "why", operator, "--cluster", cluster, "-n", namespace); err != nil {
		return err
	}
	plans, err := p.plans(ctx, "west")
	if err != nil {
		return err
	}
	if len(plans) == 0 {
		return errors.New("no plan for west")
	}
	_, err = p.run(ctx, "explain", "installplan/"+plans[0].Name, "--cluster", "west", "-n", namespace)
	return err
}

// removal asks what uninstalling an operator with its definitions would do. Nothing is done.
func (p *play) removal(ctx context.Context, cluster, csv string) error {
	p.title("What uninstalling an operator with its definitions would take away, asked only")
	_, err := p.run(ctx, "uninstall", csv, "--cluster", cluster, "-n", namespace, "--delete-crds", "--dry-run")
	return err
}

// plan is an install plan as the API shows it.
type plan struct {
	ID, Name, Phase, Message string
	Blocked                  *struct{ Class, Reason string }
}

// plans returns the plans of a cluster, newest first.
func (p *play) plans(ctx context.Context, cluster string) ([]plan, error) {
	var list struct{ Items []plan }
	err := p.api.Get(ctx, "/api/v1/installplans?cluster="+cluster, &list)
	return list.Items, err
}

// operator is an installed operator as the API shows it.
type operator struct{ Name, Package, Phase, Reason, Message string }

func (p *play) operators(ctx context.Context, cluster string) ([]operator, error) {
	var list struct{ Items []operator }
	err := p.api.Get(ctx, "/api/v1/operators?cluster="+cluster, &list)
	return list.Items, err
}

// succeeded waits until every package has a healthy operator on the cluster.
func (p *play) succeeded(ctx context.Context, cluster string, packages ...string) error {
	what := strings.Join(packages, " and ") + " on " + cluster + " Succeeded"
	return p.await(ctx, what, installBound, func(ctx context.Context) (string, bool, error) {
		ops, err := p.operators(ctx, cluster)
		missing := 0
		for _, name := range packages {
			if !slices.ContainsFunc(ops, func(o operator) bool { return o.Package == name && o.Phase == "Succeeded" }) {
				missing++
			}
		}
		return p.detail(ctx, cluster, ops), missing == 0, err
	})
}

// upgraded waits until the CSV is healthy and the only one of its package.
func (p *play) upgraded(ctx context.Context, cluster, csv string) error {
	return p.await(ctx, csv+" on "+cluster+" Succeeded", installBound, func(ctx context.Context) (string, bool, error) {
		ops, err := p.operators(ctx, cluster)
		pkg, _, _ := strings.Cut(csv, ".v")
		ops = slices.DeleteFunc(ops, func(o operator) bool { return o.Package != pkg })
		return p.detail(ctx, cluster, ops), len(ops) == 1 && ops[0].Name == csv && ops[0].Phase == "Succeeded", err
	})
}

// detail says in one line how far a cluster is.
func (p *play) detail(ctx context.Context, cluster string, ops []operator) string {
	var words []string
	for _, o := range ops {
		words = append(words, o.Name+" "+o.Phase)
	}
	plans, err := p.plans(ctx, cluster)
	if err != nil {
		return err.Error()
	}
	for _, q := range plans {
		if q.Blocked != nil {
			words = append(words, "plan "+q.Name+" waits: "+q.Blocked.Reason+" "+q.Message)
		} else if len(ops) == 0 {
			words = append(words, "plan "+q.Name+" "+q.Phase)
		}
	}
	return strings.Join(words, ", ")
}
