package agent

import (
	"context"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/chandler-fleet/chandler/libs/agentconfig"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/services/installer/joiner"
)

const (
	// identitySecret is the Secret where an agent keeps who it is, under identityKey.
	identitySecret = "chandler-agent-identity"
	identityKey    = "identity.json"
	// podNamespace is where Kubernetes tells a pod its namespace.
	podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// defaultNamespace is that of the manifest of a join token.
	defaultNamespace = "chandler-agent"
)

// check is nil while the agent has joined and reaches the hub; for readiness.
func (a *Agent) check(ctx context.Context) error {
	if link := a.link.Load(); link != nil {
		return link.Check(ctx)
	}
	return errs.New(errs.Unavailable, "the hub has not accepted this agent yet")
}

// serve serves the cluster, and joins it before where that is to be done.
func (a *Agent) serve(ctx context.Context) error {
	if a.cfg.Join == "" {
		return a.executor.Load().Run(ctx)
	}
	j, err := a.joiner(ctx)
	if err != nil {
		return err
	}
	own, err := j.Run(ctx)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it is to end
	}
	if err != nil {
		return err
	}
	known, err := agentconfig.Parse([]byte(own.Config))
	if err != nil {
		return err
	}
	hub, err := known.Hub()
	if err != nil {
		return err
	}
	credentials := j.NewCredentials(own)
	if err := a.connect(ctx, known, credentials.Settings()); err != nil {
		return err
	}
	g := &service.Group{Drain: a.cfg.Drain, Log: a.tel.Log}
	g.Add("credentials", func(ctx context.Context) error {
		return credentials.Keep(ctx, a.link.Load().Conn(), hub)
	})
	g.Add("executor", a.executor.Load().Run)
	return g.Run(ctx)
}

// joiner reads of the cluster what the hub is told of it.
func (a *Agent) joiner(ctx context.Context) (j joiner.Joiner, err error) {
	join, err := agentconfig.ParseJoin([]byte(a.cfg.Join))
	if err != nil {
		return j, err
	}
	config, err := a.cfg.cluster()
	if err != nil {
		return j, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return j, errs.Wrap(errs.Invalid, err, "CHANDLER_KUBECONFIG")
	}
	system, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return j, errs.Wrap(errs.Unavailable, err, "read the namespace %s of the cluster", metav1.NamespaceSystem)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return j, errs.Wrap(errs.Unavailable, err, "read the version of the cluster")
	}
	return joiner.Joiner{
		Join: join, Store: secret{client, a.cfg.namespace()}, Log: a.tel.Log, NATS: a.cfg.NATS,
		Facts: joiner.Facts{ClusterUID: string(system.UID), KubernetesVersion: version.GitVersion},
	}, nil
}

// namespace is where an agent that joins keeps who it is.
func (c *Config) namespace() string {
	if c.Namespace != "" {
		return c.Namespace
	}
	if raw, err := os.ReadFile(podNamespace); err == nil {
		return strings.TrimSpace(string(raw))
	}
	return defaultNamespace
}

// secret is the Secret where an agent keeps who it is. It implements joiner.Store.
type secret struct {
	client    kubernetes.Interface
	namespace string
}

func (s secret) Load(ctx context.Context) ([]byte, error) {
	found, err := s.client.CoreV1().Secrets(s.namespace).Get(ctx, identitySecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "read the Secret %s/%s", s.namespace, identitySecret)
	}
	return found.Data[identityKey], nil
}

func (s secret) Save(ctx context.Context, identity []byte) error {
	secrets := s.client.CoreV1().Secrets(s.namespace)
	found, err := secrets.Get(ctx, identitySecret, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: identitySecret}, Data: map[string][]byte{identityKey: identity},
		}, metav1.CreateOptions{})
	case err == nil:
		found.Data = map[string][]byte{identityKey: identity}
		_, err = secrets.Update(ctx, found, metav1.UpdateOptions{})
	}
	return errs.Wrap(errs.Unavailable, err, "write the Secret %s/%s", s.namespace, identitySecret)
}
