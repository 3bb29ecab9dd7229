package installplan

import (
	"fmt"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/unknown"
)

// Phase is what a user sees of a plan. The first four are OLM's (R-IP §5.1, R-IP-5); OLM deletes
// plans where Chandler keeps them as Superseded or Rejected.
type Phase string

// The phases. The empty phase is a plan that does not exist yet.
const (
	RequiresApproval Phase = "RequiresApproval" // Manual, waiting for a person (R-IP-10)
	Installing       Phase = "Installing"       // may be executed, is being executed, or is blocked for now
	Complete         Phase = "Complete"         // every step is done
	Failed           Phase = "Failed"           // a step failed for good (R-IP-43)
	Superseded       Phase = "Superseded"       // another decision took its place before it was begun
	Rejected         Phase = "Rejected"         // a person ended it before it was begun
)

// Approval modes of a plan and of a subscription.
const (
	Automatic = "Automatic"
	Manual    = "Manual"
)

// DefaultApprovalTTL is how long an approval stays good when the approver names no other time: a
// working day and the night after it, so that an evening's approval covers the morning's window.
const DefaultApprovalTTL = 24 * time.Hour

// MaxApprovalTTL bounds what an approver may ask for: an approval is for this change now, not a
// standing permission, which is what Automatic is for.
const MaxApprovalTTL = 30 * 24 * time.Hour

