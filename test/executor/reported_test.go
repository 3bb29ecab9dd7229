package executor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestDriftIsReportedAnyway: R-CSV-24: what the API server lets nobody compare or put right is reported with its
// reason, and put right once it may be.
func TestDriftIsReportedAnyway(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	o := operator{name: "tide", version: "1.0.0", configMap: "settings"}
	p := b.plan("ops", "tide", planned{content: o.content(t)})
	b.want("ops", p)
	b.finishes(t, "ops", p, o.csv())
	admission := b.kube.AdmissionregistrationV1()
	_, err := admission.ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "freeze"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				ResourceRules: []admissionv1.NamedRuleWithOperations{
					{RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Update},
						Rule: admissionv1.Rule{
							APIGroups: []string{""}, APIVersions: []string{"v1"},
							Resources: []string{"configmaps"},
						},
					}},
				},
			},
			Validations: []admissionv1.Validation{
				{
					Expression: "object.metadata.name != 'settings' || object.data.version != '1.0.0'",
					Message:    "1.0.0 is frozen",
				},
			},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = admission.ValidatingAdmissionPolicyBindings().Create(
		t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "freeze"},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "freeze", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		}, metav1.CreateOptions{})
	must(t, err)
	maps := b.kube.CoreV1().ConfigMaps("ops")
	await(t, "the policy", func(ctx context.Context) error {
		same := []byte(`{"metadata":{"labels":{"probe":"x"}}}`)
		if _, err := maps.Patch(ctx, "settings", types.MergePatchType, same,
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}); err == nil {
			return errors.New("it is not enforced yet")
		}
		return nil
	})
	_, err = maps.Patch(t.Context(), "settings", types.MergePatchType, []byte(`{"data":{"version":"9"}}`),
		metav1.PatchOptions{FieldManager: "kubectl-edit"})
	must(t, err)
	d := b.awaitDrift(t, o.csv(), "ConfigMap", func(d protocol.Drift) bool { return d.Reason != "" })
	if d.Corrected || d.Missing || !strings.Contains(d.Reason, "'freeze'") ||
		!strings.Contains(d.Reason, "1.0.0 is frozen") {
		t.Errorf("told: %+v", d)
	}
	must(t, admission.ValidatingAdmissionPolicyBindings().Delete(t.Context(), "freeze", metav1.DeleteOptions{}))
	b.awaitDrift(t, o.csv(), "ConfigMap", func(d protocol.Drift) bool { return d.Corrected && d.Reason == "" })
}

// TestTokenAuthIsReported: R-TOK-1: the mode of cloud tokens is reported once it can be known, and after each change of
// it; a cluster that is no OpenShift has none.
func TestTokenAuthIsReported(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	told := func(want string) {
		t.Helper()
		await(t, "mode "+want, func(ctx context.Context) error {
			r, ok, err := b.clusterReport(ctx)
			if err == nil && (!ok || r.TokenAuth != want) {
				err = fmt.Errorf("it is %q", r.TokenAuth)
			}
			return err
		})
	}
	told(protocol.TokenAuthNone)
	dyn, err := dynamic.NewForConfig(b.cluster.RESTConfig())
	must(t, err)
	for _, c := range []struct{ group, kind, resource, spec, status string }{
		{
			"config.openshift.io", "Authentication", "authentications",
			`{"serviceAccountIssuer":"https://issuer.example.com"}`, `{}`,
		},
		{"operator.openshift.io", "CloudCredential", "cloudcredentials", `{"credentialsMode":"Manual"}`, `{}`},
		{"config.openshift.io", "Infrastructure", "infrastructures", `{}`, `{"platformStatus":{"type":"AWS"}}`},
	} {
		b.create(t, dyn, "apiextensions.k8s.io/v1", "customresourcedefinitions",
			platformDefinition(c.group, c.kind, c.resource))
		resource := dyn.Resource(schema.GroupVersionResource{Group: c.group, Version: "v1", Resource: c.resource})
		await(t, c.kind, func(ctx context.Context) error {
			o := &unstructured.Unstructured{}
			if err := o.UnmarshalJSON(fmt.Appendf(
				nil, `{"apiVersion":"%s/v1","kind":%q,"metadata":{"name":"cluster"},"spec":%s,"status":%s}`, c.group,
				c.kind, c.spec, c.status)); err != nil {
				return err
			}
			_, err := resource.Create(ctx, o, metav1.CreateOptions{})
			return err
		})
	}
	told(protocol.TokenAuthAWS)
	credentials := dyn.Resource(schema.GroupVersionResource{
		Group: "operator.openshift.io", Version: "v1",
		Resource: "cloudcredentials",
	})
	_, err = credentials.Patch(t.Context(), "cluster", types.MergePatchType,
		[]byte(`{"spec":{"credentialsMode":"Mint"}}`), metav1.PatchOptions{})
	must(t, err)
	told(protocol.TokenAuthNone)
}

// platformDefinition is a kind of which a cluster has one object.
func platformDefinition(group, kind, resource string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[3]s.%[1]s
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: %[1]s
  scope: Cluster
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[3]s, singular: %[4]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, group, kind, resource, strings.ToLower(kind))
}
