package bundles_test

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// snapshot is everything that a cluster holds, with the labels of each object.
type snapshot map[protocol.ObjectRef]map[string]string

// fleeting are kinds whose objects come and go with what Kubernetes does for others.
func fleeting(kind string) bool {
	return slices.Contains([]string{"Event", "Lease", "EndpointSlice", "Endpoints", "IPAddress"}, kind)
}

// takeSnapshot lists every resource that the API server serves. References are without their version.
func takeSnapshot(ctx context.Context, config *rest.Config) (snapshot, error) {
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	md, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := disco.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	out := snapshot{}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range l.APIResources {
			if fleeting(r.Kind) || !slices.Contains(r.Verbs, "list") {
				continue
			}
			if err := out.list(ctx, md, gv.WithResource(r.Name), r.Kind); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (s snapshot) list(ctx context.Context, md metadata.Interface, gvr schema.GroupVersionResource, kind string) error {
	list, err := md.Resource(gvr).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return nil // a definition that went meanwhile, or nothing that is stored
	}
	if err != nil {
		return errors.Join(errors.New(gvr.String()), err)
	}
	for _, o := range list.Items {
		s[protocol.ObjectRef{Group: gvr.Group, Kind: kind, Namespace: o.Namespace, Name: o.Name}] = o.Labels
	}
	return nil
}

// minus returns what s holds and t does not, sorted.
func (s snapshot) minus(t snapshot) []protocol.ObjectRef {
	var out []protocol.ObjectRef
	for ref := range s {
		if _, ok := t[ref]; !ok {
			out = append(out, ref)
		}
	}
	slices.SortFunc(out, func(a, b protocol.ObjectRef) int {
		return strings.Compare(a.Group+" "+a.String(), b.Group+" "+b.String())
	})
	return out
}

// ofKubernetes reports what Kubernetes itself adds to a namespace, and for a custom resource definition.
func (s snapshot) ofKubernetes(ref protocol.ObjectRef) bool {
	switch ref.Kind {
	case "ServiceAccount":
		return ref.Name == "default"
	case "ConfigMap":
		return ref.Name == "kube-root-ca.crt"
	case "APIService":
		return s[ref]["kube-aggregator.kubernetes.io/automanaged"] != ""
	}
	return false
}

// ofChandler reports what Chandler keeps in a cluster for itself, whatever is installed: the logs of what was done,
// and, from the first operator on, the definitions of the kinds that operators read, who may read them and the policies
// that guard them.
func ofChandler(ref protocol.ObjectRef) bool {
	switch ref.Kind {
	case "PlanExecution":
		return true
	case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ClusterRole":
		return ref.Name == "chandler-mirror.chandler-fleet.io" || ref.Name == "chandler-intents.chandler-fleet.io"
	case "ConfigMap": // the positions of namespaces in which something was begun
		return ref.Namespace == "chandler-system" && strings.HasPrefix(ref.Name, "chandler-seen-")
	case "CustomResourceDefinition":
		return strings.HasSuffix(ref.Name, ".operators.coreos.com")
	}
	return false
}
