package e2e

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestFaultsInMidInstall takes away what an install stands on after it has started, and gives it back. DESIGN D7.
func TestFaultsInMidInstall(t *testing.T) { //nolint:tparallel // one stack is the subject
	t.Parallel()
	w := newWorld(t)
	w.addCatalog("harbour", example(t))
	w.record = w.database()
	t.Run("the namespace is deleted", func(t *testing.T) { w.in(t).namespaceDeleted() })
	t.Run("the account of the executor loses its rights", func(t *testing.T) { w.in(t).rightsRevoked() })
}

func (w *world) clientset() *kubernetes.Clientset {
	w.t.Helper()
	client, err := kubernetes.NewForConfig(w.cluster.RESTConfig())
	w.must(err)
	return client
}

// whenStarted installs the example in a namespace, and does harm as soon as the log says that the plan has started.
func (w *world) whenStarted(namespace string, harm func()) {
	w.t.Helper()
	begin := w.head()
	w.group(namespace)
	w.subscribe(namespace, subscription{Name: "buoy", Package: "buoy", Channel: "beta", Catalog: "harbour"})
	w.harmWhen(begin, namespace, func(seen map[string]bool) bool {
		if !seen["installplan.started.v1"] {
			return false
		}
		harm()
		return true
	})
}

// namespaceDeleted has somebody delete the namespace with everything in it. Nobody took the subscription back, so that
// the operator is installed again once the cluster has removed the namespace.
func (w *world) namespaceDeleted() {
	w.t.Helper()
	const ns = "swept"
	namespaces := w.clientset().CoreV1().Namespaces()
	var before *corev1.Namespace
	w.whenStarted(ns, func() {
		var err error
		before, err = namespaces.Get(w.ctx, ns, metav1.GetOptions{})
		w.must(err)
		w.must(namespaces.Delete(w.ctx, ns, metav1.DeleteOptions{}))
	})
	w.eventually("the namespace is another one", func() (string, bool) {
		now, err := namespaces.Get(w.ctx, ns, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "none", false
		}
		w.must(err)
		seen, _ := w.healthy(ns, func(operator) bool { return false })
		return string(now.Status.Phase) + " " + seen, now.UID != before.UID
	})
	w.succeeded(ns, "tidegauge.v1.1.0")
	w.succeeded(ns, "buoy.v0.9.1")
	w.authorised()
}

// rightsRevoked has an administrator of the cluster take away what the executor's account may do. It says what is
// missing, and goes on by itself when the rights are back.
func (w *world) rightsRevoked() {
	w.t.Helper()
	const ns, account = "revoked", "chandler-e2e"
	client := w.clientset()
	_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(w.ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	w.must(err)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: account,
		}},
	}
	bindings := client.RbacV1().ClusterRoleBindings()
	_, err = bindings.Create(w.ctx, binding, metav1.CreateOptions{})
	w.must(err)
	w.credentials(w.kubeconfigOf(account))
	w.state("Connected")
	w.whenStarted(ns, func() {
		w.must(bindings.Delete(w.ctx, account, metav1.DeleteOptions{}))
	})
	w.eventually("what is missing is shown", func() (string, bool) {
		var c struct{ Connection, State, Reason, Message string }
		w.must(w.Get(w.ctx, "/api/v1/clusters/"+spoke, &c))
		return c.State + " " + c.Reason + " " + c.Message,
			c.Connection == "Unauthorized" && strings.Contains(c.Message, account+`" cannot get resource`)
	})
	_, err = bindings.Create(w.ctx, binding, metav1.CreateOptions{})
	w.must(err)
	w.state("Connected")
	w.succeeded(ns, "tidegauge.v1.1.0")
	w.succeeded(ns, "buoy.v0.9.1")
	w.authorised()
}

// kubeconfigOf is one with a token of a service account.
func (w *world) kubeconfigOf(account string) string {
	w.t.Helper()
	token, err := w.clientset().CoreV1().ServiceAccounts(metav1.NamespaceDefault).CreateToken(w.ctx, account,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	w.must(err)
	cfg, err := clientcmd.Load(w.cluster.Kubeconfig())
	w.must(err)
	for name := range cfg.AuthInfos {
		cfg.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	kubeconfig, err := clientcmd.Write(*cfg)
	w.must(err)
	return string(kubeconfig)
}
