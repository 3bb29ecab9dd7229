// Package overlay decorates rendered objects: with what the live cluster adds to them, and with what only the plan
// knows. It is pure; each subject brings its own overlay.
package overlay

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// digestType is the type prefix of the digest of an object with its overlays.
const digestType = "chandler.dressed.v1"

// Overlay is one thing that the live cluster adds to rendered objects. The plan's digests do not cover it; when its
// input changes, the objects of the operators at rest are written again, and Deployments roll.
type Overlay struct {
	// About reports the objects that it may change; kind is InstalledOperator for the operator itself.
	About func(t scope.RenderTarget, kind, name string) bool
	// Input is what it depends on for an operator, as a value that JSON holds.
	Input func(t scope.RenderTarget) any
	// Apply changes the body of one such object. It must come to the same for the same body and input.
	Apply func(t scope.RenderTarget, body *unstructured.Unstructured) error
}

// Set is all overlays, in the order in which they are applied: a later one sees what an earlier one did.
type Set []Overlay

// Apply returns an object with its overlays, and the digest of that where an overlay is about it.
func (s Set) Apply(t scope.RenderTarget, o render.Object) (
	body *unstructured.Unstructured, rendered string, err error,
) {
	body = &unstructured.Unstructured{Object: o.Clone().Body}
	if o.GVK.Kind == kube.GVKCSV.Kind {
		kube.InstalledOperator(body)
		if t.Bundle.Replaces != "" { // the installed one, from which a range may have skipped
			if err := unstructured.SetNestedField(body.Object, t.Bundle.Replaces, "spec", "replaces"); err != nil {
				return nil, "", errs.Wrap(errs.Invalid, err, "%s", o)
			}
		}
	}
	about := false
	for _, l := range s {
		if !l.About(t, body.GetKind(), body.GetName()) {
			continue
		}
		about = true
		if err := l.Apply(t, body); err != nil {
			return nil, "", fmt.Errorf("%s: %w", o, err)
		}
	}
	if !about {
		return body, "", nil
	}
	d, err := digest.JSON(digestType, body.Object)
	return body, string(d), err
}

// Inputs is the digest of what all overlays depend on for an operator.
func (s Set) Inputs(t scope.RenderTarget) (string, error) {
	in := map[string]any{"plan": t.Plan, "content": t.Bundle.Content, "config": t.Config}
	for i, l := range s {
		in[fmt.Sprint(i)] = l.Input(t)
	}
	d, err := digest.JSON(digestType, in)
	return string(d), err
}

// Decorate adds to a rendered object of an operator of namespace ns the overlays, and what only the plan knows.
func (s Set) Decorate(ns string, t scope.RenderTarget, o render.Object) (*unstructured.Unstructured, error) {
	step, err := o.Digest()
	if err != nil {
		return nil, err
	}
	body, rendered, err := s.Apply(t, o)
	if err != nil {
		return nil, err
	}
	annotate(body, t, string(step), rendered)
	labels := body.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[kube.LabelManaged] = "true"
	if t.Bundle.Package != "" {
		labels[mirror.ComponentLabel(t.Bundle.Package, ns)] = ""
	}
	body.SetLabels(labels)
	share, err := ShareOf(ns, t, o)
	if err != nil {
		return nil, err
	}
	if share != nil {
		kube.NoteWants(body, share.Owner)
	}
	if o.Namespace != ns || body.GetKind() == kube.GVKInstalledOperator.Kind {
		return body, nil // an owner in another namespace would have the cluster remove it
	}
	if t.UID == "" {
		return nil, fmt.Errorf("%s comes before its ClusterServiceVersion %s", o, o.Resolving)
	}
	kube.SetOwner(body, o.Resolving, t.UID)
	return body, nil
}

func annotate(body *unstructured.Unstructured, t scope.RenderTarget, step, rendered string) {
	extra := map[string]string{
		scope.AnnotationDigest: step, scope.AnnotationRendered: rendered, scope.AnnotationPlan: t.Plan,
		scope.AnnotationComponent: t.Component,
	}
	if body.GetKind() == kube.GVKInstalledOperator.Kind {
		extra[scope.AnnotationContent], extra[scope.AnnotationPackage] = t.Bundle.Content, t.Bundle.Package
		extra[scope.AnnotationRendering] = t.Rendering
		extra[scope.AnnotationTraceParent], extra[scope.AnnotationReason] = t.TraceParent, t.Bundle.Reason
	}
	annotations := body.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for k, v := range extra {
		if v != "" {
			annotations[k] = v
		}
	}
	body.SetAnnotations(annotations)
}

// Expect notes the digests of the Deployments that a plan that has begun is about to write, so that an operator that
// runs with other ones is seen to need an install. An object that cannot be decorated now is met again by its step,
// which says why.
func Expect(sc *scope.Scope, s Set, p scope.Plan) {
	for _, o := range p.Objects {
		if o.GVK != kube.GVKDeployment {
			continue
		}
		t, err := p.Target(nil, o.Resolving)
		if err != nil {
			continue
		}
		_, rendered, err := s.Apply(t, o)
		if err != nil {
			continue
		}
		if sc.Found.Expected[o.Resolving] == nil {
			sc.Found.Expected[o.Resolving] = map[string]string{}
		}
		sc.Found.Expected[o.Resolving][o.Name] = rendered
	}
}

// Forget ends the expectation of the Deployments of an operator: its plan has ended.
func Forget(sc *scope.Scope, csvName string) { delete(sc.Found.Expected, csvName) }
