package condition

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// parse reads an OperatorCondition.
func parse(o *unstructured.Unstructured) (*Object, error) {
	c := &Object{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, c); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "OperatorCondition %s/%s", o.GetNamespace(), o.GetName())
	}
	return c, nil
}

// withConditions returns a copy of an OperatorCondition with another status.
func withConditions(o *unstructured.Unstructured, status []metav1.Condition) (*unstructured.Unstructured, error) {
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
