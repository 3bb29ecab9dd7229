package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/installer/clusteraccess"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

const (
	// manager is the field manager of what a person's credential makes.
	manager = "chandler-bootstrap"
	// enforceTimeout bounds the wait for the admission policy; an API server loads policies once a second.
	enforceTimeout = 30 * time.Second
	enforcePoll    = 100 * time.Millisecond
)

// Bootstrap makes, with the credential of an administrator of a cluster, the account that the hub uses there, and
// returns a kubeconfig with a token of it. The token is asked for when the admission policy that keeps the account is
// in force. It may be repeated: everything is written as it is to be, and the new token is another one.
func Bootstrap(ctx context.Context, config *rest.Config, life time.Duration) (kubeconfig []byte,
	t clusteraccess.Token, err error,
) {
	config = rest.CopyConfig(config)
	config.Timeout = requestTimeout
	if err := makeObjects(ctx, config); err != nil {
		return nil, t, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, t, errs.Wrap(errs.Invalid, err, "kubeconfig")
	}
	if err := awaitPolicy(ctx, client); err != nil {
		return nil, t, err
	}
	text, t, err := request(ctx, client, life)
	if err != nil {
		return nil, t, err
	}
	kubeconfig, err = write(config, text)
	return kubeconfig, t, err
}

func owned() clusteraccess.Owned {
	return clusteraccess.Owned{
		Policies:    append(kube.Policies(), mirror.PolicyNames()...),
		Definitions: kube.OwnDefinitions(), Lease: kube.LeaseName,
	}
}

func makeObjects(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "kubeconfig")
	}
	for _, o := range append(clusteraccess.Objects(owned()), clusteraccess.Policy(), clusteraccess.Binding()) {
		body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return errs.Wrap(errs.Internal, err, "encode")
		}
		u := &unstructured.Unstructured{Object: body}
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(u.Object, "status")
		var at dynamic.ResourceInterface = client.Resource(kube.Resource(u.GroupVersionKind()))
		if u.GetNamespace() != "" {
			at = client.Resource(kube.Resource(u.GroupVersionKind())).Namespace(u.GetNamespace())
		}
		how := metav1.ApplyOptions{FieldManager: manager, Force: true}
		if _, err := at.Apply(ctx, u.GetName(), u, how); err != nil {
			return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

// awaitPolicy waits until a pod of the account is refused, by trials that change nothing.
func awaitPolicy(ctx context.Context, client kubernetes.Interface) error {
	trial := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "chandler-trial"},
		Spec: corev1.PodSpec{
			ServiceAccountName: clusteraccess.Hub,
			Containers:         []corev1.Container{{Name: "none", Image: "none"}},
		},
	}
	ctx, cancel := context.WithTimeout(ctx, enforceTimeout)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(ctx, enforcePoll, true, func(ctx context.Context) (bool, error) {
		_, last = client.CoreV1().Pods(clusteraccess.Namespace).Create(ctx, trial,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		status, ok := errors.AsType[*apierrors.StatusError](last)
		return ok && strings.Contains(status.ErrStatus.Message, clusteraccess.PolicyName), nil
	})
	return errs.Wrap(errs.Unavailable, err, "the API server does not enforce admission policy %s (last answer to a "+
		"trial: %v)", clusteraccess.PolicyName, last)
}

// write makes a kubeconfig of the same cluster with a token, and files of its certificate put in.
func write(config *rest.Config, token string) ([]byte, error) {
	own := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(own); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "certificate of the API server")
	}
	const name = "chandler"
	cluster := &clientcmdapi.Cluster{
		Server: own.Host, TLSServerName: own.ServerName, InsecureSkipTLSVerify: own.Insecure,
		CertificateAuthorityData: own.CAData,
	}
	if u, err := throughProxy(own); err != nil {
		return nil, err
	} else if u != nil {
		cluster.ProxyURL = u.String()
	}
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	return raw, errs.Wrap(errs.Internal, err, "write a kubeconfig")
}

// throughProxy is the proxy that the kubeconfig names, nil without one.
func throughProxy(config *rest.Config) (*url.URL, error) {
	if config.Proxy == nil {
		return nil, nil //nolint:nilnil // absence is an answer here, not an error
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "address of the API server")
	}
	u, err := config.Proxy(&http.Request{URL: server})
	return u, errs.Wrap(errs.Invalid, err, "proxy")
}
