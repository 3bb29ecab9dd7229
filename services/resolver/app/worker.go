package app

import (
	"context"
	"crypto/rand"
	"log/slog"
	"math/big"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/internal/catalogview"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// maxAttempts is how often a decision that was overtaken is made again at once, before the scope waits
// for its next turn: each attempt is overtaken only by something that happened meanwhile.
const maxAttempts = 5

// overtakenPause bounds the wait before such a decision is made again: about what the log takes from an
// append to its consumers.
const overtakenPause = 100 * time.Millisecond

// worker resolves scopes: load, resolve, decide, write.
type worker struct {
	store *store.Store
	views *catalogview.Views
	log   *slog.Logger
	// changed is closed at the next news of the log.
	changed     func() <-chan struct{}
	newIdentity func() (decide.Identity, error) // random names of plans
	rendering   *render.Versions
	metrics     *metrics
}

// bringUpToDate brings one scope up to date. It is what the lanes call.
func (w *worker) bringUpToDate(ctx context.Context, s bus.Scope) (err error) {
	ctx, end := telemetry.Span(ctx, "resolve scope")
	defer func() { end(err) }()
	scope := resolution.Scope{Cluster: s.Cluster, Namespace: s.Namespace}
	for range maxAttempts {
		command, randErr := uuid.NewRandom()
		if randErr != nil {
			return errs.Wrap(errs.Internal, randErr, "draw a command id")
		}
		err = w.attempt(ctx, s.Tenant, scope, store.Cause{
			Event: s.Cause, TraceParent: telemetry.TraceParent(ctx),
			Command: command,
		})
		if !errs.Is(err, errs.Conflict) && !errs.Is(err, errs.AlreadyExists) {
			return err
		}
		w.log.DebugContext(ctx, "a decision was overtaken; deciding again", "cluster", s.Cluster, "namespace",
			s.Namespace, "why", err)
		w.await(ctx)
	}
	return err
}

// await gives what overtook a decision time to arrive in the tables.
func (w *worker) await(ctx context.Context) {
	t := time.NewTimer(overtakenPause)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-w.changed():
	}
}

func (w *worker) attempt(ctx context.Context, tenant string, scope resolution.Scope, cause store.Cause) error {
	l, err := w.store.Scopes.Load(ctx, tenant, scope)
	if err != nil || l.Removed {
		return err
	}
	if l.Marked.Event != "" {
		cause.Event, cause.TraceParent = l.Marked.Event, l.Marked.TraceParent
	}
	if subs, plans := decide.Generated(l.State); len(plans) > 0 {
		if err := w.store.Decisions.Settle(ctx, l, subs, plans, cause); err != nil {
			return err
		}
		if l, err = w.store.Scopes.Load(ctx, tenant, scope); err != nil {
			return err
		}
		// Its own command: ids of events derive from it and the stream.
		if cause.Command, err = uuid.NewRandom(); err != nil {
			return errs.Wrap(errs.Internal, err, "draw a command id")
		}
	}
	c, err := w.evaluate(ctx, l)
	w.metrics.synced(l)
	if err != nil {
		return err
	}
	if err := w.store.Decisions.Write(ctx, l, c.decisions, c.reads, cause); err != nil {
		return err
	}
	w.logDecisions(ctx, scope, c.decisions)
	return nil
}

// evaluation is what the state of a scope leads to, before anything of it is written.
type evaluation struct {
	result    resolution.Result
	verdicts  []decide.Verdict
	decisions decide.Decisions
	reads     []resolution.Read
}

// evaluate resolves, assesses, renders and decides. It writes nothing: previews come to their plans in the same way.
func (w *worker) evaluate(ctx context.Context, l store.Loaded) (evaluation, error) {
	result, err := w.resolve(ctx, l)
	if err != nil {
		return evaluation{}, err
	}
	if l.PermissionGrowth, err = w.permissionGrowth(ctx, l.Tenant, l.Upgrades(result)); err != nil {
		return evaluation{}, err
	}
	verdicts, err := decide.Assess(l.State, result)
	if err != nil {
		return evaluation{}, err
	}
	rendered, asked, err := w.renderAll(ctx, l, verdicts)
	if err != nil {
		return evaluation{}, err
	}
	reads := result.Reads
	if asked {
		reads = append(slices.Clone(reads), resolution.Read{Kind: decide.ReadCluster})
	}
	d, err := decide.Decide(l.State, verdicts, rendered)
	return evaluation{result, verdicts, d, reads}, err
}

