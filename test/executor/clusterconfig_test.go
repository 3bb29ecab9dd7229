package executor_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestClusterConfig: R-PRX-1, R-IP-22, R-DIS-6: a proxy and a pull secret of the cluster reach an operator that is
// installed before and one that is installed after, and leave again. A subscription's own word on a proxy wins
// (R-SUB-10).
func TestClusterConfig(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	before, own := operator{name: "before", version: "1.0.0"}, operator{name: "own", version: "1.0.0"}
	p := b.plan("before", "before", planned{content: before.content(t)})
	b.want("before", p)
	b.finishes(t, "before", p, before.csv())
	q := b.plan("own", "own", planned{
		content: own.content(t),
		config:  []byte(`{"env":[{"name":"NO_PROXY","value":""}]}`),
	})
	b.want("own", q)
	b.finishes(t, "own", q, own.csv())

	maps := b.kube.CoreV1().ConfigMaps("chandler-system")
	proxy := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "chandler-proxy"},
		Data:       map[string]string{"HTTPS_PROXY": "http://proxy.example.com:3128", "NO_PROXY": ".svc"},
	}
	_, err := maps.Create(t.Context(), proxy, metav1.CreateOptions{})
	must(t, err)
	secrets := b.kube.CoreV1().Secrets("chandler-system")
	_, err = secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "registry", Labels: map[string]string{
			"chandler-fleet.io/pull-secret": "true",
		}},
		Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{
			corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`),
		},
	}, metav1.CreateOptions{})
	must(t, err)
	b.awaitProxy(t, "before", "http://proxy.example.com:3128")
	b.awaitPull(t, "before", 1)
	b.awaitPull(t, "own", 1)
	b.awaitProxy(t, "own", "")

	after := operator{name: "after", version: "1.0.0"}
	r := b.plan("after", "after", planned{content: after.content(t)})
	b.want("after", r)
	b.finishes(t, "after", r, after.csv())
	b.awaitProxy(t, "after", "http://proxy.example.com:3128")
	b.awaitPull(t, "after", 1)

	must(t, maps.Delete(t.Context(), "chandler-proxy", metav1.DeleteOptions{}))
	must(t, secrets.Delete(t.Context(), "registry", metav1.DeleteOptions{}))
	b.awaitProxy(t, "before", "")
	b.awaitProxy(t, "after", "")
	b.awaitPull(t, "before", 0)
	b.awaitPull(t, "after", 0)
}

func (b *bed) awaitProxy(t *testing.T, ns, want string) {
	t.Helper()
	await(t, "proxy of "+ns, func(ctx context.Context) error {
		d, err := b.kube.AppsV1().Deployments(ns).Get(ctx, ns+"-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		got := ""
		for _, e := range d.Spec.Template.Spec.Containers[0].Env {
			if e.Name == "HTTPS_PROXY" {
				got = e.Value
			}
		}
		if got != want {
			return fmt.Errorf("it is %q, want %q", got, want)
		}
		return nil
	})
}

// awaitPull waits until the operator's account names so many of Chandler's pull secrets, and the namespace has them.
func (b *bed) awaitPull(t *testing.T, ns string, want int) {
	t.Helper()
	await(t, "pull secrets of "+ns, func(ctx context.Context) error {
		account, err := b.kube.CoreV1().ServiceAccounts(ns).Get(ctx, ns, metav1.GetOptions{})
		if err != nil {
			return err
		}
		there, err := b.kube.CoreV1().Secrets(ns).List(
			ctx, metav1.ListOptions{LabelSelector: "chandler-fleet.io/pull-secret-copy=true"})
		if err != nil {
			return err
		}
		named := slices.Contains(account.ImagePullSecrets, corev1.LocalObjectReference{Name: "chandler-pull-registry"})
		if named != (want > 0) || len(there.Items) != want {
			return fmt.Errorf("account names %v, there are %d copies, want %d", account.ImagePullSecrets,
				len(there.Items), want)
		}
		return nil
	})
}
