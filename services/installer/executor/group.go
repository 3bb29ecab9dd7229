package executor

import (
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/groups"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/preflight"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/uninstall"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/group"
	"github.com/chandler-fleet/chandler/services/installer/permissions"
)

// namespacesFor is how long a look waits for the namespaces of the cluster, and the claims, at the start of a session.
const namespacesFor = 10 * time.Second

// liveGroup is the operator group of a namespace as it is in the cluster now.
type liveGroup struct {
	operatorgroup.Standing
	one        bool     // there is exactly one group; else nothing is known of it
	served     []string // targets beside its own namespace that exist
	limits     groups.Limits
	conditions []protocol.GroupCondition
	// verdicts are what becomes of the APIs of the operators, by ClusterServiceVersion.
	verdicts map[string]operatorgroup.Verdict
	moved    bool // a phase changed in this look
}

// lookAtGroup finds what the operator group of the namespace comes to now (R-OG §7.1).
func (w *work) lookAtGroup(ctx context.Context) error {
	w.live.group = liveGroup{verdicts: map[string]operatorgroup.Verdict{}}
	g := &w.live.group
	if err := w.groups.Claims.Load(func() ([]operatorgroup.Standing, []groups.Claim, error) { return w.standings(ctx) }); err != nil {
		return err
	}
	if w.plans.OperatorGroups != 1 {
		g.Group = operatorgroup.Group{Namespace: w.ns}
		return nil
	}
	s, namespaces, err := w.standing(ctx, w.plans)
	if err != nil {
		return err
	}
	g.Standing, g.one = s, true
	var missing []string
	g.served, missing = group.Served(g.Group, g.Targets, namespaces)
	if len(missing) > 0 {
		g.conditions = append(g.conditions, group.TargetsMissing(missing))
	}
	if err := w.lookAtAccount(ctx, g); err != nil {
		return err
	}
	return w.limit(ctx, g)
}

// limit finds the targets that operators may not be given, since the accounts that they were installed through have not what
// is to be given there (R-OG-60): a namespace that is added, or gets a label, is no grant. Of an operator of which the log is
// gone the group's account of now is asked.
func (w *work) limit(ctx context.Context, g *liveGroup) error {
	scoped := func(x *kube.Execution) bool { return x.Spec.Account != "" }
	if w.groupAccount() == (kube.Account{}) && !slices.ContainsFunc(w.executions, scoped) {
		return nil
	}
	if err := w.load(ctx); err != nil {
		return err
	}
	var list []groups.Scoped
	for _, m := range w.members {
		o := groups.Scoped{Name: m.name(), UID: string(m.object.GetUID()), Account: w.groupAccount()}
		if x := w.execution(m.plan); x != nil {
			o.Account, _ = kube.ParseAccount(x.Spec.Account) // it is what the hub granted
		}
		var err error
		if o.Own, err = render.Permissions(m.csv, w.ns); o.Account == (kube.Account{}) || m.doubted || err != nil {
			continue // an error is met again where its rights are kept
		}
		list = append(list, o)
	}
	targets, lacks := g.served, func(ctx context.Context, a kube.Account, given []render.Object) (permissions.Result, error) {
		return preflight.Given(ctx, w.client, a, given)
	}
	if operatorgroup.Global(g.Targets) {
		targets = g.Targets
	}
	var err error
	if g.limits, err = w.groups.Accounts.Limit(ctx, w.kept(), w.ns, list, targets, lacks, w.cfg.Now()); err != nil {
		return err
	}
	if len(g.limits.Denied) > 0 {
		g.conditions = append(g.conditions, group.TargetsForbidden(g.limits.Denied, permissions.Summary(g.limits.Missing), g.limits.More))
		w.soon(g.limits.Again)
	}
	return nil
}

