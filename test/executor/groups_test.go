package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestGroups: what operator groups come to in a cluster (R-OG). The cases share a cluster and an executor, each in
// namespaces of its own.
//
//nolint:tparallel // one executor is the subject; what it is busy with at a time is to be known
func TestGroups(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	for name, test := range map[string]func(*testing.T, *bed, string){
		"targets": testTargets, "selector": testSelector, "global": testGlobal, "roles": testGroupRoles,
		"conflict": testConflict, "static": testStatic, "no-group": testNoGroup, "labels": testNamespaceLabels,
		"annotations": testNamespaceAnnotations,
	} {
		t.Run(name, func(t *testing.T) { test(t, b.on(t), name) })
	}
}

// regroup changes the group of a namespace.
func (b *bed) regroup(ns string, spec events.OperatorGroupSpec) {
	s := b.scope(ns)
	s.OperatorGroup.Spec = spec
	b.publish(s)
}

func targeting(namespaces ...string) events.OperatorGroupSpec {
	return events.OperatorGroupSpec{TargetNamespaces: namespaces}
}

// awaitGroup waits until the cluster tells of the group what ok asks for.
func (b *bed) awaitGroup(t *testing.T, ns string, ok func(protocol.GroupReport) bool) protocol.GroupReport {
	t.Helper()
	var last protocol.GroupReport
	await(t, "group of "+ns, func(ctx context.Context) error {
		r, found, err := b.report(ctx, ns)
		if err != nil || !found || r.Group == nil {
			return fmt.Errorf("no group is reported: %w", err)
		}
		if last = *r.Group; !ok(last) {
			return fmt.Errorf("group %+v", last)
		}
		return nil
	})
	return last
}

func serves(targets ...string) func(protocol.GroupReport) bool {
	return func(g protocol.GroupReport) bool { return slices.Equal(g.Targets, targets) }
}

// awaitBindings waits until the operator of a namespace is bound in exactly these namespaces, "" for the whole cluster.
func (b *bed) awaitBindings(t *testing.T, ns string, want ...string) {
	t.Helper()
	await(t, "bindings of "+ns, func(ctx context.Context) error {
		bound, err := b.kube.RbacV1().RoleBindings("").List(
			ctx, metav1.ListOptions{LabelSelector: "olm.permissions.hash,olm.owner.namespace=" + ns})
		if err != nil {
			return err
		}
		lifted, err := b.kube.RbacV1().ClusterRoleBindings().List(
			ctx, metav1.ListOptions{LabelSelector: "chandler-fleet.io/operatorgroup-part,olm.owner.namespace=" + ns})
		if err != nil {
			return err
		}
		var got []string
		for _, r := range bound.Items {
			got = append(got, r.Namespace)
		}
		for range lifted.Items {
			got = append(got, "")
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("bound in %q, want %q", got, want)
		}
		return nil
	})
}

// awaitTold waits until the pods of the namespace's Deployment are told of these targets, and the Deployment is there.
func (b *bed) awaitTold(t *testing.T, ns, targets string) {
	t.Helper()
	await(t, "targets that the pods are told", func(ctx context.Context) error {
		d, err := b.kube.AppsV1().Deployments(ns).Get(ctx, ns+"-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		a := d.Spec.Template.Annotations
		if a["olm.targetNamespaces"] != targets || a["olm.operatorGroup"] != "group" ||
			a["olm.operatorNamespace"] != ns {
			return fmt.Errorf("annotations %v", a)
		}
		return nil
	})
}

// marked are the namespaces that bear the label of a namespace's group.
func (b *bed) awaitMarked(t *testing.T, ns string, want ...string) {
	t.Helper()
	await(t, "labels of namespaces", func(ctx context.Context) error {
		list, err := b.kube.CoreV1().Namespaces().List(
			ctx, metav1.ListOptions{LabelSelector: "olm.operatorgroup.uid/" + b.scope(ns).OperatorGroup.ID})
		if err != nil {
			return err
		}
		var got []string
		for _, n := range list.Items {
			got = append(got, n.Name)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("marked are %v, want %v", got, want)
		}
		return nil
	})
}

func (b *bed) label(t *testing.T, namespace, key string, value any) {
	t.Helper()
	b.patchNamespace(t, namespace, "labels", key, value)
}

// patchNamespace sets a label or an annotation as somebody else does; nil takes it away.
func (b *bed) patchNamespace(t *testing.T, namespace, field, key string, value any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{field: map[string]any{key: value}}})
	must(t, err)
	_, err = b.kube.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, patch,
		metav1.PatchOptions{})
	must(t, err)
}

