package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chandler-fleet/chandler/test/testcluster"
)

// What Chandler keeps in a cluster for itself.
var (
	leases             = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	installedOperators = schema.GroupVersionResource{
		Group: "chandler-fleet.io", Version: "v1", Resource: "installedoperators",
	}
	policies = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies",
	}
	bindings = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings",
	}
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// systemNamespace is where Chandler's objects without a namespace of their own are.
const systemNamespace = "chandler-system"

// TestFaultsOfClusters harms the API server, and what Chandler keeps in the cluster, while portals write. DESIGN D7.
func TestFaultsOfClusters(t *testing.T) { //nolint:tparallel // one stack is the subject
	t.Parallel()
	w := newWorld(t)
	w.tried([]fault{
		{name: "the API server is killed", do: func(w *world) {
			w.repeatedly(30*time.Second, 5*time.Second, func() { w.must(w.cluster.RestartAPIServer(w.ctx)) })
		}},
		{name: "the API server is frozen", do: func(w *world) {
			w.must(w.cluster.Pause())
			w.during(time.Minute)
			w.must(w.cluster.Resume())
		}},
		{name: "the lease is deleted and edited", do: func(w *world) {
			w.repeatedly(30*time.Second, time.Second, func() {
				w.deleted(leases, systemNamespace)
				w.pause(time.Second)
				w.patched(leases, systemNamespace, `{"spec":{"holderIdentity":"somebody"}}`)
			})
		}},
		{name: "step logs are deleted", do: func(w *world) {
			w.repeatedly(30*time.Second, time.Second, func() { w.deleted(stepLogs, metav1.NamespaceAll) })
		}},
		{name: "Chandler's policies are deleted", do: func(w *world) {
			w.repeatedly(30*time.Second, time.Second, func() {
				w.deleted(bindings, metav1.NamespaceAll)
				w.deleted(policies, metav1.NamespaceAll)
			})
		}},
		{name: "installed operators are deleted and edited", do: func(w *world) {
			w.repeatedly(30*time.Second, time.Second, func() {
				w.patched(installedOperators, metav1.NamespaceAll, `{"spec":{"csv":"somebody-elses"}}`)
				w.deleted(installedOperators, metav1.NamespaceAll)
			})
		}},
		{name: "Chandler's definitions are deleted", do: func(w *world) {
			w.repeatedly(30*time.Second, 3*time.Second, func() { w.deleted(definitions, metav1.NamespaceAll) })
		}},
		{name: "three hundred clusters are unreachable", do: (*world).unreachable},
	})
	w.t.Run("a deployment that is deleted comes back", func(t *testing.T) { w.in(t).deploymentDeleted() })
}

func (w *world) dynamic() dynamic.Interface {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.cluster.RESTConfig())
	w.must(err)
	return client
}

