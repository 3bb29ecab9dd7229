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

	"github.com/chandler-fleet/chandler/test/demo/internal/handover"
	"github.com/chandler-fleet/chandler/test/internal/api"
	"github.com/chandler-fleet/chandler/test/internal/gotool"
	"github.com/chandler-fleet/chandler/test/internal/proc"
)

// Bounds of what a scene waits for. On two idle cores each takes seconds; whatever compiles has none.
const (
	connectBound = time.Minute
	indexBound   = 5 * time.Minute // a catalog of hundreds of packages may be given
	installBound = 2 * time.Minute
	spokesBound  = 5 * time.Minute  // as simspokes itself
	rolloutBound = 10 * time.Minute // of some hundreds of clusters, on a busy machine
)

// namespace is where the demo's operators live on both clusters.
const namespace = handover.Namespace

// play is the state of the scenes.
type play struct {
	*narrator
	workshop *workshop
	dir      string // of the demo
	root     string // of the repository
	api      api.Client

	keeper   *proc.Process
	words    *follower
	names    []string // of the clusters, without those that are simulated
	spokes   int      // how many are simulated
	clusters handover.Clusters

	catalogDir string // copy of the catalog that changes in the course of the demo
	asked      string // package that west takes
	picks      []candidate
}

// scene is a part of the demo. The titles stand in the README as well.
type scene struct {
	title string
	play  func(*play, context.Context) error
}

// harbour are the scenes with the catalog that ships with Chandler. What needs no cluster comes first, so that there is
// something to see while the programs of the clusters are compiled.
var harbour = []scene{
	{"A catalog is checked, and its next revision compared with it, without a server", (*play).checkCatalog},
	{"A namespace is resolved from a file: what would be installed, what not, and why", (*play).resolveFile},
	{"Postgres, NATS and the four services start; the catalog is added and searched", (*play).services},
	{"Two real Kubernetes control planes start and are registered", (*play).register},
	{"Preview: what a subscription for east would install", (*play).suppose},
	{"East subscribes to buoy, Automatic; its dependency tidegauge is installed, too", (*play).automatic},
	{"West subscribes to lighthouse, Manual; nothing is installed before a person approves the plan", (*play).manual},
	{"The objects in the clusters", (*play).seen},
	{"The publisher releases new versions: east upgrades, west is asked", (*play).revision},
	{"The event log of west", (*play).story},
	{"Why an operator is installed, and the decision for west, recomputed from the record", (*play).reasons},
	{"What uninstalling an operator with its CRDs would delete, as a dry run", (*play).removal},
}

// all plays the scenes.
func (p *play) all(ctx context.Context, s settings) (err error) {
	if p.root, err = gotool.Root(); err != nil {
		return err
	}
	if err := p.workshop.open(ctx); err != nil {
		return err
	}
	scenes := harbour
	if p.catalogDir = s.catalog; s.catalog != "" {
		scenes = brought
	} else {
		if s.fleet {
			scenes = coast
		}
		p.catalogDir = filepath.Join(p.dir, "catalog")
		if err := os.CopyFS(p.catalogDir, os.DirFS(p.example("catalog"))); err != nil {
			return err
		}
	}
	for _, s := range scenes {
		p.title(s.title)
		if err := s.play(p, ctx); err != nil {
			return err
		}
	}
	return nil
}

// example names a file below examples.
func (p *play) example(elements ...string) string {
	return filepath.Join(append([]string{p.root, "examples"}, elements...)...)
}

func (p *play) checkCatalog(ctx context.Context) error {
	if err := p.run(ctx, "catalog", "validate", p.example("catalog")); err != nil {
		return err
	}
	next := filepath.Join(p.dir, "next")
	for _, from := range []string{"catalog", "catalog-next"} {
		if err := overlayFS(next, p.example(from)); err != nil {
			return err
		}
	}
	return p.run(ctx, "catalog", "diff", p.example("catalog"), next)
}

// cannotHave is the exit status of a resolution in which something cannot be had.
const cannotHave = 1

func (p *play) resolveFile(ctx context.Context) error {
	args := []string{"catalog", "render", p.example("catalog")}
	rendered := filepath.Join(p.dir, "harbour.json") // as the case names it
	p.typed(append(args, ">", rendered)...)
	documents, err := p.quiet(ctx, args...)
	if err != nil {
		return err
	}
	if err := os.WriteFile(rendered, []byte(documents), 0o644); err != nil {
		return err
	}
	text, err := os.ReadFile(p.example("demo", "namespace.json"))
	if err != nil {
		return err
	}
	file := filepath.Join(p.dir, "namespace.json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	if err := p.run(ctx, "resolve", "--case", file); !refused(err, cannotHave) {
		return err
	}
	return nil
}

func (p *play) services(ctx context.Context) error { return p.start(ctx, "harbour") }

// start brings up the services and adds the catalog.
func (p *play) start(ctx context.Context, name string) error {
	if err := p.workshop.compileServices(ctx); err != nil {
		return err
	}
	if err := p.startKeeper(); err != nil {
		return err
	}
	var s handover.Stack
	if err := p.awaitKeeper(ctx, "the services start", handover.StackFile, &s); err != nil {
		return err
	}
	p.connect(s)
	p.say("API at " + s.URL)
	if err := p.run(ctx, "catalog", "add", name, "--directory", p.catalogDir); err != nil {
		return err
	}
	if err := p.catalogReady(ctx, name, ""); err != nil {
		return err
	}
	if err := p.run(ctx, "catalog", "list"); err != nil {
		return err
	}
	return p.run(ctx, "catalog", "packages", name)
}

