package events

import "time"

// RolloutGate is a check that has to pass before a rollout goes on: of a wave that has settled and soaked, before the
// next one begins, or of one that is open, before its first cluster is changed. Addresses, queries and expressions
// stand in the log: they hold no credentials.
type RolloutGate struct {
	Name string `json:"name"` // each once in its wave
	Type string `json:"type"` // OperatorConditions, CEL, HTTP, Prometheus, Webhook
	When string `json:"when"` // After, Before
	// Expression is CEL that has to hold: of the observed state, of the body of an answer, of the samples of a query.
	Expression string `json:"expression,omitempty"`
	URL        string `json:"url,omitempty"`
	Query      string `json:"query,omitempty"`  // of Prometheus
	Status     int    `json:"status,omitempty"` // of HTTP, that the answer has to have
	// Successes is how often in a row it has to hold.
	Successes int `json:"successes,omitempty"`
	// FailurePolicy is what it means that it does not hold: Wait (until the deadline), Fail (halt at once).
	FailurePolicy   string `json:"failurePolicy"`
	IntervalSeconds int64  `json:"intervalSeconds,omitempty"` // between two evaluations
	TimeoutSeconds  int64  `json:"timeoutSeconds,omitempty"`  // of one request
	// DeadlineSeconds is how long it may take to pass, once it is due. After that the rollout halts.
	DeadlineSeconds int64 `json:"deadlineSeconds,omitempty"`
}

// Types of gates.
const (
	GateOperatorConditions = "OperatorConditions" // the operators that were changed run, and let themselves be upgraded
	GateCEL                = "CEL"                // an expression over the observed state of the wave
	GateHTTP               = "HTTP"               // an address answers as it should
	GatePrometheus         = "Prometheus"         // an expression over the samples of a query
	GateWebhook            = "Webhook"            // somebody else is asked for a verdict
)

// When a gate is due.
const (
	GateAfter  = "After"  // after its wave, before the next
	GateBefore = "Before" // before the first cluster of its wave
)

// Failure policies of gates.
const (
	GateWaits = "Wait"
	GateFails = "Fail"
)

// Verdicts of gates.
const (
	VerdictPass = "Pass"
	VerdictFail = "Fail" // the rollout halts
	VerdictWait = "Wait" // it is evaluated again, until its deadline
)

// RolloutGatesDue says that the gates of a wave are evaluated from now on: it has settled and soaked, or is to begin.
// What was evaluated before says nothing: an evaluation names the round that it was begun for. Whatever happens to a
// cluster of the wave afterwards ends the round.
type RolloutGatesDue struct {
	Wave  int    `json:"wave"`
	When  string `json:"when"`  // After, Before
	Round int    `json:"round"` // of the rollout, from 1
}

// EventType implements Payload.
func (RolloutGatesDue) EventType() Type { return "fleet.rollout-gates-due.v1" }

// RolloutGateEvaluated is what a gate said. It is appended when verdict or code change, so many times at most in a
// round.
type RolloutGateEvaluated struct {
	Wave       int       `json:"wave"`
	Gate       string    `json:"gate"`
	Round      int       `json:"round"` // that the evaluation was begun for
	Verdict    string    `json:"verdict"`
	Code       string    `json:"code,omitempty"` // why; "" of most that pass
	Evaluation string    `json:"evaluation"`     // random id, a UUID
	BegunAt    time.Time `json:"begunAt"`
	EndedAt    time.Time `json:"endedAt"`
}

// EventType implements Payload.
func (RolloutGateEvaluated) EventType() Type { return "fleet.rollout-gate-evaluated.v1" }

// RolloutGateOverridden lets a wave go on without one of its gates.
type RolloutGateOverridden struct {
	Wave   int    `json:"wave"`
	Gate   string `json:"gate"`
	Reason string `json:"reason"` // commitment to the words of whoever did it
}

// EventType implements Payload.
func (RolloutGateOverridden) EventType() Type { return "fleet.rollout-gate-overridden.v1" }
