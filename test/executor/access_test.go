package executor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/chandler-fleet/chandler/libs/kubeconfig"
	"github.com/chandler-fleet/chandler/services/installer/clusteraccess"
	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/services/installer/executor/access"
)

// asPerson is a configuration of an administrator whose token comes from a program, as clouds have it.
func (b *bed) asPerson(t *testing.T) *rest.Config {
	t.Helper()
	admin := b.cluster.RESTConfig()
	program := filepath.Join(t.TempDir(), "cloud-login")
	must(t, os.WriteFile(program, fmt.Appendf(nil, `#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}'
`, admin.BearerToken), 0o700))
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {
			Server: admin.Host, CertificateAuthorityData: admin.CAData, CertificateAuthority: admin.CAFile,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: program,
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	})
	must(t, err)
	if _, faults := kubeconfig.Read(raw); len(faults) == 0 {
		t.Error("the services would take the kubeconfig that runs a program")
	}
	c, err := clientcmd.RESTConfigFromKubeConfig(raw)
	must(t, err)
	return c
}

// hubAccess is what Bootstrap gave, as the installer loads it.
func hubAccess(t *testing.T, raw []byte, now func() time.Time) (*rest.Config, *access.Source) {
	t.Helper()
	config, err := kubeconfig.Load(raw)
	must(t, err)
	canonical, err := config.Canonical()
	must(t, err)
	c, err := clientcmd.RESTConfigFromKubeConfig(canonical)
	must(t, err)
	source, ok := access.NewSource(c, now)
	if !ok {
		t.Fatal("the token is not of the hub's account")
	}
	of := source.Config(c)
	return of, source
}

