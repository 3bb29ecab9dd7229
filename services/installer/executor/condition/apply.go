package condition

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/facts"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// keep makes for each operator the OperatorCondition that it may write, before its pods start (R-COND-1).
func (w worker) keep(ctx context.Context) error {
	if w.Stopped() != nil || len(w.Snapshot.Installed.Operators) == 0 || w.Attempts.Waits("", scope.PartCondition) {
		return nil
	}
	if err := w.Mirrors.Ensure(ctx, w.Snapshot.Wanted.Settings.WithDefaults().Mirror); err != nil {
		return w.Attempts.Alone(ctx, "", scope.PartCondition, err)
	}
	w.Env.Pace.Succeeded(w.Attempts.Item("", scope.PartCondition))
	for _, m := range w.Snapshot.Installed.Operators {
		if m.Status.Phase == csv.PhaseDeleting || m.Object.GetDeletionTimestamp() != nil || m.Unverified ||
			w.Attempts.Waits(m.Name(), scope.PartCondition) {
			continue
		}
		err := w.Mirrors.KeepCondition(ctx, w.Scope, m)
		if err := w.Attempts.Alone(ctx, m.Name(), scope.PartCondition, err); err != nil {
			return err
		}
	}
	return nil
}

// read reads what the operators of the namespace say of their upgrades, and puts it into the status of
// their OperatorConditions (R-COND-8).
func (w worker) read(ctx context.Context) error {
	objects, err := w.Facts.Conditions(ctx, w.Namespace)
	if err != nil {
		return err
	}
	w.Found.Conditions = make(map[string]protocol.OperatorCondition, len(w.Snapshot.Installed.Operators))
	for _, m := range w.Snapshot.Installed.Operators {
		found, err := w.sync(ctx, objects[m.Name()])
		if err != nil {
			return err
		}
		w.Found.Conditions[m.Name()] = Decide(found)
	}
	return nil
}

// sync reads one OperatorCondition and writes its status where that is behind; nil in, nil out.
func (w worker) sync(ctx context.Context, o *unstructured.Unstructured) (*Object, error) {
	if o == nil {
		return nil, nil //nolint:nilnil // an operator that says nothing is an answer (R-COND-7)
	}
	found, err := parse(o)
	if err != nil {
		return nil, err
	}
	status, changed := Sync(*found)
	if !changed || w.Stopped() != nil {
		return found, nil
	}
	next, err := withConditions(o, status)
	if err != nil {
		return nil, err
	}
	if err := w.Env.Points.At("before condition"); err != nil {
		return nil, err
	}
	if _, err := w.Env.Client.UpdateStatus(ctx, next); err != nil {
		return nil, err
	}
	w.Facts.ForgetNamespace(w.Namespace)
	return found, w.Env.Points.At("condition")
}

func (w worker) checkUpgradeable(ctx context.Context, r scope.Plan) (*failure.Failure, error) {
	for _, b := range r.Document.Bundles {
		if b.Replaces == "" {
			continue
		}
		o, err := w.Env.Client.Get(ctx, facts.GVKCondition, w.Namespace, b.Replaces)
		if err != nil {
			return nil, err
		}
		found, err := w.sync(ctx, o)
		if err != nil {
			return nil, err
		}
		if c := Decide(found); !c.Upgradeable {
			return &failure.Failure{
				Class: failure.Conflict, Reason: string(csv.ReasonOperatorConditionNotUpgradeable), Quick: true,
				Message: b.Replaces + ": operator is not upgradeable: " + c.Message,
			}, nil
		}
	}
	return nil, nil //nolint:nilnil // nothing is in the way
}
