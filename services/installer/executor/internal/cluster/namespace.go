package cluster

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// LabelNamespace sets labels of a namespace, which is somebody else's: nothing but these labels is touched, and nil
// takes one away. A namespace that is gone has none.
func (e *Epoch) LabelNamespace(ctx context.Context, name string, labels map[string]*string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return errs.Wrap(errs.Internal, err, "labels of namespace %s", name)
	}
	_, err = e.MergePatch(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", name, patch)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
