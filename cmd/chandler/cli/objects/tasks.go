package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/documents"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// maxAtOnce is how many documents are applied at a time: a write waits for its place in the log, which many share, so
// that more gain little, and others ask the same server.
const maxAtOnce = 16

// stage is when a document is applied: what others need, or are judged by, comes first.
type stage int

const (
	stageSecret stage = iota // and roles: bindings name them
	stageFleet               // catalogs, and what holds for the whole fleet
	stageGroup
	stageSubscription
	stagePlan
	stages
)

// task is one document on one cluster.
type task struct {
	stage stage
	name  string // kind/key; tasks of one name keep their order
	do    func(ctx context.Context, c *client.Client) (did string, warnings []string, err error)
}

// result is what became of a task.
type result struct {
	done     bool
	did      string
	warnings []string
	err      error
}

// tasksOf are the documents in their order, each on its clusters.
func tasksOf(o documents.Options, documents []olm.Document) []task {
	var all []task
	for _, d := range documents {
		switch {
		case d.Skipped != "":
		case d.Fleet():
			all = append(all, fleetTask(d))
		default:
			for _, cluster := range d.On(o.Clusters) {
				all = append(all, scopedTask(d, client.Ref{Cluster: cluster, Namespace: d.Namespace, Name: d.Name}))
			}
		}
	}
	return all
}

func fleetTask(d olm.Document) task {
	switch {
	case d.Hub != nil:
		return task{
			stageFleet, "operatorhub/cluster",
			func(ctx context.Context, c *client.Client) (string, []string, error) { return applyHub(ctx, c, *d.Hub) },
		}
	case d.Policy != nil:
		return task{
			stageFleet, "approvalpolicy/" + d.Name,
			func(ctx context.Context, c *client.Client) (string, []string, error) {
				did, err := applyPolicy(ctx, c, d.Name, model.SetApprovalPolicy{
					Metadata: d.Metadata, ApprovalPolicySpec: *d.Policy,
				})
				return did, nil, err
			},
		}
	case d.Role != nil:
		return task{
			stageSecret, "role/" + d.Name,
			func(ctx context.Context, c *client.Client) (string, []string, error) {
				did, err := applyRole(ctx, c, d.Name, *d.Role)
				return did, nil, err
			},
		}
	case d.RoleBinding != nil:
		return task{
			stageFleet, "rolebinding/" + d.Name,
			func(ctx context.Context, c *client.Client) (string, []string, error) {
				did, err := applyBinding(ctx, c, d.Name, *d.RoleBinding)
				return did, nil, err
			},
		}
	case d.Secret != nil:
		return task{
			stageSecret, "catalogsecret/" + d.Name,
			func(ctx context.Context, c *client.Client) (string, []string, error) {
				_, err := c.SetCatalogSecret(ctx, d.Name, *d.Secret)
				return "set", nil, err // whether it was so before nobody can see
			},
		}
	default:
		return catalogTask(d, client.Ref{Name: d.Name})
	}
}

func scopedTask(d olm.Document, ref client.Ref) task {
	switch {
	case d.Subscription != nil:
		return task{
			stageSubscription, "subscription/" + ref.String(),
			func(ctx context.Context, c *client.Client) (string, []string, error) {
				return applySubscription(ctx, c, ref, model.ChangeSubscription{
					Metadata: d.Metadata, SubscriptionSpec: *d.Subscription,
				})
			},
		}
	case d.OperatorGroup != nil:
		return task{
			stageGroup, "operatorgroup/" + ref.String(),
			func(ctx context.Context, c *client.Client) (string, []string, error) {
				did, err := applyOperatorGroup(ctx, c, ref,
					model.ChangeOperatorGroup{Metadata: d.Metadata, OperatorGroupSpec: *d.OperatorGroup})
				return did, nil, err
			},
		}
	case d.Plan != nil:
		return task{
			stagePlan, "installplan/" + ref.String(),
			func(ctx context.Context, c *client.Client) (string, []string, error) {
				did, err := applyPlan(ctx, c, ref, d.Metadata, *d.Plan)
				return did, nil, err
			},
		}
	default:
		return catalogTask(d, ref)
	}
}

func catalogTask(d olm.Document, ref client.Ref) task {
	return task{
		stageFleet, "catalog/" + ref.String(),
		func(ctx context.Context, c *client.Client) (string, []string, error) {
			did, err := applyCatalog(ctx, c, ref, d.Metadata, *d.Catalog)
			return did, nil, err
		},
	}
}

