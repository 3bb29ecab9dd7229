package facts

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/installer/condition"
)

// Conditions returns the OperatorConditions of a namespace by name.
func (c *Cache) Conditions(ctx context.Context, namespace string) (map[string]*unstructured.Unstructured, error) {
	c.mu.Lock()
	note, ok := c.conditions[namespace]
	turn := c.turn
	c.mu.Unlock()
	if ok && c.now().Before(note.until) {
		return note.byName, nil
	}
	list, err := c.client.List(ctx, GVKCondition, namespace, "")
	if err != nil {
		return nil, err
	}
	note = conditionNote{byName: make(map[string]*unstructured.Unstructured, len(list)), until: c.now().Add(metFor)}
	for i := range list {
		note.byName[list[i].GetName()] = &list[i]
	}
	c.keep(turn, matter{namespace: namespace}, func() { c.conditions[namespace] = note })
	return note.byName, nil
}

// ParseCondition reads an OperatorCondition.
func ParseCondition(o *unstructured.Unstructured) (*condition.Object, error) {
	c := &condition.Object{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, c); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "OperatorCondition %s/%s", o.GetNamespace(), o.GetName())
	}
	return c, nil
}

// WithConditions returns a copy of an OperatorCondition with another status.
func WithConditions(o *unstructured.Unstructured, status []metav1.Condition) (*unstructured.Unstructured, error) {
	list := make([]any, len(status))
	for i := range status {
		c, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status[i])
		if err != nil {
			return nil, errs.Wrap(errs.Internal, err, "encode status of OperatorCondition %s", o.GetName())
		}
		list[i] = c
	}
	next := o.DeepCopy()
	if err := unstructured.SetNestedSlice(next.Object, list, "status", "conditions"); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "status of OperatorCondition %s/%s", o.GetNamespace(), o.GetName())
	}
	return next, nil
}
