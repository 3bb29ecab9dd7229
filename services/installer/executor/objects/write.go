package objects

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/compare"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// Reapply writes one object of an operator at rest as it is to be now. It is written as Chandler itself: what the
// plan's account was allowed is put back, whatever that account may do today (R-OG-64).
func (w Writer) Reapply(ctx context.Context, s scope.RenderTarget, o render.Object) (
	*unstructured.Unstructured, error,
) {
	body, err := w.Overlays(w.Scope).Decorate(w.Namespace, s, o)
	if err != nil {
		return nil, err
	}
	if o.GVK == kube.GVKCSV {
		// of the one that was looked at: one that somebody deletes meanwhile stays deleted
		body.SetUID(types.UID(s.UID))
	}
	if o.GVK == kube.GVKDeployment {
		compare.LeaveReplicas(body, w.Snapshot.Deployments.ByName[o.Name])
	}
	if err := w.Env.Points.At("before reapply"); err != nil {
		return nil, err
	}
	part, err := overlay.ShareOf(w.Namespace, s, o)
	if err != nil {
		return nil, err
	}
	var applied *unstructured.Unstructured
	if part == nil {
		applied, err = w.Env.Client.Apply(ctx, body, w.Manager(s.Bundle.Package))
	} else {
		applied, err = w.keepUp(ctx, body, *part)
	}
	if err != nil {
		return nil, err
	}
	if applied == nil { // its holder makes it again
		return body, nil
	}
	w.Left(applied)
	w.Snapshot.Deployments.Forget()
	return applied, w.Env.Points.At("reapplied")
}

// Applying is a write of an object, after the point at which tests may end the executor.
func (w Writer) Applying(write func() (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	if err := w.Env.Points.At("before apply"); err != nil {
		return nil, err
	}
	return write()
}

// Adopt marks an object that was there before Chandler wrote it first, so that it outlives the operator. What a watch
// has told of bears Chandler's label; of definitions it tells whose ever they are. What has the digest of its
// operator's rights in its name is nobody else's.
func (w Writer) Adopt(ctx context.Context, body *unstructured.Unstructured) error {
	gvk := body.GroupVersionKind()
	if there, _ := w.Env.Watcher.There(gvk, body.GetNamespace(), body.GetName()); there && gvk != kube.GVKCRD ||
		gvk == kube.GVKInstalledOperator {
		return nil
	}
	if h := body.GetLabels()[render.LabelPermissionsHash]; h != "" && strings.HasSuffix(body.GetName(), h) {
		return nil
	}
	found, err := w.Env.Client.Foreign(ctx, gvk, body.GetNamespace(), body.GetName())
	if err != nil || found == nil {
		return err
	}
	return w.Env.Points.Between("adopt", func() error { return w.Env.Client.Adopt(ctx, gvk, found) })
}

// AdoptLate marks an object that somebody else made between the look before the plan and the step, just as the step
// would have it. A crash before the mark leaves the step to be looked at again.
func (w Writer) AdoptLate(ctx context.Context, o *unstructured.Unstructured, manager string) error {
	if kube.Adopted(o) || !kube.CameFirst(o, manager) {
		return nil
	}
	return w.Env.Points.Between("adopt", func() error { return w.Env.Client.Adopt(ctx, o.GroupVersionKind(), o) })
}
