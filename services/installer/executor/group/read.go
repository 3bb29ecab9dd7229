package group

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/preflight"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/permissions"
)

// namespacesFor is how long a reconcile waits for the namespaces of the cluster, and the claims, at the start of a
// session.
const namespacesFor = 10 * time.Second

// read finds what the operator group of the namespace comes to now (R-OG §7.1).
func (w worker) read(ctx context.Context) error {
	w.Found.Group = scope.Group{Verdicts: map[string]operatorgroup.Verdict{}}
	g := &w.Found.Group
	if err := w.Groups.Claims.Load(func() ([]operatorgroup.Standing, []Claim, error) {
		return w.standings(
			ctx)
	}); err != nil {
		return err
	}
	if w.Snapshot.Wanted.OperatorGroups != 1 {
		g.Group = operatorgroup.Group{Namespace: w.Namespace}
		return nil
	}
	s, namespaces, err := w.standing(ctx, w.Snapshot.Wanted)
	if err != nil {
		return err
	}
	g.Standing, g.One = s, true
	var missing []string
	g.Served, missing = Served(g.Group, g.Targets, namespaces)
	if len(missing) > 0 {
		g.Conditions = append(g.Conditions, TargetsMissing(missing))
	}
	if err := w.checkAccount(ctx, g); err != nil {
		return err
	}
	return w.limit(ctx, g)
}

// limit finds the targets that operators may not be given, since the accounts that they were installed through have not
// what is to be given there (R-OG-60): a namespace that is added, or gets a label, is no grant. Of an operator of which
// the log is gone the group's account of now is asked.
func (w worker) limit(ctx context.Context, g *scope.Group) error {
	scoped := func(x *kube.Execution) bool { return x.Spec.Account != "" }
	if w.Snapshot.GroupAccount() == (kube.Account{}) && !slices.ContainsFunc(w.Snapshot.Executions, scoped) {
		return nil
	}
	if err := w.Load(ctx); err != nil {
		return err
	}
	var list []Scoped
	for _, m := range w.Snapshot.Installed.Operators {
		o := Scoped{Name: m.Name(), UID: string(m.Object.GetUID()), Account: w.Snapshot.GroupAccount()}
		if x := w.Snapshot.Executions.Of(m.Plan); x != nil {
			o.Account, _ = kube.ParseAccount(x.Spec.Account) // it is what the hub granted
		}
		var err error
		if o.Own, err = render.Permissions(m.CSV, w.Namespace); o.Account == (kube.Account{}) || m.Unverified ||
			err != nil {
			continue // an error is met again where its rights are kept
		}
		list = append(list, o)
	}
	targets, lacks := g.Served, func(ctx context.Context, a kube.Account, given []render.Object) (
		permissions.Result, error,
	) {
		return preflight.Given(ctx, w.Env.Client, a, given)
	}
	if operatorgroup.Global(g.Targets) {
		targets = g.Targets
	}
	var err error
	if g.Limits, err = w.Groups.Accounts.Limit(ctx, w.noting(), w.Namespace, list, targets, lacks,
		w.Env.Now()); err != nil {
		return err
	}
	if len(g.Limits.Denied) > 0 {
		g.Conditions = append(g.Conditions, TargetsForbidden(
			g.Limits.Denied, permissions.Summary(g.Limits.Missing), g.Limits.More))
		w.Attempts.Soon(g.Limits.Again)
	}
	return nil
}

// checkAccount tells of an account that the group names and that is not there (R-OG §7.1).
func (w worker) checkAccount(ctx context.Context, g *scope.Group) error {
	name := g.Spec.ServiceAccountName
	if name == "" {
		return nil
	}
	found, err := w.Env.Client.Get(ctx, kube.GVKServiceAccount, w.Namespace, name)
	if err != nil || found != nil {
		return err
	}
	g.Conditions = append(g.Conditions, AccountMissing(g.Group))
	return nil
}

func groupOf(p protocol.ScopePlans) operatorgroup.Group {
	return operatorgroup.Group{
		ID: p.OperatorGroup.ID, Namespace: p.Scope.Namespace, Name: p.OperatorGroup.Name,
		Spec: p.OperatorGroup.Spec,
	}
}

// standing is the group of a message with its targets, and the namespaces that it was asked of.
func (w worker) standing(ctx context.Context, p protocol.ScopePlans) (
	operatorgroup.Standing, []Namespace, error,
) {
	g := groupOf(p)
	out := operatorgroup.Standing{Group: g, Provided: slices.Sorted(slices.Values(g.Spec.ProvidedAPIs))}
	var namespaces []Namespace
	var err error
	if !g.Spec.Global() {
		if namespaces, err = w.namespaces(ctx); err != nil {
			return out, nil, err
		}
	}
	out.Targets, err = Targets(g.Spec, namespaces)
	return out, namespaces, err
}

// standings are the groups of all namespaces, and the APIs that their operators have claimed before.
func (w worker) standings(ctx context.Context) (out []operatorgroup.Standing, claims []Claim, err error) {
	for _, p := range w.Hub.All() {
		if p.OperatorGroups != 1 {
			continue
		}
		s, _, err := w.standing(ctx, p)
		if errs.Is(err, errs.Unavailable) {
			return nil, nil, err // another group could take its APIs
		}
		if err != nil {
			w.Env.Log.WarnContext(ctx, "operator group is left out of intersections", "group", s.String(), "error", err)
			continue
		}
		out = append(out, s)
	}
	within, cancel := context.WithTimeout(ctx, namespacesFor)
	defer cancel()
	// also of those that lost their label
	list, err := w.Env.Client.Metadata.Resource(kube.Resource(kube.GVKInstalledOperator)).List(within,
		metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	for _, o := range list.Items {
		claims = append(claims, Claim{
			Namespace: o.Namespace, CSV: o.Name,
			APIs: operatorgroup.Split(o.Annotations[render.AnnotationProvidedAPIs]),
		})
		if p, _, known := w.Hub.Get(o.Namespace); known && p.OperatorGroups > 1 {
			out = append(out, StoodBefore(o.Namespace, o.Annotations))
		}
	}
	return out, claims, nil
}

// namespaces are those of the cluster by name. At the start of a session they are waited for.
func (w worker) namespaces(ctx context.Context) ([]Namespace, error) {
	within, cancel := context.WithTimeout(ctx, namespacesFor)
	defer cancel()
	w.Env.Watcher.Await(within, kube.GVKNamespace)
	if labels, ok := w.Env.Watcher.Labels(kube.GVKNamespace); ok {
		return Namespaces(labels), nil
	}
	return nil, errs.New(errs.Unavailable,
		"the namespaces of the cluster could not be listed yet: see that Chandler may list and watch them")
}
