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
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/group"
	"github.com/chandler-fleet/chandler/services/installer/permissions"
)

// namespacesFor is how long a look waits for the namespaces of the cluster, and the claims, at the start of a session.
const namespacesFor = 10 * time.Second

// lookAtGroup finds what the operator group of the namespace comes to now (R-OG §7.1).
func (w *work) lookAtGroup(ctx context.Context) error {
	w.Live.Group = scope.Group{Verdicts: map[string]operatorgroup.Verdict{}}
	g := &w.Live.Group
	if err := w.groups.Claims.Load(func() ([]operatorgroup.Standing, []groups.Claim, error) { return w.standings(ctx) }); err != nil {
		return err
	}
	if w.Wanted.OperatorGroups != 1 {
		g.Group = operatorgroup.Group{Namespace: w.Namespace}
		return nil
	}
	s, namespaces, err := w.standing(ctx, w.Wanted)
	if err != nil {
		return err
	}
	g.Standing, g.One = s, true
	var missing []string
	g.Served, missing = group.Served(g.Group, g.Targets, namespaces)
	if len(missing) > 0 {
		g.Conditions = append(g.Conditions, group.TargetsMissing(missing))
	}
	if err := w.lookAtAccount(ctx, g); err != nil {
		return err
	}
	return w.limit(ctx, g)
}

// limit finds the targets that operators may not be given, since the accounts that they were installed through have not what
// is to be given there (R-OG-60): a namespace that is added, or gets a label, is no grant. Of an operator of which the log is
// gone the group's account of now is asked.
func (w *work) limit(ctx context.Context, g *scope.Group) error {
	scoped := func(x *kube.Execution) bool { return x.Spec.Account != "" }
	if w.GroupAccount() == (kube.Account{}) && !slices.ContainsFunc(w.Executions, scoped) {
		return nil
	}
	if err := w.Load(ctx); err != nil {
		return err
	}
	var list []groups.Scoped
	for _, m := range w.Operators {
		o := groups.Scoped{Name: m.Name(), UID: string(m.Object.GetUID()), Account: w.GroupAccount()}
		if x := w.Execution(m.Plan); x != nil {
			o.Account, _ = kube.ParseAccount(x.Spec.Account) // it is what the hub granted
		}
		var err error
		if o.Own, err = render.Permissions(m.CSV, w.Namespace); o.Account == (kube.Account{}) || m.Unverified || err != nil {
			continue // an error is met again where its rights are kept
		}
		list = append(list, o)
	}
	targets, lacks := g.Served, func(ctx context.Context, a kube.Account, given []render.Object) (permissions.Result, error) {
		return preflight.Given(ctx, w.Client, a, given)
	}
	if operatorgroup.Global(g.Targets) {
		targets = g.Targets
	}
	var err error
	if g.Limits, err = w.groups.Accounts.Limit(ctx, w.kept(), w.Namespace, list, targets, lacks, w.Now()); err != nil {
		return err
	}
	if len(g.Limits.Denied) > 0 {
		g.Conditions = append(g.Conditions, group.TargetsForbidden(g.Limits.Denied, permissions.Summary(g.Limits.Missing), g.Limits.More))
		w.Soon(g.Limits.Again)
	}
	return nil
}

// lookAtAccount tells of an account that the group names and that is not there (R-OG §7.1).
func (w *work) lookAtAccount(ctx context.Context, g *scope.Group) error {
	name := g.Spec.ServiceAccountName
	if name == "" {
		return nil
	}
	found, err := w.Client.Get(ctx, kube.GVKServiceAccount, w.Namespace, name)
	if err != nil || found != nil {
		return err
	}
	g.Conditions = append(g.Conditions, group.AccountMissing(g.Group))
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
			w.Log.WarnContext(ctx, "operator group is left out of intersections", "group", s.String(), "error", err)
			continue
		}
		out = append(out, s)
	}
	within, cancel := context.WithTimeout(ctx, namespacesFor)
	defer cancel()
	list, err := w.Client.Metadata.Resource(kube.Resource(kube.GVKInstalledOperator)).List(within, metav1.ListOptions{}) // also of those that lost their label
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

