package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Names of what Chandler keeps in a target cluster.
const (
	SystemNamespace = "chandler-system"
	ExecutorAccount = "chandler-executor"
	ExecutorUser    = "system:serviceaccount:" + SystemNamespace + ":" + ExecutorAccount
	// EpochExtra is the key of the user's extra; Kubernetes lower-cases keys that come in headers.
	EpochExtra = "chandler-epoch"
)

const (
	// requestTimeout bounds every request but watches, so that a hung API server is noticed.
	requestTimeout = 20 * time.Second
	// clientQPS and clientBurst let one install run as fast as the API server answers; the server
	// has its own priority and fairness.
	clientQPS   = 200
	clientBurst = 400
	userAgent   = "chandler-executor"
)

// Base is the client with the kubeconfig's own identity.
type Base struct {
	config  *rest.Config
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
}

// NewBase makes the client; it does no request.
func NewBase(config *rest.Config) (*Base, error) {
	c := tuned(config)
	kube, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "kubeconfig")
	}
	dyn, err := dynamic.NewForConfig(c)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "kubeconfig")
	}
	return &Base{config: c, Kube: kube, Dynamic: dyn}, nil
}

func tuned(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.QPS, c.Burst, c.UserAgent = clientQPS, clientBurst, userAgent
	c.WarningHandlerWithContext = warningHandler{}
	if c.Timeout == 0 {
		c.Timeout = requestTimeout
	}
	return c
}

// Version returns the cluster's version, such as v1.34.4, and proves that it can be reached.
func (b *Base) Version(ctx context.Context) (string, error) {
	raw, err := b.Kube.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("ask the API server for its version: %w", err)
	}
	return parseVersion(raw)
}

// Epoch is the client that writes as Chandler's executor in one epoch.
type Epoch struct {
	Number    int64
	Dynamic   dynamic.Interface
	Metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	config    *rest.Config      // without impersonation
	writes    dynamic.Interface // what objects are applied with, where it is not Dynamic
}

// InEpoch returns the impersonating client for an epoch.
func (b *Base) InEpoch(number int64) (*Epoch, error) {
	c := rest.CopyConfig(b.config)
	c.Impersonate = impersonation(own(), number)
	dyn, err := dynamic.NewForConfig(c)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "kubeconfig")
	}
	watching := rest.CopyConfig(c)
	watching.Timeout = 0 // a watch is as long as it is
	md, err := metadata.NewForConfig(watching)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "kubeconfig")
	}
	disco, err := discovery.NewDiscoveryClientForConfig(c)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "kubeconfig")
	}
	return &Epoch{Number: number, Dynamic: dyn, Metadata: md, discovery: disco, config: b.config}, nil
}

// Resource returns the resource of a kind. The kinds that a bundle may bring form their plurals by
// the rule, so no discovery is needed; a kind that is not served answers not found.
func Resource(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural
}

// builtIn are the groups that Kubernetes itself serves, as far as bundles bring kinds of theirs.
var builtIn = []string{
	"", "apps", "policy", "networking.k8s.io", "scheduling.k8s.io", "rbac.authorization.k8s.io", "apiextensions.k8s.io",
	"apiregistration.k8s.io", "admissionregistration.k8s.io",
}

// BuiltIn reports a group whose kinds are served without a CustomResourceDefinition.
func BuiltIn(group string) bool { return slices.Contains(builtIn, group) }

// objects returns the client of a kind in a namespace ("" for cluster-scoped kinds and all namespaces).
func (e *Epoch) objects(gvk schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	r := e.Dynamic.Resource(Resource(gvk))
	if namespace == "" {
		return r
	}
	return r.Namespace(namespace)
}
