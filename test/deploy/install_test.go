package deploy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clientkubernetes "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/chandler-fleet/chandler/test/testcluster"
)

const (
	// bound is how long pods may take to become ready: a second on an idle machine; other packages test beside.
	bound = 3 * time.Minute
	// every is how often a cluster is asked.
	every = 100 * time.Millisecond
)

// warnings collects what the API server warns of.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

func (w *warnings) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

// place is a namespace of a real cluster that admits restricted pods only, with everything in it that the
// chart expects to be there.
type place struct {
	cluster   *testcluster.Cluster
	namespace string
	client    clientkubernetes.Interface
	dynamic   dynamic.Interface
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	warnings  *warnings
}

func newPlace(t *testing.T) place {
	t.Helper()
	cluster, namespace := testcluster.Shared(t)
	p := place{cluster: cluster, namespace: namespace, warnings: &warnings{}}
	config := cluster.RESTConfig()
	config.WarningHandler = p.warnings
	p.connect(t, config)
	p.restrict(t)
	p.prepare(t)
	return p
}

func (p *place) connect(t *testing.T, config *rest.Config) {
	t.Helper()
	var err error
	if p.client, err = clientkubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if p.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	p.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory{p.client.Discovery()})
}

// memory lets a mapper use discovery as it is: the kinds of a cluster do not change during a test.
type memory struct{ discovery.DiscoveryInterface }

func (memory) Fresh() bool { return true }
func (memory) Invalidate() {}

// restrict refuses every pod that does not meet the restricted standard, and warns of workloads that would make one.
func (p *place) restrict(t *testing.T) {
	t.Helper()
	const labels = `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted","pod-security.kubernetes.io/warn":"restricted"}}}`
	_, err := p.client.CoreV1().Namespaces().Patch(t.Context(), p.namespace, types.MergePatchType, []byte(labels),
		metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// prepare makes what the values of both tests name: Secrets, a catalog in a ConfigMap, and one on a disk.
func (p *place) prepare(t *testing.T) {
	t.Helper()
	create := metav1.CreateOptions{}
	for _, name := range []string{"chandler", "control-plane", "bus", "postgres-ca", "nats-ca", "nats-client"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: madeKeys(t)}
		secret.StringData["CHANDLER_ADMIN_DATABASE_URL"] = "postgres://postgres:secret@postgres.data.svc/chandler"
		secret.StringData["CHANDLER_NATS_URL"] = "nats://nats.data.svc:4222"
		for _, key := range []string{"root.pem", "tls.crt", "tls.key"} {
			secret.StringData[key] = "certificate"
		}
		if _, err := p.client.CoreV1().Secrets(p.namespace).Create(t.Context(), secret, create); err != nil {
			t.Fatal(err)
		}
	}
	catalog := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "example-catalog"},
		Data:       map[string]string{"catalog.yaml": ""},
	}
	if _, err := p.client.CoreV1().ConfigMaps(p.namespace).Create(t.Context(), catalog, create); err != nil {
		t.Fatal(err)
	}
	p.prepareDisk(t)
}

func (p *place) prepareDisk(t *testing.T) {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}
	volume.Spec.Capacity, volume.Spec.AccessModes = size, []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/nowhere"}
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: p.namespace, Name: "certified-catalog"}
	volumes := p.client.CoreV1().PersistentVolumes()
	if _, err := volumes.Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := volumes.Delete(context.Background(), volume.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "certified-catalog"}}
	claim.Spec.AccessModes, claim.Spec.VolumeName, claim.Spec.StorageClassName = volume.Spec.AccessModes, volume.Name,
		new(string)
	claim.Spec.Resources.Requests = size
	if _, err := p.client.CoreV1().PersistentVolumeClaims(p.namespace).Create(
		t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// apply sends an object as kubectl apply --server-side does; a field that the API does not know is an error.
func (p *place) apply(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	if foreign(o) {
		return
	}
	mapping, err := p.mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if err != nil {
		t.Fatalf("%s %s: the cluster does not know this kind: %v", o.GetKind(), o.GetName(), err)
	}
	resources := p.dynamic.Resource(mapping.Resource).Namespace(o.GetNamespace())
	if _, err := resources.Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "test"}); err != nil {
		t.Errorf("%s %s is refused: %v", o.GetKind(), o.GetName(), err)
	}
}

// foreign says whether an operator brings the kind, which bare clusters do not serve; the chart makes such objects only
// where its values ask for them.
func foreign(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == "monitoring.coreos.com"
}

