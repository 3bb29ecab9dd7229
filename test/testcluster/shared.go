package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/test/testcluster/binaries"
)

const (
	sharedUser       = "testcluster:shared"
	sharedKubeconfig = "shared.kubeconfig"
	sharedPolicy     = "testcluster-shared"
	sharedRefusal    = "this cluster is shared by other tests: take testcluster.New to write CRDs or API services"
)

// sharedCluster is started by the first test of the process that wants it.
type sharedCluster struct {
	mu      sync.Mutex
	started bool
	cluster *Cluster
	err     error
}

var theShared sharedCluster

// Shared returns the cluster that all tests of this process share, and a new namespace in it that is deleted when the
// test ends. The user of the cluster may do everything except to write CRDs and API services, and Stop and Pause are
// refused with [ErrShared]. What else is not in a namespace (cluster roles, webhooks) must have a name of the test's
// own.
//
// It does not count for [MaxHolders]: a test may hold both, and go test bounds the number of processes.
func Shared(t testing.TB) (c *Cluster, namespace string) {
	t.Helper()
	c, err := theShared.get(t.Context())
	if err != nil {
		t.Fatalf("testcluster: shared cluster: %v", err)
	}
	namespace, err = c.newNamespace(t.Context(), t.Name())
	if err != nil {
		t.Fatalf("testcluster: namespace in the shared cluster: %v", err)
	}
	t.Cleanup(func() {
		// Not waited for: nobody else uses the name. The test's context has ended by now.
		if err := c.client.CoreV1().Namespaces().Delete(context.Background(), namespace,
			metav1.DeleteOptions{}); err != nil {
			t.Errorf("testcluster: delete namespace: %v", err)
		}
	})
	return c, namespace
}

// get starts the cluster once; if that fails it fails for all, since every further try would take minutes.
func (s *sharedCluster) get(ctx context.Context) (*Cluster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.started = true
		s.cluster, s.err = startShared(ctx)
	}
	return s.cluster, s.err
}

func (s *sharedCluster) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil {
		return nil
	}
	return s.cluster.plane.stop()
}

func startShared(ctx context.Context) (*Cluster, error) {
	if _, err := binaries.Ensure(ctx, os.Stderr); err != nil {
		return nil, err
	}
	admin, err := Start(ctx, Options{Name: "shared", Keep: os.Getenv(keepVariable) != ""})
	if err != nil {
		return nil, err
	}
	user, err := admin.plane.newAccess(sharedKubeconfig, sharedUser)
	if err == nil {
		err = restrictShared(ctx, admin, user)
	}
	if err != nil {
		return nil, errors.Join(err, admin.Stop())
	}
	return &Cluster{access: user, plane: admin.plane, shared: true}, nil
}

// restrictShared lets the user do everything, then takes away what would reach other tests, and waits until that holds.
func restrictShared(ctx context.Context, admin *Cluster, user *access) error {
	create := metav1.CreateOptions{}
	if _, err := admin.client.RbacV1().ClusterRoleBindings().Create(ctx, sharedBinding(), create); err != nil {
		return err
	}
	policies := admin.client.AdmissionregistrationV1()
	if _, err := policies.ValidatingAdmissionPolicies().Create(ctx, newSharedPolicy(), create); err != nil {
		return err
	}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(ctx, sharedPolicyBinding(), create); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return admin.plane.await(ctx, func(ctx context.Context) error { return refused(ctx, user) })
}

func sharedBinding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: sharedPolicy},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: sharedUser}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
}

func newSharedPolicy() *admissionv1.ValidatingAdmissionPolicy {
	rule := func(group, resource string) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
			Rule: admissionv1.Rule{
				APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource},
			},
		}}
	}
	forbidden := metav1.StatusReasonForbidden
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: sharedPolicy},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{
				rule("apiextensions.k8s.io", "customresourcedefinitions"),
				rule("apiregistration.k8s.io", "apiservices"),
			}},
			Validations: []admissionv1.Validation{{
				Expression: "request.userInfo.username != '" + sharedUser + "'",
				Message:    sharedRefusal,
				Reason:     &forbidden,
			}},
		},
	}
}

func sharedPolicyBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: sharedPolicy},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        sharedPolicy,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}

// refused tries, without effect, what must be refused: a policy begins to act some time after it is there.
func refused(ctx context.Context, user *access) error {
	const crd = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"probes.testcluster.local"},
		"spec":{"group":"testcluster.local","scope":"Namespaced","names":{"plural":"probes","kind":"Probe"},
			"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
	err := user.client.Discovery().RESTClient().Post().
		AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		Param("dryRun", metav1.DryRunAll).
		SetHeader("Content-Type", "application/json").
		Body([]byte(crd)).Do(ctx).Error()
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), sharedRefusal) {
		return nil
	}
	return fmt.Errorf("writing a CRD is not refused as it should be, but answered with: %w", err)
}

// newNamespace makes a namespace named after a test and waits until pods can be created in it.
func (c *Cluster) newNamespace(ctx context.Context, test string) (string, error) {
	created, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: namespacePrefix(test)},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return created.Name, c.plane.await(ctx, func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(created.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// maxPrefix leaves room for what the API server appends to make the name unique.
const maxPrefix = 50

func namespacePrefix(test string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		default:
			return '-'
		}
	}, strings.ToLower("t-"+test))
	return strings.TrimRight(name[:min(len(name), maxPrefix)], "-") + "-"
}
