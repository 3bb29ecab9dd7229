package executor

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/provenance"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/uninstall"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
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

// haltedKinds are what calls an operator and what runs of it, in this order: an API that is another group's by now is not
// to be asked of nobody.
func haltedKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{render.GVKMutatingWebhook, render.GVKValidatingWebhook, render.GVKAPIService, gvkDeployment}
}

// remove ends a replaced ClusterServiceVersion (R-CSV-50, R-CSV-52). Its last words go into the execution of
// the plan that replaced it first: a crash at any later point finds the object or the words.
func (w *work) remove(ctx context.Context, m *member) error {
	words := m.report()
	words.Removed, words.RemovedReason = true, removedReplaced
	if err := w.keepWords(ctx, m, words); err != nil {
		return err
	}
	if err := w.points.At("words kept"); err != nil {
		return err
	}
	if err := w.removeOwned(ctx, m.name()); err != nil {
		return err
	}
	if err := w.points.At("orphans removed"); err != nil {
		return err
	}
	if err := w.client.Delete(ctx, m.object); err != nil {
		return err
	}
	w.cfg.Log.InfoContext(ctx, "replaced ClusterServiceVersion removed", "csv", m.name(), "namespace", w.ns)
	return w.points.At("removed")
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
	_, err := w.hands().Sweep(ctx, uninstall.Question{Kinds: ownedKinds(), Namespace: w.ns, CSV: name})
	return err
}

