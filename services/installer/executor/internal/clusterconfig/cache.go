package clusterconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// Where the cluster says what it tells all operators.
var (
	GVKProxy     = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Proxy"}
	GVKConfigMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	GVKSecret    = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	gvkAccount   = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
)

const (
	proxyObject = "cluster" // of kind Proxy
	// ProxyConfigMap in Chandler's own namespace holds the variables where the cluster has no kind Proxy.
	ProxyConfigMap = "chandler-proxy"
	// manager of the copies of pull secrets.
	manager = "chandler/pull-secrets"
)

// All is what every operator is given.
type All struct {
	Proxy       Proxy
	PullSecrets []PullSecret
}

// Cache reads what the cluster tells all operators once, and again after Forget.
type Cache struct {
	client *kube.Epoch

	mu     sync.Mutex
	known  bool
	all    All
	copied map[string]string // what was copied and attached, as a digest, by namespace
}

// New returns a cache that knows nothing.
func New(client *kube.Epoch) *Cache { return &Cache{client: client, copied: map[string]string{}} }

// Forget has that read again.
func (c *Cache) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = false
}

// ForgetNamespace has the copies in a namespace looked at again.
func (c *Cache) ForgetNamespace(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.copied, namespace)
}

// Get returns what the cluster tells all operators.
func (c *Cache) Get(ctx context.Context) (All, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known {
		return c.all, nil
	}
	proxy, err := c.proxy(ctx)
	if err != nil {
		return All{}, err
	}
	list, err := c.client.List(ctx, GVKSecret, kube.SystemNamespace, LabelPullSecret+"=true")
	if err != nil {
		return All{}, err
	}
	c.all, c.known = All{Proxy: proxy, PullSecrets: pullSecrets(list)}, true
	return c.all, nil
}

// proxy reads the cluster's own object where the kind is served, else Chandler's ConfigMap.
func (c *Cache) proxy(ctx context.Context) (Proxy, error) {
	o, err := c.client.Get(ctx, GVKProxy, "", proxyObject)
	if err != nil {
		return Proxy{}, err
	}
	if o != nil {
		return fields(o, "status", "httpProxy", "httpsProxy", "noProxy")
	}
	o, err = c.client.Get(ctx, GVKConfigMap, kube.SystemNamespace, ProxyConfigMap)
	if err != nil || o == nil {
		return Proxy{}, err
	}
	return fields(o, "data", varHTTP, varHTTPS, varNo)
}

func fields(o *unstructured.Unstructured, part, http, https, no string) (Proxy, error) {
	m, _, err := unstructured.NestedMap(o.Object, part)
	if err != nil {
		return Proxy{}, errs.Wrap(errs.Invalid, err, "%s %s", o.GetKind(), o.GetName())
	}
	text := func(key string) string {
		s, ok := m[key].(string)
		if !ok {
			return ""
		}
		return s
	}
	return Proxy{HTTP: text(http), HTTPS: text(https), No: text(no)}, nil
}

// Copy keeps the pull secrets in a namespace with operators, and on the service accounts under which those run; without
// accounts nothing of them stays there. wrote is called with every object that was written. What cannot be written
// holds up none of the others.
func (c *Cache) Copy(ctx context.Context, namespace string, secrets []PullSecret, accounts []string,
	wrote func(*unstructured.Unstructured),
) error {
	if len(accounts) == 0 {
		secrets = nil
	}
	state, err := digest.JSON("chandler.pullsecrets.v1", map[string]any{"secrets": secrets, "accounts": accounts})
	if err != nil {
		return errs.Wrap(errs.Internal, err, "pull secrets of %s", namespace)
	}
	c.mu.Lock()
	same := c.copied[namespace] == string(state)
	c.mu.Unlock()
	if same {
		return nil
	}
	err = c.copy(ctx, namespace, secrets, wrote)
	whole := true
	for _, a := range accounts {
		there, failed := c.attach(ctx, namespace, a, secrets, wrote)
		err, whole = errors.Join(err, failed), whole && there
	}
	if err != nil || !whole {
		return err // an account is still to come, and will be seen
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.copied[namespace] = string(state)
	return nil
}

func (c *Cache) copy(ctx context.Context, namespace string, secrets []PullSecret,
	wrote func(*unstructured.Unstructured),
) error {
	there, err := c.client.List(ctx, GVKSecret, namespace, labelCopy+"=true")
	if err != nil {
		return err
	}
	have := dockerConfigs(there)
	wanted := map[string]bool{}
	for _, s := range secrets {
		wanted[s.Name] = true
		if data, ok := have[s.Name]; ok && data == s.Data {
			continue
		}
		written, failed := c.client.Apply(ctx, s.object(namespace), manager)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("copy of pull secret %s/%s: %w", namespace, s.Name, failed))
			continue
		}
		wrote(written)
	}
	for i := range there {
		if !wanted[there[i].GetName()] {
			err = errors.Join(err, c.client.Delete(ctx, &there[i]))
		}
	}
	return err
}

// attach puts the copies on an account by a patch of what was read: the list has one owner, and others write there,
// too. It reports whether the account is there.
func (c *Cache) attach(ctx context.Context, namespace, name string, secrets []PullSecret,
	wrote func(*unstructured.Unstructured),
) (bool, error) {
	o, err := c.client.Get(ctx, gvkAccount, namespace, name)
	if err != nil || o == nil {
		return false, err
	}
	have, _, err := unstructured.NestedSlice(o.Object, "imagePullSecrets")
	if err != nil {
		return true, errs.Wrap(errs.Invalid, err, "ServiceAccount %s/%s", namespace, name)
	}
	next, changed := Attach(have, secrets)
	if !changed {
		return true, nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata":         map[string]any{"resourceVersion": o.GetResourceVersion()},
		"imagePullSecrets": next,
	})
	if err != nil {
		return true, errs.Wrap(errs.Internal, err, "encode")
	}
	written, err := c.client.MergePatch(ctx, gvkAccount, namespace, name, patch)
	if err != nil {
		return true, err
	}
	wrote(written)
	return true, nil
}
