package executor

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/uninstall"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/removal"
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
		kube.GVKDeployment, core("Service"), core("ConfigMap"), core("Secret"),
		of("policy", "PodDisruptionBudget"), of("networking.k8s.io", "NetworkPolicy"),
		of("scheduling.k8s.io", "PriorityClass"),
		of("monitoring.coreos.com", "ServiceMonitor"), of("monitoring.coreos.com", "PrometheusRule"),
		of("autoscaling.k8s.io", "VerticalPodAutoscaler"),
		of("console.openshift.io", "ConsoleCLIDownload"), of("console.openshift.io", "ConsoleLink"),
		of("console.openshift.io", "ConsolePlugin"), of("console.openshift.io", "ConsoleQuickStart"),
		of("console.openshift.io", "ConsoleYAMLSample"),
		of("rbac.authorization.k8s.io", "RoleBinding"), of("rbac.authorization.k8s.io", "ClusterRoleBinding"),
		of("rbac.authorization.k8s.io", "Role"), of("rbac.authorization.k8s.io", "ClusterRole"),
		kube.GVKServiceAccount,
	}
}

// haltedKinds are what calls an operator and what runs of it, in this order: an API that is another group's by now is not
// to be asked of nobody.
func haltedKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{render.GVKMutatingWebhook, render.GVKValidatingWebhook, render.GVKAPIService, kube.GVKDeployment}
}

// remove ends a replaced ClusterServiceVersion (R-CSV-50, R-CSV-52). Its last words go into the execution of
// the plan that replaced it first: a crash at any later point finds the object or the words.
func (w *work) remove(ctx context.Context, m *scope.Operator) error {
	words := m.Report()
	words.Removed, words.RemovedReason = true, removedReplaced
	if err := w.keepWords(ctx, m, words); err != nil {
		return err
	}
	if err := w.Points.At("words kept"); err != nil {
		return err
	}
	if err := w.removeOwned(ctx, m.Name()); err != nil {
		return err
	}
	if err := w.Points.At("orphans removed"); err != nil {
		return err
	}
	if err := w.Client.Delete(ctx, m.Object); err != nil {
		return err
	}
	w.Log.InfoContext(ctx, "replaced ClusterServiceVersion removed", "csv", m.Name(), "namespace", w.Namespace)
	return w.Points.At("removed")
}

func (w *work) keepWords(ctx context.Context, m *scope.Operator, words protocol.CSVReport) error {
	i := slices.IndexFunc(w.Operators, func(o *scope.Operator) bool { return o.CSV.Spec.Replaces == m.Name() })
	if i < 0 {
		return nil
	}
	x := w.Execution(w.Operators[i].Plan)
	if x == nil || slices.ContainsFunc(x.Status.Removed, func(c protocol.CSVReport) bool { return c.UID == words.UID }) {
		return nil
	}
	x.Status.Removed = append(x.Status.Removed, words)
	return w.Client.Save(ctx, x)
}

// removeOwned removes what still names the ClusterServiceVersion as its owner: what a successor has, too, names
// that one by now. It looks in all namespaces, since roles are copied to the targets (R-OG-45).
func (w *work) removeOwned(ctx context.Context, name string) error {
	if err := w.resetConversion(ctx, name); err != nil {
		return err
	}
	_, err := w.hands().Sweep(ctx, uninstall.Question{Kinds: ownedKinds(), Namespace: w.Namespace, CSV: name})
	return err
}