// State is one plan, folded from its events.
type State struct {
	Proposed events.InstallPlanProposed // the decision itself
	Phase    Phase
	// Begun is true from the first step on: such a plan is finished or fails, it is never superseded or
	// rejected (DESIGN D6).
	Begun    bool
	Approval Approval
	// Consents are those of a plan that wants several, one for each person, in the order in which they came.
	// They are gone once the plan is approved: what comes after that approval's end is a new one.
	Consents []Consent `json:",omitempty"`
	// Choices are what approvers said of obstacles, one for each person and object, the newest last.
	Choices []Choice `json:",omitempty"`
	Blocked Blocked
	// Unauthorised is the last start that was reported without authority; nothing is decided by it but whether it was
	// recorded already.
	Unauthorised Unauthorised `json:",omitzero"`
	// SupersededBy is the id of the plan that took this one's place; "" where none did.
	SupersededBy string
	// SupersededReason is a code for why (events.InstallPlanSuperseded); "" where there is none.
	SupersededReason string `json:",omitempty"`
	Failure          Failure
	StepLog          string // digest, once Complete or Failed
	// Comments is how many comments there are, reasons included; nothing is decided by them.
	Comments int `json:",omitempty"`
	// Metadata are labels and annotations; nothing is decided by them.
	Metadata events.Metadata `json:",omitzero"`
	// Unknown is what a newer release keeps of the plan. It stays where an older one folds what comes next.
	Unknown unknown.Fields `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *State) UnmarshalJSON(data []byte) (err error) {
	type plain State
	s.Unknown, err = unknown.Read(data, (*plain)(s))
	return err
}

// MarshalJSON implements json.Marshaler.
func (s State) MarshalJSON() ([]byte, error) {
	type plain State
	return unknown.Write(plain(s), s.Unknown)
}

// Approval is a person's consent to exactly one digest on one base. Its zero value is none.
type Approval struct {
	Digest  string
	Base    events.PlanBase
	Expires time.Time
}

// ValidAt says whether the approval holds at a moment. An expired approval is void (DESIGN D6).
func (a Approval) ValidAt(now time.Time) bool { return a.Digest != "" && now.Before(a.Expires) }

// Consent is one of the approvals that a plan wants before it counts as approved.
type Consent struct {
	By      string // opaque id of the approver
	Expires time.Time
}

// Blocked is why a plan waits for something outside. Its zero value is "not blocked".
type Blocked struct {
	Class  string // transient, conflict, expired, stopped
	Reason string // a code
}

// Unauthorised is a start that nothing allowed. Its zero value is none.
type Unauthorised struct {
	Epoch  int64  // of the hold that reported it
	Reason string // a code
}

// Failure is the step (1-based) that failed for good, and a code. Its zero value is none.
type Failure struct {
	Step   int
	Reason string
}

// Exists says whether the plan was proposed.
func (s State) Exists() bool { return s.Phase != "" }

// Live says whether the plan can still change a cluster.
func (s State) Live() bool { return s.Phase == RequiresApproval || s.Phase == Installing }

// Executable says whether an executor may take the plan's next step at a moment: begun already; or
// Automatic, or approved and not expired, and then in a maintenance window if it has any (R-IP-11).
func (s State) Executable(now time.Time) bool {
	if s.Phase != Installing {
		return false
	}
	return s.Begun || s.consented(now) && s.inWindow(now)
}

// consented says whether a person has agreed, where one has to.
func (s State) consented(now time.Time) bool {
	return s.Proposed.Approval == Automatic || s.Approval.ValidAt(now)
}

// PhaseAt is the phase to be shown at a moment: a plan whose approval expired before it was begun
// requires approval again. One that waits for a window alone is Installing.
func (s State) PhaseAt(now time.Time) Phase {
	if s.Phase == Installing && !s.Begun && !s.consented(now) {
		return RequiresApproval
	}
	return s.Phase
}

// Approvers is how many different people must approve; 0 where nobody has to.
func (s State) Approvers() int {
	if s.Proposed.Approval == Automatic {
		return 0
	}
	return max(1, s.Proposed.Approvers)
}

// Given are the consents that count at a moment, of a plan that wants more of them: those that outlast the time until
// its windows let it begin (R-IP-11). A consent that ends before could never be used.
func (s State) Given(now time.Time) []Consent {
	if len(s.Consents) == 0 {
		return nil
	}
	opens, ok := s.NextOpening(now)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Consents), func(c Consent) bool { return !opens.Before(c.Expires) })
}

// Missing is how many people have to approve still at a moment; 0 where nobody has to, or the plan does not live.
func (s State) Missing(now time.Time) int {
	if s.PhaseAt(now) != RequiresApproval {
		return 0
	}
	return s.Approvers() - len(s.Given(now))
}

// CSVs are the names of what the plan installs, sorted.
func (s State) CSVs() []string {
	names := make([]string, 0, len(s.Proposed.Bundles))
	for _, b := range s.Proposed.Bundles {
		names = append(names, b.CSV)
	}
	slices.Sort(names)
	return names
}

// Evolve folds one event into the state. An event that cannot follow the ones before, or that is not a
// plan's, is an error: a reader must stop there rather than show something else.
func Evolve(s State, p events.Payload) (State, error) {
	if e, ok := p.(events.InstallPlanProposed); ok {
		return evolveProposed(s, e)
	}
	if !s.Exists() {
		return s, fmt.Errorf("install plan: %s before installplan.proposed.v1", p.EventType())
	}
	switch e := p.(type) {
	case events.InstallPlanSuperseded:
		s.Phase, s.SupersededBy, s.SupersededReason = Superseded, e.By, e.Reason
	case events.InstallPlanApproved:
		s.Phase, s.Approval, s.Consents = Installing, Approval(e), nil
	case events.InstallPlanApprovalGiven:
		s.Consents = append(slices.DeleteFunc(slices.Clone(s.Consents), func(c Consent) bool { return c.By == e.By }),
			Consent{By: e.By, Expires: e.Expires})
	case events.InstallPlanObstaclesSettled:
		s.Choices = withChoices(s.Choices, e)
	case events.InstallPlanRejected:
		s.Phase = Rejected
	case events.InstallPlanMetadataChanged:
		s.Metadata = e.Metadata
	case events.InstallPlanCommented:
		s.Comments++
	case events.InstallPlanStartUnauthorised:
		s.Unauthorised = Unauthorised(e)
	case events.InstallPlanStarted:
		s.Phase, s.Begun, s.Blocked, s.SupersededBy, s.SupersededReason = Installing, true, Blocked{}, "", ""
	case events.InstallPlanBlocked:
		s.Blocked = Blocked(e)
	case events.InstallPlanFinished:
		s.Phase, s.StepLog, s.Blocked = Complete, e.StepLog, Blocked{}
	case events.InstallPlanFailed:
		s.Phase, s.StepLog, s.Blocked = Failed, e.StepLog, Blocked{}
		s.Failure = Failure{Step: e.Step, Reason: e.Reason}
	default:
		return s, fmt.Errorf("install plan %s: %s is not an event of an install plan", s.Proposed.Name, p.EventType())
	}
	return s, nil
}

// Fold is Evolve over a whole stream, oldest event first.
func Fold(payloads ...events.Payload) (State, error) {
	var s State
	for _, p := range payloads {
		next, err := Evolve(s, p)
		if err != nil {
			return s, err
		}
		s = next
	}
	return s, nil
}

func evolveProposed(s State, e events.InstallPlanProposed) (State, error) {
	if s.Exists() {
		return s, fmt.Errorf("install plan %s: proposed twice", s.Proposed.Name)
	}
	s.Proposed, s.Phase = e, Installing
	if e.Approval == Manual {
		s.Phase = RequiresApproval
	}
	return s, nil
}