// awaitLabels waits until a namespace has exactly these of the labels that are asked for; "" is none.
func (b *bed) awaitLabels(t *testing.T, ns string, want map[string]string) {
	t.Helper()
	b.awaitNamespace(t, ns, (*corev1.Namespace).GetLabels, want)
}

// awaitNamespace is awaitLabels of labels or annotations.
func (b *bed) awaitNamespace(
	t *testing.T, ns string, of func(*corev1.Namespace) map[string]string, want map[string]string,
) {
	t.Helper()
	await(t, "labels or annotations of "+ns, func(ctx context.Context) error {
		n, err := b.kube.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for key, value := range want {
			if got := of(n)[key]; got != value {
				return fmt.Errorf("%s is %q, want %q", key, got, value)
			}
		}
		return nil
	})
}

// testNamespaceLabels: ADR 0063: the namespace has the labels of its group when the plan has ended, and follows it;
// what somebody else has set is told and stays.
func testNamespaceLabels(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	labelled := func(labels map[string]string) events.OperatorGroupSpec {
		return events.OperatorGroupSpec{TargetNamespaces: []string{ns}, NamespaceLabels: labels}
	}
	b.regroup(ns, labelled(map[string]string{"tier": "quay", "pod-security.kubernetes.io/warn": "baseline"}))
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
	n, err := b.kube.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	must(t, err)
	if n.Labels["tier"] != "quay" || n.Labels["pod-security.kubernetes.io/warn"] != "baseline" {
		t.Errorf("after the plan: %v", n.Labels)
	}
	b.want(ns)
	b.regroup(ns, labelled(map[string]string{"tier": "mole"}))
	b.awaitLabels(t, ns, map[string]string{"tier": "mole", "pod-security.kubernetes.io/warn": ""})
	// Somebody takes it away: it comes back.
	b.label(t, ns, "tier", nil)
	b.awaitLabels(t, ns, map[string]string{"tier": "mole"})
	// Administrators have set a limit: it holds, and the group says why its label is not there.
	b.label(t, ns, "pod-security.kubernetes.io/enforce", "restricted")
	b.regroup(ns, labelled(map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}))
	b.awaitGroup(t, ns, func(g protocol.GroupReport) bool {
		return slices.ContainsFunc(g.Conditions, func(c protocol.GroupCondition) bool {
			return c.Type == protocol.GroupUnattended &&
				strings.Contains(c.Message, "pod-security.kubernetes.io/enforce")
		})
	})
	b.awaitLabels(t, ns, map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "tier": "mole"})
	b.regroup(ns, labelled(nil))
	b.awaitLabels(t, ns, map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted", "tier": "", "chandler-fleet.io/namespace-labels": "",
	})
}

// testNamespaceAnnotations: issue 13 §4, ADR 0063: annotations of the namespace are kept as its labels are.
func testNamespaceAnnotations(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	const selector, inject = "openshift.io/node-selector", "linkerd.io/inject"
	annotated := func(annotations map[string]string) events.OperatorGroupSpec {
		return events.OperatorGroupSpec{TargetNamespaces: []string{ns}, NamespaceAnnotations: annotations}
	}
	follows := func(want map[string]string) {
		t.Helper()
		b.awaitNamespace(t, ns, (*corev1.Namespace).GetAnnotations, want)
	}
	b.regroup(ns, annotated(map[string]string{selector: "tier=quay", inject: "enabled"}))
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
	n, err := b.kube.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	must(t, err)
	if n.Annotations[selector] != "tier=quay" || n.Annotations[inject] != "enabled" {
		t.Errorf("after the plan: %v", n.Annotations)
	}
	b.want(ns)
	// Those of others stay, those that are not wanted any more go.
	b.patchNamespace(t, ns, "annotations", "example.test/theirs", "stays")
	b.regroup(ns, annotated(map[string]string{selector: "tier=mole"}))
	follows(map[string]string{selector: "tier=mole", inject: "", "example.test/theirs": "stays"})
	// Somebody takes it away: it comes back.
	b.patchNamespace(t, ns, "annotations", selector, nil)
	follows(map[string]string{selector: "tier=mole"})
	// An administrator has set one: it holds, and the group says so.
	b.patchNamespace(t, ns, "annotations", inject, "disabled")
	b.regroup(ns, annotated(map[string]string{selector: "tier=mole", inject: "enabled"}))
	b.awaitGroup(t, ns, func(g protocol.GroupReport) bool {
		return slices.ContainsFunc(g.Conditions, func(c protocol.GroupCondition) bool {
			return c.Type == protocol.GroupUnattended && strings.Contains(c.Message, inject)
		})
	})
	follows(map[string]string{inject: "disabled", selector: "tier=mole"})
	b.regroup(ns, annotated(nil))
	follows(map[string]string{inject: "disabled", selector: "", "example.test/theirs": "stays"})
	b.awaitLabels(t, ns, map[string]string{"chandler-fleet.io/namespace-labels": ""})
}