// resetConversion lets the API server convert by itself what an operator converted that is gone without a successor
// (R-CSV-46): else no object of another version than the stored one could be read any more, and none be removed. What one
// that stays converts, too, is handed back to that one.
func (w *work) resetConversion(ctx context.Context, name string) error {
	crds, err := w.Client.List(ctx, kube.GVKCRD, "", certs.LabelConverted+"="+w.Namespace)
	if err != nil {
		return err
	}
	for i := range crds {
		converts := func(m *scope.Operator) bool {
			return m.Name() != name && slices.Contains(certs.Converted(m.CSV), crds[i].GetName())
		}
		heirs := slices.DeleteFunc(slices.Clone(w.Operators), func(m *scope.Operator) bool { return !converts(m) })
		switch {
		case len(heirs) > 0:
			err = w.handConversionBack(ctx, &crds[i], heirs)
		case slices.ContainsFunc(w.Uninstalling, converts), len(w.Unreadable) > 0 && !certs.InstalledBy(&crds[i], w.Namespace+"/"+name):
			continue // they do so as long as they are there
		default:
			w.Log.InfoContext(ctx, "conversion of a CustomResourceDefinition is by name again", "crd", crds[i].GetName(), "csv", name, "namespace", w.Namespace)
			err = w.Points.Between("conversion", func() error { return w.Client.ResetConversion(ctx, &crds[i], certs.LabelConverted) })
		}
		if err != nil {
			return err
		}
		w.facts.ForgetCRD(crds[i].GetName())
	}
	return nil
}

// handConversionBack has a CRD converted by one of the operators that stay, unless it is: one whose pods answer, else the
// first.
func (w *work) handConversionBack(ctx context.Context, crd *unstructured.Unstructured, heirs []*scope.Operator) error {
	deployments, err := w.ReadDeployments(ctx)
	if err != nil {
		return err
	}
	heir := heirs[0]
	for _, m := range heirs {
		if slices.ContainsFunc(w.Called(m.CSV), func(c render.Serving) bool { return c.Service == certs.ConvertedAt(crd, w.Namespace) }) {
			return nil
		}
		if !w.Running(heir, deployments).Healthy && w.Running(m, deployments).Healthy {
			heir = m
		}
	}
	s, objects, _ := w.RenderedObjects(ctx, heir)
	i := slices.IndexFunc(objects, func(o render.Object) bool { return o.GVK == kube.GVKCRD && o.Name == crd.GetName() })
	if i < 0 {
		return errs.New(errs.Unavailable, "CustomResourceDefinition %s cannot be handed back to %s now: see why its bundle is not to be had", crd.GetName(), heir.Name())
	}
	body := &unstructured.Unstructured{Object: objects[i].Clone().Body}
	if err := certs.Trust(body, w.Live.Certificates, nil); err != nil {
		return err
	}
	conversion, _, err := unstructured.NestedMap(body.Object, "spec", "conversion")
	if err != nil {
		return err
	}
	return w.Points.Between("conversion", func() error { return w.Client.Convert(ctx, crd, conversion, w.Manager(s.Bundle.Package)) })
}

// findGone notes ClusterServiceVersions that the record holds as installed and that somebody deleted in the
// cluster, and removes what the cluster's garbage collector does not reach.
func (w *work) findGone(ctx context.Context) error {
	w.Deleted = nil
	for _, i := range w.Wanted.Installed {
		if w.Lives(i.CSV) || w.Planned(i.CSV) || w.HasFinalReport(i) || w.Removing(i.CSV) != nil {
			continue
		}
		// What it owns goes only when the object itself is gone: one that lost Chandler's label is not.
		found, err := w.Client.GetServed(ctx, kube.GVKInstalledOperator, w.Namespace, i.CSV)
		if err != nil {
			return err
		}
		if found != nil {
			w.Log.WarnContext(ctx, "InstalledOperator is not followed: it lacks Chandler's label", "name", i.CSV, "namespace", w.Namespace)
			continue
		}
		if w.Stopped() == nil {
			if err := w.removeOwned(ctx, i.CSV); err != nil {
				if err := w.Alone(ctx, "", scope.PartRemains, err); err != nil {
					return err
				}
				continue
			}
			w.Pace.Succeeded(w.Item("", scope.PartRemains))
		}
		w.Deleted = append(w.Deleted, protocol.CSVReport{Name: i.CSV, Content: i.Content, Plan: i.Plan, Removed: true, RemovedReason: removedDeleted})
	}
	return nil
}