// lookAtAccount tells of an account that the group names and that is not there (R-OG §7.1).
func (w *work) lookAtAccount(ctx context.Context, g *liveGroup) error {
	name := g.Spec.ServiceAccountName
	if name == "" {
		return nil
	}
	found, err := w.client.Get(ctx, gvkAccount, w.ns, name)
	if err != nil || found != nil {
		return err
	}
	g.conditions = append(g.conditions, group.AccountMissing(g.Group))
	return nil
}

func groupOf(p protocol.ScopePlans) operatorgroup.Group {
	return operatorgroup.Group{ID: p.OperatorGroup.ID, Namespace: p.Scope.Namespace, Name: p.OperatorGroup.Name, Spec: p.OperatorGroup.Spec}
}

// standing is the group of a message with its targets, and the namespaces that it was asked of.
func (s *session) standing(ctx context.Context, p protocol.ScopePlans) (operatorgroup.Standing, []group.Namespace, error) {
	g := groupOf(p)
	out := operatorgroup.Standing{Group: g, Provided: slices.Sorted(slices.Values(g.Spec.ProvidedAPIs))}
	var namespaces []group.Namespace
	var err error
	if !g.Spec.Global() {
		if namespaces, err = s.namespaces(ctx); err != nil {
			return out, nil, err
		}
	}
	out.Targets, err = group.Targets(g.Spec, namespaces)
	return out, namespaces, err
}

// standings are the groups of all namespaces, and the APIs that their operators have claimed before.
func (w *work) standings(ctx context.Context) (out []operatorgroup.Standing, claims []groups.Claim, err error) {
	for _, p := range w.inbox.All() {
		if p.OperatorGroups != 1 {
			continue
		}
		s, _, err := w.standing(ctx, p)
		if errs.Is(err, errs.Unavailable) {
			return nil, nil, err // another group could take its APIs
		}
		if err != nil {
			w.cfg.Log.WarnContext(ctx, "operator group is left out of intersections", "group", s.String(), "error", err)
			continue
		}
		out = append(out, s)
	}
	within, cancel := context.WithTimeout(ctx, namespacesFor)
	defer cancel()
	list, err := w.client.Metadata.Resource(kube.Resource(kube.GVKInstalledOperator)).List(within, metav1.ListOptions{}) // also of those that lost their label
	if err != nil {
		return nil, nil, err
	}
	for _, o := range list.Items {
		claims = append(claims, groups.Claim{Namespace: o.Namespace, CSV: o.Name, APIs: operatorgroup.Split(o.Annotations[render.AnnotationProvidedAPIs])})
		if p, _, known := w.inbox.Get(o.Namespace); known && p.OperatorGroups > 1 {
			out = append(out, groups.StoodBefore(o.Namespace, o.Annotations))
		}
	}
	return out, claims, nil
}

// targets are the namespaces that the operators of the namespace serve.
func (w *work) targets() []string { return w.live.group.Targets }

// annotations tell an operator of its group.
func (g liveGroup) annotations(operator string) map[string]string {
	return groups.Annotations(g.Group, g.limits.Told(operator, g.Targets))
}

// targetsOverlay tells an operator and its pods which namespaces it serves (R-OG §7.3, R-OG-15), and keeps with the
// operator which APIs it has claimed for its group (R-OG-20).
func (w *work) targetsOverlay() overlay {
	g := w.live.group
	claimed := func(s subject) string { return operatorgroup.Join(w.groups.Claims.Of(w.ns, s.bundle.CSV)) }
	return overlay{
		about: func(_ subject, kind, _ string) bool {
			return kind == kube.GVKInstalledOperator.Kind || kind == gvkDeployment.Kind
		},
		input: func(s subject) any { return []any{g.annotations(s.bundle.CSV), claimed(s)} },
		lay: func(s subject, body *unstructured.Unstructured) error {
			annotations := g.annotations(s.bundle.CSV)
			if body.GetKind() == gvkDeployment.Kind {
				return groups.TellPods(body, annotations)
			}
			annotations[render.AnnotationProvidedAPIs] = claimed(s)
			body.SetAnnotations(annotations)
			return nil
		},
	}
}

