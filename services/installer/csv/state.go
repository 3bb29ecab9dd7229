package csv

import (
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Statuses of a component beside those that kstatus gives.
const (
	componentNotFound    = string(status.NotFoundStatus)
	componentTerminating = string(status.TerminatingStatus)
	componentUnknown     = string(status.UnknownStatus)
)

// ComponentOfPhase is the state of the object that stands for an installed operator: its phase says more than its form.
func ComponentOfPhase(ref protocol.ObjectRef, s Status) protocol.Component {
	c := protocol.Component{ObjectRef: ref, Message: s.Message}
	switch s.Phase {
	case PhaseSucceeded:
		c.Status, c.Message = string(status.CurrentStatus), ""
	case PhaseFailed:
		c.Status = string(status.FailedStatus)
	case PhaseDeleting:
		c.Status = componentTerminating
	default:
		c.Status = string(status.InProgressStatus)
	}
	return c
}

// ComponentOfRow is the state of an object that exists, of which nothing is known but the row of a requirement that
// names it, where one does.
func ComponentOfRow(ref protocol.ObjectRef, leaving bool, rows []Requirement) protocol.Component {
	c := protocol.Component{ObjectRef: ref, Status: string(status.CurrentStatus)}
	if leaving {
		c.Status = componentTerminating
		return c
	}
	for _, r := range rows {
		if r.Kind == ref.Kind && r.Group == ref.Group && r.Name == ref.Name && r.Status != Present &&
			r.Status != DeploymentFound {
			c.Status, c.Message = string(status.InProgressStatus), r.Message
		}
	}
	return c
}

// ComponentOf is the state of one object by kstatus (R-CSV-62). Where only metadata is known (no spec and no status),
// kstatus has nothing to wait for: the object is Current unless it is being deleted.
func ComponentOf(ref protocol.ObjectRef, o *unstructured.Unstructured) protocol.Component {
	c := protocol.Component{ObjectRef: ref, Status: componentNotFound}
	switch {
	case o == nil:
		return c
	case o.GetDeletionTimestamp() != nil:
		c.Status = componentTerminating
		return c
	}
	result, err := status.Compute(o)
	if err != nil {
		c.Status, c.Message = componentUnknown, err.Error()
		return c
	}
	c.Status = string(result.Status)
	if result.Status != status.CurrentStatus {
		c.Message = result.Message
	}
	return c
}
