package kubesim

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Cluster is one cluster. Its methods may be called side by side.
type Cluster struct {
	// Version is the Kubernetes version that it says it has.
	Version string
	// Ready says whether a Deployment becomes available; nil is all of them. It must not block.
	Ready func(*unstructured.Unstructured) bool

	mu      sync.Mutex
	version uint64
	kinds   map[schema.GroupResource]*kind
	owned   map[types.UID][]place // by owner
}

// newCluster returns a cluster with the namespaces that every one has.
func newCluster() *Cluster {
	c := &Cluster{
		Version: "v1.34.4", kinds: map[schema.GroupResource]*kind{}, owned: map[types.UID][]place{},
	}
	for _, k := range builtInKinds() {
		c.kinds[k.resource()] = k
	}
	namespaces := c.kinds[schema.GroupResource{Resource: "namespaces"}]
	for _, ns := range []string{"default", "kube-system", "kube-public"} {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(namespaces.gvk("v1"))
		o.SetName(ns)
		c.born(o)
		c.settle(namespaces, o)
		c.put(namespaces, o)
	}
	return c
}

func (*Cluster) now() string { return time.Now().UTC().Format(time.RFC3339) }

func versionText(v uint64) string { return strconv.FormatUint(v, 10) }

// born gives a new object what the API server gives it.
func (*Cluster) born(o *unstructured.Unstructured) {
	o.SetUID(types.UID(uuid.NewString()))
	o.SetCreationTimestamp(metav1.Now())
	o.SetGeneration(1)
}

// settle does what the controllers of Kubernetes would do of an object that is about to be stored.
func (c *Cluster) settle(k *kind, o *unstructured.Unstructured) {
	switch k.group + "/" + k.kind {
	case "/Namespace":
		set(o, "Active", "status", "phase")
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["kubernetes.io/metadata.name"] = o.GetName()
		o.SetLabels(labels)
	case "apiextensions.k8s.io/CustomResourceDefinition":
		if o.GetDeletionTimestamp() == nil {
			set(o, c.define(o), "status")
		}
	case "apps/Deployment":
		if c.Ready == nil || c.Ready(o) {
			set(o, c.available(o), "status")
		}
	case "apiregistration.k8s.io/APIService":
		set(o, []any{map[string]any{
			"type": "Available", "status": "True", "reason": "Passed", "lastTransitionTime": c.now(),
		}}, "status", "conditions")
	}
}

// available is the status of a Deployment of which all replicas are ready; it stays as it is while nothing changes.
func (c *Cluster) available(o *unstructured.Unstructured) map[string]any {
	was, ok, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	if ok && was == o.GetGeneration() {
		status, _, _ := unstructured.NestedMap(o.Object, "status")
		return status
	}
	replicas, ok, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if !ok {
		replicas = 1
	}
	condition := func(typ, reason string) any {
		return map[string]any{
			"type": typ, "status": "True", "reason": reason, "lastTransitionTime": c.now(), "lastUpdateTime": c.now(),
		}
	}
	return map[string]any{
		"observedGeneration": o.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas,
		"readyReplicas": replicas, "availableReplicas": replicas,
		"conditions": []any{
			condition("Available", "MinimumReplicasAvailable"), condition("Progressing", "NewReplicaSetAvailable"),
		},
	}
}

func set(o *unstructured.Unstructured, value any, fields ...string) {
	if err := unstructured.SetNestedField(o.Object, value, fields...); err != nil {
		panic(fmt.Sprintf("kubesim: %v of %s: %v", fields, o.GetName(), err))
	}
}