// register waits for the clusters and makes them known.
func (p *play) register(ctx context.Context) error {
	if err := p.awaitKeeper(ctx, "the clusters start", handover.ClustersFile, &p.clusters); err != nil {
		return err
	}
	for _, name := range p.names {
		if err := p.run(ctx, "cluster", "add", name, "--kubeconfig", p.clusters[name]); err != nil {
			return err
		}
	}
	for _, name := range p.names {
		if err := p.connected(ctx, name); err != nil {
			return err
		}
	}
	return p.run(ctx, "cluster", "list")
}

// connected waits until a cluster is.
func (p *play) connected(ctx context.Context, name string) error {
	return p.await(ctx, name+" is connected", connectBound, func(ctx context.Context) (string, bool, error) {
		var c struct{ State, Message string }
		err := p.api.Get(ctx, "/api/v1/clusters/"+name, &c)
		return c.State + " " + c.Message, c.State == "Connected", err
	})
}

func (p *play) suppose(ctx context.Context) error {
	return p.run(ctx, "plan", "-f", p.example("demo", "east.yaml"), "--cluster", "east")
}

// catalogReady waits for a revision other than the one before.
func (p *play) catalogReady(ctx context.Context, name, before string) error {
	return p.await(ctx, "catalog "+name+" is ready", indexBound, func(ctx context.Context) (string, bool, error) {
		var c struct{ State, Reason, Revision string }
		err := p.api.Get(ctx, "/api/v1/catalogs/"+name, &c)
		if c.State == "Failed" {
			return "", false, fmt.Errorf("the catalog cannot be read: %s; see chandler describe catalog %s", c.Reason,
				name)
		}
		return c.State, c.State == "Ready" && c.Revision != before, err
	})
}

func (p *play) automatic(ctx context.Context) error {
	if err := p.run(ctx, "apply", "-f", p.example("demo", "east.yaml"), "--cluster", "east"); err != nil {
		return err
	}
	if err := p.succeeded(ctx, "east", "buoy", "tidegauge"); err != nil {
		return err
	}
	if err := p.showPlan(ctx, "east"); err != nil {
		return err
	}
	return p.run(ctx, "get", "operators", "--cluster", "east")
}

func (p *play) manual(ctx context.Context) error {
	if err := p.run(ctx, "apply", "-f", p.example("demo", "west.yaml"), "--cluster", "west"); err != nil {
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
	err := p.await(ctx, "a plan for "+cluster+" waits for approval", installBound,
		func(ctx context.Context) (string, bool, error) {
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
	if err := p.run(ctx, "describe", "installplan", waiting.Name, "--cluster", cluster, "-n", namespace); err != nil {
		return err
	}
	return p.run(ctx, "approve", waiting.Name, "--cluster", cluster, "-n", namespace)
}

func (p *play) showPlan(ctx context.Context, cluster string) error {
	plans, err := p.plans(ctx, cluster)
	if err != nil {
		return err
	}
	if len(plans) == 0 {
		return errors.New("no plan for " + cluster)
	}
	return p.run(ctx, "describe", "installplan", plans[0].Name, "--cluster", cluster, "-n", namespace)
}

// revision lays the second revision over the first, and shows what each cluster makes of it.
func (p *play) revision(ctx context.Context) error {
	var before struct{ Revision string }
	if err := p.api.Get(ctx, "/api/v1/catalogs/harbour", &before); err != nil {
		return err
	}
	if err := overlayFS(p.catalogDir, p.example("catalog-next")); err != nil {
		return err
	}
	if err := p.run(ctx, "catalog", "refresh", "harbour"); err != nil {
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
	return p.run(ctx, "get", "operators")
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

func (p *play) story(ctx context.Context) error { return p.run(ctx, "events", "--cluster", "west") }

func (p *play) reasons(ctx context.Context) error { return p.why(ctx, "east", "tidegauge") }

// why asks why an operator is there, and has the newest decision about west made again.
func (p *play) why(ctx context.Context, cluster, operator string) error {
	if err := p.run(ctx, "why", operator, "--cluster", cluster, "-n", namespace); err != nil {
		return err
	}
	plans, err := p.plans(ctx, "west")
	if err != nil {
		return err
	}
	if len(plans) == 0 {
		return errors.New("no plan for west")
	}
	return p.run(ctx, "explain", "installplan/"+plans[0].Name, "--cluster", "west", "-n", namespace)
}

// removal asks what uninstalling an operator with its definitions would do. Nothing is done.
func (p *play) removal(ctx context.Context) error {
	return p.run(ctx, "uninstall", "tidegauge.v1.2.1", "--cluster", "east", "-n", namespace, "--delete-crds",
		"--dry-run")
}

// seen shows what the clusters' own API servers say, so that nobody has to believe Chandler.
func (p *play) seen(ctx context.Context) error {
	for _, name := range p.names {
		out, err := p.call(ctx, "keeper", "look", name, p.clusters[name])
		if err != nil {
			return fmt.Errorf("ask the API server of %s: %w", name, err)
		}
		p.show(out)
	}
	return nil
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