// lost is what becomes of a plan whose operator is not followed any more: one that is gone was removed by somebody, and
// what is left of the plan cannot bring it back; another plan can.
func (w *work) lost(ctx context.Context, name string) (*failure.Failure, error) {
	found, err := w.Client.GetServed(ctx, kube.GVKInstalledOperator, w.Namespace, name)
	switch {
	case err != nil:
		return nil, err
	case found != nil:
		return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonBase, Message: "ClusterServiceVersion " + name + " was changed and cannot be followed any more"}, nil
	}
	return &failure.Failure{Class: failure.Permanent, Reason: failure.ReasonBase, Message: "ClusterServiceVersion " + name + " was removed while its plan ran"}, nil
}

// replacement is what replaces an operator; one that is there and cannot be read may be that.
func (w *work) replacement(m *scope.Operator) *csv.Neighbour {
	if s := w.neighbour(w.Chain.Successor(m.Name())); s != nil || len(w.Unreadable) == 0 {
		return s
	}
	if m.Status.Phase != csv.PhaseReplacing {
		return nil
	}
	return &csv.Neighbour{Name: slices.Sorted(maps.Keys(w.Unreadable))[0]}
}

// restored writes back what a replacement that is gone had taken over by name from an operator, before that one's phase
// goes on: the labels say from then on whose it is. False means that it cannot be done now.
func (w *work) restored(ctx context.Context, m *scope.Operator) (bool, error) {
	if w.Stopped() != nil {
		return false, nil
	}
	return w.repair(ctx, m)
}

// handBack writes back to the operator that one which is being uninstalled was to replace what both have by name: what
// bears its labels after that is none of the removal's.
func (w *work) handBack(ctx context.Context, r protocol.Removal) error {
	i := slices.IndexFunc(w.Uninstalling, func(m *scope.Operator) bool { return m.Name() == r.CSV })
	if i < 0 {
		return nil
	}
	j := slices.IndexFunc(w.Operators, func(m *scope.Operator) bool {
		return m.Name() == w.Uninstalling[i].CSV.Spec.Replaces && m.Status.Phase != csv.PhaseDeleting
	})
	if j < 0 {
		return nil
	}
	back, err := w.restored(ctx, w.Operators[j])
	if err == nil && !back {
		err = errs.New(errs.Unavailable, "%s cannot be put back in the place of %s now: see why its bundle is not to be had", w.Operators[j].Name(), r.CSV)
	}
	return err
}

// abort ends, before the removal of one of its operators begins, a plan that was begun and is stuck: nobody else could
// (DESIGN D6).
func (w *work) abort(ctx context.Context, r protocol.Removal) error {
	x := w.UnderWay(r.CSV)
	if x == nil {
		return nil
	}
	p := protocol.Plan{ID: x.Spec.Plan, Name: x.Spec.Name}
	if i := slices.IndexFunc(w.Wanted.Plans, func(p protocol.Plan) bool { return p.ID == x.Spec.Plan }); i >= 0 {
		p = w.Wanted.Plans[i]
	}
	if err := w.Points.At("before abort"); err != nil {
		return err
	}
	message := "aborted by the removal of " + r.CSV + " (" + r.ID + ")"
	if x.Status.Message != "" {
		message += "; it waited: " + x.Status.Message
	}
	if err := w.fail(ctx, p, x, &failure.Failure{Class: failure.Permanent, Reason: failure.ReasonAborted, Message: message}); err != nil {
		return err
	}
	return w.Points.At("aborted")
}

// another ends a removal of which the operator is gone while another one was installed under its name: what bears that name
// now is not what was looked at.
func (w *work) another(ctx context.Context, r protocol.Removal, x *kube.Execution) error {
	live, err := w.Client.GetServed(ctx, kube.GVKInstalledOperator, w.Namespace, r.CSV)
	if err != nil || !uninstall.Another(live, x.Status.Steps) {
		return err
	}
	s := &x.Status
	s.Phase, s.Class, s.Reason, s.Message, s.Ended = protocol.RemovalRefused, "", removal.RefusedAnother, removal.ChangedMessage(r.CSV), w.Now().UTC()
	w.Loaded = false
	w.Soon(time.Millisecond)
	return w.save(ctx, x, "removal refused")
}