// claim claims the APIs of a plan's operators before the first step, so that what is written says so from the start.
// One that is refused is installed as far as it goes, and its phase says why (R-OG-36).
func (w *work) claim(_ context.Context, r ready) (*failure.Failure, error) {
	w.stand()
	for _, name := range slices.Sorted(maps.Keys(r.csvs)) {
		w.settle(name, r.csvs[name])
	}
	return nil, nil //nolint:nilnil // nothing is in the way
}

// settle judges the APIs of one operator; none of one that is no member of the group (R-OG-10).
func (w *work) settle(name string, c bundle.CSV) operatorgroup.Verdict {
	if !w.live.group.one || render.CheckInstallModes(c.Spec.InstallModes, w.ns, w.targets()) != nil {
		return operatorgroup.Verdict{}
	}
	v, wake := w.groups.Claims.Settle(w.ns, name, operatorgroup.Names(operatorgroup.APIs(c)))
	w.wakeOnes(wake)
	return v
}

// arrangeGroup keeps what the operators need in the namespaces that they serve, and takes from those that may not
// provide their APIs what runs (R-OG-35, R-OG-44, R-OG-45).
func (w *work) arrangeGroup(ctx context.Context) error {
	g := w.live.group
	w.stand()
	var aside []string
	for _, m := range w.aside {
		aside = append(aside, m.name())
	}
	wake, free := w.groups.Claims.Keep(w.ns, func(csv string) bool { return w.lives(csv) || w.planned(csv) || slices.Contains(aside, csv) })
	w.wakeOnes(wake)
	if w.stopped() != nil {
		return nil
	}
	if err := w.later(ctx, "roles of APIs", w.groups.Free(ctx, w.kept(), free, w.points.At)); err != nil {
		return err
	}
	if !g.one {
		return nil
	}
	if err := w.judge(ctx); err != nil {
		return err
	}
	var want []render.Object
	for _, m := range w.members {
		if m.status.Phase == csv.PhaseDeleting || m.object.GetDeletionTimestamp() != nil {
			continue
		}
		own, err := render.Permissions(m.csv, w.ns)
		if err != nil || m.doubted {
			aside = append(aside, m.name()) // what it has stays
			if err := w.alone(ctx, m.name(), partRights, err); err != nil {
				return err
			}
			continue
		}
		if !g.limits.Of(m.name(), metav1.NamespaceAll) {
			want = append(want, group.CopiedRoles(own, g.limits.Told(m.name(), g.served), operatorgroup.Global(g.Targets))...)
		}
	}
	set := groups.Targets(w.ns, want, append(aside, slices.Sorted(maps.Keys(w.unread))...)...)
	set.Hold = g.limits.Hold
	return w.keep(ctx, set)
}

// stand makes the group known to those of other namespaces. While there are several, what it was stands: what runs keeps
// its APIs until somebody has said which one holds.
func (w *work) stand() {
	if w.plans.OperatorGroups > 1 {
		return
	}
	var s *operatorgroup.Standing
	if w.live.group.one {
		s = &w.live.group.Standing
	}
	w.wakeOnes(w.groups.Claims.Stand(w.ns, s))
}

// judge settles the APIs of all operators of the namespace. One that is replaced has handed its own on.
func (w *work) judge(ctx context.Context) error {
	refused := false
	for _, m := range w.members {
		if m.status.Phase == csv.PhaseReplacing || m.status.Phase == csv.PhaseDeleting || m.doubted {
			continue
		}
		v := w.settle(m.name(), m.csv)
		w.live.group.verdicts[m.name()] = v
		if v.Action != operatorgroup.Refuse {
			continue
		}
		refused = true
		if err := w.alone(ctx, m.name(), partHalt, w.halt(ctx, m)); err != nil {
			return err
		}
	}
	if !refused {
		w.groups.Claims.Content(w.ns)
	}
	return nil
}

