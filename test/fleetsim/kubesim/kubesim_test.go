package kubesim_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/test/fleetsim/kubesim"
	"github.com/chandler-fleet/chandler/test/hubtest"
)

// content is a small bundle with a definition of its own and a Deployment.
func content(tb testing.TB, version, replaces string) bundle.Content {
	tb.Helper()
	csv := fmt.Sprintf(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: tide.v%[1]s}
spec:
  version: %[1]s
  replaces: %[2]q
  installModes: [{type: OwnNamespace, supported: true}, {type: SingleNamespace, supported: true}]
  customresourcedefinitions: {owned: [{name: gauges.tide.test, version: v1, kind: Gauge}]}
  install:
    strategy: deployment
    spec:
      permissions:
      - {serviceAccountName: tide, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}
      clusterPermissions:
      - {serviceAccountName: tide, rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]}
      deployments:
      - name: tide
        spec:
          replicas: 1
          selector: {matchLabels: {app: tide}}
          template:
            metadata: {labels: {app: tide}}
            spec: {serviceAccountName: tide, containers: [{name: manager, image: "registry.example.com/tide:%[1]s"}]}
`, version, replaces)
	crd := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.tide.test}
spec:
  group: tide.test
  scope: Namespaced
  names: {kind: Gauge, listKind: GaugeList, plural: gauges, singular: gauge}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`
	c, err := bundle.FromManifests([][]byte{[]byte(csv), []byte(crd)})
	must(tb, err)
	return c
}

// TestExecutor: the executor that serves real clusters installs an operator here, upgrades it, mends what somebody
// deleted, and a second executor takes over with the next epoch.
func TestExecutor(t *testing.T) {
	t.Parallel()
	server := kubesim.Start()
	t.Cleanup(func() { must(t, server.Close()) })
	server.Add("one")
	hub := hubtest.New(t)
	stop := run(t, hub, server, "first")

	one := hub.Plan("ops", "tide", hubtest.Bundle{Content: content(t, "1.0.0", "")})
	hub.Want("ops", one)
	succeeded(t, hub, "tide.v1.0.0")

	two := hub.Plan("ops", "tide", hubtest.Bundle{Content: content(t, "2.0.0", "tide.v1.0.0"), Replaces: "tide.v1.0.0"})
	s := hub.Scope("ops")
	s.Plans = []protocol.Plan{two}
	first := string(hub.Store(content(t, "1.0.0", "")))
	s.Installed = []protocol.Installed{{CSV: "tide.v1.0.0", Content: first, Plan: one.ID}}
	hub.Publish(s)
	succeeded(t, hub, "tide.v2.0.0")

	kube, err := kubernetes.NewForConfig(server.REST("one"))
	must(t, err)
	was, err := kube.AppsV1().Deployments("ops").Get(t.Context(), "tide", metav1.GetOptions{})
	must(t, err)
	must(t, kube.AppsV1().Deployments("ops").Delete(t.Context(), "tide", metav1.DeleteOptions{}))
	hubtest.Await(t, "the Deployment that somebody deleted", func(ctx context.Context) error {
		d, err := kube.AppsV1().Deployments("ops").Get(ctx, "tide", metav1.GetOptions{})
		if err == nil && d.UID == was.UID {
			return fmt.Errorf("it is the one of before")
		}
		return err
	})
	stop()
	run(t, hub, server, "second")
	hubtest.Await(t, "the second executor", func(ctx context.Context) error {
		r, _, err := hub.ClusterReport(ctx)
		if err == nil && r.HolderEpoch < 2 {
			return fmt.Errorf("epoch %d", r.HolderEpoch)
		}
		return err
	})
}

// run runs an executor for the cluster.
func run(t *testing.T, hub *hubtest.Hub, server *kubesim.Server, holder string) (stop func()) {
	t.Helper()
	e, err := executor.New(hub.Config(server.REST("one"), holder))
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			must(t, <-done)
		}
	}
	t.Cleanup(stop)
	return stop
}

func succeeded(t *testing.T, hub *hubtest.Hub, csv string) {
	t.Helper()
	hub.For(t).AwaitCSV("ops", csv, func(r protocol.CSVReport) bool {
		return len(r.History) > 0 && r.History[len(r.History)-1].Phase == "Succeeded"
	})
}

// TestWrites: what executors rely on of the API.
func TestWrites(t *testing.T) {
	t.Parallel()
	server := kubesim.Start()
	t.Cleanup(func() { must(t, server.Close()) })
	server.Add("one")
	kube, err := kubernetes.NewForConfig(server.REST("one"))
	must(t, err)
	ctx := t.Context()
	_, err = kube.CoreV1().ConfigMaps("nowhere").List(ctx, metav1.ListOptions{})
	must(t, err)
	made, err := kube.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
	must(t, err)
	if made.Status.Phase != "Active" {
		t.Errorf("namespace default is %q, want Active", made.Status.Phase)
	}
	made.Labels["a"] = "b"
	now, err := kube.CoreV1().Namespaces().Update(ctx, made, metav1.UpdateOptions{})
	must(t, err)
	made.Labels["a"] = "c"
	if _, err = kube.CoreV1().Namespaces().Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an older version: %v, want a conflict", err)
	}
	again, err := kube.CoreV1().Namespaces().Update(ctx, now, metav1.UpdateOptions{})
	must(t, err)
	if again.ResourceVersion != now.ResourceVersion {
		t.Errorf("an update that changes nothing is version %s, after %s", again.ResourceVersion, now.ResourceVersion)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
