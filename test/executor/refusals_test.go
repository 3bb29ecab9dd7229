package executor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestRefusals: what a cluster refuses or does not bring about ends in a state that names the object, the rule and what
// to do, and the plan goes on by itself once that is fixed (R-IP-40, R-CSV §6.3).
//
//nolint:tparallel // one executor is the subject; what it is busy with at a time is to be known
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	for name, test := range map[string]func(*testing.T, *bed, string){
		"quota": testQuota, "policy": testPolicy, "terminating": testTerminating, "names-taken": testNamesTaken,
		"never-ready": testNeverReady,
	} {
		t.Run(name, func(t *testing.T) { test(t, b.on(t), name) })
	}
}

// waits is true of a plan that is blocked, not failed, with a message that holds all of the words.
func waits(words ...string) func(protocol.PlanReport) bool {
	return func(r protocol.PlanReport) bool {
		return r.Phase == protocol.PlanBlocked && !slices.ContainsFunc(
			words, func(w string) bool { return !strings.Contains(r.Message, w) })
	}
}

// testQuota: a quota that is used up.
func testQuota(t *testing.T, b *bed, ns string) {
	t.Helper()
	b.namespace(t, ns)
	quotas := b.kube.CoreV1().ResourceQuotas(ns)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			"count/deployments.apps": resource.MustParse("0"),
		}},
	}
	_, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{})
	must(t, err)
	await(t, "the quota's count", func(ctx context.Context) error {
		q, err := quotas.Get(ctx, quota.Name, metav1.GetOptions{})
		if err == nil && len(q.Status.Used) == 0 {
			err = errors.New("not counted yet")
		}
		return err
	})
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.awaitPlan(ns, p.ID, waits("Deployment", "exceeded quota: few"))
	must(t, quotas.Delete(t.Context(), quota.Name, metav1.DeleteOptions{}))
	b.finishes(t, ns, p, o.csv())
}

// testPolicy: an admission policy of the cluster's administrators refuses an object.
func testPolicy(t *testing.T, b *bed, ns string) {
	t.Helper()
	admission := b.kube.AdmissionregistrationV1()
	fail := admissionv1.Fail
	_, err := admission.ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "no-deployments"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{
				ResourceRules: []admissionv1.NamedRuleWithOperations{
					{RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
						Rule: admissionv1.Rule{
							APIGroups: []string{"apps"}, APIVersions: []string{"v1"},
							Resources: []string{"deployments"},
						},
					}},
				},
			},
			Validations: []admissionv1.Validation{{
				Expression: "object.metadata.namespace != '" + ns + "'",
				Message:    "deployments are frozen here",
			}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = admission.ValidatingAdmissionPolicyBindings().Create(
		t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "no-deployments"},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "no-deployments", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		}, metav1.CreateOptions{})
	must(t, err)
	b.namespace(t, ns)
	await(t, "the policy", func(ctx context.Context) error {
		_, err := b.kube.AppsV1().Deployments(ns).Create(ctx, foreignDeployment(ns, "probe"),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("it is not enforced yet")
		}
		return nil
	})
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.awaitPlan(ns, p.ID, waits("Deployment", "no-deployments", "deployments are frozen here"))
	must(t, admission.ValidatingAdmissionPolicyBindings().Delete(t.Context(), "no-deployments", metav1.DeleteOptions{}))
	b.finishes(t, ns, p, o.csv())
}

// testTerminating: the namespace goes, and something holds it.
func testTerminating(t *testing.T, b *bed, ns string) {
	t.Helper()
	b.namespace(t, ns)
	maps := b.kube.CoreV1().ConfigMaps(ns)
	_, err := maps.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "anchor", Finalizers: []string{"sea.test/held"}},
	}, metav1.CreateOptions{})
	must(t, err)
	must(t, b.kube.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}))
	o, content := simple(t, ns)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.awaitPlan(ns, p.ID, waits(ns, "terminat"))
	_, err = maps.Patch(t.Context(), "anchor", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{})
	must(t, err)
	b.finishes(t, ns, p, o.csv())
}

// testNamesTaken: a definition is never established, since another one has its names.
func testNamesTaken(t *testing.T, b *bed, ns string) {
	t.Helper()
	dyn, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(t, err)
	crds := dyn.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions",
	})
	o, content := simple(t, ns)
	other := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(strings.NewReplacer("%[1]s", o.group, "gauges", "meters", "singular: gauge",
		"singular: meter").Replace(crdManifest)), &other.Object))
	_, err = crds.Create(t.Context(), other, metav1.CreateOptions{})
	must(t, err)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.awaitPlan(ns, p.ID, waits("gauges."+o.group, "Gauge", "already in use"))
	must(t, crds.Delete(t.Context(), other.GetName(), metav1.DeleteOptions{}))
	b.finishes(t, ns, p, o.csv())
}

// testNeverReady: no node takes the operator's pods. The plan has ended, since everything is applied; the operator is
// not Succeeded, and the report names the Deployment that it waits for (R-CSV-62).
func testNeverReady(t *testing.T, b *bed, ns string) {
	t.Helper()
	o, content := simple(t, ns)
	content.config = []byte(`{"nodeSelector":{"sea.test/berth":"free"}}`)
	p := b.plan(ns, ns, content)
	b.want(ns, p)
	b.awaitCSV(ns, o.csv(), func(r protocol.CSVReport) bool {
		return reached("Installing")(r) && slices.ContainsFunc(r.Components, func(c protocol.Component) bool {
			return c.Kind == "Deployment" && c.Name == ns+"-controller" && c.Status == "InProgress" && c.Message != ""
		})
	})
	nodes, err := b.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, n := range nodes.Items {
		_, err := b.kube.CoreV1().Nodes().Patch(t.Context(), n.Name, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"sea.test/berth":"free"}}}`), metav1.PatchOptions{})
		must(t, err)
	}
	b.finishes(t, ns, p, o.csv())
}

// foreignDeployment is one that Chandler has nothing to do with.
func foreignDeployment(ns, name string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name, "of": "foreign"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{
					{Name: "manager", Image: "registry.example.com/foreign:1"},
				}},
			},
		},
	}
}
