package record

import (
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/unknown"
)

// Group is what was recorded last of an operator group. Its zero value is nothing.
type Group struct {
	Targets      []string  `json:"targets,omitempty"`
	ProvidedAPIs []string  `json:"providedAPIs,omitempty"`
	Conditions   []string  `json:"conditions,omitempty"`
	Recorded     bool      `json:"recorded,omitempty"`
	Window       time.Time `json:"window,omitzero"`
	Changes      int       `json:"changes,omitempty"`
	// Withheld is set while the limit keeps a change back.
	Withheld bool `json:"withheld,omitempty"`
	// Unknown is what a newer release keeps here.
	Unknown unknown.Fields `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (g *Group) UnmarshalJSON(data []byte) (err error) {
	type plain Group
	g.Unknown, err = unknown.Read(data, (*plain)(g))
	return err
}

// MarshalJSON implements json.Marshaler.
func (g Group) MarshalJSON() ([]byte, error) {
	type plain Group
	return unknown.Write(plain(g), g.Unknown)
}

// Settled reports whether the same report need not be looked at again as time passes.
func (g Group) Settled() bool { return !g.Withheld }

// DecideGroup gives the event that a report adds, if any, and the state after it (R-OG §7.1, R-OG-20). Namespaces whose
// labels change often could make many: they are bounded like the observations of a cluster.
func DecideGroup(g Group, r protocol.GroupReport, now time.Time) ([]events.Payload, Group) {
	o := events.OperatorGroupObserved{
		Targets: set(r.Targets), ProvidedAPIs: set(r.ProvidedAPIs),
		Conditions: codes(r.Conditions),
	}
	if g.Recorded && slices.Equal(o.Targets, g.Targets) && slices.Equal(o.ProvidedAPIs, g.ProvidedAPIs) &&
		slices.Equal(o.Conditions, g.Conditions) {
		g.Withheld = false
		return nil, g
	}
	if opens(g.Window, ObserveWindow, now) {
		g.Window, g.Changes = now, 0
	}
	if g.Changes >= ObserveLimit {
		g.Withheld = true
		return nil, g
	}
	return []events.Payload{o}, Group{
		Targets: o.Targets, ProvidedAPIs: o.ProvidedAPIs, Conditions: o.Conditions, Recorded: true, Window: g.Window,
		Changes: g.Changes + 1, Unknown: g.Unknown,
	}
}

func codes(conditions []protocol.GroupCondition) []string {
	out := make([]string, len(conditions))
	for i, c := range conditions {
		out[i] = c.Type
	}
	return set(out)
}

// set returns the list sorted, each member once, and never nil: events hold an empty list.
func set(list []string) []string {
	out := append([]string{}, list...)
	slices.Sort(out)
	return slices.Compact(out)
}
