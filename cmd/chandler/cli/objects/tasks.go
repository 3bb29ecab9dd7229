package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
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
	stageFleet               // catalogs, and what holds for the whole fleet or a whole cluster
	stageGroup
	stageNamespace // its labels are part of the group in it
	stageSubscription
	stagePlan
	stages
)

// task is one document on one cluster.
type task struct {
	stage stage
	name  string // kind/key; tasks of one name keep their order
	// kind and ref are of the object; of what nobody waits for, or can preview, there is no kind.
	kind string
	ref  client.Ref
	doc  olm.Document
	diff func(ctx context.Context, c *client.Client) (comparison, error)
}

// result is what became of a task.
type result struct {
	done     bool
	did      string
	text     string // to be told; "" for nothing
	warnings []string
	err      error
}

// tasksOf are the documents in their order, each on its clusters.
func tasksOf(o documents.Options, documents []olm.Document) []task {
	var all []task
	for _, d := range documents {
		switch {
		case d.Skipped != "", d.Joined:
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
	t := task{stage: stageFleet, ref: client.Ref{Name: d.Name}, doc: d}
	switch {
	case d.Hub != nil:
		t.name = "operatorhub/cluster"
		t.diff = func(ctx context.Context, c *client.Client) (comparison, error) { return compareHub(ctx, c, *d.Hub) }
	case d.Policy != nil:
		t.name = "approvalpolicy/" + d.Name
		t.diff = func(ctx context.Context, c *client.Client) (comparison, error) {
			return comparePolicy(ctx, c, d.Name,
				model.SetApprovalPolicy{Metadata: d.Metadata, ApprovalPolicySpec: *d.Policy})
		}
	case d.Role != nil:
		t.stage, t.name = stageSecret, "role/"+d.Name
		t.diff = func(ctx context.Context, c *client.Client) (comparison, error) {
			return compareRole(ctx, c, d.Name, *d.Role)
		}
	case d.RoleBinding != nil:
		t.name = "rolebinding/" + d.Name
		t.diff = func(ctx context.Context, c *client.Client) (comparison, error) {
			return compareBinding(ctx, c, d.Name, *d.RoleBinding)
		}
	case d.FleetSubscription != nil:
		t.name = kinds.KindFleetSubscription + "/" + d.Name
		t.diff = func(ctx context.Context, c *client.Client) (comparison, error) {
			return compareFleetSubscription(ctx, c, d.Name, *d.FleetSubscription)
		}
	case d.Webhook != nil:
		t.name = "webhook/" + d.Name
		t.diff = func(context.Context, *client.Client) (comparison, error) {
			return comparison{did: set, write: func(ctx context.Context, c *client.Client) (out written, err error) {
				out.did, err = applyWebhook(ctx, c, d.Name, *d.Webhook)
				return out, err
			}}, nil
		}
	case d.Secret != nil:
		t.stage, t.name = stageSecret, "catalogsecret/"+d.Name
		t.diff = func(context.Context, *client.Client) (comparison, error) { return setSecret(d.Name, *d.Secret), nil }
	default:
		return catalogTask(d, t.ref)
	}
	return t
}

func scopedTask(d olm.Document, ref client.Ref) task {
	t := task{ref: ref, doc: d}
	switch {
	case d.Subscription != nil:
		t.stage, t.kind = stageSubscription, kinds.KindSubscription
		t.diff = func(ctx context.Context, c *client.Client) (comparison, error) {
			return compareSubscription(ctx, c, ref, model.ChangeSubscription{
				Metadata: d.Metadata, SubscriptionSpec: *d.Subscription,
			})
		}
	case d.OperatorGroup != nil:
		t.stage, t.kind = stageGroup, kindGroup
		t.diff = func(ctx context.Context, c *client.Client) (comparison, error) {
			return compareOperatorGroup(ctx, c, ref,
				model.ChangeOperatorGroup{Metadata: d.Metadata, OperatorGroupSpec: *d.OperatorGroup})
		}
	case d.NamespaceLabels != nil:
		t.stage, t.name = stageNamespace, "namespace/"+ref.Cluster+"/"+ref.Name
		t.diff = func(ctx context.Context, c *client.Client) (comparison, error) {
			return compareNamespace(ctx, c, ref,
				model.Metadata{Labels: d.NamespaceLabels, Annotations: d.NamespaceAnnotations})
		}
		return t
	case d.CopiedCSVs != "":
		t.stage, t.name = stageFleet, "olmconfig/"+ref.Cluster
		t.diff = func(ctx context.Context, c *client.Client) (comparison, error) {
			return compareOLMConfig(ctx, c, ref.Cluster, d.CopiedCSVs)
		}
		return t
	case d.Overrides != nil:
		t.stage, t.name = stageSubscription, kinds.KindOperatorCondition+"/"+ref.String()
		t.diff = func(ctx context.Context, c *client.Client) (comparison, error) {
			return compareOverrides(ctx, c, ref, *d.Overrides)
		}
		return t
	case d.Plan != nil:
		t.stage, t.kind = stagePlan, kindPlan
		t.diff = func(ctx context.Context, c *client.Client) (comparison, error) {
			return comparePlan(ctx, c, ref, d.Metadata, *d.Plan)
		}
	default:
		return catalogTask(d, ref)
	}
	t.name = t.kind + "/" + ref.String()
	return t
}

// Kinds as results and chandler wait name them.
const (
	kindGroup   = "operatorgroup"
	kindPlan    = "installplan"
	kindCatalog = "catalog"
	kindPolicy  = "approvalpolicy"
)

func catalogTask(d olm.Document, ref client.Ref) task {
	return task{
		stage: stageFleet, name: kindCatalog + "/" + ref.String(), kind: kindCatalog, ref: ref, doc: d,
		diff: func(ctx context.Context, c *client.Client) (comparison, error) {
			return compareCatalog(ctx, c, ref, d.Metadata, *d.Catalog)
		},
	}
}

// carrier does with a task what the command is for.
type carrier func(ctx context.Context, c *client.Client, t task) result

// runTasks carries out tasks, stage by stage and several at a time, and tells what became of them in their order. One
// that fails holds up no other.
func runTasks(
	ctx context.Context, a *command.Env, c *client.Client, tasks []task, what string, carry carrier,
) ([]result, error) {
	r := &runner{
		tasks: tasks, carry: carry, results: make([]result, len(tasks)), out: a.Out, err: a.Err,
		bar: progress(a, what, len(tasks)),
	}
	quick := c.DeferWaits()
	for s := range stages {
		r.stage(ctx, s, c, quick)
	}
	quick.WaitAll(ctx)
	return r.results, r.end()
}

// runner is one run of tasks.
type runner struct {
	tasks []task
	carry carrier
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
				r.finish(i, r.carry(ctx, with, r.tasks[i]))
			}
		})
	}
	all.Wait()
}

