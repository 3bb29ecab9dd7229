package testcluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestBorrowedClusterIsAsNew: whatever a test did to a cluster, the next one to borrow it finds it as after its start.
func TestBorrowedClusterIsAsNew(t *testing.T) {
	var first *Cluster
	var before map[string]bool
	t.Run("first", func(t *testing.T) {
		first = Borrow(t)
		before = keysOf(t, first)
		disturb(t, first)
	})
	t.Run("second", func(t *testing.T) {
		c := Borrow(t)
		if c.plane != first.plane {
			t.Error("it is another cluster")
		}
		for key := range keysOf(t, c) {
			if !before[key] {
				t.Errorf("%s is left", key)
			}
			delete(before, key)
		}
		for key := range before {
			t.Errorf("%s is missing", key)
		}
		checkAsNew(t, c)
		disturb(t, c) // as on a new one
		if err := c.Pause(); err != nil {
			t.Fatal(err)
		}
		if err := c.Resume(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("after a pause", func(t *testing.T) {
		if c := Borrow(t); c.plane == first.plane {
			t.Error("a cluster that was paused is lent again")
		}
	})
}

// keysOf lists what is stored, without what is not compared.
func keysOf(t *testing.T, c *Cluster) map[string]bool {
	t.Helper()
	all, err := c.plane.store.list(t.Context(), c.plane.prefix(), false)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for key := range all {
		if !strings.HasPrefix(key, eventsPart) {
			keys[key] = true
		}
	}
	return keys
}

const tideCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
	"metadata":{"name":"tides.sea.test","finalizers":["sea.test/hold"]},
	"spec":{"group":"sea.test","scope":"Namespaced","names":{"plural":"tides","kind":"Tide"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`

// disturb leaves behind what is hard to get rid of: a namespace with workloads, a CRD with an object and a finalizer, a
// policy that refuses, a changed node and a role of the cluster that is gone.
func disturb(t *testing.T, c *Cluster) {
	t.Helper()
	ctx, create := t.Context(), metav1.CreateOptions{}
	_, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "sea"}},
		create)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts("sea").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	createDeployment(t, c, "sea", probe())
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "sea"},
		Spec: corev1.ServiceSpec{
			Type:  corev1.ServiceTypeNodePort,
			Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}},
		},
	}
	if _, err := c.client.CoreV1().Services("sea").Create(ctx, service, create); err != nil {
		t.Fatal(err)
	}
	post := func(path, body string) error {
		return c.client.Discovery().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").
			Body([]byte(body)).Do(ctx).Error()
	}
	if err := post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", tideCRD); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(context.Context) error {
		return post("/apis/sea.test/v1/namespaces/sea/tides",
			`{"apiVersion":"sea.test/v1","kind":"Tide","metadata":{"name":"low"}}`)
	})
	if err := c.plane.awaitPolicies(ctx, "sea"); err != nil {
		t.Fatal(err)
	}
	_, err = c.client.CoreV1().Nodes().Patch(ctx, "node-1", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"sea.test":""}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.client.RbacV1().ClusterRoles().Delete(ctx, "view", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "sea"}}
	if _, err := c.client.RbacV1().ClusterRoles().Create(ctx, role, create); err != nil {
		t.Fatal(err)
	}
}

// checkAsNew asks the API server, which has all of that in its memory as well.
func checkAsNew(t *testing.T, c *Cluster) {
	t.Helper()
	ctx := t.Context()
	get := metav1.GetOptions{}
	list, err := c.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil || len(list.Items) != 4 {
		t.Errorf("namespaces: %v, %v", list.Items, err)
	}
	pods, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil || len(pods.Items) > 0 {
		t.Errorf("pods: %v, %v", pods.Items, err)
	}
	node, err := c.client.CoreV1().Nodes().Get(ctx, "node-1", get)
	if _, labelled := node.Labels["sea.test"]; err != nil || labelled || !nodeReady(*node) {
		t.Errorf("node: %v, %v", node, err)
	}
	if _, err := c.client.RbacV1().ClusterRoles().Get(ctx, "view", get); err != nil {
		t.Error(err)
	}
	if _, err := c.client.RbacV1().ClusterRoles().Get(ctx, "sea", get); !apierrors.IsNotFound(err) {
		t.Errorf("cluster role of the former test: %v", err)
	}
	_, err = c.client.CoreV1().ConfigMaps(probeNamespace).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "sea"}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Errorf("the policy of the former test: %v", err)
	}
}

// TestDifference: what counts as changed.
func TestDifference(t *testing.T) {
	t.Parallel()
	before := stored{
		"/pods/a/b": {revision: 1}, "/leases/a/b": {revision: 1}, "/secrets/a/b": {revision: 1},
		"/roles/a/b": {revision: 1},
	}
	now := stored{
		"/pods/a/b": {revision: 2}, "/leases/a/b": {revision: 2}, "/leases/a/c": {revision: 2},
		"/roles/a/b": {revision: 1}, "/events/a/b": {revision: 3}, "/namespaces/a": {revision: 4},
		"/apps/a": {revision: 5},
	}
	got := fmt.Sprint(now.since(before).added, now.since(before).changed)
	if want := "[/namespaces/a /apps/a /leases/a/c] [/pods/a/b /secrets/a/b]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if before.since(before).empty() != true || now.since(before).empty() {
		t.Error("empty is not what it says")
	}
}
