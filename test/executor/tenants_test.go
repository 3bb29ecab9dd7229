package executor_test

import (
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestTenants: the recipes of R-MT on a real API server. The cases share a cluster and an executor.
//
//nolint:tparallel // one executor is the subject; what it is busy with at a time is to be known
func TestTenants(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	for name, test := range map[string]func(*testing.T, *bed){
		"an instance for a tenant": testTenantInstance, "a global namespace of one's own": testOwnGlobal,
		"single namespace": testSingleNamespace,
	} {
		t.Run(name, func(t *testing.T) { test(t, b.on(t)) }) //nolint:paralleltest // see above
	}
}

// tenant gives a user one of Kubernetes' own roles in a namespace, and nothing else.
func (b *bed) tenant(t *testing.T, user, ns, role string) {
	t.Helper()
	_, err := b.kube.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{
			APIGroup: "rbac.authorization.k8s.io",
			Kind:     "ClusterRole", Name: role,
		},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: user, APIGroup: "rbac.authorization.k8s.io"}},
	}, metav1.CreateOptions{})
	must(t, err)
}

func may(verb, group, resource, ns string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: ns}
}

// testTenantInstance: R-MT-2, R-SUB-2: the operator lives in <tenant>-ops and serves the tenant alone. The tenant uses
// the API; pods, accounts and the operator itself are elsewhere, and it may not see them. A second tenant has an
// instance of its own (R-MT-3: of the same version). The verbs of view are those of edit and admin, too, and a bundle's
// own role with the labels of aggregation adds to them (R-CRD-7).
func testTenantInstance(t *testing.T, b *bed) {
	t.Helper()
	o := operator{name: "gauge", version: "1.0.0", group: "tenant.sea.test"}
	manifests := [][]byte{
		[]byte(o.manifest()), []byte(fmt.Sprintf(crdManifest, o.group)),
		[]byte(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: gauge-charts
  labels: {rbac.authorization.k8s.io/aggregate-to-view: "true", rbac.authorization.k8s.io/aggregate-to-edit: "true", rbac.authorization.k8s.io/aggregate-to-admin: "true"}
rules: [{apiGroups: [charts.sea.test], resources: [charts], verbs: [get]}]
`),
	}
	content, err := bundle.FromManifests(manifests)
	must(t, err)
	for _, tenant := range []string{"coast", "fjord"} {
		ops := tenant + "-ops"
		b.namespace(t, tenant)
		b.regroup(ops, targeting(tenant))
		p := b.plan(ops, "gauge", planned{content: content})
		b.want(ops, p)
		c := b.finishes(t, ops, p, o.csv())
		s := b.scope(ops)
		s.Plans, s.Installed = nil, []protocol.Installed{{CSV: o.csv(), Content: c.Content, Plan: p.ID}}
		b.publish(s)
		b.awaitBindings(t, ops, tenant, ops)
		d, err := b.kube.AppsV1().Deployments(ops).Get(t.Context(), "gauge-controller", metav1.GetOptions{})
		must(t, err)
		if told := d.Spec.Template.Annotations["olm.targetNamespaces"]; told != tenant {
			t.Errorf("the pods of %s are told to serve %q", ops, told)
		}
		b.nothingRuns(t, tenant)
		b.may(t, true, "system:serviceaccount:"+ops+":gauge", may("get", "", "configmaps", tenant))
	}
	b.may(t, false, "system:serviceaccount:coast-ops:gauge", may("get", "", "configmaps", "fjord"))

	for user, role := range map[string]string{"ann": "edit", "vic": "view", "ada": "admin"} {
		b.tenant(t, user, "coast", role)
		b.may(t, true, user, may("list", o.group, "gauges", "coast"))
		b.may(t, role != "view", user, may("create", o.group, "gauges", "coast"))
		b.may(t, true, user, may("get", "charts.sea.test", "charts", "coast"))
		for _, hidden := range []authorizationv1.ResourceAttributes{
			may("list", "", "pods", "coast-ops"), may("get", "", "serviceaccounts", "coast-ops"),
			may("list", "apps", "deployments", "coast-ops"),
			may("get", "operators.coreos.com", "clusterserviceversions", "coast-ops"),
			may("list", o.group, "gauges", "fjord"),
		} {
			b.may(t, false, user, hidden)
		}
	}
}

// nothingRuns: no Deployment and no account of an operator is in the namespace.
func (b *bed) nothingRuns(t *testing.T, ns string) {
	t.Helper()
	if list := b.deployments(t, ns); len(list) > 0 {
		t.Errorf("%d Deployments are in %s", len(list), ns)
	}
	accounts, err := b.kube.CoreV1().ServiceAccounts(ns).List(
		t.Context(), metav1.ListOptions{LabelSelector: "chandler-fleet.io/managed"})
	must(t, err)
	if len(accounts.Items) > 0 {
		t.Errorf("%d accounts are in %s", len(accounts.Items), ns)
	}
}

// testOwnGlobal: R-MT-4, R-MT-1, R-OG-4: any namespace with a group of neither targets nor selector is a global one:
// the pods are told "" (watch everything), the permissions hold in each namespace, also in one that comes later, and
// its people use the API there.
func testOwnGlobal(t *testing.T, b *bed) {
	t.Helper()
	const ns = "gauges-global"
	o := operator{name: ns, version: "1.0.0", group: "global.sea.test"}
	b.regroup(ns, events.OperatorGroupSpec{})
	p := b.plan(ns, ns, planned{content: o.content(t)})
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
	b.awaitTold(t, ns, "")
	b.namespace(t, "newcomer")
	b.tenant(t, "eve", "newcomer", "edit")
	b.may(t, true, "system:serviceaccount:"+ns+":"+ns, may("get", "", "configmaps", "newcomer"))
	b.may(t, true, "eve", may("create", o.group, "gauges", "newcomer"))
	b.may(t, false, "eve", may("list", "", "pods", ns))
	b.nothingRuns(t, "newcomer")
}

// testSingleNamespace: R-MT-1, R-NAD-2: where the operator lives beside those who use it, they see its pods, its
// account and its ClusterServiceVersion, to which they have no right of their own: only what view gathers; and nobody
// of them may write it.
func testSingleNamespace(t *testing.T, b *bed) {
	t.Helper()
	const ns = "single"
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.finishes(t, ns, p, o.csv())
	for user, role := range map[string]string{"sue": "view", "sam": "admin"} {
		b.tenant(t, user, ns, role)
		for _, seen := range []authorizationv1.ResourceAttributes{
			may("list", "", "pods", ns), may("get", "", "serviceaccounts", ns),
			may("list", "operators.coreos.com", "clusterserviceversions", ns),
			may("get", "operators.coreos.com", "subscriptions", ns),
			may("watch", "operators.coreos.com", "operatorgroups", ns),
		} {
			b.may(t, true, user, seen)
		}
		b.may(t, false, user, may("patch", "operators.coreos.com", "clusterserviceversions", ns))
		b.may(t, false, user, may("create", "operators.coreos.com", "operatorgroups", ns))
	}
}

// TestCopies: R-OG-27: a copy of a ClusterServiceVersion in a namespace is nothing but told there: no operator of that
// namespace, none of its APIs, and nothing runs for it. R-NAD-2: the role of those who read mirrors comes and goes with
// these.
func TestCopies(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	const ns = "gauges-global"
	o := operator{name: ns, version: "1.0.0", group: "global.sea.test"}
	b.namespace(t, "served")
	b.regroup(ns, events.OperatorGroupSpec{})
	p := b.plan(ns, ns, planned{content: o.content(t)})
	b.want(ns, p)
	c := b.finishes(t, ns, p, o.csv())
	s := b.scope(ns)
	s.Plans, s.Installed = nil, []protocol.Installed{{CSV: o.csv(), Content: c.Content, Plan: p.ID}}
	dyn := b.dynamic(t)
	roles := dyn.Resource(rbacv1.SchemeGroupVersion.WithResource("clusterroles"))
	const reading = "chandler-mirror.chandler-fleet.io"
	s.Settings.Mirror = events.MirrorNone
	b.looked(t, s)
	_, err := roles.Get(t.Context(), reading, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("without mirrors the role of those who read them is there: %v", err)
	}
	s.Settings.Mirror = events.MirrorAll
	b.looked(t, s)
	shows(t, roles, reading, there) // it waits for definitions that are still being deleted
	shows(t, dyn.Resource(olmConfigs), "cluster", there)
	_, err = dyn.Resource(olmConfigs).Patch(t.Context(), "cluster", types.MergePatchType,
		[]byte(`{"spec":{"features":{"disableCopiedCSVs":false}}}`), metav1.PatchOptions{})
	must(t, err)
	shows(t, dyn.Resource(csvs).Namespace("served"), o.csv(),
		func(o *unstructured.Unstructured) bool { return seen(o, "status", "reason") == "Copied" })

	own := b.scope("served")
	own.Settings.Mirror = events.MirrorAll
	// it has nothing in common with the global group but that this serves all
	own.OperatorGroup.Spec = targeting("elsewhere")
	b.publish(own)
	if g := b.awaitGroup(t, "served", serves("elsewhere")); len(g.ProvidedAPIs) > 0 {
		t.Errorf("the group of the namespace with the copy provides %v", g.ProvidedAPIs)
	}
	if r, _, err := b.report(t.Context(), "served"); err != nil || len(r.CSVs) > 0 {
		t.Errorf("of the namespace with the copy is told: %+v, %v", r.CSVs, err)
	}
	b.nothingRuns(t, "served")
	if list, err := dyn.Resource(installedOperators()).Namespace("served").List(
		t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("installed there are %v, %v", list, err)
	}
}
