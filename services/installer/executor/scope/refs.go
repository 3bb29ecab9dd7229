package scope

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// RefOf names an object of the cluster.
func RefOf(o *unstructured.Unstructured) protocol.ObjectRef {
	gvk := o.GroupVersionKind()
	return protocol.ObjectRef{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: o.GetNamespace(),
		Name: o.GetName(),
	}
}

// RefIn names the object of the cluster that a rendered object becomes.
func RefIn(o render.Object) protocol.ObjectRef {
	gvk := o.GVK
	if gvk == kube.GVKCSV {
		gvk = kube.GVKInstalledOperator
	}
	return protocol.ObjectRef{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: o.Namespace,
		Name: o.Name,
	}
}

// SortOf tells apart what must not be set about together (R-IP-20): the ClusterServiceVersion goes alone, since
// the others name it as their owner; accounts and rights need no CRD, so they do not wait for the API
// server to establish one; other kinds may need one; Deployments come after all, and what calls them after these.
func SortOf(o render.Object) string {
	switch o.GVK.Kind {
	case kube.GVKCRD.Kind, kube.GVKServiceAccount.Kind, "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
		return kube.GVKCRD.Kind
	case kube.GVKCSV.Kind, kube.GVKDeployment.Kind:
		return o.GVK.Kind
	}
	if render.Calls(o.GVK) {
		return render.GVKAPIService.Kind
	}
	return ""
}
