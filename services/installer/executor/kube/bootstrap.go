package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/installer/clusteraccess"
)

// pollInterval is how often a condition in the cluster is asked for where there is nothing to watch.
const pollInterval = 50 * time.Millisecond

func parseVersion(raw []byte) (string, error) {
	var v version.Info
	if err := json.Unmarshal(raw, &v); err != nil || v.GitVersion == "" {
		return "", errs.New(errs.Unavailable, "the server's answer about its version is not one of a Kubernetes API")
	}
	return v.GitVersion, nil
}

// Bootstrap makes what the executor needs, with the kubeconfig's own identity. Everything is created where it is
// missing, which an account that a person made for the hub may only read (clusteraccess); a CRD of ours that is older
// is written anew, one of somebody else's never (DESIGN, settled details).
func (b *Base) Bootstrap(ctx context.Context) error {
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"namespace " + SystemNamespace, b.ensureNamespace},
		{"service account " + ExecutorAccount, b.ensureAccount},
		{"cluster role binding " + ExecutorAccount, b.ensureBinding},
		{"custom resource definitions", b.ensureCRDs},
	}
	for _, s := range steps {
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("bootstrap %s: %w", s.what, err)
		}
	}
	return nil
}

func (b *Base) ensureNamespace(ctx context.Context) error {
	namespaces := b.Kube.CoreV1().Namespaces()
	if _, err := namespaces.Get(ctx, SystemNamespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: SystemNamespace, Labels: ownLabels()}}
	_, err := namespaces.Create(ctx, ns, metav1.CreateOptions{})
	return existing(err)
}

func (b *Base) ensureAccount(ctx context.Context) error {
	accounts := b.Kube.CoreV1().ServiceAccounts(SystemNamespace)
	if _, err := accounts.Get(ctx, ExecutorAccount, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: ExecutorAccount, Labels: ownLabels()}}
	_, err := accounts.Create(ctx, sa, metav1.CreateOptions{})
	return existing(err)
}

func (b *Base) ensureBinding(ctx context.Context) error {
	bindings := b.Kube.RbacV1().ClusterRoleBindings()
	if _, err := bindings.Get(ctx, ExecutorAccount, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ExecutorAccount, Labels: ownLabels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Name: ExecutorAccount,
			Namespace: SystemNamespace,
		}},
	}
	_, err := bindings.Create(ctx, binding, metav1.CreateOptions{})
	return existing(err)
}

func (b *Base) ensureCRDs(ctx context.Context) error {
	return ensureOwn(ctx, b.Dynamic.Resource(Resource(GVKCRD)))
}

func existing(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// LabelManaged marks every object that Chandler writes; watches select by it. OLM's own label
// olm.managed is there, too, but an OLM in the same cluster uses that as well.
const LabelManaged = clusteraccess.LabelManaged

func ownLabels() map[string]string { return map[string]string{LabelManaged: "true"} }
