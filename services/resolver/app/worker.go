package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/internal/catalogview"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
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
	changed func() <-chan struct{}
	draw    func() (decide.Identity, error) // random names of plans
	seen    *metrics
}

// work brings one scope up to date. It is what the lanes call.
func (w *worker) work(ctx context.Context, s bus.Scope) (err error) {
	ctx, end := telemetry.Span(ctx, "resolve scope")
	defer func() { end(err) }()
	scope := resolve.Scope{Cluster: s.Cluster, Namespace: s.Namespace}
	for range maxAttempts {
		command, randErr := uuid.NewRandom()
		if randErr != nil {
			return errs.Wrap(errs.Internal, randErr, "draw a command id")
		}
		err = w.attempt(ctx, s.Tenant, scope, store.Cause{Event: s.Cause, TraceParent: telemetry.TraceParent(ctx), Command: command})
		if !errs.Is(err, errs.Conflict) && !errs.Is(err, errs.AlreadyExists) {
			return err
		}
		w.log.DebugContext(ctx, "a decision was overtaken; deciding again", "cluster", s.Cluster, "namespace", s.Namespace, "why", err)
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

func (w *worker) attempt(ctx context.Context, tenant string, scope resolve.Scope, cause store.Cause) error {
	l, err := w.store.Load(ctx, tenant, scope)
	if err != nil || l.Removed {
		return err
	}
	if l.Marked.Event != "" {
		cause.Event, cause.TraceParent = l.Marked.Event, l.Marked.TraceParent
	}
	if subs, plans := decide.Generated(l.State); len(plans) > 0 {
		if err := w.store.Settle(ctx, l, subs, plans, cause); err != nil {
			return err
		}
		if l, err = w.store.Load(ctx, tenant, scope); err != nil {
			return err
		}
		// Its own command: ids of events derive from it and the stream.
		if cause.Command, err = uuid.NewRandom(); err != nil {
			return errs.Wrap(errs.Internal, err, "draw a command id")
		}
	}
	c, err := w.conclude(ctx, l)
	w.seen.synced(l)
	if err != nil {
		return err
	}
	if err := w.store.Write(ctx, l, c.decisions, c.reads, cause); err != nil {
		return err
	}
	w.tell(ctx, scope, c.decisions)
	return nil
}

// conclusion is what the state of a scope leads to, before anything of it is written.
type conclusion struct {
	result    resolve.Result
	verdicts  []decide.Verdict
	decisions decide.Decisions
	reads     []resolve.Read
}

// conclude resolves, assesses, renders and decides. It writes nothing: previews come to their plans in the same way.
func (w *worker) conclude(ctx context.Context, l store.Loaded) (conclusion, error) {
	result, err := w.resolve(ctx, l)
	if err != nil {
		return conclusion{}, err
	}
	if l.Gains, err = w.gains(ctx, l.Tenant, l.Upgrades(result)); err != nil {
		return conclusion{}, err
	}
	verdicts, err := decide.Assess(l.State, result)
	if err != nil {
		return conclusion{}, err
	}
	rendered, err := w.renderAll(ctx, l, verdicts)
	if err != nil {
		return conclusion{}, err
	}
	d, err := decide.Decide(l.State, verdicts, rendered)
	return conclusion{result, verdicts, d, result.Reads}, err
}

func (w *worker) resolve(ctx context.Context, l store.Loaded) (resolve.Result, error) {
	done := w.seen.resolving()
	view := w.views.View(ctx, l.Tenant, visible(l.Catalogs))
	result := resolve.Resolve(l.Input(view))
	done(ctx, result, view.Err())
	return result, view.Err()
}

func visible(list []decide.Catalog) []catalogview.Catalog {
	out := make([]catalogview.Catalog, 0, len(list))
	for _, c := range list {
		out = append(out, catalogview.Catalog{Key: c.Key, Subject: c.Subject, Priority: c.Priority, Revision: c.Revision, Health: c.Health()})
	}
	return out
}

// renderAll renders the proposals among the verdicts. One that cannot be rendered becomes a failure that
// says why; trouble with the database is an error.
func (w *worker) renderAll(ctx context.Context, l store.Loaded, verdicts []decide.Verdict) (map[string]decide.Rendered, error) {
	out := map[string]decide.Rendered{}
	for i, v := range verdicts {
		if v.Kind != decide.Proposed {
			continue
		}
		steps, refused, err := w.render(ctx, l, v)
		if err != nil {
			return nil, err
		}
		if refused != nil {
			verdicts[i] = decide.NotInstallable(v, refused.bundle, refused.why)
			continue
		}
		id, err := w.draw()
		if err != nil {
			return nil, err
		}
		out[v.Component.Name] = decide.Rendered{Steps: steps, Identity: id}
	}
	return out, nil
}

// refusal is why a bundle cannot be rendered whatever is tried again.
type refusal struct{ bundle, why string }

func (w *worker) render(ctx context.Context, l store.Loaded, v decide.Verdict) ([]installplan.Step, *refusal, error) {
	var steps []installplan.Step
	for _, b := range v.Component.Bundles {
		if b.Content == "" {
			return nil, &refusal{b.CSV, fmt.Sprintf("bundle %s of catalog %s cannot be installed: its manifests are not in the catalog", b.CSV, b.Catalog)}, nil
		}
		more, err := w.bundleSteps(ctx, l, b, v.Facts.OperatorGroup)
		switch errs.KindOf(err) {
		case "":
			steps = append(steps, more...)
		case errs.Invalid, errs.Unprocessable, errs.TooLarge, errs.NotFound:
			return nil, &refusal{b.CSV, fmt.Sprintf("bundle %s of catalog %s cannot be installed: %v", b.CSV, b.Catalog, err)}, nil
		default:
			return nil, nil, err
		}
	}
	return steps, nil, nil
}

func (w *worker) bundleSteps(ctx context.Context, l store.Loaded, b resolve.Planned, group installplan.GroupFacts) ([]installplan.Step, error) {
	content, err := w.views.Content(ctx, l.Tenant, string(b.Content))
	if err != nil {
		return nil, err
	}
	config, err := w.config(ctx, l, b)
	if err != nil {
		return nil, err
	}
	return stepsOf(content, l.Scope.Namespace, group, config)
}

// config is the configuration of the first of the bundle's subscriptions; dependencies have none.
func (w *worker) config(ctx context.Context, l store.Loaded, b resolve.Planned) (json.RawMessage, error) {
	for _, name := range b.Subscriptions {
		for _, sub := range l.Subscriptions {
			if sub.Name == name {
				return w.store.Config(ctx, l.Tenant, sub.Spec.Config)
			}
		}
	}
	return nil, nil
}

func stepsOf(c bundle.Content, namespace string, group installplan.GroupFacts, config json.RawMessage) ([]installplan.Step, error) {
	csv, err := c.CSV()
	if err != nil {
		return nil, err
	}
	if err := fits(csv, namespace, group); err != nil {
		return nil, err
	}
	objects, err := render.Render(render.Input{Content: c, Namespace: namespace, Config: config})
	if err != nil {
		return nil, err
	}
	steps := make([]installplan.Step, 0, len(objects))
	for _, o := range objects {
		d, err := o.Digest()
		if err != nil {
			return nil, errs.Wrap(errs.Internal, err, "digest of %s", o)
		}
		steps = append(steps, installplan.Step{
			Resolving: o.Resolving, Group: o.GVK.Group, Version: o.GVK.Version, Kind: o.GVK.Kind, Namespace: o.Namespace, Name: o.Name, Digest: d,
		})
	}
	return steps, nil
}

// fits asks the install modes for the targets of the operator group (R-CSV-31). What a selector chooses is known in
// the cluster alone: there the operator fails with the same words until it fits.
func fits(csv bundle.CSV, namespace string, group installplan.GroupFacts) error {
	targets := slices.Compact(slices.Sorted(slices.Values(group.Spec.TargetNamespaces)))
	switch {
	case group.Spec.Global():
		targets = []string{""}
	case len(targets) == 0:
		return nil
	}
	if err := render.CheckInstallModes(csv.Spec.InstallModes, namespace, targets); err != nil {
		return errs.Wrap(errs.KindOf(err), err, "%s cannot serve operator group %s/%s", csv.Name, namespace, group.Name)
	}
	return nil
}

// tell logs what was decided, one line for each decision.
func (w *worker) tell(ctx context.Context, scope resolve.Scope, d decide.Decisions) {
	for _, p := range d.Proposals {
		w.seen.plans.Add(ctx, 1)
		w.log.InfoContext(ctx, "proposed an install plan", "cluster", scope.Cluster, "namespace", scope.Namespace,
			"plan", p.Event.Name, "component", p.Event.Component, "approval", p.Event.Approval, "steps", p.Event.Steps)
	}
	for _, t := range d.Told {
		if t.Explanation == nil {
			continue
		}
		w.seen.failures.Add(ctx, 1)
		w.log.InfoContext(ctx, "a subscription cannot be resolved", "cluster", scope.Cluster, "namespace", scope.Namespace,
			"subscription", t.Subscription.Name, "reason", t.Explanation.Reason, "class", string(t.Explanation.Class))
	}
}

// suffixLetters are those of Kubernetes' generated names: no vowels and no look-alikes.
const suffixLetters = "bcdfghjklmnpqrstvwxz2456789"

// suffixLength is that of OLM's plan names (R-IP-1).
const suffixLength = 5

// drawIdentity draws a plan's id and its name install-<5 characters> (R-IP-1).
func drawIdentity() (decide.Identity, error) {
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
