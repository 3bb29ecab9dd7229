package uninstall

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// listed is how many custom resources are read at a time.
const listed = 250

// Waiting are objects that are to go and are still there.
type Waiting struct {
	Count  int
	Sample []string // some of them, with their finalizers
}

// String names them, for people.
func (w *Waiting) String() string {
	text := strings.Join(w.Sample, ", ")
	if w.Count > len(w.Sample) {
		text += fmt.Sprintf(" and %d more", w.Count-len(w.Sample))
	}
	return text
}

// note takes one more.
func (w *Waiting) note(of string, o metav1.Object) {
	w.Count++
	if len(w.Sample) == sampled {
		return
	}
	text := of + " " + name(o)
	if f := o.GetFinalizers(); len(f) > 0 {
		text += " (finalizers " + strings.Join(f, ", ")
		if at := o.GetDeletionTimestamp(); at != nil {
			text += ", since " + at.UTC().Format(time.RFC3339)
		}
		text += ")"
	}
	w.Sample = append(w.Sample, text)
}

// empty deletes every object of a definition, and notes those that are still there.
func empty(ctx context.Context, c *kube.Epoch, crd string, left *Waiting) error {
	of, ok, err := resource(ctx, c, crd)
	if err != nil || !ok {
		return err
	}
	err = each(ctx, c, of, func(o metav1.Object) error {
		if o.GetDeletionTimestamp() != nil {
			return nil
		}
		return remove(ctx, c, of, o)
	})
	if err != nil {
		return err
	}
	return each(ctx, c, of, func(o metav1.Object) error {
		left.note(crd, o)
		return nil
	})
}

// each calls do for every object of a resource, page by page.
func each(ctx context.Context, c *kube.Epoch, of schema.GroupVersionResource, do func(metav1.Object) error) error {
	o := metav1.ListOptions{Limit: listed}
	for {
		list, err := metadata(ctx, c, of, o)
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := do(&list.Items[i]); err != nil {
				return err
			}
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return nil
		}
	}
}

func remove(ctx context.Context, c *kube.Epoch, of schema.GroupVersionResource, o metav1.Object) error {
	uid, background := o.GetUID(), metav1.DeletePropagationBackground
	err := c.Dynamic.Resource(of).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background,
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or another object by now
	}
	return err
}

// Terminating says of a namespace that is being deleted what keeps it (R-UNI-5); "" of one that is not.
func Terminating(ctx context.Context, c *kube.Epoch, namespace string) (string, error) {
	o, err := c.Get(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", namespace)
	if err != nil || o == nil || o.GetDeletionTimestamp() == nil {
		return "", err
	}
	var n struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string } `json:"conditions"`
		} `json:"status"`
	}
	if err := kube.Decode(o, &n); err != nil {
		return "", err
	}
	texts := []string{"namespace " + namespace + " is being deleted"}
	for _, c := range n.Status.Conditions {
		if c.Status == string(metav1.ConditionTrue) {
			texts = append(texts, c.Message)
		}
	}
	return strings.Join(texts, "; ") + ": delete what is left there; never remove the namespace's own finalizer", nil
}
