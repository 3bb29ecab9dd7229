package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// untypable is how the API server says that an object does not fit the schema of its kind; it comes as an
// internal error.
const untypable = "failed to create typed patch object"

// IsUntypable reports an object that cannot be applied whatever is retried.
func IsUntypable(err error) bool {
	if _, is := errors.AsType[untriedError](err); is {
		return false
	}
	return err != nil && strings.Contains(err.Error(), untypable)
}

// untriedError is why the trial ended that was to tell what the API server keeps of an object: what becomes of the
// write hangs on that, not on the fields that are unknown.
type untriedError struct{ error }

func (u untriedError) Unwrap() error { return u.error }

func untried(why, unknown error) error {
	return untriedError{fmt.Errorf("%w; that was the trial of what the API server keeps, since %w", why, unknown)}
}

func isUnknownField(err error) bool {
	return IsUntypable(err) && strings.Contains(err.Error(), "field not declared in schema")
}

// prune returns the object without the fields that the API server does not know: it has the server say,
// by a trial that changes nothing, what it would keep.
func (e *Epoch) prune(ctx context.Context, body *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	client := e.objects(body.GroupVersionKind(), body.GetNamespace())
	trial := []string{metav1.DryRunAll}
	kept, err := client.Create(ctx, body, metav1.CreateOptions{
		DryRun: trial, FieldValidation: metav1.FieldValidationIgnore,
	})
	if apierrors.IsAlreadyExists(err) {
		live, getErr := client.Get(ctx, body.GetName(), metav1.GetOptions{})
		if getErr != nil {
			return nil, getErr
		}
		next := body.DeepCopy()
		next.SetResourceVersion(live.GetResourceVersion())
		kept, err = client.Update(ctx, next, metav1.UpdateOptions{
			DryRun: trial, FieldValidation: metav1.FieldValidationIgnore,
		})
	}
	if err != nil {
		return nil, err
	}
	out := body.DeepCopy()
	for _, field := range intersect(out.Object, kept.Object, "") {
		warn(ctx, "the API server knows no field "+field+", so it was left out")
	}
	return out, nil
}

// intersect removes from have what is not in kept, adds nothing, and returns what it removed as sorted JSON pointers.
func intersect(have, kept map[string]any, at string) (removed []string) {
	for _, k := range slices.Sorted(maps.Keys(have)) {
		path := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(k)
		other, ok := kept[k]
		if !ok {
			delete(have, k)
			removed = append(removed, path)
			continue
		}
		removed = append(removed, intersectValue(have[k], other, path)...)
	}
	return removed
}

func intersectValue(have, kept any, at string) (removed []string) {
	switch h := have.(type) {
	case map[string]any:
		if k, ok := kept.(map[string]any); ok {
			return intersect(h, k, at)
		}
	case []any:
		k, ok := kept.([]any)
		for i := range h {
			if ok && i < len(k) {
				removed = append(removed, intersectValue(h[i], k[i], at+"/"+strconv.Itoa(i))...)
			}
		}
	}
	return removed
}
