package objects

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// SaveStatus writes the status of an operator by compare-and-set.
func (w Writer) SaveStatus(ctx context.Context, m *scope.Operator, next csv.Status) error {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		Status csv.Status `json:"status"`
	}{next})
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode status of %s", m.Name())
	}
	object := m.Object.DeepCopy()
	object.Object["status"] = body["status"]
	written, err := w.Env.Client.UpdateStatus(ctx, object)
	if err != nil {
		return err
	}
	m.Status, w.Found.PhaseMoved = next, true
	m.Take(written)
	return nil
}

// SaveLog writes the step log of a plan or removal by compare-and-set.
func (w Writer) SaveLog(ctx context.Context, x *kube.Execution, point string) error {
	return w.Env.Points.Between(point, func() error { return (kube.StepLogs{Epoch: w.Env.Client}).Save(ctx, x) })
}
