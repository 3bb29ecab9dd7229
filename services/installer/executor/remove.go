package executor

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/cluster"
)

// Why a ClusterServiceVersion is gone (csv.removed.v1).
const (
	removedReplaced = "Replaced"
	removedDeleted  = "Deleted"
)

// ownedKinds are the kinds of which a ClusterServiceVersion may own objects (R-CSV-20, R-CAT-53), in the order
// in which they are removed: what runs first, what it may do last.
func ownedKinds() []schema.GroupVersionKind {
	core := func(kind string) schema.GroupVersionKind { return schema.GroupVersionKind{Version: "v1", Kind: kind} }
	of := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	}
	return []schema.GroupVersionKind{
		render.GVKMutatingWebhook, render.GVKValidatingWebhook, render.GVKAPIService,
		gvkDeployment, core("Service"), core("ConfigMap"), core("Secret"),
		of("policy", "PodDisruptionBudget"), of("networking.k8s.io", "NetworkPolicy"),
		of("scheduling.k8s.io", "PriorityClass"),
		of("monitoring.coreos.com", "ServiceMonitor"), of("monitoring.coreos.com", "PrometheusRule"),
		of("autoscaling.k8s.io", "VerticalPodAutoscaler"),
		of("console.openshift.io", "ConsoleCLIDownload"), of("console.openshift.io", "ConsoleLink"),
		of("console.openshift.io", "ConsolePlugin"), of("console.openshift.io", "ConsoleQuickStart"),
		of("console.openshift.io", "ConsoleYAMLSample"),
		of("rbac.authorization.k8s.io", "RoleBinding"), of("rbac.authorization.k8s.io", "ClusterRoleBinding"),
		of("rbac.authorization.k8s.io", "Role"), of("rbac.authorization.k8s.io", "ClusterRole"),
		gvkAccount,
	}
}

// remove ends a replaced ClusterServiceVersion (R-CSV-50, R-CSV-52). Its last words go into the execution of
// the plan that replaced it first: a crash at any later point finds the object or the words.
func (w *work) remove(ctx context.Context, m *member) error {
	words := m.report()
	words.Removed, words.RemovedReason = true, removedReplaced
	if err := w.keepWords(ctx, m, words); err != nil {
		return err
	}
	if err := w.at("words kept"); err != nil {
		return err
	}
	if err := w.removeOwned(ctx, m.name()); err != nil {
		return err
	}
	if err := w.at("orphans removed"); err != nil {
		return err
	}
	if err := w.client.Delete(ctx, m.object); err != nil {
		return err
	}
	w.cfg.Log.InfoContext(ctx, "replaced ClusterServiceVersion removed", "csv", m.name(), "namespace", w.ns)
	return w.at("removed")
}

func (w *work) keepWords(ctx context.Context, m *member, words protocol.CSVReport) error {
	i := slices.IndexFunc(w.members, func(o *member) bool { return o.csv.Spec.Replaces == m.name() })
	if i < 0 {
		return nil
	}
	x := w.execution(w.members[i].plan)
	if x == nil || slices.ContainsFunc(x.Status.Removed, func(c protocol.CSVReport) bool { return c.UID == words.UID }) {
		return nil
	}
	x.Status.Removed = append(x.Status.Removed, words)
	return w.client.Save(ctx, x)
}

// removeOwned removes what still names the ClusterServiceVersion as its owner: what a successor has, too, names
// that one by now. It looks in all namespaces, since roles are copied to the targets (R-OG-45).
func (w *work) removeOwned(ctx context.Context, name string) error {
	if err := w.resetConversion(ctx, name); err != nil {
		return err
	}
	selector := selectManaged + "," + render.LabelOwner + "=" + render.OwnerLabelValue(name) + "," + render.LabelOwnerNamespace + "=" + w.ns
	for _, gvk := range ownedKinds() {
		list, err := w.client.List(ctx, gvk, "", selector)
		if err != nil {
			return err
		}
		for i := range list {
			if err := w.client.Delete(ctx, &list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// findGone notes ClusterServiceVersions that the record holds as installed and that somebody deleted in the
// cluster, and removes what the cluster's garbage collector does not reach.
func (w *work) findGone(ctx context.Context) error {
	w.gone = nil
	for _, i := range w.plans.Installed {
		if w.lives(i.CSV) || w.planned(i.CSV) || w.hasWords(i) || w.removing(i.CSV) != nil {
			continue
		}
		// What it owns goes only when the object itself is gone: one that lost Chandler's label is not.
		found, err := w.client.GetServed(ctx, cluster.GVKInstalledOperator, w.ns, i.CSV)
		if err != nil {
			return err
		}
		if found != nil {
			w.cfg.Log.WarnContext(ctx, "InstalledOperator is not followed: it lacks Chandler's label", "name", i.CSV, "namespace", w.ns)
			continue
		}
		if w.stopped() == nil {
			if err := w.removeOwned(ctx, i.CSV); err != nil {
				return err
			}
		}
		w.gone = append(w.gone, protocol.CSVReport{Name: i.CSV, Content: i.Content, Plan: i.Plan, Removed: true, RemovedReason: removedDeleted})
	}
	return nil
}

// lives reports a ClusterServiceVersion that is there, whether it can be read or not.
func (w *work) lives(name string) bool {
	if _, ok := w.unread[name]; ok {
		return true
	}
	return slices.ContainsFunc(w.members, func(m *member) bool { return m.name() == name })
}

// planned reports a ClusterServiceVersion whose plan is under way: it may be about to be made.
func (w *work) planned(name string) bool {
	return w.wanted[name] != nil
}

// hasWords reports one that was replaced, and not deleted by somebody.
func (w *work) hasWords(i protocol.Installed) bool {
	return slices.ContainsFunc(w.executions, func(x *cluster.Execution) bool {
		return slices.ContainsFunc(x.Status.Removed, func(c protocol.CSVReport) bool { return c.Name == i.CSV && c.Plan == i.Plan })
	})
}