// may waits until a user may, or may not, do something.
func (b *bed) may(t *testing.T, want bool, user string, a authorizationv1.ResourceAttributes) {
	t.Helper()
	await(t, "rights of "+user, func(ctx context.Context) error {
		r, err := b.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &a},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if r.Status.Allowed != want {
			return fmt.Errorf("%+v is allowed: %v", a, r.Status.Allowed)
		}
		return nil
	})
}

// testTargets: R-OG-15, R-OG-44: roles are copied to each target, and pods are told of them; a target that does not
// exist is named, and gets its copies when it does; R-OG-45: what was copied goes with the target and with the
// operator.
func testTargets(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	b.namespace(t, "target-a")
	b.regroup(ns, targeting("target-a", "target-b"))
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	g := b.awaitGroup(t, ns, func(g protocol.GroupReport) bool { return len(g.Conditions) > 0 })
	if c := g.Conditions[0]; c.Type != protocol.GroupTargetsMissing || !strings.Contains(c.Message, "target-b") {
		t.Errorf("condition %+v", c)
	}
	c := b.finishes(t, ns, p, o.csv())
	b.want(ns)
	b.awaitBindings(t, ns, "target-a", ns)
	b.awaitMarked(t, ns, "target-a")
	b.namespace(t, "target-b")
	b.awaitBindings(t, ns, "target-a", "target-b", ns)
	b.awaitTold(t, ns, "target-a,target-b")
	b.awaitMarked(t, ns, "target-a", "target-b")
	b.awaitGroup(t, ns, func(g protocol.GroupReport) bool { return len(g.Conditions) == 0 })

	b.regroup(ns, targeting("target-b"))
	b.awaitTold(t, ns, "target-b")
	b.awaitBindings(t, ns, "target-b", ns)
	b.awaitMarked(t, ns, "target-b")
	b.awaitCSV(ns, o.csv(), reached("Succeeded"))

	must(t, b.kube.RbacV1().RoleBindings("target-b").DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "olm.owner.namespace=" + ns}))
	b.awaitBindings(t, ns, "target-b", ns)

	b.deleteCSV(t, ns, o.csv(), protocol.Installed{CSV: o.csv(), Content: c.Content, Plan: p.ID})
	b.awaitBindings(t, ns)
}

// testSelector: R-OG §7.1: the targets of a selector follow the labels of namespaces.
func testSelector(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	b.namespace(t, "sea-a")
	b.namespace(t, "sea-b")
	b.label(t, "sea-a", "sea", "north")
	b.regroup(ns, events.OperatorGroupSpec{Selector: events.LabelSelector{
		MatchLabels: map[string]string{"sea": "north"},
	}})
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
	b.want(ns)
	b.awaitBindings(t, ns, "sea-a", ns)
	b.awaitTold(t, ns, "sea-a")
	b.label(t, "sea-b", "sea", "north")
	b.awaitGroup(t, ns, serves("sea-a", "sea-b"))
	b.awaitBindings(t, ns, "sea-a", "sea-b", ns)
	b.awaitTold(t, ns, "sea-a,sea-b")
	b.label(t, "sea-a", "sea", nil)
	b.awaitBindings(t, ns, "sea-b", ns)
	b.awaitMarked(t, ns, "sea-b")
	// None at all is no set of targets (R-CSV-31); the operator comes back with the next one.
	b.label(t, "sea-b", "sea", "baltic")
	b.awaitCSV(ns, o.csv(), last("Failed", "UnsupportedOperatorGroup"))
	b.label(t, "sea-b", "sea", "north")
	b.awaitCSV(ns, o.csv(), reached("Succeeded"))
}