// TestAccess: with a credential that only a person's machine has, a cluster gets an account for the hub; with its
// tokens an executor does everything, while one follows the other; nobody else gets at the account, and it may do
// nothing by itself that it need not; when a token has ended that is said, and another bootstrap helps.
func TestAccess(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	person := b.asPerson(t)
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	raw, first, err := access.Bootstrap(t.Context(), person, clusteraccess.MinLife)
	must(t, err)
	if life := first.Life(); life != clusteraccess.MinLife {
		t.Errorf("the token lives for %s", life)
	}
	config, source := hubAccess(t, raw, now)
	old := rest.CopyConfig(config)
	old.WrapTransport, old.BearerToken = nil, bearer(t, raw)
	cfg := b.Config(config, "hub")
	// The hold is to outlast the tokens, and not to end because the machine was busy for two seconds: then the executor
	// closes its connections, which are those of this test, too.
	cfg.Timing.Lease = 15 * time.Second
	stop := b.start(cfg)
	one := operator{name: "tide", version: "1.0.0"}
	p := b.plan("ops", "tide", planned{content: one.content(t)})
	b.want("ops", p)
	b.finishes(t, "ops", p, one.csv())
	epoch := b.heldAbove(t, 0)

	for range 3 {
		var text string
		var next clusteraccess.Token
		await(t, "the next token", func(ctx context.Context) (err error) {
			text, next, err = access.Request(ctx, config, source.Token().Life())
			return err
		})
		obtained := now()
		source.Set(text, next, obtained)
		if due := source.Due().Sub(obtained); due != clusteraccess.MinLife/2 {
			t.Errorf("the next token is due after %s", due)
		}
		ahead.Add(int64(clusteraccess.MinLife / 2))
	}
	await(t, "a token that was followed by others, and has not ended, to be taken", func(ctx context.Context) error {
		reviewed, err := client(t, old).AuthenticationV1().SelfSubjectReviews().Create(ctx,
			&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err == nil && reviewed.Status.UserInfo.Username != clusteraccess.User(clusteraccess.Hub) {
			err = fmt.Errorf("it is of %s", reviewed.Status.UserInfo.Username)
		}
		return err
	})
	two := operator{name: "tide", version: "2.0.0", replaces: one.csv()}
	q := b.plan("ops", "tide", planned{content: two.content(t), replaces: one.csv()})
	b.want("ops", q)
	b.finishes(t, "ops", q, two.csv())
	if r, ok, err := b.clusterReport(t.Context()); err != nil || !ok || r.HolderEpoch != epoch {
		t.Errorf("the hold did not outlast the tokens: %+v, %v", r, err)
	}
	b.checkAccountIsKept(t)
	checkRightsOfHub(t, config)

	must(t, b.kube.CoreV1().ServiceAccounts(clusteraccess.Namespace).Delete(t.Context(), clusteraccess.Hub,
		metav1.DeleteOptions{}))
	ahead.Store(0)
	refused := func(reason string) {
		t.Helper()
		await(t, "report of a token that is not taken: "+reason, func(ctx context.Context) error {
			if err := b.state(ctx, "Unauthorized", reason); err != nil {
				return err
			}
			r, _, err := b.clusterReport(ctx)
			if err == nil && !strings.Contains(r.Message, clusteraccess.HowToRenew) {
				err = fmt.Errorf("the message does not say what to do: %s", r.Message)
			}
			return err
		})
	}
	refused("Unauthorized")
	ahead.Store(int64(24 * time.Hour))
	refused("CredentialEnded")
	raw, _, err = access.Bootstrap(t.Context(), person, clusteraccess.MinLife)
	must(t, err)
	text := bearer(t, raw)
	token, _ := clusteraccess.Parse(text)
	source.Set(text, token, time.Time{})
	ahead.Store(0)
	await(t, "work to go on", func(ctx context.Context) error { return b.state(ctx, "Connected", "") })
	stop()
	must(t, executor.LetGo(t.Context(), config, "default", b.ClusterID))
}

func bearer(t *testing.T, raw []byte) string {
	t.Helper()
	c, err := clientcmd.RESTConfigFromKubeConfig(raw)
	must(t, err)
	return c.BearerToken
}

func client(t *testing.T, c *rest.Config) kubernetes.Interface {
	t.Helper()
	k, err := kubernetes.NewForConfig(c)
	must(t, err)
	return k
}

// checkAccountIsKept: who has the role edit in Chandler's namespace does not come by its accounts.
func (b *bed) checkAccountIsKept(t *testing.T) {
	t.Helper()
	const ns = clusteraccess.Namespace
	_, err := b.kube.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "editor"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "editor"}},
	}, metav1.CreateOptions{})
	must(t, err)
	editor := b.cluster.RESTConfig()
	editor.Impersonate.UserName = "editor"
	core := client(t, editor).CoreV1()
	pod := func(account string) error {
		_, err := core.Pods(ns).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Spec: corev1.PodSpec{
				ServiceAccountName: account, Containers: []corev1.Container{{Name: "c", Image: "i"}},
			},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	must(t, func() error {
		_, err := b.kube.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		}, metav1.CreateOptions{})
		return err
	}())
	await(t, "a pod of another account to be let in", func(context.Context) error { return pod("agent") })
	for _, account := range []string{clusteraccess.Hub, clusteraccess.Executor} {
		_, secret := core.Secrets(ns).Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: "s", Annotations: map[string]string{corev1.ServiceAccountNameKey: account},
			},
			Type: corev1.SecretTypeServiceAccountToken,
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		_, token := core.ServiceAccounts(ns).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{},
			metav1.CreateOptions{})
		for what, err := range map[string]error{
			"a pod": pod(account), "a lasting token": secret, "a token": token,
		} {
			if err == nil || !strings.Contains(err.Error(), clusteraccess.PolicyName) {
				t.Errorf("%s of %s is not refused by the policy: %v", what, account,
					errors.Join(errors.New("answer"), err))
			}
		}
	}
	if _, err := core.ServiceAccounts(ns).CreateToken(t.Context(), "agent", &authenticationv1.TokenRequest{},
		metav1.CreateOptions{}); err != nil {
		t.Errorf("a token of another account: %v", err)
	}
}

// checkRightsOfHub: what is done without an epoch is what a holder needs, and no more.
func checkRightsOfHub(t *testing.T, config *rest.Config) {
	t.Helper()
	reviews := client(t, config).AuthorizationV1().SelfSubjectAccessReviews()
	for _, a := range []authorizationv1.ResourceAttributes{
		{Verb: "list", Resource: "secrets"},
		{Verb: "create", Resource: "pods", Namespace: clusteraccess.Namespace},
		{Verb: "create", Resource: "deployments", Group: "apps", Namespace: "ops"},
		{Verb: "create", Resource: "clusterrolebindings", Group: rbacv1.GroupName},
		{Verb: "bind", Resource: "clusterroles", Group: rbacv1.GroupName, Name: "cluster-admin"},
		{Verb: "create", Resource: "namespaces"},
		{Verb: "impersonate", Resource: "groups", Name: "system:masters"},
		{Verb: "impersonate", Resource: "users", Name: "admin"},
		{
			Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: clusteraccess.Namespace,
			Name: clusteraccess.Executor,
		},
		{
			Verb: "delete", Resource: "validatingadmissionpolicies", Group: "admissionregistration.k8s.io",
			Name: "somebody-elses",
		},
	} {
		await(t, "an answer to "+a.Verb+" "+a.Resource, func(ctx context.Context) error {
			r, err := reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a},
			}, metav1.CreateOptions{})
			if err == nil && r.Status.Allowed {
				t.Errorf("%s %s %s is allowed", a.Verb, a.Resource, a.Name)
			}
			return err
		})
	}
}
