package protocol

// Cut counts what was left out of a report so that it fits into a message. Phases of operators and outcomes of plans
// are never left out. What is counted here is there, and can be seen in the cluster itself.
type Cut struct {
	Fields       int `json:"fields,omitempty"`       // differences of drifted objects, or their values
	Drifts       int `json:"drifts,omitempty"`       // drifted objects
	Components   int `json:"components,omitempty"`   // objects of operators, or what they say
	Requirements int `json:"requirements,omitempty"` // rows, or the rights that they list
	Messages     int `json:"messages,omitempty"`     // texts for people, or their ends
	History      int `json:"history,omitempty"`      // transitions, which Dropped counts, too
	Left         int `json:"left,omitempty"`         // objects that stay after a removal
	StepLogs     int `json:"stepLogs,omitempty"`
	Groups       int `json:"groups,omitempty"` // 1 where nothing is said of the operator group
}

// Plus is the sum of both.
func (c Cut) Plus(o Cut) Cut {
	return Cut{
		Fields: c.Fields + o.Fields, Drifts: c.Drifts + o.Drifts, Components: c.Components + o.Components,
		Requirements: c.Requirements + o.Requirements, Messages: c.Messages + o.Messages,
		History: c.History + o.History, Left: c.Left + o.Left, StepLogs: c.StepLogs + o.StepLogs,
		Groups: c.Groups + o.Groups,
	}
}
