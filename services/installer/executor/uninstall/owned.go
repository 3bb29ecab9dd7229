package uninstall

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/facts"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// OwnedKinds are the kinds of which a ClusterServiceVersion may own objects (R-CSV-20, R-CAT-53), in the order
// in which they are removed: what runs first, what it may do last.
func OwnedKinds() []schema.GroupVersionKind {
	core := func(kind string) schema.GroupVersionKind { return schema.GroupVersionKind{Version: "v1", Kind: kind} }
	of := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	}
	return []schema.GroupVersionKind{
		render.GVKMutatingWebhook, render.GVKValidatingWebhook, render.GVKAPIService,
		kube.GVKDeployment, core("Service"), core("ConfigMap"), core("Secret"),
		of("policy", "PodDisruptionBudget"), of("networking.k8s.io", "NetworkPolicy"),
		of("scheduling.k8s.io", "PriorityClass"),
		of("monitoring.coreos.com", "ServiceMonitor"), of("monitoring.coreos.com", "PrometheusRule"),
		of("autoscaling.k8s.io", "VerticalPodAutoscaler"),
		of("console.openshift.io", "ConsoleCLIDownload"), of("console.openshift.io", "ConsoleLink"),
		of("console.openshift.io", "ConsolePlugin"), of("console.openshift.io", "ConsoleQuickStart"),
		of("console.openshift.io", "ConsoleYAMLSample"),
		of("rbac.authorization.k8s.io", "RoleBinding"), of("rbac.authorization.k8s.io", "ClusterRoleBinding"),
		of("rbac.authorization.k8s.io", "Role"), of("rbac.authorization.k8s.io", "ClusterRole"),
		kube.GVKServiceAccount,
	}
}

// haltedKinds are what calls an operator and what runs of it, in this order: routing stops first,
// so that no call reaches a missing backend.
func haltedKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		render.GVKMutatingWebhook, render.GVKValidatingWebhook, render.GVKAPIService,
		kube.GVKDeployment,
	}
}

// removableKinds are the kinds of which an operator may own objects, its condition included.
func removableKinds() []schema.GroupVersionKind { return append(OwnedKinds(), facts.GVKCondition) }
