package events

// accessEvents are the events of the stop switch, in the order of docs/events.md.
func accessEvents() []Definition {
	return []Definition{
		define(KindAccess, Gateway, EffectsStopped{}, "No plan may begin or take another step."),
		define(KindAccess, Gateway, EffectsResumed{}, "A person lets plans go on."),
	}
}

// EffectsStopped says that no plan may begin or take another step. Subject: fleet, or cluster/<name>.
type EffectsStopped struct {
	Reason string `json:"reason"` // RecordLostCommits, Operator
}

// EventType implements Payload.
func (EffectsStopped) EventType() Type { return "access.effects-stopped.v1" }

// EffectsResumed says that a person lets plans go on.
type EffectsResumed struct {
	Epoch int64 `json:"epoch"` // the epoch that the person has seen and accepts
}

// EventType implements Payload.
func (EffectsResumed) EventType() Type { return "access.effects-resumed.v1" }
