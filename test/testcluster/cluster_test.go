package testcluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestClustersAreIsolated(t *testing.T) {
	a, b := New(t, Options{Name: "a"}), New(t, Options{Name: "b"})
	_, err := a.client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "only-in-a"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.CoreV1().Namespaces().Get(t.Context(), "only-in-a",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("namespace of a in b: %v", err)
	}

	stranger := a.RESTConfig()
	stranger.Host = b.RESTConfig().Host
	stranger.TLSClientConfig.CAData = b.RESTConfig().CAData
	if err := listNamespaces(t.Context(), stranger); !apierrors.IsUnauthorized(err) {
		t.Errorf("b answers the administrator of a with %v", err)
	}

	if n := storedKeys(t, a); n == 0 {
		t.Error("a has stored nothing")
	}
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := storedKeys(t, a); n != 0 {
		t.Errorf("a has left %d keys in the etcd that b uses", n)
	}
	createDeployment(t, b, metav1.NamespaceDefault, probe())
}

func TestKubeconfigIsComplete(t *testing.T) {
	c, _ := Shared(t)
	file, err := os.ReadFile(c.KubeconfigPath())
	if err != nil || !bytes.Equal(file, c.Kubeconfig()) {
		t.Errorf("file and value differ (%v)", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := listNamespaces(t.Context(), config); err != nil {
		t.Error(err)
	}
}

func TestPauseAndResume(t *testing.T) {
	c := New(t)
	if err := c.Pause(); err != nil {
		t.Fatal(err)
	}
	config := c.RESTConfig()
	config.Timeout = 500 * time.Millisecond
	if err := listNamespaces(t.Context(), config); err == nil ||
		apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		t.Errorf("a paused cluster answers with %v", err)
	}
	if err := c.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error { return listNamespaces(ctx, c.RESTConfig()) })
	createDeployment(t, c, metav1.NamespaceDefault, probe())
}

func TestStopLeavesNothing(t *testing.T) {
	ownPool(t)
	c, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	processes, dir := processesOf(c), c.Dir()
	if err := c.Pause(); err != nil { // the hardest case: a process that does nothing
		t.Fatal(err)
	}
	if err := errors.Join(c.Stop(), c.Stop()); err != nil {
		t.Fatal(err)
	}
	for _, id := range processes {
		if id.Alive() && c.plane.store.process.ID() != id { // etcd may serve other tests
			t.Errorf("process %v is alive", id)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there (%v)", dir, err)
	}
}

func TestStopReportsComponentThatEnded(t *testing.T) {
	c, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	scheduler := c.plane.processes[2]
	if err := scheduler.ID().Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-scheduler.Done()
	err = c.Stop()
	if err == nil || !strings.Contains(err.Error(), "kube-scheduler ended by itself") {
		t.Errorf("stop says %v", err)
	}
}

func TestStartRefusesUsedDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/precious", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("start says %v", err)
	}
	if _, err := os.Stat(dir + "/precious"); err != nil {
		t.Error(err)
	}
}

func listNamespaces(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	return err
}

// storedKeys counts what a cluster has in etcd.
func storedKeys(t *testing.T, c *Cluster) int {
	t.Helper()
	all, err := c.plane.store.list(t.Context(), c.plane.prefix(), false)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func TestRestartAPIServer(t *testing.T) {
	c := New(t)
	before := c.plane.apiServer.ID()
	if err := c.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if before.Alive() || !c.plane.apiServer.ID().Alive() {
		t.Errorf("the old API server is alive: %v, the new one: %v", before.Alive(), c.plane.apiServer.ID().Alive())
	}
	createDeployment(t, c, metav1.NamespaceDefault, probe())
}
