package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/installer/clusteraccess"
	"github.com/chandler-fleet/chandler/services/installer/executor/address"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/answers"
)

// Names of what Chandler keeps in a target cluster.
const (
	SystemNamespace = events.SystemNamespace
	ExecutorAccount = clusteraccess.Executor
	ExecutorUser    = "system:serviceaccount:" + SystemNamespace + ":" + ExecutorAccount
	// EpochExtra is the key of the user's extra; Kubernetes lower-cases keys that come in headers.
	EpochExtra = clusteraccess.EpochExtra
)

const (
	// requestTimeout bounds every request but watches, so that a hung API server is noticed.
	requestTimeout = 20 * time.Second
	// clientQPS and clientBurst let one install run as fast as the API server answers; the server
	// has its own priority and fairness.
	clientQPS   = 200
	clientBurst = 400
	userAgent   = "chandler-executor"
	// handshakeTimeout and idleConnections are those of client-go's own transport.
	handshakeTimeout = 10 * time.Second
	idleConnections  = 25
)

// Goroutines of client-go that panic over what a cluster answers end alone: they log it, and what they did is begun
// anew.
// As client-go has it by default they would end the process, and with it the executors of all other clusters.
var _ = func() bool {
	utilruntime.ReallyCrash = false
	return true
}()

// Base is the client with the kubeconfig's own identity.
type Base struct {
	config      *rest.Config
	connections *connections // of all clients
	Kube        kubernetes.Interface
	Dynamic     dynamic.Interface
}

// NewBase makes the client; it does no request.
func NewBase(config *rest.Config) (*Base, error) {
	c, all, err := joined(tuned(config))
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "kubeconfig")
	}
	own := rest.CopyConfig(c)
	own.QPS = -1 // a handful of requests, such as the lease's, which must wait for nothing here
	kube, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "kubeconfig")
	}
	dyn, err := dynamic.NewForConfig(own)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "kubeconfig")
	}
	return &Base{config: c, connections: all, Kube: kube, Dynamic: dyn}, nil
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

// joined returns a configuration whose clients, whoever they impersonate, share the connections of one dialer. With a
// dialer in the configuration itself, client-go would give each client connections of its own.
func joined(config *rest.Config) (*rest.Config, *connections, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, err
	}
	how, err := config.TransportConfig()
	if err != nil {
		return nil, nil, err
	}
	all := &connections{connect: config.Dial, open: map[*connection]bool{}}
	if all.connect == nil {
		all.connect = address.Dialer().DialContext
	}
	tls, err := transport.TLSConfigFor(&transport.Config{TLS: how.TLS})
	if err != nil {
		return nil, nil, err
	}
	proxy := http.ProxyFromEnvironment
	if how.Proxy != nil {
		proxy = how.Proxy
	}
	// As client-go makes its own, but that nothing is decompressed in it, and headers are bounded.
	shared := utilnet.SetTransportDefaults(&http.Transport{
		Proxy: proxy, TLSHandshakeTimeout: handshakeTimeout, TLSClientConfig: tls, MaxIdleConnsPerHost: idleConnections,
		DialContext: all.dial, DisableCompression: true, MaxResponseHeaderBytes: answers.MaxHeader,
	})
	c := rest.CopyConfig(config)
	c.Host, c.TLSClientConfig, c.Transport = server.String(), rest.TLSClientConfig{}, answers.New(shared)
	c.Proxy, c.Dial = nil, nil // they are in the transport
	return c, all, nil
}

// attentive does a request. If nobody answers it, the connections on which nothing was heard meanwhile are closed: one
// that is dead without having ended would hold up all requests, since they share it, until client-go gives it up 45 s
// later. What is heard from an API server that is only slow keeps its connection. Not for several requests at a time.
func (b *Base) attentive(request func() error) error {
	b.connections.each(func(c *connection) { c.heard.Store(false) })
	err := request()
	if _, answered := errors.AsType[*apierrors.StatusError](err); err == nil || answered ||
		errs.Is(err, errs.Conflict) {
		return err
	}
	b.connections.each(func(c *connection) {
		if !c.heard.Load() {
			_ = c.Conn.Close() // whoever uses it hears of the end
		}
	})
	return err
}

// connections are those to one cluster that are open.
type connections struct {
	connect func(ctx context.Context, network, address string) (net.Conn, error)
	mu      sync.Mutex
	open    map[*connection]bool
}

type connection struct {
	net.Conn
	of    *connections
	heard atomic.Bool
}

func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	one := &connection{Conn: conn, of: c}
	c.mu.Lock()
	c.open[one] = true
	c.mu.Unlock()
	return one, nil
}

func (c *connections) each(do func(*connection)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.open {
		do(one)
	}
}

// Read implements net.Conn.
func (c *connection) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if n > 0 {
		c.heard.Store(true)
	}
	return n, err
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// Version returns the cluster's version, such as v1.34.4, and proves that it can be reached.
func (b *Base) Version(ctx context.Context) (string, error) {
	var raw []byte
	err := b.attentive(func() (err error) {
		raw, err = b.Kube.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
		return err
	})
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
	newest    *Newest           // nil where every list is one without a resourceVersion
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
	return &Epoch{
		Number: number, Dynamic: dyn, Metadata: md, discovery: disco, config: b.config, newest: &Newest{},
	}, nil
}

// APIs are the API groups that a cluster serves, with their versions, as group/version; v1 is the core group's.
func APIs(e *Epoch) ([]string, error) {
	list, err := e.discovery.ServerGroups()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, group := range list.Groups {
		for _, v := range group.Versions {
			out = append(out, v.GroupVersion)
		}
	}
	return out, nil
}

// Limit bounds one request of Metadata, which has no bound of its own, since it watches, too.
func (e *Epoch) Limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.config == nil { // a test's
		return context.WithTimeout(ctx, requestTimeout)
	}
	return context.WithTimeout(ctx, e.config.Timeout)
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
	return e.noting(e.Dynamic, Resource(gvk), namespace)
}

// noting are the objects of one of the epoch's clients, with a note of what is newest.
func (e *Epoch) noting(client dynamic.Interface, of schema.GroupVersionResource, namespace string) (
	r dynamic.ResourceInterface,
) {
	r = client.Resource(of)
	if namespace != "" {
		r = client.Resource(of).Namespace(namespace)
	}
	if e.newest == nil {
		return r
	}
	return fresh{r, of, e.newest}
}

// Heard notes a change that a watch told of: no list of the kind is to be older.
func (e *Epoch) Heard(gvk schema.GroupVersionKind, resourceVersion string) {
	if e.newest != nil {
		e.newest.Heard(Resource(gvk), resourceVersion)
	}
}