// awaitAvailable returns when the Deployment runs as many pods of its newest form as it shall.
func (p *place) awaitAvailable(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		d, err := p.client.AppsV1().Deployments(p.namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && complete(d) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the Deployment %s is not available: %v\n%s", name, err, p.why(t, d))
		case <-ticker.C:
		}
	}
}

func complete(d *appsv1.Deployment) bool {
	s, want := d.Status, *d.Spec.Replicas
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want && s.AvailableReplicas == want &&
		s.Replicas == want
}

// why is what the cluster says about pods that do not run.
func (p *place) why(t *testing.T, d *appsv1.Deployment) string {
	t.Helper()
	text := fmt.Sprintf("status: %+v\n", d.Status)
	events, err := p.client.CoreV1().Events(p.namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return text + err.Error()
	}
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning {
			text += fmt.Sprintf("%s %s: %s: %s\n", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
	return text
}

// Every object is accepted by the API server, without a warning, and the pods run where only restricted ones may.
func TestChartIsAccepted(t *testing.T) {
	t.Parallel()
	for _, values := range allValues {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			objects := render(t, p.namespace, values)
			for _, o := range objects {
				p.apply(t, o)
			}
			if t.Failed() {
				return
			}
			for _, o := range objects {
				if o.GetKind() == "Deployment" {
					p.awaitAvailable(t, o.GetName())
				}
			}
			for _, w := range p.warnings.list() {
				t.Errorf("the API server warns: %s", w)
			}
		})
	}
}

// The namespace of these tests has teeth: a pod like any other does not get in.
func TestRestrictedMeansRestricted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "loose"}}
	pod.Spec.Containers = []corev1.Container{{Name: "loose", Image: "loose"}}
	_, err := p.client.CoreV1().Pods(p.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "restricted") {
		t.Errorf("a pod without a security context: %v", err)
	}
}

// helm itself installs the chart (the migration first), changes a setting, and takes everything away.
func TestHelmInstallsUpgradesUninstalls(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	do := func(verb string, args ...string) {
		t.Helper()
		base := []string{
			verb, release, "--namespace", p.namespace, "--kubeconfig", p.cluster.KubeconfigPath(),
			"--wait", "--timeout", bound.String(),
		}
		helm(t, append(base, args...)...)
	}
	do("install", chart(t), "--values", valuesFile(t, "default"))
	first := p.podNames(t)
	if len(first) != 2*len(services) {
		t.Errorf("pods after the installation: %v", first)
	}

	do("upgrade", chart(t), "--values", valuesFile(t, "default"), "--set", "log.level=debug")
	for _, name := range services {
		p.awaitAvailable(t, release+"-"+name)
	}
	config, err := p.client.CoreV1().ConfigMaps(p.namespace).Get(t.Context(), release+"-resolver", metav1.GetOptions{})
	if err != nil || config.Data["CHANDLER_LOG_LEVEL"] != "debug" {
		t.Errorf("settings after the upgrade: %v, %v", config.Data, err)
	}

	do("uninstall")
	p.nothingLeft(t)
}

// podNames are the pods that the services have and that are not about to end.
func (p *place) podNames(t *testing.T) (names []string) {
	t.Helper()
	pods, err := p.client.CoreV1().Pods(p.namespace).List(
		t.Context(), metav1.ListOptions{LabelSelector: componentLabel + " in (" + strings.Join(services, ",") + ")"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			names = append(names, pods.Items[i].Name)
		}
	}
	return names
}

// nothingLeft looks for objects of the release in every kind that the chart makes.
func (p *place) nothingLeft(t *testing.T) {
	t.Helper()
	kinds := map[string]*unstructured.Unstructured{}
	for _, o := range render(t, p.namespace, "full") {
		kinds[o.GetKind()] = o
	}
	delete(kinds, "Pod") // they go in their own time
	for kind, o := range kinds {
		if foreign(o) {
			continue
		}
		mapping, err := p.mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if err != nil {
			t.Fatal(err)
		}
		list, err := p.dynamic.Resource(mapping.Resource).Namespace(p.namespace).List(
			t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=chandler"})
		if err != nil {
			t.Fatal(err)
		}
		for _, left := range list.Items {
			if left.GetDeletionTimestamp() == nil {
				t.Errorf("helm uninstall leaves %s %s", kind, left.GetName())
			}
		}
	}
}
