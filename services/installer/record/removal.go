package record

import (
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Removal is how much of a request to uninstall an operator is recorded. Its zero value is none.
type Removal struct {
	ID      string // "" where none is under way
	Started bool
	Class   string // of the last block
	Reason  string
}

// EvolveRemoval returns the state after an event of the operator's stream; most are not about a removal.
func EvolveRemoval(s Removal, p events.Payload) Removal {
	switch e := p.(type) {
	case events.CSVRemovalRequested:
		return Removal{ID: e.Removal}
	case events.CSVRemovalDirected:
		return Removal{ID: e.Removal}
	case events.CSVRemovalStarted:
		s.Started = true
	case events.CSVRemovalBlocked:
		s.Class, s.Reason = e.Class, e.Reason
	case events.CSVRemovalRefused, events.CSVRemoved:
		return Removal{}
	}
	return s
}

// DecideRemoval gives the events that a report adds to the operator's stream:
//
//	of a request that is not under way    nothing: it has ended, or the record never held it
//	Refused                               csv.removal-refused
//	Started or Finished, the first time   csv.removal-started; the end is csv.removed
//	Blocked, for another reason than last csv.removal-blocked
//	anything else                         nothing
func DecideRemoval(s Removal, r protocol.RemovalReport) []events.Payload {
	switch {
	case s.ID == "" || s.ID != r.ID:
	case r.Phase == protocol.RemovalRefused:
		return []events.Payload{events.CSVRemovalRefused{Removal: r.ID, Reason: r.Reason}}
	case (r.Phase == protocol.PlanStarted || r.Phase == protocol.PlanFinished) && !s.Started:
		return []events.Payload{events.CSVRemovalStarted{Removal: r.ID}}
	case r.Phase == protocol.PlanBlocked && (s.Class != r.Class || s.Reason != r.Reason):
		return []events.Payload{events.CSVRemovalBlocked{Removal: r.ID, Class: r.Class, Reason: r.Reason}}
	}
	return nil
}
