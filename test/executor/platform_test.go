package executor_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"
)

// proxyDefinition is the kind in which OpenShift keeps the proxy of a cluster, as far as it matters here: what people
// ask for stands in the spec, what holds in the status, written apart.
const proxyDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: proxies.config.openshift.io
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: config.openshift.io
  scope: Cluster
  names: {kind: Proxy, listKind: ProxyList, plural: proxies, singular: proxy}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestClusterProxy: R-PRX-1, R-PRX-4: what the status of the cluster's Proxy object says stands in the environment of
// every container, the three variables as one unit, and follows it; the kind may come to a cluster that runs. Where the
// object is, it counts and Chandler's ConfigMap does not; a subscription that says a word on any of the three gets none
// of them (R-SUB-10).
func TestClusterProxy(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	follows, own := operator{name: "follows", version: "1.0.0"}, operator{name: "own", version: "1.0.0"}
	p := b.plan("follows", "follows", planned{content: follows.content(t)})
	b.want("follows", p)
	b.finishes(t, "follows", p, follows.csv())
	q := b.plan("own", "own", planned{
		content: own.content(t),
		config:  []byte(`{"env":[{"name":"HTTP_PROXY","value":"http://own.example.com"}]}`),
	})
	b.want("own", q)
	b.finishes(t, "own", q, own.csv())
	_, err := b.kube.CoreV1().ConfigMaps("chandler-system").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "chandler-proxy"},
		Data:       map[string]string{"HTTP_PROXY": "http://map.example.com"},
	}, metav1.CreateOptions{})
	must(t, err)
	b.awaitVariables(t, "follows", map[string]string{"HTTP_PROXY": "http://map.example.com"})

	dyn := b.dynamic(t)
	b.create(t, dyn, "apiextensions.k8s.io/v1", "customresourcedefinitions", proxyDefinition)
	proxies := dyn.Resource(schema.GroupVersionResource{
		Group: "config.openshift.io", Version: "v1",
		Resource: "proxies",
	})
	await(t, "the Proxy object", func(ctx context.Context) error {
		_, err := proxies.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "config.openshift.io/v1", "kind": "Proxy", "metadata": map[string]any{"name": "cluster"},
			"spec": map[string]any{"httpsProxy": "http://asked.example.com"},
		}}, metav1.CreateOptions{})
		return err
	})
	b.awaitVariables(t, "follows", map[string]string{}) // what is only asked for does not hold yet
	for _, status := range []map[string]any{
		{
			"httpProxy": "http://one.example.com", "httpsProxy": "http://two.example.com",
			"noProxy": ".svc,.cluster.local",
		},
		{"httpsProxy": "http://three.example.com"},
	} {
		await(t, "status of the Proxy object", func(ctx context.Context) error {
			o, err := proxies.Get(ctx, "cluster", metav1.GetOptions{})
			if err != nil {
				return err
			}
			o.Object["status"] = status
			_, err = proxies.UpdateStatus(ctx, o, metav1.UpdateOptions{})
			return err
		})
		want := map[string]string{}
		for field, name := range map[string]string{
			"httpProxy": "HTTP_PROXY", "httpsProxy": "HTTPS_PROXY",
			"noProxy": "NO_PROXY",
		} {
			if v, ok := status[field].(string); ok {
				want[name] = v
			}
		}
		b.awaitVariables(t, "follows", want)
	}
	b.awaitVariables(t, "own", map[string]string{"HTTP_PROXY": "http://own.example.com"})
	must(t, proxies.Delete(t.Context(), "cluster", metav1.DeleteOptions{}))
	b.awaitVariables(t, "follows", map[string]string{"HTTP_PROXY": "http://map.example.com"})
}

// create makes an object of the cluster's from its text.
func (b *bed) create(t *testing.T, dyn dynamic.Interface, groupVersion, resource, text string) {
	t.Helper()
	gv, err := schema.ParseGroupVersion(groupVersion)
	must(t, err)
	var o unstructured.Unstructured
	must(t, yaml.Unmarshal([]byte(text), &o.Object))
	_, err = dyn.Resource(gv.WithResource(resource)).Create(t.Context(), &o, metav1.CreateOptions{})
	must(t, err)
}

// awaitVariables waits until the containers of a namespace's Deployment have exactly these of the proxy's variables.
func (b *bed) awaitVariables(t *testing.T, ns string, want map[string]string) {
	t.Helper()
	await(t, "proxy of "+ns, func(ctx context.Context) error {
		d, err := b.kube.AppsV1().Deployments(ns).Get(ctx, ns+"-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		got := map[string]string{}
		for _, e := range d.Spec.Template.Spec.Containers[0].Env {
			switch e.Name {
			case "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY":
				got[e.Name] = e.Value
			}
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("the variables are %v, want %v", got, want)
		}
		return nil
	})
}

// TestTrustedCAs: R-PRX-5: the platform's bundle of CAs reaches an operator as the documents say: an empty ConfigMap
// with the platform's label in the operator's namespace, mounted by the subscription's configuration. What the platform
// puts in is its own and stays.
func TestTrustedCAs(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	b.namespace(t, "ops")
	maps := b.kube.CoreV1().ConfigMaps("ops")
	trusted, err := maps.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "trusted-ca",
			Labels: map[string]string{"config.openshift.io/inject-trusted-cabundle": "true"},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	o := operator{name: "ops", version: "1.0.0"}
	p := b.plan("ops", "ops", planned{content: o.content(t), config: []byte(`{
		"volumes": [{"name": "trusted-ca", "configMap": {"name": "trusted-ca", "items": [{"key": "ca-bundle.crt", "path": "tls-ca-bundle.pem"}]}}],
		"volumeMounts": [{"name": "trusted-ca", "mountPath": "/etc/pki/ca-trust/extracted/pem", "readOnly": true}]}`)})
	b.want("ops", p)
	b.finishes(t, "ops", p, o.csv())
	pod := b.controller(t, "ops").Spec.Template.Spec
	if diff := cmp.Diff([]corev1.VolumeMount{{
		Name: "trusted-ca", MountPath: "/etc/pki/ca-trust/extracted/pem",
		ReadOnly: true,
	}}, pod.Containers[0].VolumeMounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	if len(pod.Volumes) != 1 || pod.Volumes[0].ConfigMap == nil || pod.Volumes[0].ConfigMap.Name != "trusted-ca" ||
		!cmp.Equal(pod.Volumes[0].ConfigMap.Items, []corev1.KeyToPath{
			{Key: "ca-bundle.crt", Path: "tls-ca-bundle.pem"},
		}) {
		t.Errorf("volumes %+v", pod.Volumes)
	}
	trusted.Data = map[string]string{"ca-bundle.crt": "-----BEGIN CERTIFICATE-----"}
	_, err = maps.Update(t.Context(), trusted, metav1.UpdateOptions{})
	must(t, err)
	b.looked(t, b.scope("ops"))
	if now, err := maps.Get(t.Context(), "trusted-ca", metav1.GetOptions{}); err != nil || len(now.Data) != 1 {
		t.Errorf("the ConfigMap of the platform is %+v, %v", now, err)
	}
}