const (
	// maxSettled bounds how often a document is compared anew with an object that others change meanwhile.
	maxSettled = 5
	// settleAgain is longer than reads lag behind writes.
	settleAgain = 200 * time.Millisecond
)

// settle carries a task out. Where somebody else changed the object between its read and its write, it is read and
// compared again: a document says what should be there, whoever wrote before.
func settle(ctx context.Context, c *client.Client, t task) (out result) {
	for range maxSettled {
		out = carryOut(ctx, c, c, t)
		if !client.IsStatus(out.err, http.StatusPreconditionFailed) {
			break
		}
		select {
		case <-time.After(settleAgain):
		case <-ctx.Done():
			return out
		}
	}
	out.text = t.name + " " + out.did
	return out
}

// carryOut reads by one client and writes by another.
func carryOut(ctx context.Context, reads, writes *client.Client, t task) (out result) {
	found, err := t.diff(ctx, reads)
	out.did, out.warnings, out.err = found.did, found.warnings, err
	if err != nil || found.write == nil {
		return out
	}
	now, err := found.write(ctx, writes)
	out.warnings, out.err = append(out.warnings, now.warnings...), err
	if now.did != "" {
		out.did = now.did
	}
	return out
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
	if out.text != "" {
		if _, err := fmt.Fprintln(r.out, out.text); err != nil {
			r.broken = err
		}
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