// last asks for the newest transition.
func last(phase, reason string) func(protocol.CSVReport) bool {
	return func(r protocol.CSVReport) bool {
		n := len(r.History)
		return n > 0 && r.History[n-1].Phase == phase && r.History[n-1].Reason == reason
	}
}

// testGlobal: R-OG-44: the permissions of an operator of a global group hold in the whole cluster, as long as the
// group is global.
func testGlobal(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	b.regroup(ns, events.OperatorGroupSpec{})
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
	b.want(ns)
	b.awaitBindings(t, ns, "", ns)
	b.awaitTold(t, ns, "")
	b.awaitMarked(t, ns)
	account := "system:serviceaccount:" + ns + ":" + ns
	anywhere := authorizationv1.ResourceAttributes{Namespace: "default", Verb: "get", Resource: "configmaps"}
	b.may(t, true, account, anywhere)
	b.may(t, true, account, authorizationv1.ResourceAttributes{Verb: "watch", Resource: "namespaces"})
	b.regroup(ns, targeting(ns))
	b.may(t, false, account, anywhere)
	b.awaitBindings(t, ns, ns)
	b.awaitTold(t, ns, ns)
	b.awaitMarked(t, ns, ns)
}

// testGroupRoles: R-OG-40 … R-OG-43: whoever may edit or view a namespace may do so with the operator's APIs, and the
// roles of the group hold the same rights; all of it goes with the operator.
func testGroupRoles(t *testing.T, b *bed, ns string) {
	t.Helper()
	b.publish(b.scope(ns))
	empty := b.awaitRoles(t, ns)
	if len(empty) != 0 {
		t.Errorf("rules without an operator: %v", empty)
	}
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	c := b.finishes(t, ns, p, o.csv())
	api := "Gauge.v1." + o.group
	g := b.awaitGroup(t, ns, func(g protocol.GroupReport) bool { return slices.Equal(g.ProvidedAPIs, []string{api}) })
	if len(g.Roles) != 3 || !strings.HasPrefix(g.Roles[2], "olm.og.group.view-") {
		t.Fatalf("roles %v", g.Roles)
	}
	for user, role := range map[string]string{"ann": "edit", "ben": g.Roles[2]} {
		_, err := b.kube.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{
				APIGroup: "rbac.authorization.k8s.io",
				Kind:     "ClusterRole", Name: role,
			},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: user, APIGroup: "rbac.authorization.k8s.io"}},
		}, metav1.CreateOptions{})
		must(t, err)
	}
	do := func(verb string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Namespace: ns, Verb: verb, Group: o.group, Resource: "gauges"}
	}
	b.may(t, true, "ann", do("create"))
	b.may(t, true, "ben", do("list"))
	b.may(t, false, "ben", do("create"))
	names, err := b.kube.RbacV1().ClusterRoles().List(t.Context(),
		metav1.ListOptions{LabelSelector: "chandler-fleet.io/operatorgroup-part=api"})
	must(t, err)
	var got []string
	for _, r := range names.Items {
		if rest, ok := strings.CutPrefix(r.Name, "gauges."+o.group); ok {
			got = append(got, rest)
		}
	}
	if diff := cmp.Diff([]string{"-v1-admin", "-v1-crdview", "-v1-edit", "-v1-view"}, got); diff != "" {
		t.Error(diff)
	}
	b.want(ns)
	b.deleteCSV(t, ns, o.csv(), protocol.Installed{CSV: o.csv(), Content: c.Content, Plan: p.ID})
	b.may(t, false, "ann", do("create"))
	b.may(t, false, "ben", do("list"))
	b.awaitGroup(t, ns, func(g protocol.GroupReport) bool { return len(g.ProvidedAPIs) == 0 })
}