// applyPlan approves a plan whose document says spec.approved: true, as it is now (R-IP-10). A document cannot make a
// plan, and cannot take an approval back. Labels and annotations are the document's, whatever became of the plan.
func applyPlan(ctx context.Context, c *client.Client, ref client.Ref, metadata model.Metadata, want olm.Plan) (
	string, error,
) {
	p, err := kinds.FindPlan(ctx, c, ref)
	if err != nil {
		return "", err
	}
	var csvs []string
	for _, b := range p.Bundles {
		csvs = append(csvs, b.CSV)
	}
	for _, name := range want.CSVs {
		if !slices.Contains(csvs, name) {
			return "", command.Refused(
				fmt.Errorf("the document names %s, but the plan installs %v: nothing is approved", name, csvs))
		}
	}
	approved := p.Approved != nil || p.Begun
	if !want.Approved && approved && p.Phase == kinds.PhaseRequiresApproval {
		return "", command.Refused(
			errors.New("the plan is approved already, and a document cannot revoke that: use chandler reject"))
	}
	did := unchanged
	if !metadata.Same(p.Metadata) {
		if _, err := c.SetPlanMetadata(ctx, p.ID, metadata); err != nil {
			return "", err
		}
		did = configured
	}
	if !want.Approved || approved { // without approval it goes by itself, or waits
		return did, nil
	}
	digest := p.Digest
	if want.Digest != "" {
		digest = want.Digest
	}
	now, err := c.Approve(ctx, p.ID, model.ApprovePlan{Digest: digest, Base: &p.Base})
	if err != nil {
		return "", err
	}
	return kinds.ApprovedText(now), nil
}

// runTasks carries out tasks, stage by stage and several at a time, and tells what became of them in their order. One
// that fails holds up no other.
func runTasks(ctx context.Context, a *command.Env, c *client.Client, tasks []task) error {
	r := &runner{
		tasks: tasks, results: make([]result, len(tasks)), out: a.Out, err: a.Err,
		bar: progress(a, "applying", len(tasks)),
	}
	quick := c.DeferWaits()
	for s := range stages {
		r.stage(ctx, s, c, quick)
	}
	quick.WaitAll(ctx)
	return r.end()
}

// runner is one run of tasks.
type runner struct {
	tasks []task
	out   io.Writer
	err   io.Writer
	bar   *progressbar.ProgressBar // nil where nobody looks

	mu      sync.Mutex
	results []result
	printed int // how many were told
	broken  error
}

// stage carries out the tasks of one stage. Those of one name go one after the other, each write settled before the
// next read.
func (r *runner) stage(ctx context.Context, s stage, c, quick *client.Client) {
	var names []string
	byName := map[string][]int{}
	for i, t := range r.tasks {
		if t.stage != s {
			continue
		}
		if byName[t.name] == nil {
			names = append(names, t.name)
		}
		byName[t.name] = append(byName[t.name], i)
	}
	var all sync.WaitGroup
	places := make(chan struct{}, maxAtOnce)
	for _, name := range names {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			with := quick
			if len(byName[name]) > 1 {
				with = c
			}
			for _, i := range byName[name] {
				var out result
				out.did, out.warnings, out.err = r.tasks[i].do(ctx, with)
				r.finish(i, out)
			}
		})
	}
	all.Wait()
}

// finish notes a result, and tells all that are next in order.
func (r *runner) finish(i int, out result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out.done = true
	r.results[i] = out
	if r.bar != nil {
		_ = r.bar.Add(1) // a terminal that cannot show it does not end the work
	}
	for ; r.printed < len(r.results) && r.results[r.printed].done; r.printed++ {
		r.print(r.tasks[r.printed], r.results[r.printed])
	}
}

func (r *runner) print(t task, out result) {
	if out.err != nil {
		return // told at the end
	}
	if r.bar != nil {
		_ = r.bar.Clear()
	}
	if _, err := fmt.Fprintf(r.out, "%s %s\n", t.name, out.did); err != nil {
		r.broken = err
	}
	for _, w := range out.warnings {
		fmt.Fprintf(r.err, "warning: %s: %s\n", t.name, plain.Text(w))
	}
}

// end returns all that went wrong, in order.
func (r *runner) end() error {
	if r.bar != nil {
		_ = r.bar.Finish()
	}
	wrong := []error{r.broken}
	for i, t := range r.tasks {
		if err := r.results[i].err; err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", t.name, err))
		}
	}
	return errors.Join(wrong...)
}

// slowApply is how long a command may be silent: what is faster shows no progress.
const slowApply = 400 * time.Millisecond

// progress is a progress bar on a terminal, and nil elsewhere.
func progress(a *command.Env, what string, n int) *progressbar.ProgressBar {
	f, ok := a.Err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || n < maxAtOnce {
		return nil
	}
	return progressbar.NewOptions(n, progressbar.OptionSetWriter(a.Err), progressbar.OptionSetDescription(what),
		progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(slowApply/4), progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount())
}
