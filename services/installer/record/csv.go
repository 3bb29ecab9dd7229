package record

import (
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

const (
	// FlapWindow and FlapLimit bound the phases recorded of one ClusterServiceVersion: an install takes
	// five and a replacement two more, so that twenty in five minutes is nobody's plan, while an
	// operator that restarts every few seconds would write a thousand.
	FlapWindow = 5 * time.Minute
	// FlapLimit is the number of phases in a window.
	FlapLimit = 20
	// reasonWaiting only repeats the phase with another message (R-CSV §6.3).
	reasonWaiting = "InstallWaiting"
	// Removed reasons.
	removedDeleted = "Deleted"
)

// CSV is how much of one life of a ClusterServiceVersion is recorded. Its zero value is nothing.
type CSV struct {
	// Exists is set once a phase of this life is in the log, until its removal is.
	Exists bool `json:"exists,omitempty"`
	// Phase and Reason were recorded last.
	Phase  string `json:"phase,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Seen is the last transition of the history, recorded or not.
	SeenPhase  string `json:"seenPhase,omitempty"`
	SeenReason string `json:"seenReason,omitempty"`
	// Taken counts transitions of the history that were taken into account, dropped ones included.
	Taken   int  `json:"taken,omitempty"`
	Removed bool `json:"removed,omitempty"`
	// Window is when the current window of FlapWindow began, Changes what was seen in it.
	Window   time.Time `json:"window,omitzero"`
	Changes  int       `json:"changes,omitempty"`
	Flapping bool      `json:"flapping,omitempty"`
	Notes    Notes     `json:"notes,omitzero"`
	// Restored is set while the cluster has gone back since the last report of this life: nobody knows what of it is there.
	Restored bool `json:"restored,omitempty"`
}

// Settled reports whether the same report need not be looked at again as time passes.
func (s CSV) Settled() bool { return !s.Flapping && !s.Notes.Behind }

// DecideCSV gives the events that a report adds to the stream of one life, and the state behind them. now is the time of
// the report.
func DecideCSV(s CSV, scope protocol.Scope, r protocol.CSVReport, now time.Time) ([]events.Payload, CSV) {
	if s.Removed {
		return nil, s
	}
	d := decision{state: s, scope: scope, report: r}
	for _, t := range behind(s.Taken, r) {
		d.take(t)
	}
	d.state.Taken = max(s.Taken, r.Dropped+len(r.History))
	d.settle(now)
	if r.Removed {
		d.remove(r.RemovedReason)
	}
	return d.events, d.state
}

// behind is the part of a history that was not taken yet.
func behind(taken int, r protocol.CSVReport) []protocol.Transition {
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

// take looks at one transition:
//
//	repeats what was seen, or waits in the same phase  nothing
//	within the limit of its window                     csv.phase-changed
//	the first beyond the limit                         csv.flapping
//	further ones                                       nothing, until the window is over
func (d *decision) take(t protocol.Transition) {
	s := &d.state
	if t.Phase == s.SeenPhase && (t.Reason == s.SeenReason || t.Reason == reasonWaiting) {
		return
	}
	d.window(t.Time)
	s.SeenPhase, s.SeenReason = t.Phase, t.Reason
	s.Changes++
	switch {
	case s.Changes <= FlapLimit:
		d.phase()
	case !s.Flapping:
		s.Flapping = true
		d.events = append(d.events, events.CSVFlapping{Changes: s.Changes, Window: int(FlapWindow / time.Second)})
	}
}

// window begins a new window where the current one is over.
func (d *decision) window(at time.Time) {
	s := &d.state
	if s.Window.IsZero() || at.Sub(s.Window) >= FlapWindow {
		d.calm()
		s.Window, s.Changes = at, 0
	}
}

// settle ends the flapping when the window is over and nothing more came.
func (d *decision) settle(now time.Time) {
	if d.state.Flapping && now.Sub(d.state.Window) >= FlapWindow {
		d.calm()
		d.state.Window, d.state.Changes = now, 0
	}
}

// calm records the phase in which a flapping one was seen last.
func (d *decision) calm() {
	if !d.state.Flapping {
		return
	}
	d.state.Flapping = false
	d.phase()
}

// phase records what was seen last, where the log does not say it already.
func (d *decision) phase() {
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

// remove ends the life. One of which nothing was ever recorded leaves nothing.
func (d *decision) remove(reason string) {
	d.calm()
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

// Vanish ends a life whose object went away unseen: another object bears its name, or none. removal is the request
// that it ends with, where one did.
func Vanish(s CSV, reason, removal string) ([]events.Payload, CSV) {
	if s.Removed {
		return nil, s
	}
	d := decision{state: s, report: protocol.CSVReport{Removal: removal}}
	d.state.Flapping = false
	d.remove(reason)
	return d.events, d.state
}
