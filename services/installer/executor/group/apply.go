package group

import (
	"context"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

func (w worker) overlay() overlay.Overlay {
	g := w.Found.Group
	claimed := func(s scope.RenderTarget) string {
		return operatorgroup.Join(w.Groups.Claims.Of(w.Namespace, s.Bundle.CSV))
	}
	return overlay.Overlay{
		About: func(_ scope.RenderTarget, kind, _ string) bool {
			return kind == kube.GVKInstalledOperator.Kind || kind == kube.GVKDeployment.Kind
		},
		Input: func(s scope.RenderTarget) any { return []any{g.Annotations(s.Bundle.CSV), claimed(s)} },
		Apply: func(s scope.RenderTarget, body *unstructured.Unstructured) error {
			annotations := g.Annotations(s.Bundle.CSV)
			if body.GetKind() == kube.GVKDeployment.Kind {
				return AnnotatePods(body, annotations)
			}
			annotations[render.AnnotationProvidedAPIs] = claimed(s)
			body.SetAnnotations(annotations)
			return nil
		},
	}
}

func (w worker) claim(r scope.Plan) {
	w.announce()
	for _, name := range slices.Sorted(maps.Keys(r.CSVs)) {
		w.judgeOne(name, r.CSVs[name])
	}
}

// judgeOne judges the APIs of one operator; none of one that is no member of the group (R-OG-10).
func (w worker) judgeOne(name string, c bundle.CSV) operatorgroup.Verdict {
	if !w.Found.Group.One || render.CheckInstallModes(c.Spec.InstallModes, w.Namespace, w.Targets()) != nil {
		return operatorgroup.Verdict{}
	}
	v, wake := w.Groups.Claims.Settle(w.Namespace, name, operatorgroup.Names(operatorgroup.APIs(c)))
	w.Wake(wake)
	return v
}

// arrange keeps what the operators need in the namespaces that they serve, and takes from those that may not
// provide their APIs what runs (R-OG-35, R-OG-44, R-OG-45).
func (w worker) arrange(ctx context.Context) error {
	g := w.Found.Group
	w.announce()
	var kept []string
	for _, m := range w.Snapshot.Installed.Uninstalling {
		kept = append(kept, m.Name())
	}
	wake, free := w.Groups.Claims.Keep(w.Namespace, func(name string) bool {
		return w.Snapshot.Installed.Lives(name) || w.Snapshot.Executions.Planned(name) || slices.Contains(kept, name)
	})
	w.Wake(wake)
	if w.Stopped() != nil {
		return nil
	}
	err := w.Groups.Free(ctx, w.noting(), free, w.Env.Points.At)
	if err := w.Attempts.Later(ctx, "roles of APIs", err); err != nil {
		return err
	}
	if !g.One {
		return nil
	}
	if !w.Attempts.Waits("", scope.PartLabels) {
		if err := w.Attempts.Alone(ctx, "", scope.PartLabels, w.keepLabels(ctx)); err != nil {
			return err
		}
	}
	if err := w.judge(ctx); err != nil {
		return err
	}
	var want []render.Object
	for _, m := range w.Snapshot.Installed.Operators {
		if m.Status.Phase == csv.PhaseDeleting || m.Object.GetDeletionTimestamp() != nil {
			continue
		}
		own, err := render.Permissions(m.CSV, w.Namespace)
		if err != nil || m.Unverified {
			kept = append(kept, m.Name()) // what it has stays
			if err := w.Attempts.Alone(ctx, m.Name(), scope.PartRights, err); err != nil {
				return err
			}
			continue
		}
		if !g.Limits.Of(m.Name(), metav1.NamespaceAll) {
			want = append(want, CopiedRoles(own, g.Limits.Targets(m.Name(), g.Served),
				operatorgroup.Global(g.Targets))...)
		}
	}
	set := TargetSet(w.Namespace, want, append(kept, slices.Sorted(maps.Keys(w.Snapshot.Installed.Unreadable))...)...)
	set.Hold = g.Limits.Hold
	return w.keep(ctx, set)
}

// announce makes the group known to those of other namespaces. While there are several, what it was stands: what runs
// keeps its APIs until somebody has said which one holds.
func (w worker) announce() {
	if w.Snapshot.Wanted.OperatorGroups > 1 {
		return
	}
	var s *operatorgroup.Standing
	if w.Found.Group.One {
		s = &w.Found.Group.Standing
	}
	w.Wake(w.Groups.Claims.Stand(w.Namespace, s))
}

// judge settles the APIs of all operators of the namespace. One that is replaced has handed its own on.
func (w worker) judge(ctx context.Context) error {
	refused := false
	for _, m := range w.Snapshot.Installed.Operators {
		if m.Status.Phase == csv.PhaseReplacing || m.Status.Phase == csv.PhaseDeleting || m.Unverified {
			continue
		}
		v := w.judgeOne(m.Name(), m.CSV)
		w.Found.Group.Verdicts[m.Name()] = v
		if v.Action != operatorgroup.Refuse {
			continue
		}
		refused = true
		if err := w.Attempts.Alone(ctx, m.Name(), scope.PartHalt, w.Halt(ctx, w.Scope, m)); err != nil {
			return err
		}
	}
	if !refused {
		w.Groups.Claims.Content(w.Namespace)
	}
	return nil
}

// keep keeps a set. What cannot be written now is tried again; what an operator lacks for it, its requirements say.
func (w worker) keep(ctx context.Context, s Set) error {
	return w.Attempts.Later(ctx, "roles", w.Groups.Keeper.Keep(ctx, w.noting(), s, w.Env.Points.At))
}

// roles keeps what users get from the group: its aggregating roles, the roles of the APIs that its operators
// provide once they run (R-OG-40 … R-OG-43), and the labels of the namespaces that it serves.
func (w worker) roles(ctx context.Context) error {
	g := w.Found.Group
	if w.Snapshot.RecordBehind || w.Stopped() != nil || w.Snapshot.Wanted.OperatorGroups > 1 {
		return nil
	}
	wait, wake := w.Groups.Rest.Wait(w.Namespace, w.moving(), w.Env.Now(), w.RolesWait)
	w.Wake(wake)
	if !g.One {
		wait = 0 // what is taken from users is taken now
	}
	if w.Found.PhaseMoved || wait > 0 { // people wait to be told of a phase, and nobody for a role
		w.Attempts.Soon(max(wait, time.Millisecond))
		return w.labelNamespaces(ctx)
	}
	if err := w.Attempts.Later(ctx, "roles of APIs", w.Groups.Sweep(ctx, w.noting(), w.Env.Points.At)); err != nil {
		return err
	}
	if err := w.apiRoles(ctx); err != nil { // first: the cluster then gathers those of a group once
		return err
	}
	var roles []render.Object
	if g.One {
		roles = Roles(g.Group, w.Groups.Claims.Provided(w.Namespace))
	}
	if err := w.keep(ctx, RoleSet(w.Namespace, roles)); err != nil {
		return err
	}
	return w.labelNamespaces(ctx)
}

func (w worker) apiRoles(ctx context.Context) error {
	w.Groups.Roles.RLock()
	defer w.Groups.Roles.RUnlock()
	var want []render.Object
	for _, m := range w.Snapshot.Installed.Operators {
		if m.Status.Phase == csv.PhaseSucceeded && !m.Unverified {
			want = append(want, RolesOf(operatorgroup.APIs(m.CSV),
				w.Groups.Claims.Of(w.Namespace, m.Name()))...)
		}
	}
	if len(want) == 0 {
		return nil
	}
	return w.keep(ctx, APISet(w.Namespace, want))
}

// keepLabels keeps the labels and annotations of the namespace that the group wants. A namespace that is not there gets
// them with its first plan.
func (w worker) keepLabels(ctx context.Context) error {
	namespaces, ok := w.Env.Watcher.Labels(kube.GVKNamespace)
	if !ok {
		return nil // it is reconciled again when they are known
	}
	labels, there := namespaces[w.Namespace]
	have := kube.NamespaceMetadata{
		Labels: labels, Annotations: w.Env.Watcher.Annotations(kube.GVKNamespace, w.Namespace),
	}
	want := kube.WantedOfNamespace(w.Snapshot.Wanted.OperatorGroup.Spec)
	if !there || kube.NamespaceKept(have, want) {
		return nil
	}
	as, err := w.Env.Client.As(w.Snapshot.GroupAccount())
	if err != nil {
		return err
	}
	if err := as.KeepNamespace(ctx, w.Namespace, want); !apierrors.IsNotFound(err) {
		return err
	}
	return nil // it was deleted that moment
}

// labelNamespaces marks what the group serves (R-CSV-44).
func (w worker) labelNamespaces(ctx context.Context) error {
	if _, ok := w.Env.Watcher.Labels(kube.GVKNamespace); !ok {
		return nil // it is reconciled again when they are known
	}
	namespaces, err := w.namespaces(ctx)
	if err != nil {
		return err
	}
	changes := Labels(w.Found.Group.ID, w.Targets(), namespaces, w.Hub.MayHaveGroup)
	for _, ns := range slices.Sorted(maps.Keys(changes)) {
		label := func() error {
			return w.Attempts.Later(ctx, "labels of targets",
				w.Env.Client.LabelNamespace(ctx, ns, changes[ns]))
		}
		if err := w.Env.Points.Between("label", label); err != nil {
			return err
		}
	}
	return nil
}

// moving reports whether operators of the namespace are on their way, and not held up.
func (w worker) moving() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(w.Found.Outcomes)),
		func(r protocol.PlanReport) bool { return r.Phase == protocol.PlanStarted }) ||
		slices.ContainsFunc(w.Snapshot.Installed.Operators, func(m *scope.Operator) bool {
			return m.Status.Phase == csv.PhaseInstallReady || m.Status.Phase == csv.PhaseInstalling
		})
}