// targetsOverlay tells an operator and its pods which namespaces it serves (R-OG §7.3, R-OG-15), and keeps with the
// operator which APIs it has claimed for its group (R-OG-20).
func (w *work) targetsOverlay() overlay.Overlay {
	g := w.Live.Group
	claimed := func(s scope.RenderTarget) string {
		return operatorgroup.Join(w.groups.Claims.Of(w.Namespace, s.Bundle.CSV))
	}
	return overlay.Overlay{
		About: func(_ scope.RenderTarget, kind, _ string) bool {
			return kind == kube.GVKInstalledOperator.Kind || kind == kube.GVKDeployment.Kind
		},
		Input: func(s scope.RenderTarget) any { return []any{g.Annotations(s.Bundle.CSV), claimed(s)} },
		Apply: func(s scope.RenderTarget, body *unstructured.Unstructured) error {
			annotations := g.Annotations(s.Bundle.CSV)
			if body.GetKind() == kube.GVKDeployment.Kind {
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
func (w *work) claim(_ context.Context, r scope.Plan) (*failure.Failure, error) {
	w.stand()
	for _, name := range slices.Sorted(maps.Keys(r.CSVs)) {
		w.settle(name, r.CSVs[name])
	}
	return nil, nil //nolint:nilnil // nothing is in the way
}

// settle judges the APIs of one operator; none of one that is no member of the group (R-OG-10).
func (w *work) settle(name string, c bundle.CSV) operatorgroup.Verdict {
	if !w.Live.Group.One || render.CheckInstallModes(c.Spec.InstallModes, w.Namespace, w.Targets()) != nil {
		return operatorgroup.Verdict{}
	}
	v, wake := w.groups.Claims.Settle(w.Namespace, name, operatorgroup.Names(operatorgroup.APIs(c)))
	w.wakeOnes(wake)
	return v
}

// arrangeGroup keeps what the operators need in the namespaces that they serve, and takes from those that may not
// provide their APIs what runs (R-OG-35, R-OG-44, R-OG-45).
func (w *work) arrangeGroup(ctx context.Context) error {
	g := w.Live.Group
	w.stand()
	var aside []string
	for _, m := range w.Uninstalling {
		aside = append(aside, m.Name())
	}
	wake, free := w.groups.Claims.Keep(w.Namespace, func(csv string) bool { return w.Lives(csv) || w.Planned(csv) || slices.Contains(aside, csv) })
	w.wakeOnes(wake)
	if w.Stopped() != nil {
		return nil
	}
	if err := w.Later(ctx, "roles of APIs", w.groups.Free(ctx, w.kept(), free, w.Points.At)); err != nil {
		return err
	}
	if !g.One {
		return nil
	}
	if err := w.judge(ctx); err != nil {
		return err
	}
	var want []render.Object
	for _, m := range w.Operators {
		if m.Status.Phase == csv.PhaseDeleting || m.Object.GetDeletionTimestamp() != nil {
			continue
		}
		own, err := render.Permissions(m.CSV, w.Namespace)
		if err != nil || m.Unverified {
			aside = append(aside, m.Name()) // what it has stays
			if err := w.Alone(ctx, m.Name(), scope.PartRights, err); err != nil {
				return err
			}
			continue
		}
		if !g.Limits.Of(m.Name(), metav1.NamespaceAll) {
			want = append(want, group.CopiedRoles(own, g.Limits.Told(m.Name(), g.Served), operatorgroup.Global(g.Targets))...)
		}
	}
	set := groups.Targets(w.Namespace, want, append(aside, slices.Sorted(maps.Keys(w.Unreadable))...)...)
	set.Hold = g.Limits.Hold
	return w.keep(ctx, set)
}

// stand makes the group known to those of other namespaces. While there are several, what it was stands: what runs keeps
// its APIs until somebody has said which one holds.
func (w *work) stand() {
	if w.Wanted.OperatorGroups > 1 {
		return
	}
	var s *operatorgroup.Standing
	if w.Live.Group.One {
		s = &w.Live.Group.Standing
	}
	w.wakeOnes(w.groups.Claims.Stand(w.Namespace, s))
}

// judge settles the APIs of all operators of the namespace. One that is replaced has handed its own on.
func (w *work) judge(ctx context.Context) error {
	refused := false
	for _, m := range w.Operators {
		if m.Status.Phase == csv.PhaseReplacing || m.Status.Phase == csv.PhaseDeleting || m.Unverified {
			continue
		}
		v := w.settle(m.Name(), m.CSV)
		w.Live.Group.Verdicts[m.Name()] = v
		if v.Action != operatorgroup.Refuse {
			continue
		}
		refused = true
		if err := w.Alone(ctx, m.Name(), scope.PartHalt, w.halt(ctx, m)); err != nil {
			return err
		}
	}
	if !refused {
		w.groups.Claims.Content(w.Namespace)
	}
	return nil
}

// halt removes the Deployments of such an operator (R-OG §7.7), and before them what calls it.
func (w *work) halt(ctx context.Context, m *scope.Operator) error {
	if !scope.Halted(m) {
		return nil
	}
	if err := w.resetConversion(ctx, m.Name()); err != nil {
		return err
	}
	_, err := w.hands().Sweep(ctx, uninstall.Question{Kinds: haltedKinds(), Namespace: w.Namespace, CSV: m.Name()})
	return err
}

// keep keeps a set. What cannot be written now is tried again; what an operator lacks for it, its requirements say.
func (w *work) keep(ctx context.Context, s groups.Set) error {
	return w.Later(ctx, "roles", w.groups.Keeper.Keep(ctx, w.kept(), s, w.Points.At))
}

// kept is the cluster with a note of everything that is left in it: that wakes nobody but the operators that may have
// waited for it.
func (s *session) kept() groups.Cluster {
	return groups.Noting{Cluster: s.client, Left: func(o *unstructured.Unstructured) {
		s.left(o)
		s.facts.ForgetNamespace(o.GetLabels()[render.LabelOwnerNamespace])
	}}
}

// groupRoles keeps what users get from the group: its aggregating roles, the roles of the APIs that its operators
// provide once they run (R-OG-40 … R-OG-43), and the labels of the namespaces that it serves.
func (w *work) groupRoles(ctx context.Context) error {
	g := w.Live.Group
	if w.RecordBehind || w.Stopped() != nil || w.Wanted.OperatorGroups > 1 {
		return nil
	}
	wait, wake := w.groups.Rest.Wait(w.Namespace, w.Moving(), w.Now(), 2*w.Pause)
	w.wakeOnes(wake)
	if g.Moved || wait > 0 { // people wait to be told of a phase, and nobody for a role
		w.Soon(max(wait, time.Millisecond))
		return w.labelNamespaces(ctx)
	}
	if err := w.Later(ctx, "roles of APIs", w.groups.Sweep(ctx, w.kept(), w.Points.At)); err != nil {
		return err
	}
	if err := w.apiRoles(ctx); err != nil { // first: the cluster then gathers those of a group once
		return err
	}
	var roles []render.Object
	if g.One {
		roles = group.Roles(g.Group, w.groups.Claims.Provided(w.Namespace))
	}
	if err := w.keep(ctx, groups.Roles(w.Namespace, roles)); err != nil {
		return err
	}
	return w.labelNamespaces(ctx)
}

func (w *work) apiRoles(ctx context.Context) error {
	w.groups.Roles.RLock()
	defer w.groups.Roles.RUnlock()
	var want []render.Object
	for _, m := range w.Operators {
		if m.Status.Phase == csv.PhaseSucceeded && !m.Unverified {
			want = append(want, group.RolesOf(operatorgroup.APIs(m.CSV), w.groups.Claims.Of(w.Namespace, m.Name()))...)
		}
	}
	if len(want) == 0 {
		return nil
	}
	return w.keep(ctx, groups.APIs(w.Namespace, want))
}

// labelNamespaces marks what the group serves (R-CSV-44).
func (w *work) labelNamespaces(ctx context.Context) error {
	if _, ok := w.Watcher.Labels(kube.GVKNamespace); !ok {
		return nil // a look follows when they are known
	}
	namespaces, err := w.namespaces(ctx)
	if err != nil {
		return err
	}
	changes := groups.Labels(w.Live.Group.ID, w.Targets(), namespaces, w.inbox.MayHaveGroup)
	for _, ns := range slices.Sorted(maps.Keys(changes)) {
		label := func() error { return w.Later(ctx, "labels of targets", w.Client.LabelNamespace(ctx, ns, changes[ns])) }
		if err := w.Points.Between("label", label); err != nil {
			return err
		}
	}
	return nil
}