// resetConversion lets the API server convert by itself what an operator converted that is gone without a successor
// (R-CSV-46): else no object of another version than the stored one could be read any more, and none be removed. What one
// that stays converts, too, is handed back to that one.
func (w *work) resetConversion(ctx context.Context, name string) error {
	crds, err := w.client.List(ctx, gvkCRD, "", certs.LabelConverted+"="+w.ns)
	if err != nil {
		return err
	}
	for i := range crds {
		converts := func(m *member) bool {
			return m.name() != name && slices.Contains(certs.Converted(m.csv), crds[i].GetName())
		}
		heirs := slices.DeleteFunc(slices.Clone(w.members), func(m *member) bool { return !converts(m) })
		switch {
		case len(heirs) > 0:
			err = w.handConversionBack(ctx, &crds[i], heirs)
		case slices.ContainsFunc(w.aside, converts), len(w.unread) > 0 && !certs.InstalledBy(&crds[i], w.ns+"/"+name):
			continue // they do so as long as they are there
		default:
			w.cfg.Log.InfoContext(ctx, "conversion of a CustomResourceDefinition is by name again", "crd", crds[i].GetName(), "csv", name, "namespace", w.ns)
			err = w.points.Between("conversion", func() error { return w.client.ResetConversion(ctx, &crds[i], certs.LabelConverted) })
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
func (w *work) handConversionBack(ctx context.Context, crd *unstructured.Unstructured, heirs []*member) error {
	deployments, err := w.deployments(ctx)
	if err != nil {
		return err
	}
	heir := heirs[0]
	for _, m := range heirs {
		if slices.ContainsFunc(w.called(m.csv), func(c render.Serving) bool { return c.Service == certs.ConvertedAt(crd, w.ns) }) {
			return nil
		}
		if !w.running(heir, deployments).Healthy && w.running(m, deployments).Healthy {
			heir = m
		}
	}
	s, objects, _ := w.rendered(ctx, heir)
	i := slices.IndexFunc(objects, func(o render.Object) bool { return o.GVK == gvkCRD && o.Name == crd.GetName() })
	if i < 0 {
		return errs.New(errs.Unavailable, "CustomResourceDefinition %s cannot be handed back to %s now: see why its bundle is not to be had", crd.GetName(), heir.name())
	}
	body := &unstructured.Unstructured{Object: objects[i].Clone().Body}
	if err := certs.Trust(body, w.live.certificates, nil); err != nil {
		return err
	}
	conversion, _, err := unstructured.NestedMap(body.Object, "spec", "conversion")
	if err != nil {
		return err
	}
	return w.points.Between("conversion", func() error { return w.client.Convert(ctx, crd, conversion, w.manager(s.bundle.Package)) })
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
		found, err := w.client.GetServed(ctx, kube.GVKInstalledOperator, w.ns, i.CSV)
		if err != nil {
			return err
		}
		if found != nil {
			w.cfg.Log.WarnContext(ctx, "InstalledOperator is not followed: it lacks Chandler's label", "name", i.CSV, "namespace", w.ns)
			continue
		}
		if w.stopped() == nil {
			if err := w.removeOwned(ctx, i.CSV); err != nil {
				if err := w.alone(ctx, "", partRemains, err); err != nil {
					return err
				}
				continue
			}
			w.pace.Succeeded(w.item("", partRemains))
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

// underWay is the execution of a plan that brings a ClusterServiceVersion, has begun and not ended; nil without one. The
// log alone says so: a plan that cannot be read now is under way as well.
func (w *work) underWay(name string) *kube.Execution {
	i := slices.IndexFunc(w.executions, func(x *kube.Execution) bool {
		return x.Status.Begun && !ended(x) && slices.Contains(x.Spec.Operators, name)
	})
	if i < 0 {
		return nil
	}
	return w.executions[i]
}

// planned reports a ClusterServiceVersion whose plan is under way: it may be about to be made.
func (w *work) planned(name string) bool { return w.underWay(name) != nil }

// vouched makes of a member what the hub granted, whatever its object says: where that differs, drift puts it right or tells
// of it. An error says why nothing can be known of it: then it is followed and told of, and nothing is done for it, nor to
// what it says that it follows.
func (w *work) vouched(ctx context.Context, m *member) error {
	a := m.object.GetAnnotations()
	claim := provenance.Claim{
		Plan: m.plan, Execution: w.execution, Plans: w.plans.Plans, Installed: w.plans.Installed,
		GrantedOperator: protocol.GrantedOperator{
			CSV: m.name(), Package: a[annotationPackage], Content: a[annotationContent], Replaces: m.csv.Spec.Replaces, Reason: a[annotationReason],
		},
	}
	plan, granted, err := claim.Verify()
	if err == nil {
		err = claim.CheckConfig(plan, granted)
	}
	var of *bundle.CSV
	first := false
	if err == nil {
		of, first, err = w.specs.Compare(ctx, m.object, granted, w.contents)
	}
	if err != nil {
		m.doubted, m.csv.Spec.Replaces = true, granted.Replaces
		return err
	}
	if of != nil {
		m.csv = *of
	}
	m.granted, m.plan = map[string]string{
		annotationPlan: plan, annotationPackage: granted.Package, annotationContent: granted.Content, annotationReason: granted.Reason,
	}, plan
	other := m.take(m.object)
	if first || len(other) > 0 {
		w.cfg.Log.WarnContext(ctx, "an InstalledOperator does not say what was granted; what was granted counts", "name", m.name(), "namespace", w.ns, "annotations", other)
	}
	return nil
}

// take makes an object that the cluster holds the member's, and returns which of its annotations count for nothing.
func (m *member) take(o *unstructured.Unstructured) (other []string) {
	m.object = o
	return provenance.SetAnnotations(o, m.granted)
}

// lost is what becomes of a plan whose operator is not followed any more: one that is gone was removed by somebody, and
// what is left of the plan cannot bring it back; another plan can.
func (w *work) lost(ctx context.Context, name string) (*failure.Failure, error) {
	found, err := w.client.GetServed(ctx, kube.GVKInstalledOperator, w.ns, name)
	switch {
	case err != nil:
		return nil, err
	case found != nil:
		return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonBase, Message: "ClusterServiceVersion " + name + " was changed and cannot be followed any more"}, nil
	}
	return &failure.Failure{Class: failure.Permanent, Reason: failure.ReasonBase, Message: "ClusterServiceVersion " + name + " was removed while its plan ran"}, nil
}

// replacement is what replaces an operator; one that is there and cannot be read may be that.
func (w *work) replacement(m *member) *csv.Neighbour {
	if s := w.neighbour(w.line.Successor(m.name())); s != nil || len(w.unread) == 0 {
		return s
	}
	if m.status.Phase != csv.PhaseReplacing {
		return nil
	}
	return &csv.Neighbour{Name: slices.Sorted(maps.Keys(w.unread))[0]}
}

// restored writes back what a replacement that is gone had taken over by name from an operator, before that one's phase
// goes on: the labels say from then on whose it is. False means that it cannot be done now.
func (w *work) restored(ctx context.Context, m *member) (bool, error) {
	if w.stopped() != nil {
		return false, nil
	}
	return w.repair(ctx, m)
}

// handBack writes back to the operator that one which is being uninstalled was to replace what both have by name: what
// bears its labels after that is none of the removal's.
func (w *work) handBack(ctx context.Context, r protocol.Removal) error {
	i := slices.IndexFunc(w.aside, func(m *member) bool { return m.name() == r.CSV })
	if i < 0 {
		return nil
	}
	j := slices.IndexFunc(w.members, func(m *member) bool {
		return m.name() == w.aside[i].csv.Spec.Replaces && m.status.Phase != csv.PhaseDeleting
	})
	if j < 0 {
		return nil
	}
	back, err := w.restored(ctx, w.members[j])
	if err == nil && !back {
		err = errs.New(errs.Unavailable, "%s cannot be put back in the place of %s now: see why its bundle is not to be had", w.members[j].name(), r.CSV)
	}
	return err
}

// stuck reports a plan that is under way and does not go on by itself now.
func (w *work) stuck(x *kube.Execution) bool {
	listed := slices.ContainsFunc(w.plans.Plans, func(p protocol.Plan) bool { return p.ID == x.Spec.Plan })
	return !listed || x.Status.Phase == protocol.PlanBlocked
}

// abort ends, before the removal of one of its operators begins, a plan that was begun and is stuck: nobody else could
// (DESIGN D6).
func (w *work) abort(ctx context.Context, r protocol.Removal) error {
	x := w.underWay(r.CSV)
	if x == nil {
		return nil
	}
	p := protocol.Plan{ID: x.Spec.Plan, Name: x.Spec.Name}
	if i := slices.IndexFunc(w.plans.Plans, func(p protocol.Plan) bool { return p.ID == x.Spec.Plan }); i >= 0 {
		p = w.plans.Plans[i]
	}
	if err := w.points.At("before abort"); err != nil {
		return err
	}
	message := "aborted by the removal of " + r.CSV + " (" + r.ID + ")"
	if x.Status.Message != "" {
		message += "; it waited: " + x.Status.Message
	}
	if err := w.fail(ctx, p, x, &failure.Failure{Class: failure.Permanent, Reason: failure.ReasonAborted, Message: message}); err != nil {
		return err
	}
	return w.points.At("aborted")
}

// frozen reports an operator whose plan is under way and cannot be read in this look: what is still to come for it is
// not known, so that its phase stays as it is, and nothing that it replaces goes.
func (w *work) frozen(m *member) bool {
	x := w.underWay(m.name())
	if x == nil {
		return false
	}
	_, read := w.opened[x.Spec.Plan]
	return !read
}

// another ends a removal of which the operator is gone while another one was installed under its name: what bears that name
// now is not what was looked at.
func (w *work) another(ctx context.Context, r protocol.Removal, x *kube.Execution) error {
	live, err := w.client.GetServed(ctx, kube.GVKInstalledOperator, w.ns, r.CSV)
	if err != nil || !uninstall.Another(live, x.Status.Steps) {
		return err
	}
	s := &x.Status
	s.Phase, s.Class, s.Reason, s.Message, s.Ended = protocol.RemovalRefused, "", removal.RefusedAnother, removal.ChangedMessage(r.CSV), w.cfg.Now().UTC()
	w.loaded = false
	w.soon(time.Millisecond)
	return w.save(ctx, x, "removal refused")
}

// adopt marks an object that was there before Chandler wrote it first, so that it outlives the operator. What a watch has
// told of bears Chandler's label; of definitions it tells whose ever they are. What has the digest of its operator's rights
// in its name is nobody else's.
func (w *work) adopt(ctx context.Context, body *unstructured.Unstructured) error {
	gvk := body.GroupVersionKind()
	if there, _ := w.watcher.There(gvk, body.GetNamespace(), body.GetName()); there && gvk != gvkCRD || gvk == kube.GVKInstalledOperator {
		return nil
	}
	if h := body.GetLabels()[render.LabelPermissionsHash]; h != "" && strings.HasSuffix(body.GetName(), h) {
		return nil
	}
	found, err := w.client.Foreign(ctx, gvk, body.GetNamespace(), body.GetName())
	if err != nil || found == nil {
		return err
	}
	return w.points.Between("adopt", func() error { return w.client.Adopt(ctx, gvk, found) })
}

// hasWords reports one that was replaced, and not deleted by somebody.
func (w *work) hasWords(i protocol.Installed) bool {
	return slices.ContainsFunc(w.executions, func(x *kube.Execution) bool {
		return slices.ContainsFunc(x.Status.Removed, func(c protocol.CSVReport) bool { return c.Name == i.CSV && c.Plan == i.Plan })
	})
}
