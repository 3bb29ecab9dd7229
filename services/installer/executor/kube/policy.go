package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/installer/clusteraccess"
)

// Kinds of the admission policies, and of what puts them into force.
var (
	GVKPolicy = schema.GroupVersionKind{
		Group: "admissionregistration.k8s.io", Version: "v1",
		Kind: "ValidatingAdmissionPolicy",
	}
	GVKPolicyBinding = schema.GroupVersionKind{
		Group: "admissionregistration.k8s.io", Version: "v1",
		Kind: "ValidatingAdmissionPolicyBinding",
	}
)

// memoryName names the admission policy that keeps Chandler's memory, and its binding.
const memoryName = "chandler-memory.chandler-fleet.io"

// memoryProbe is a name that the policy lets nobody use, Chandler's executor included: how it is seen to stand.
const memoryProbe = "chandler-memory-probe"

// Policies are the names of the admission policies without which the executor does nothing.
func Policies() []string { return []string{fenceName, memoryName, clusteraccess.PolicyName} }

// KeepAccounts has the API server keep Chandler's accounts from pods, lasting tokens and other people.
func (b *Base) KeepAccounts(ctx context.Context) error {
	return b.ensurePolicy(ctx, clusteraccess.Policy())
}

// KeepMemory makes the API server refuse, from now on, that anybody but Chandler's executor writes a PlanExecution or
// an InstalledOperator, and returns when it does so.
//
// They lie in the namespaces of those who use operators, whose rights often hold for every kind there; the executor
// believes what they say, and acts on it with all rights of the cluster. Deleting is let in: namespaces and owners take
// them with them, and that is how a person uninstalls by hand. So are finalizers and owner references.
func (b *Base) KeepMemory(ctx context.Context, epoch int64) error {
	if err := b.ensureMemory(ctx); err != nil {
		return err
	}
	client, err := b.InEpoch(epoch)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	var last error
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		last = client.try(ctx, gvkExecution, memoryProbe)
		return refusedBy(last, memoryName), nil
	})
	if err != nil {
		return errs.Wrap(errs.Unavailable, err,
			"the API server does not enforce admission policy %s (last answer to a trial: %v)", memoryName, last)
	}
	return nil
}

func (b *Base) ensureMemory(ctx context.Context) error {
	return b.ensurePolicy(ctx, memoryPolicy())
}

// ensurePolicy makes or restores a policy and its binding.
func (b *Base) ensurePolicy(ctx context.Context, want *admissionv1.ValidatingAdmissionPolicy) error {
	policies := b.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	found, err := policies.Get(ctx, want.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = policies.Create(ctx, want, metav1.CreateOptions{})
	case err == nil: // an update that changes nothing is no write
		want.ResourceVersion = found.ResourceVersion
		_, err = policies.Update(ctx, want, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("admission policy %s: %w", want.Name, err)
	}
	return b.ensureInForce(ctx, want.Name)
}

// ensureInForce makes or restores the binding of a policy.
func (b *Base) ensureInForce(ctx context.Context, name string) error {
	bindings := b.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	want := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ownLabels()},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	found, err := bindings.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = bindings.Create(ctx, want, metav1.CreateOptions{})
	case err == nil:
		want.ResourceVersion = found.ResourceVersion
		_, err = bindings.Update(ctx, want, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("binding of admission policy %s: %w", name, err)
	}
	return nil
}

func memoryPolicy() *admissionv1.ValidatingAdmissionPolicy {
	fail, exact := admissionv1.Fail, admissionv1.Exact
	var resources []string
	for _, gvk := range []schema.GroupVersionKind{gvkExecution, GVKInstalledOperator} {
		plural := Resource(gvk).Resource
		resources = append(resources, plural, plural+"/*")
	}
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: memoryName, Labels: ownLabels()},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{
				MatchPolicy: &exact,
				ResourceRules: []admissionv1.NamedRuleWithOperations{
					{RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
						Rule: admissionv1.Rule{
							APIGroups:   []string{gvkExecution.Group},
							APIVersions: []string{"*"}, Resources: resources,
						},
					}},
				},
			},
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "not-chandler",
				Expression: "request.userInfo.username != '" + ExecutorUser + "' || !has(request.userInfo.extra) || " +
					"!('" + EpochExtra + "' in request.userInfo.extra) || request.name == '" + memoryProbe + "'",
			}},
			Validations: []admissionv1.Validation{{
				Expression: keepsWhatItSays(),
				MessageExpression: "object.kind + ' is what Chandler itself remembers, and nobody else writes it: " +
					"change operators by subscriptions " +
					"(chandler apply), remove them with chandler uninstall'",
			}},
		},
	}
}

// keepsWhatItSays holds for an update that leaves everything but finalizers and owner references. The generation stands
// for the spec; the status has a subresource, which nobody else writes.
func keepsWhatItSays() string {
	same := func(field string) string {
		return "(has(object.metadata." + field + ") ? object.metadata." + field + " : {}) == " +
			"(has(oldObject.metadata." + field + ") ? oldObject.metadata." + field + " : {})"
	}
	return strings.Join([]string{
		"request.operation == 'UPDATE'", "(!has(request.subResource) || request.subResource == '')",
		"object.metadata.generation == oldObject.metadata.generation", same("labels"), same("annotations"),
	}, " && ")
}

// refusedBy reports a refusal by a policy: in the words of the API server, in the place where it puts them. What a
// webhook says, and what is echoed of an object, comes after other words.
func refusedBy(err error, policy string) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Details == nil || !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		return false
	}
	d, message := status.ErrStatus.Details, status.ErrStatus.Message
	of := schema.GroupResource{Group: d.Group, Resource: d.Kind}.String()
	if d.Name != "" {
		of += ` "` + d.Name + `"`
	}
	return !strings.HasPrefix(message, "admission webhook ") &&
		strings.HasPrefix(message, of+" is forbidden: ValidatingAdmissionPolicy '"+policy+"' with binding '"+policy+
			"' denied request: ")
}

// try asks whether an object of a name would be let in. It changes nothing.
func (e *Epoch) try(ctx context.Context, gvk schema.GroupVersionKind, name string) error {
	body := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name, "namespace": SystemNamespace},
	}}
	body.SetGroupVersionKind(gvk)
	_, err := e.objects(gvk, SystemNamespace).Create(ctx, body,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// LetGo takes away the admission policies that keep others from writing what Chandler writes: its memory, and those
// that also names. The fence stays: it is about nobody but Chandler's executor, and keeps a late one out.
//
// Nothing is done where the cluster is held for another registration.
func (b *Base) LetGo(ctx context.Context, mine Registration, also ...string) error {
	if err := b.CheckOwner(ctx, mine); IsElsewhere(err) {
		return nil
	} else if err != nil {
		return err
	}
	admission := b.Kube.AdmissionregistrationV1()
	var failed []error
	for _, name := range append([]string{memoryName, clusteraccess.PolicyName}, also...) {
		// Without its binding a policy says nothing.
		for _, gone := range []error{
			admission.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{}),
			admission.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{}),
		} {
			if gone != nil && !apierrors.IsNotFound(gone) {
				failed = append(failed, fmt.Errorf("admission policy %s: %w", name, gone))
			}
		}
	}
	return errors.Join(append(failed, b.disown(ctx))...)
}
