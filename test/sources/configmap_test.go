package sources_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/configmap"
	"github.com/chandler-fleet/chandler/test/testcluster"
)

// data is a catalog of one package in the form of a config map.
var data = map[string]string{
	"customResourceDefinitions": `
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: tides.sea.test}
  spec: {group: sea.test, names: {kind: Tide, plural: tides}, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}
`,
	"clusterServiceVersions": `
- apiVersion: operators.coreos.com/v1alpha1
  kind: ClusterServiceVersion
  metadata: {name: tide.v1}
  spec: {version: 1.0.0, install: {strategy: deployment}, customresourcedefinitions: {owned: [{name: tides.sea.test, version: v1, kind: Tide}]}}
- apiVersion: operators.coreos.com/v1alpha1
  kind: ClusterServiceVersion
  metadata: {name: tide.v2}
  spec: {version: 2.0.0, replaces: tide.v1, install: {strategy: deployment}, customresourcedefinitions: {owned: [{name: tides.sea.test, version: v1, kind: Tide}]}}
`,
	"packages": "[{packageName: tide, channels: [{name: stable, currentCSV: tide.v2}], defaultChannel: stable}]",
}

// TestConfigMap: R-CAT-84, on a real API server with a kubeconfig of a certificate.
func TestConfigMap(t *testing.T) {
	t.Parallel()
	cluster, namespace := testcluster.Shared(t)
	kube, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	maps := kube.CoreV1().ConfigMaps(namespace)
	made, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}, Data: data},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := configmap.Options{Kubeconfig: cluster.Kubeconfig(), Namespace: namespace, Name: "fleet", Dir: t.TempDir()}
	tree, fingerprint, end, err := configmap.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := load.Load(tree, load.Options{})
	if err != nil || len(c.Findings) > 0 || len(c.Packages) != 1 || len(c.Packages[0].Bundles) != 2 ||
		c.Packages[0].Bundles[1].Content == "" {
		t.Errorf("%v, findings %v, packages %+v", err, c.Findings, c.Packages)
	}
	if err := end(); err != nil {
		t.Error(err)
	}

	// A label is no new catalog, a new package is one.
	made.Labels = map[string]string{"seen": "yes"}
	if made, err = maps.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if now, err := configmap.Probe(t.Context(), o); err != nil || now != fingerprint {
		t.Errorf("after a label: %s, %v; want %s", now, err, fingerprint)
	}
	made.Data["packages"] = "[]"
	if _, err = maps.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if now, err := configmap.Probe(t.Context(), o); err != nil || now == fingerprint {
		t.Errorf("after a change: %s, %v", now, err)
	}
	o.Name = "none"
	if _, err := configmap.Probe(t.Context(), o); !errs.Is(err, errs.NotFound) {
		t.Errorf("a config map that is not there: %v", err)
	}
}
