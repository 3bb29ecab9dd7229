package kube

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kinds of Kubernetes that the whole executor deals with.
var (
	GVKDeployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	GVKReplicaSet = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
	GVKPod        = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	GVKCRD        = schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition",
	}
	GVKServiceAccount = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
	GVKNamespace      = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
)

// SelectManaged selects what Chandler wrote.
const SelectManaged = LabelManaged + "=true"
