package record

import (
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/unknown"
)

const (
	// FlapWindow and FlapLimit bound the phases recorded of one ClusterServiceVersion: an install has five and a
	// replacement two more, so that no plan needs twenty in five minutes, while an operator that restarts every few
	// seconds would write a thousand.
	FlapWindow = 5 * time.Minute
	// FlapLimit is the number of phases in a window.
	FlapLimit = 20
	// reasonWaiting only repeats the phase with another message (R-CSV §6.3).
	reasonWaiting = "InstallWaiting"
	// Removed reasons.
	removedDeleted = "Deleted"
)

// CSV is how much of one ClusterServiceVersion object (one UID) is recorded. Its zero value is nothing.
type CSV struct {
	// Exists is set once a phase of this object is in the log, until its removal is.
	Exists bool `json:"exists,omitempty"`
	// Phase and Reason were recorded last.
	Phase  string `json:"phase,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Seen is the last transition of the history, recorded or not.
	SeenPhase  string `json:"seenPhase,omitempty"`
	SeenReason string `json:"seenReason,omitempty"`
	// Taken counts the transitions of the history that were processed, dropped ones included.
	Taken   int  `json:"taken,omitempty"`
	Removed bool `json:"removed,omitempty"`
	// Window is when the current window of FlapWindow began, Changes what was seen in it.
	Window   time.Time `json:"window,omitzero"`
	Changes  int       `json:"changes,omitempty"`
	Flapping bool      `json:"flapping,omitempty"`
	Health   Health    `json:"notes,omitzero"`
	// Restored is set after the cluster was restored from a backup until the next report of this object: whether it
	// still exists is not known.
	Restored bool `json:"restored,omitempty"`
	// Unknown is what a newer release keeps here.
	Unknown unknown.Fields `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *CSV) UnmarshalJSON(data []byte) (err error) {
	type plain CSV
	s.Unknown, err = unknown.Read(data, (*plain)(s))
	return err
}

// MarshalJSON implements json.Marshaler.
func (s CSV) MarshalJSON() ([]byte, error) {
	type plain CSV
	return unknown.Write(plain(s), s.Unknown)
}

// Settled reports whether the same report need not be looked at again as time passes.
func (s CSV) Settled() bool { return !s.Flapping && !s.Health.Behind }

// DecideCSV gives the events that a report adds to the stream of one object, and the state after them. now is the
// recorder's clock.
func DecideCSV(s CSV, scope protocol.Scope, r protocol.CSVReport, now time.Time) ([]events.Payload, CSV) {
	if s.Removed {
		return nil, s
	}
	d := decision{state: s, scope: scope, report: r}
	for _, t := range newTransitions(s.Taken, r) {
		d.transition(t)
	}
	d.state.Taken = max(s.Taken, r.Dropped+len(r.History))
	d.closeWindow(now)
	if r.Removed {
		d.recordRemoval(r.RemovedReason)
	}
	return d.events, d.state
}

// newTransitions are those of a history that were not processed yet.
func newTransitions(taken int, r protocol.CSVReport) []protocol.Transition {
	from := max(0, taken-r.Dropped)
	if from >= len(r.History) {
		return nil
	}
	return r.History[from:]
}

type decision struct {
	state  CSV
	scope  protocol.Scope
	report protocol.CSVReport
	events []events.Payload
}

// transition processes one transition:
//
//	repeats what was seen, or waits in the same phase  nothing
//	within the limit of its window                     csv.phase-changed
//	the first beyond the limit                         csv.flapping
//	further ones                                       nothing, until the window is over
func (d *decision) transition(t protocol.Transition) {
	s := &d.state
	if t.Phase == s.SeenPhase && (t.Reason == s.SeenReason || t.Reason == reasonWaiting) {
		return
	}
	d.rollWindow(t.Time)
	s.SeenPhase, s.SeenReason = t.Phase, t.Reason
	s.Changes++
	switch {
	case s.Changes <= FlapLimit:
		d.recordPhase()
	case !s.Flapping:
		s.Flapping = true
		d.events = append(d.events, events.CSVFlapping{Changes: s.Changes, Window: int(FlapWindow / time.Second)})
	}
}

// rollWindow begins a new window if the current one is over.
func (d *decision) rollWindow(at time.Time) {
	s := &d.state
	if s.Window.IsZero() || at.Sub(s.Window) >= FlapWindow {
		d.endFlapping()
		s.Window, s.Changes = at, 0
	}
}

// closeWindow ends the flapping when the window is over and nothing more came.
func (d *decision) closeWindow(now time.Time) {
	if d.state.Flapping && now.Sub(d.state.Window) >= FlapWindow {
		d.endFlapping()
		d.state.Window, d.state.Changes = now, 0
	}
}

// endFlapping records the phase that a flapping operator was seen in last.
func (d *decision) endFlapping() {
	if !d.state.Flapping {
		return
	}
	d.state.Flapping = false
	d.recordPhase()
}

// recordPhase records the phase that was seen last, unless it is recorded already.
func (d *decision) recordPhase() {
	s := &d.state
	if s.Exists && s.Phase == s.SeenPhase && s.Reason == s.SeenReason {
		return
	}
	s.Exists, s.Phase, s.Reason = true, s.SeenPhase, s.SeenReason
	d.events = append(d.events, events.CSVPhaseChanged{
		Cluster: d.scope.Cluster, Namespace: d.scope.Namespace, Name: d.report.Name,
		Package: d.report.Package, Version: d.report.Version, Content: d.report.Content, Plan: d.report.Plan,
		Phase: s.Phase, Reason: s.Reason,
	})
}

// recordRemoval ends the object's stream. An object of which nothing was recorded leaves nothing.
func (d *decision) recordRemoval(reason string) {
	d.endFlapping()
	s := &d.state
	s.Removed = true
	if !s.Exists {
		return
	}
	s.Exists = false
	if reason == "" {
		reason = removedDeleted
	}
	d.events = append(d.events, events.CSVRemoved{Reason: reason, Removal: d.report.Removal})
}

// EndCSV ends an object that went away unseen: another object has its name now, or none. removal is the uninstall
// request that ended it, if any.
func EndCSV(s CSV, reason, removal string) ([]events.Payload, CSV) {
	if s.Removed {
		return nil, s
	}
	d := decision{state: s, report: protocol.CSVReport{Removal: removal}}
	d.state.Flapping = false
	d.recordRemoval(reason)
	return d.events, d.state
}