// mine lists the objects of a kind that are Chandler's by their names.
func (w *world) mine(kind schema.GroupVersionResource, namespace string) (names []types.NamespacedName) {
	w.t.Helper()
	list, err := w.dynamic().Resource(kind).Namespace(namespace).List(w.ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	for _, o := range list.Items {
		if kind == stepLogs || kind == installedOperators || strings.HasPrefix(o.GetName(), "chandler-") ||
			strings.HasSuffix(o.GetName(), ".chandler-fleet.io") {
			names = append(names, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
		}
	}
	return names
}

// deleted deletes every object of a kind that is Chandler's; what it may not delete stays.
func (w *world) deleted(kind schema.GroupVersionResource, namespace string) {
	w.t.Helper()
	for _, o := range w.mine(kind, namespace) {
		err := w.dynamic().Resource(kind).Namespace(o.Namespace).Delete(w.ctx, o.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) && !refusedByCluster(err) {
			w.t.Errorf("delete %s %s: %v", kind.Resource, o, err)
		}
	}
}

// patched edits them.
func (w *world) patched(kind schema.GroupVersionResource, namespace, patch string) {
	w.t.Helper()
	for _, o := range w.mine(kind, namespace) {
		_, err := w.dynamic().Resource(kind).Namespace(o.Namespace).Patch(w.ctx, o.Name, types.MergePatchType,
			[]byte(patch), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) && !refusedByCluster(err) {
			w.t.Errorf("edit %s %s: %v", kind.Resource, o, err)
		}
	}
}

// refusedByCluster says that a policy keeps what is to be harmed from harm.
func refusedByCluster(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// deploymentDeleted deletes the workload of an installed operator, and wants it back.
func (w *world) deploymentDeleted() {
	w.t.Helper()
	w.addCatalog("back", example(w.t))
	w.group("back")
	w.subscribe("back", subscription{Name: "light", Package: "lighthouse", Catalog: "back"})
	w.succeeded("back", "lighthouse.v1.2.0")
	all := w.dynamic().Resource(deployments).Namespace("back")
	list, err := all.List(w.ctx, metav1.ListOptions{})
	w.must(err)
	for _, d := range list.Items {
		w.must(all.Delete(w.ctx, d.GetName(), metav1.DeleteOptions{}))
	}
	w.eventually("the deployment is there again", func() (string, bool) {
		now, err := all.List(w.ctx, metav1.ListOptions{})
		w.must(err)
		return fmt.Sprint(len(now.Items)), len(now.Items) == len(list.Items) && len(list.Items) > 0
	})
	w.succeeded("back", "lighthouse.v1.2.0")
}

// unreachables is how many clusters cannot be reached beside the one that can.
const unreachables = 300

// unreachable registers clusters whose API servers take connections and answer nothing, or take none.
func (w *world) unreachable() {
	w.t.Helper()
	hole, err := new(net.ListenConfig).Listen(w.ctx, "tcp", "127.0.0.1:0")
	w.must(err)
	defer hole.Close() //nolint:errcheck // nothing was promised to anybody
	go swallow(w.ctx, hole)
	n := unreachables
	if !thorough {
		n /= brief
	}
	for i := range n {
		cfg, err := clientcmd.Load(w.cluster.Kubeconfig())
		w.must(err)
		for _, c := range cfg.Clusters {
			c.Server = "https://" + hole.Addr().String()
			if i%2 == 0 {
				c.Server = "https://127.0.0.1:1"
			}
		}
		kubeconfig, err := clientcmd.Write(*cfg)
		w.must(err)
		w.must(w.Post(w.ctx, "/api/v1/clusters", map[string]any{
			"name": fmt.Sprintf("away-%d", i), "kubeconfig": string(kubeconfig),
		}, nil))
	}
	const second = "second-healthy"
	w.must(w.Post(w.ctx, "/api/v1/clusters", map[string]any{
		"name": second, "kubeconfig": string(testcluster.New(w.t).Kubeconfig()),
	}, nil))
	w.addedBefore("beside")
	begun := time.Now()
	w.group("beside")
	w.subscribe("beside", subscription{Name: "light", Package: "lighthouse", Catalog: "beside"})
	there := func(resource string) string {
		return strings.Replace(scopePath("beside", resource), "/"+spoke+"/", "/"+second+"/", 1)
	}
	w.must(w.Post(w.ctx, there("operatorgroups"), map[string]any{
		"name": "group", "targetNamespaces": []string{"beside"},
	}, nil))
	w.must(w.Post(w.ctx, there("subscriptions"), subscription{
		Name: "light", Package: "lighthouse", Catalog: "beside",
	}, nil))
	w.succeeded("beside", "lighthouse.v1.2.0")
	w.eventually("the operator of the second cluster is Succeeded", func() (string, bool) {
		var list struct{ Items []operator }
		w.must(w.Get(w.ctx, "/api/v1/operators?namespace=beside&cluster="+second, &list))
		return fmt.Sprint(list.Items), len(list.Items) == 1 && list.Items[0].Phase == "Succeeded"
	})
	w.t.Logf("beside %d clusters that are away installs on two healthy ones take %s", n,
		time.Since(begun).Round(time.Millisecond))
	w.must(w.Do(w.ctx, "DELETE", "/api/v1/clusters/"+second, nil, nil))
	for i := range n {
		w.must(w.Do(w.ctx, "DELETE", fmt.Sprintf("/api/v1/clusters/away-%d", i), nil, nil))
	}
}

// swallow takes connections and says nothing.
func swallow(ctx context.Context, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		context.AfterFunc(ctx, func() { _ = c.Close() })
	}
}
