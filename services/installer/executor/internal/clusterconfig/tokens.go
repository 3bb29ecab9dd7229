package clusterconfig

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
)

// Kinds of OpenShift that say together whether operators get short-lived tokens of a cloud.
var (
	gvkAuthentication = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Authentication"}
	gvkInfrastructure = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Infrastructure"}
	gvkCredentials    = schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "CloudCredential"}
)

// theCluster is the name of the one object of each of these kinds.
const theCluster = "cluster"

// tokenField is a field of the one object of a kind.
type tokenField struct {
	gvk  schema.GroupVersionKind
	path []string
}

var (
	issuer   = tokenField{gvkAuthentication, []string{"spec", "serviceAccountIssuer"}}
	mode     = tokenField{gvkCredentials, []string{"spec", "credentialsMode"}}
	platform = tokenField{gvkInfrastructure, []string{"status", "platformStatus", "type"}}
)

// TokenKinds are watched for hints that TokenAuth answers otherwise.
func TokenKinds() []watch.Kind {
	var out []watch.Kind
	for _, f := range []tokenField{issuer, mode, platform} {
		resource := kube.Resource(f.gvk)
		out = append(out, watch.Kind{
			GVK: f.gvk, Resource: resource.Resource, CRD: resource.GroupResource().String(),
			Status: true,
		})
	}
	return out
}

// IsTokenKind reports one of TokenKinds.
func IsTokenKind(gvk schema.GroupVersionKind) bool {
	return gvk == gvkAuthentication || gvk == gvkInfrastructure || gvk == gvkCredentials
}

// TokenAuth finds the cloud whose short-lived tokens operators of the cluster get (R-TOK-1), protocol.TokenAuthNone
// where they get none:
//
//	CloudCredential spec.credentialsMode is Manual, Authentication
//	spec.serviceAccountIssuer is set, Infrastructure
//	status.platformStatus.type is AWS, Azure or GCP                 that type
//	otherwise, and where a kind or its object is not there          none
func TokenAuth(ctx context.Context, c *kube.Epoch) (string, error) {
	values := map[schema.GroupVersionKind]string{}
	for _, f := range []tokenField{mode, issuer, platform} {
		o, err := c.Get(ctx, f.gvk, "", theCluster)
		if err != nil {
			return "", err
		}
		if o == nil {
			return protocol.TokenAuthNone, nil
		}
		text, _, err := unstructured.NestedString(o.Object, f.path...)
		if err != nil {
			return protocol.TokenAuthNone, nil //nolint:nilerr // a field of another form is none that says so
		}
		values[f.gvk] = text
	}
	switch cloud := values[gvkInfrastructure]; {
	case values[gvkCredentials] != "Manual", values[gvkAuthentication] == "":
	case cloud == protocol.TokenAuthAWS, cloud == protocol.TokenAuthAzure, cloud == protocol.TokenAuthGCP:
		return cloud, nil
	}
	return protocol.TokenAuthNone, nil
}
