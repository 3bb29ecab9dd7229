package kube

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// fenceName names the ValidatingAdmissionPolicy and its binding.
const fenceName = "chandler-fence.chandler-fleet.io"

// fenceTimeout bounds the wait for the API server to enforce a new epoch; it loads policies once a second.
const fenceTimeout = 20 * time.Second

// fencedMessage is in every refusal, for people.
const fencedMessage = "chandler: a newer executor holds this cluster"

// maxEpoch is beyond every epoch that a lease reaches; a fence above it was not written by us.
const maxEpoch = math.MaxInt64 / 2

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
		return errs.Wrap(errs.Unavailable, err, "the API server does not enforce epoch %d (last answer to a trial: %v)",
			epoch, last)
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
	return b.ensureInForce(ctx, fenceName)
}

// fenceEpoch is the epoch at which the fence stands, 0 where there is none. What somebody else wrote in its place
// counts as none: it is written anew.
func (b *Base) fenceEpoch(ctx context.Context) (int64, error) {
	found, err := b.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(
		ctx, fenceName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the fence: %w", err)
	}
	return epochOfFence(found), nil
}

func epochOfFence(found *admissionv1.ValidatingAdmissionPolicy) int64 {
	n, err := strconv.ParseInt(found.Annotations[annotationEpoch], 10, 64)
	if err != nil || n < 0 || n > maxEpoch {
		return 0
	}
	return n
}

// FencedOut reports whether the fence really stands above an epoch. It is asked before a refusal ends a session: what
// an API server of somebody's own answers to a write may be made up.
func (b *Base) FencedOut(ctx context.Context, epoch int64) (bool, error) {
	now, err := b.fenceEpoch(ctx)
	return now > epoch, err
}

func (b *Base) raiseFence(ctx context.Context, found *admissionv1.ValidatingAdmissionPolicy, epoch int64) error {
	if now := epochOfFence(found); now > epoch {
		return fenceAheadError{errs.New(errs.Conflict,
			"the fence stands at epoch %d, above ours (%d): the lease was lost or restored; the next try begins "+
				"above it", now, epoch)}
	}
	next := fencePolicy(epoch)
	next.ResourceVersion = found.ResourceVersion
	_, err := b.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Update(ctx, next, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return errs.Wrap(errs.Conflict, err, "raise the fence to epoch %d", epoch)
	}
	if err != nil {
		return fmt.Errorf("raise the fence to epoch %d: %w", epoch, err)
	}
	return nil
}

// fencePolicy looks at nothing but who writes. Who writes in an epoch is Chandler's executor, whichever account it
// writes through (R-OG-60): nobody else's requests bear one.
//
// The API server turns the object, and the one before, into values of its language for each part of a policy that it
// comes to, and definitions are large. So the match condition alone decides, and the validation is come to by what is
// refused only; and the status of a definition, which the API server itself writes several times, is left out: Chandler
// writes none.
func fencePolicy(epoch int64) *admissionv1.ValidatingAdmissionPolicy {
	fail, exact := admissionv1.Fail, admissionv1.Exact
	all := []string{"*"}
	number := strconv.FormatInt(epoch, 10)
	inEpoch := "has(request.userInfo.extra) && '" + EpochExtra + "' in request.userInfo.extra"
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Name: fenceName, Labels: ownLabels(),
			Annotations: map[string]string{annotationEpoch: number},
		},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{
				MatchPolicy: &exact,
				ResourceRules: []admissionv1.NamedRuleWithOperations{
					{RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{
							admissionv1.Create, admissionv1.Update,
							admissionv1.Delete,
						},
						Rule: admissionv1.Rule{APIGroups: all, APIVersions: all, Resources: []string{"*/*"}},
					}},
				},
				ExcludeResourceRules: []admissionv1.NamedRuleWithOperations{
					{RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Update},
						Rule: admissionv1.Rule{
							APIGroups: []string{GVKCRD.Group}, APIVersions: all,
							Resources: []string{Resource(GVKCRD).Resource + "/status"},
						},
					}},
				},
			},
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "earlier-executor",
				Expression: "(" + inEpoch + ") ? !request.userInfo.extra['" + EpochExtra + "'].all(e, int(e) >= " +
					number + ") : " +
					"request.userInfo.username == '" + ExecutorUser + "'",
			}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: fencedMessage}},
		},
	}
}

// probe asks whether a write in the client's epoch would be let in. It changes nothing.
func probe(ctx context.Context, e *Epoch) error {
	return e.try(ctx, gvkConfigMap, "chandler-fence-probe")
}

// IsFenced reports a write that was refused because a newer executor holds the cluster.
func IsFenced(err error) bool { return refusedBy(err, fenceName) }

// fenceAheadError is a Conflict with a fence above the lease.
type fenceAheadError struct{ error }

func (f fenceAheadError) Unwrap() error { return f.error }

// IsFenceAhead reports that the fence stands above the epoch that the lease gave.
func IsFenceAhead(err error) bool {
	_, ok := errors.AsType[fenceAheadError](err)
	return ok
}
