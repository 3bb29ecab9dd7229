package executor

import (
	"context"
	"strings"

	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/drift"
)

// item names something that is kept for an operator, "" for all of the namespace.
func (w *work) item(operator, what string) drift.Item {
	return drift.Item{Namespace: w.ns, Operator: operator, What: what}
}

// alone notes what could not be done for one operator, "" for what all of the namespace share, so that the others go on,
// and has it tried again; nil forgets it. What ends the session stays an error.
func (w *work) alone(ctx context.Context, operator, what string, err error) error {
	i := w.item(operator, what)
	if err == nil {
		w.pace.Succeeded(i)
		return nil
	}
	if failure.Final(ctx, err) {
		return err
	}
	w.cfg.Log.WarnContext(ctx, "operator is not as it should be; it is tried again", "csv", operator, "namespace", w.ns, "part", what, "error", err)
	w.soon(w.pace.Failed(i, strings.TrimPrefix(operator+": ", ": ")+what+": "+err.Error(), w.cfg.Now()))
	return nil
}

// waits reports what failed for an operator a moment ago and is not to be tried yet, and sees to it that it will be.
func (w *work) waits(operator, what string) bool {
	wait := w.pace.Wait(w.item(operator, what), w.cfg.Now())
	w.soon(wait)
	return wait > 0
}

// later notes what could not be done now and has it tried again; what ends the session stays an error.
func (w *work) later(ctx context.Context, what string, err error) error {
	if err == nil || failure.Final(ctx, err) {
		return err
	}
	w.cfg.Log.WarnContext(ctx, "what an operator group comes to is not as it should be", "part", what, "namespace", w.ns, "error", err)
	w.soon(w.cfg.Timing.Pause)
	return nil
}