// halted reports an operator whose phase says that its APIs are another group's.
func halted(m *member) bool {
	return m.status.Phase == csv.PhaseFailed && (m.status.Reason == operatorgroup.ReasonOwnerConflict || m.status.Reason == operatorgroup.ReasonStatic)
}

// halt removes the Deployments of such an operator (R-OG §7.7), and before them what calls it.
func (w *work) halt(ctx context.Context, m *member) error {
	if !halted(m) {
		return nil
	}
	if err := w.resetConversion(ctx, m.name()); err != nil {
		return err
	}
	_, err := w.hands().Sweep(ctx, uninstall.Question{Kinds: haltedKinds(), Namespace: w.ns, CSV: m.name()})
	return err
}

// keep keeps a set. What cannot be written now is tried again; what an operator lacks for it, its requirements say.
func (w *work) keep(ctx context.Context, s groups.Set) error {
	return w.later(ctx, "roles", w.groups.Keeper.Keep(ctx, w.kept(), s, w.points.At))
}

// kept is the cluster with a note of everything that is left in it: that wakes nobody but the operators that may have
// waited for it.
func (s *session) kept() groups.Cluster {
	return groups.Noting{Cluster: s.client, Left: func(o *unstructured.Unstructured) {
		s.clean(o)
		s.facts.ForgetNamespace(o.GetLabels()[render.LabelOwnerNamespace])
	}}
}

// groupRoles keeps what users get from the group: its aggregating roles, the roles of the APIs that its operators
// provide once they run (R-OG-40 … R-OG-43), and the labels of the namespaces that it serves.
func (w *work) groupRoles(ctx context.Context) error {
	g := w.live.group
	if w.refused || w.stopped() != nil || w.plans.OperatorGroups > 1 {
		return nil
	}
	wait, wake := w.groups.Rest.Wait(w.ns, w.moving(), w.cfg.Now(), 2*w.cfg.Timing.Pause)
	w.wakeOnes(wake)
	if g.moved || wait > 0 { // people wait to be told of a phase, and nobody for a role
		w.soon(max(wait, time.Millisecond))
		return w.labelNamespaces(ctx)
	}
	if err := w.later(ctx, "roles of APIs", w.groups.Sweep(ctx, w.kept(), w.points.At)); err != nil {
		return err
	}
	if err := w.apiRoles(ctx); err != nil { // first: the cluster then gathers those of a group once
		return err
	}
	var roles []render.Object
	if g.one {
		roles = group.Roles(g.Group, w.groups.Claims.Provided(w.ns))
	}
	if err := w.keep(ctx, groups.Roles(w.ns, roles)); err != nil {
		return err
	}
	return w.labelNamespaces(ctx)
}

func (w *work) apiRoles(ctx context.Context) error {
	w.groups.Roles.RLock()
	defer w.groups.Roles.RUnlock()
	var want []render.Object
	for _, m := range w.members {
		if m.status.Phase == csv.PhaseSucceeded && !m.doubted {
			want = append(want, group.RolesOf(operatorgroup.APIs(m.csv), w.groups.Claims.Of(w.ns, m.name()))...)
		}
	}
	if len(want) == 0 {
		return nil
	}
	return w.keep(ctx, groups.APIs(w.ns, want))
}

// labelNamespaces marks what the group serves (R-CSV-44).
func (w *work) labelNamespaces(ctx context.Context) error {
	if _, ok := w.watcher.Labels(gvkNamespace); !ok {
		return nil // a look follows when they are known
	}
	namespaces, err := w.namespaces(ctx)
	if err != nil {
		return err
	}
	changes := groups.Labels(w.live.group.ID, w.targets(), namespaces, w.inbox.MayHaveGroup)
	for _, ns := range slices.Sorted(maps.Keys(changes)) {
		label := func() error { return w.later(ctx, "labels of targets", w.client.LabelNamespace(ctx, ns, changes[ns])) }
		if err := w.points.Between("label", label); err != nil {
			return err
		}
	}
	return nil
}
