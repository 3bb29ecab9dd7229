package scope

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
)

// Parts of the care for an operator of which each may fail for itself (Attempts.Alone).
const (
	PartOrigin      = "where it comes from"
	PartPhase       = "phase"
	PartObjects     = "objects"
	PartOverlays    = "appearance" // what overlays add to its objects
	PartLabel       = "label"
	PartRights      = "rights in target namespaces"
	PartLabels      = "labels and annotations of the namespace"
	PartHalt        = "end of Deployments of an operator whose APIs are another group's"
	PartRemains     = "removal of what a deleted operator leaves"
	PartComponents  = "state of its objects"
	PartLogs        = "removal of old step logs"
	PartCondition   = "operator condition"
	PartPullSecrets = "pull secrets"
	PartLate        = "objects that waited for their kind"
)

// Attempts keeps what fails for one operator from holding up the others, and says when the namespace is to be
// reconciled again.
type Attempts struct {
	namespace string
	pace      *pace.Pace
	log       *slog.Logger
	now       func() time.Time
	pause     time.Duration
	again     time.Duration
}

// Soon has the namespace reconciled again after d, unless that happens earlier.
func (a *Attempts) Soon(d time.Duration) {
	if d > 0 && d < a.again {
		a.again = d
	}
}

// Again is when the namespace is to be reconciled again.
func (a *Attempts) Again() time.Duration { return a.again }

// Item names something that is kept for an operator, "" for all of the namespace.
func (a *Attempts) Item(operator, what string) pace.Item {
	return pace.Item{Namespace: a.namespace, Operator: operator, What: what}
}

// Alone notes what could not be done for one operator, "" for what all of the namespace share, so that the others go
// on, and has it tried again; nil forgets it. What ends the session stays an error.
func (a *Attempts) Alone(ctx context.Context, operator, what string, err error) error {
	i := a.Item(operator, what)
	if err == nil {
		a.pace.Succeeded(i)
		return nil
	}
	if failure.Final(ctx, err) {
		return err
	}
	a.log.WarnContext(ctx, "operator is not as it should be; it is tried again", "csv", operator, "namespace",
		a.namespace, "part", what, "error", err)
	a.Soon(a.pace.Failed(i, strings.TrimPrefix(operator+": ", ": ")+what+": "+err.Error(), a.now()))
	return nil
}

// Waits reports what failed for an operator a moment ago and is not to be tried yet, and sees to it that it will be.
func (a *Attempts) Waits(operator, what string) bool {
	wait := a.pace.Wait(a.Item(operator, what), a.now())
	a.Soon(wait)
	return wait > 0
}

// Later notes what could not be done for the operator group now and has it tried again; what ends the session stays an
// error.
func (a *Attempts) Later(ctx context.Context, what string, err error) error {
	if err == nil || failure.Final(ctx, err) {
		return err
	}
	a.log.WarnContext(ctx, "what an operator group comes to is not as it should be", "part", what, "namespace",
		a.namespace, "error", err)
	a.Soon(a.pause)
	return nil
}
