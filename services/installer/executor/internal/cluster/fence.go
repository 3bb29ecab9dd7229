package cluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// fenceName names the ValidatingAdmissionPolicy and its binding.
const fenceName = "chandler-fence.chandler-fleet.io"

// fenceTimeout bounds the wait for the API server to enforce a new epoch; it loads policies once a second.
const fenceTimeout = 20 * time.Second

// fencedMessage is in every refusal, and how a refused writer knows what refused it.
const fencedMessage = "chandler: a newer executor holds this cluster"

// Fence makes the API server refuse, from now on, every write by Chandler's executor in an epoch
// below this one, and returns when it does so (DESIGN D7).
//
// The epoch stands in the policy itself: with a parameter object, a policy whose parameter is
// missing would refuse everybody's writes, or nobody's. A policy is not subject to policies, so it
// can always be repaired. Raising is a compare-and-set; meeting a higher epoch is errs.Conflict.
func (b *Base) Fence(ctx context.Context, epoch int64) error {
	if err := b.ensureFence(ctx, epoch); err != nil {
		return err
	}
	old, err := b.InEpoch(epoch - 1)
	if err != nil {
		return err
	}
	current, err := b.InEpoch(epoch)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	var last error
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		if last = probe(ctx, old); !IsFenced(last) {
			return false, nil
		}
		last = probe(ctx, current)
		return last == nil, nil
	})
	if err != nil {
		return errs.Wrap(errs.Unavailable, err, "the API server does not enforce epoch %d (last answer to a trial: %v)", epoch, last)
	}
	return nil
}

func (b *Base) ensureFence(ctx context.Context, epoch int64) error {
	policies := b.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	found, err := policies.Get(ctx, fenceName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if _, err = policies.Create(ctx, fencePolicy(epoch), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create the fence: %w", err)
		}
	case err != nil:
		return fmt.Errorf("read the fence: %w", err)
	default:
		if err := b.raiseFence(ctx, found, epoch); err != nil {
			return err
		}
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: fenceName, Labels: ownLabels()},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: fenceName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	_, err = b.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{})
	if err := existing(err); err != nil {
		return fmt.Errorf("bind the fence: %w", err)
	}
	return nil
}

func (b *Base) raiseFence(ctx context.Context, found *admissionv1.ValidatingAdmissionPolicy, epoch int64) error {
	now, err := strconv.ParseInt(found.Annotations[annotationEpoch], 10, 64)
	if err != nil {
		now = 0 // somebody edited it: write it anew
	}
	if now > epoch {
		return errs.New(errs.Conflict, "the fence stands at epoch %d, above ours (%d)", now, epoch)
	}
	next := fencePolicy(epoch)
	next.ResourceVersion = found.ResourceVersion
	_, err = b.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Update(ctx, next, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return errs.Wrap(errs.Conflict, err, "raise the fence to epoch %d", epoch)
	}
	if err != nil {
		return fmt.Errorf("raise the fence to epoch %d: %w", epoch, err)
	}
	return nil
}

// fencePolicy looks at nothing but who writes: the match condition ends the work for everybody else. Who writes in an
// epoch is Chandler's executor, whichever account it writes through (R-OG-60): nobody else's requests bear one.
func fencePolicy(epoch int64) *admissionv1.ValidatingAdmissionPolicy {
	fail, exact := admissionv1.Fail, admissionv1.Exact
	all := []string{"*"}
	number := strconv.FormatInt(epoch, 10)
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: fenceName, Labels: ownLabels(), Annotations: map[string]string{annotationEpoch: number}},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{
				MatchPolicy: &exact,
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
					Rule:       admissionv1.Rule{APIGroups: all, APIVersions: all, Resources: []string{"*/*"}},
				}}},
			},
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "chandler-executor",
				Expression: "request.userInfo.username == '" + ExecutorUser + "' || " +
					"has(request.userInfo.extra) && '" + EpochExtra + "' in request.userInfo.extra",
			}},
			Validations: []admissionv1.Validation{{
				Expression: "has(request.userInfo.extra) && '" + EpochExtra + "' in request.userInfo.extra && " +
					"request.userInfo.extra['" + EpochExtra + "'].all(e, int(e) >= " + number + ")",
				Message: fencedMessage,
			}},
		},
	}
}

// probe asks whether a write in the client's epoch would be let in. It changes nothing.
func probe(ctx context.Context, e *Epoch) error {
	body := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "chandler-fence-probe", "namespace": SystemNamespace},
	}}
	_, err := e.objects(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, SystemNamespace).
		Create(ctx, body, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// IsFenced reports whether a write was refused because a newer executor holds the cluster.
func IsFenced(err error) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), fencedMessage) ||
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), fencedMessage)
}