func (w *worker) resolve(ctx context.Context, l store.Loaded) (resolution.Result, error) {
	done := w.metrics.resolving()
	view := w.views.View(ctx, l.Tenant, pinned(visible(l.Catalogs), l.Subscriptions))
	result := resolve.Resolve(l.Input(view))
	done(ctx, result, view.Err())
	return result, view.Err()
}

func visible(list []decide.Catalog) []catalogview.Catalog {
	out := make([]catalogview.Catalog, 0, len(list))
	for _, c := range list {
		out = append(out, catalogview.Catalog{
			Key: c.Key, Subject: c.Subject, Priority: c.Priority,
			Revision: c.Revision, Health: c.Health(),
		})
	}
	return out
}

// pinned has the packages of rollouts read as they were when the rollout began, whatever became of the catalog since.
func pinned(list []catalogview.Catalog, subscriptions []decide.Subscription) []catalogview.Catalog {
	for _, sub := range subscriptions {
		t := sub.Target
		if t.Document == "" {
			continue
		}
		for i := range list {
			if list[i].Key == (resolution.CatalogKey{Name: t.Catalog}) {
				if list[i].Pinned == nil {
					list[i].Pinned = map[string]string{}
				}
				list[i].Pinned[t.Package] = t.Document
			}
		}
	}
	return list
}

// renderAll renders the proposals among the verdicts, and the plans that may be rendered otherwise by now. One that
// cannot be rendered, or could not run, becomes a failure that says why; trouble with the database is an error. asked
// says that what is known of the cluster had a say in it.
func (w *worker) renderAll(ctx context.Context, l store.Loaded, verdicts []decide.Verdict) (
	out map[string]decide.Rendered, asked bool, err error,
) {
	out = map[string]decide.Rendered{}
	r := w.renderer(l)
	for i, v := range verdicts {
		asked = asked || v.RestsOnCluster()
		if !v.NeedsSteps(w.rendering) {
			continue
		}
		steps, refused, err := r.render(ctx, v.Component, l.Groups)
		if err != nil {
			return nil, false, err
		}
		if refused != nil {
			asked = asked || refused.cluster
			verdicts[i] = decide.NotInstallable(v, refused.bundle, refused.why)
			continue
		}
		if v, err = v.WithSteps(steps, w.rendering); err != nil {
			return nil, false, err
		}
		if verdicts[i] = v; v.Kind != decide.Proposed {
			continue
		}
		id, err := w.newIdentity()
		if err != nil {
			return nil, false, err
		}
		out[v.Component.Name] = decide.Rendered{Steps: steps, Rendering: w.rendering.Newest(), Identity: id}
	}
	return out, asked, nil
}

// logDecisions logs what was decided, one line for each decision.
func (w *worker) logDecisions(ctx context.Context, scope resolution.Scope, d decide.Decisions) {
	for _, p := range d.Proposals {
		w.metrics.plans.Add(ctx, 1)
		w.log.InfoContext(ctx, "proposed an install plan", "cluster", scope.Cluster, "namespace", scope.Namespace,
			"plan", p.Event.Name, "component", p.Event.Component, "approval", p.Event.Approval, "steps", p.Event.Steps)
	}
	for _, t := range d.SubscriptionEvents {
		if t.Explanation == nil {
			continue
		}
		w.metrics.failures.Add(ctx, 1)
		w.log.InfoContext(ctx, "a subscription cannot be resolved", "cluster", scope.Cluster, "namespace",
			scope.Namespace,
			"subscription", t.Subscription.Name, "reason", t.Explanation.Reason, "class", string(t.Explanation.Class))
	}
}

// suffixLetters are those of Kubernetes' generated names: no vowels and no look-alikes.
const suffixLetters = "bcdfghjklmnpqrstvwxz2456789"

// suffixLength is that of OLM's plan names (R-IP-1).
const suffixLength = 5

// randomIdentity draws a plan's id and its name install-<5 characters> (R-IP-1).
func randomIdentity() (decide.Identity, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return decide.Identity{}, errs.Wrap(errs.Internal, err, "draw a plan id")
	}
	suffix := make([]byte, suffixLength)
	for i := range suffix {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(suffixLetters))))
		if err != nil {
			return decide.Identity{}, errs.Wrap(errs.Internal, err, "draw a plan name")
		}
		suffix[i] = suffixLetters[n.Int64()]
	}
	return decide.Identity{Plan: id.String(), Name: "install-" + string(suffix)}, nil
}
