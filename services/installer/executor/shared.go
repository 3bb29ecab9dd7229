package executor

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/objects"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// checkShared wants a person's word where an object of the plan is another operator's in another form.
func (w *work) checkShared(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	found, err := w.objects.In(w.Scope).Findings(ctx, r)
	if err != nil {
		return failure.OfCheck(ctx, err)
	}
	var texts []string
	for _, f := range found {
		if f.Choice == "" {
			texts = append(texts, failure.ChoiceNeeded{SharedObject: f}.Error())
		}
	}
	if len(texts) == 0 {
		return nil, nil //nolint:nilnil // nothing is in the way
	}
	return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonShared, Message: spoken(texts)}, nil
}

// compareShare compares an object of an operator at rest that another operator holds: no more than the note is to be there
// that the operator has it. Of one that fell to the operator, since who held it is gone, its form is written, whatever the
// cluster's settings say of drift. done is false where the operator holds it.
func (w *work) compareShare(ctx context.Context, s scope.RenderTarget, o render.Object, live, want *unstructured.Unstructured) (done bool, err error) {
	part, err := overlay.ShareOf(w.Namespace, s, o)
	if err != nil || part == nil {
		return false, err
	}
	holder, err := w.objects.In(w.Scope).HeldBy(ctx, live, want, *part)
	if err != nil {
		return false, err
	}
	if holder == nil {
		fell := live != nil && objects.Owned(live) && live.GetAnnotations()[scope.AnnotationPlan] == s.Plan && live.GetAnnotations()[scope.AnnotationDigest] != want.GetAnnotations()[scope.AnnotationDigest]
		if !fell || w.Stopped() != nil {
			return false, nil
		}
		_, err := w.objects.In(w.Scope).Reapply(ctx, s, o)
		return err == nil, err
	}
	if live == nil {
		return true, nil // its holder makes it again
	}
	if kube.HasShare(live, kube.Share(want, part.Owner)) {
		return true, w.steady(live)
	}
	_, err = w.objects.In(w.Scope).Reapply(ctx, s, o)
	return err == nil, err
}