// awaitRoles waits for the three roles of a group and returns their rules.
func (b *bed) awaitRoles(t *testing.T, ns string) (rules []rbacv1.PolicyRule) {
	t.Helper()
	await(t, "roles of the group", func(ctx context.Context) error {
		list, err := b.kube.RbacV1().ClusterRoles().List(
			ctx, metav1.ListOptions{LabelSelector: "olm.owner.kind=OperatorGroup,olm.owner.namespace=" + ns})
		if err != nil || len(list.Items) != 3 {
			return fmt.Errorf("%d roles: %w", len(list.Items), err)
		}
		for _, r := range list.Items {
			rules = append(rules, r.Rules...)
		}
		return nil
	})
	return rules
}

// testConflict: R-OG §7.7: of two operators with one API in one namespace the second fails and does not run; it goes on
// by itself when the first is gone (R-OG-36).
func testConflict(t *testing.T, b *bed, ns string) {
	t.Helper()
	rival := ns + "-rival"
	one := operator{name: ns, version: "1.0.0", group: "shared.sea.test"}
	two := operator{name: rival, version: "1.0.0", group: "shared.sea.test"}
	p := b.plan(ns, ns, planned{content: one.content(t)})
	b.want(ns, p)
	c := b.finishes(t, ns, p, one.csv())
	b.want(ns)
	b.regroup(rival, targeting(ns))
	q := b.plan(rival, rival, planned{content: two.content(t)})
	b.want(rival, q)
	r := b.awaitCSV(rival, two.csv(), last("Failed", "InterOperatorGroupOwnerConflict"))
	if m := r.History[len(r.History)-1].Message; !strings.Contains(
		m, "Gauge.v1.shared.sea.test of operator group "+ns+"/group") {
		t.Errorf("message %q", m)
	}
	if list := b.deployments(t, rival); len(list) != 0 {
		t.Errorf("%d Deployments of the second run", len(list))
	}
	b.deleteCSV(t, ns, one.csv(), protocol.Installed{CSV: one.csv(), Content: c.Content, Plan: p.ID})
	b.finishes(t, rival, q, two.csv())
}

func (b *bed) deployments(t *testing.T, ns string) []appsv1.Deployment {
	t.Helper()
	list, err := b.kube.AppsV1().Deployments(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	return list.Items
}

// testStatic: R-OG-30, R-OG §7.7: in a static group an operator may provide only what the group says; a running one
// that may no longer loses its Deployments, and gets them back.
func testStatic(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
	b.want(ns)
	reserved := targeting(ns)
	reserved.StaticProvidedAPIs, reserved.ProvidedAPIs = true, []string{"Buoy.v1.sea.test"}
	b.regroup(ns, reserved)
	b.awaitCSV(ns, o.csv(), last("Failed", "CannotModifyStaticOperatorGroupProvidedAPIs"))
	await(t, "the end of its Deployments", func(context.Context) error {
		if n := len(b.deployments(t, ns)); n != 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	})
	reserved.ProvidedAPIs = []string{"Gauge.v1." + o.group}
	b.regroup(ns, reserved)
	b.awaitCSV(ns, o.csv(), last("Succeeded", "InstallSucceeded"))
	b.awaitGroup(t, ns, func(g protocol.GroupReport) bool {
		return slices.Equal(
			g.ProvidedAPIs, reserved.ProvidedAPIs)
	})
}

// testNoGroup: R-OG-50: without its group, or with a second one, an operator is Failed; what runs stays as it is.
func testNoGroup(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
	s := b.scope(ns)
	s.Plans = nil
	b.publish(s)
	before := b.controller(t, ns)
	for groups, reason := range map[int]string{0: "NoOperatorGroup", 2: "TooManyOperatorGroups"} {
		none := s
		none.OperatorGroups, none.OperatorGroup = groups, protocol.OperatorGroup{}
		b.publish(none)
		b.awaitCSV(ns, o.csv(), last("Failed", reason))
		b.publish(s)
		b.awaitCSV(ns, o.csv(), last("Succeeded", "InstallSucceeded"))
	}
	if after := b.controller(t, ns); after.Generation != before.Generation || after.UID != before.UID {
		t.Errorf("the Deployment was written: generation %d, then %d", before.Generation, after.Generation)
	}
	b.awaitBindings(t, ns, ns)
}

func (b *bed) controller(t *testing.T, ns string) *appsv1.Deployment {
	t.Helper()
	d, err := b.kube.AppsV1().Deployments(ns).Get(t.Context(), ns+"-controller", metav1.GetOptions{})
	must(t, err)
	return d
}
