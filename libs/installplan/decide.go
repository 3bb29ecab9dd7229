package installplan

import (
	"fmt"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Command is one of the structs below; the set is closed.
type Command interface {
	decide(s State) ([]events.Payload, error)
}

// Propose opens a plan. The resolver gives it.
type Propose struct{ Plan events.InstallPlanProposed }

// Supersede ends a plan that was not begun; By is the id of the one that takes its place, "" for none.
// The resolver gives it.
type Supersede struct {
	By string
	// Reason is a code, "" for none (events.InstallPlanSuperseded).
	Reason string
}

// Approve is a person's consent to a Manual plan. The gateway gives it.
type Approve struct {
	Digest string // the plan's digest as the approver saw it; required
	Actor  string // opaque id of the approver; required. It is recorded in the event's envelope.
	Reason string // commitment to why; "" without. It is recorded beside the consent.
	// Base is the base that the approver saw; nil is the plan's own.
	Base *events.PlanBase
	// Expires ends the approval; the zero time is what the plan's policies say, else DefaultApprovalTTL.
	Expires time.Time
	Now     time.Time // when the approver decided; required
	// Choices are what the approver says of obstacles that a person may settle; an Automatic plan, and one that has
	// begun, is approved with these alone.
	Choices []events.PlanChoice
	// Successor is the plan that took this one's place, so that a refusal says what changed; nil where none did.
	Successor *events.InstallPlanProposed
}

// Reject is a person's end to a plan that was not begun. The gateway gives it.
type Reject struct {
	Digest string // the plan's digest as the person saw it; "" is whatever it is
	Actor  string // opaque id of who rejects; recorded in the event's envelope
	Reason string // commitment to why; "" without
}

// Comment is what a person says of a plan, whatever became of it. The gateway gives it.
type Comment struct {
	Actor string // opaque id
	Words string // commitment; required
}

// Note gives a plan all labels and annotations that it has from then on. The gateway gives it.
type Note struct{ Metadata events.Metadata }

// Start says that the executor took the first step, as it reports. The recorder gives this and the following.
type Start struct {
	Epoch int64     // of the hold that reports it
	Now   time.Time // when the recorder heard of it; required
	// Grant is until when the last grant that the hub signed for the plan lets it begin; zero where it signed none.
	Grant time.Time
	// Begun is when it was by the executor's clock; zero where it does not say. It never makes a start authorised.
	Begun time.Time
}

// Block says that the plan waits for something outside.
type Block struct{ Class, Reason string }

// Finish says that every step is done; StepLog is the digest of the step log. Start is for a plan of which no start is
// recorded.
type Finish struct {
	StepLog string
	Start   Start
}

// Fail says that a step (1-based) failed for good.
type Fail struct {
	Step    int
	Reason  string
	StepLog string
	Start   Start // as in Finish
}

// Decide gives the events that a command leads to, none where the command repeats what is recorded, or
// an error that says why the command cannot be.
//
//	             | none | RequiresApproval | Installing, not begun  | Installing, begun | Complete | Failed | Superseded        | Rejected
//	Propose      | ev   | same: -, other: exists, in every phase
//	Supersede    | nf   | ev               | ev                     | conflict          | conflict | conflict | - (other By: c.)  | conflict
//	Approve      | nf   | ev**             | Manual: - or, expired, ev**; Automatic: unproc. | Manual, begun: -  | conflict | conflict | conflict | conflict
//	Reject       | nf   | ev               | ev                     | conflict          | conflict | conflict | conflict          | -
//	Note         | nf   | same: -, other: ev, in every phase
//	Comment      | nf   | ev, in every phase, up to MaxComments
//	Start        | nf   | unauthorised     | started, or unauth.*** | -                 | -        | -      | unauthorised      | unauthorised
//	Block        | nf   | ev*              | ev*                    | ev*               | -        | -      | -                 | -
//	Finish       | nf   | unauthorised     | started, finished***   | finished          | -        | conflict | unauthorised    | unauthorised
//	Fail         | nf   | unauthorised     | started, failed***     | failed            | conflict | -      | unauthorised      | unauthorised
//
// ev = the event, - = no event, nf = not found, * = only if class or reason differ from those recorded.
// Approve and Reject with another digest are conflicts before anything else is checked.
//
// ** where several people have to approve:
//
//	this person's consent is there and has not expired → -
//	more are missing than this one                     → approval given
//	the last one                                       → approved, until the first of the consents expires
//
// With choices, Approve gives obstacles settled before these, where this person has not said the same of each object;
// on an Automatic plan, on one that has begun and on one that is approved it is the only event.
//
// A reason is an event before that of the consent or of the rejection, and none where that one is none.
//
// Consents that have expired, or will before the windows open, do not count; after an approval's end all of them are
// wanted again.
//
// *** A report never creates authority (DESIGN D7). A start counts while the plan may be executed, under a grant that
// the hub signed; else it is recorded once for each hold as unauthorised, the plan stays what it is, and no grant is
// signed for it. What was recorded as begun is brought to its end, whatever is decided later (DESIGN D6): begun is what
// was heard while authority held, not what is claimed afterwards. Facts that were lost are made up for: a report of the
// end of a plan that never reported its start gives both events.
func Decide(s State, c Command) ([]events.Payload, error) { return c.decide(s) }

func one(p events.Payload) []events.Payload { return []events.Payload{p} }

func (c Propose) decide(s State) ([]events.Payload, error) {
	if s.Exists() {
		if s.Proposed.Plan == c.Plan.Plan && s.Proposed.Digest == c.Plan.Digest {
			return nil, nil
		}
		return nil, errs.New(errs.AlreadyExists, "install plan %s already exists with digest %s", s.Proposed.Name,
			s.Proposed.Digest)
	}
	if err := checkProposal(c.Plan); err != nil {
		return nil, err
	}
	return one(c.Plan), nil
}

func checkProposal(p events.InstallPlanProposed) error {
	for _, f := range []struct{ name, value string }{
		{"plan", p.Plan},
		{"name", p.Name},
		{"cluster", p.Cluster},
		{"namespace", p.Namespace},
		{"component", p.Component},
		{"digest", p.Digest},
		{"document", p.Document},
		{"input", p.Input},
		{"semantics", p.Semantics},
		{"rendering", p.Rendering},
	} {
		if f.value == "" {
			return errs.New(errs.Invalid, "install plan %s: %s is empty", p.Name, f.name).At(f.name, "R-IP-1")
		}
	}
	if p.Approval != Automatic && p.Approval != Manual {
		return errs.New(errs.Invalid, "install plan %s: approval is %q, want %s or %s", p.Name, p.Approval, Automatic,
			Manual).
			At("approval", "R-IP-10")
	}
	if len(p.Bundles) == 0 {
		return errs.New(errs.Invalid, "install plan %s: it has no bundle", p.Name).At("bundles", "R-IP-1")
	}
	return nil
}

func (c Supersede) decide(s State) ([]events.Payload, error) {
	if err := mustExist(s); err != nil {
		return nil, err
	}
	switch {
	case s.Live() && !s.Begun:
		return one(events.InstallPlanSuperseded(c)), nil
	case s.Phase == Superseded && s.SupersededBy == c.By:
		return nil, nil
	}
	return nil, s.refuse("superseded")
}

func (c Note) decide(s State) ([]events.Payload, error) {
	if err := mustExist(s); err != nil || c.Metadata.Equal(s.Metadata) {
		return nil, err
	}
	return one(events.InstallPlanMetadataChanged(c)), nil
}

// MaxComments bounds the comments on one plan: they are read with the plan. Reasons count, but are never too many:
// there are as many as people who decide.
const MaxComments = 200

func (c Comment) decide(s State) ([]events.Payload, error) {
	if err := mustExist(s); err != nil {
		return nil, err
	}
	return s.comment(c.Actor, "", c.Words)
}

// comment is the event of what a person says; none where they say nothing.
func (s State) comment(by, about, words string) ([]events.Payload, error) {
	switch {
	case words == "":
		return nil, nil
	case about == "" && s.Comments >= MaxComments:
		return nil, errs.New(errs.Unprocessable, "install plan %s has %d comments, which is the limit", s.Proposed.Name,
			s.Comments).At("", "plan-comments")
	}
	return one(events.InstallPlanCommented{By: by, About: about, Comment: words}), nil
}

func (c Reject) decide(s State) ([]events.Payload, error) {
	if err := mustExist(s); err != nil {
		return nil, err
	}
	if c.Digest != "" && c.Digest != s.Proposed.Digest {
		return nil, wrongDigest(s, "rejection", c.Digest)
	}
	switch {
	case s.Phase == Rejected:
		return nil, nil
	case s.Live() && !s.Begun:
		said, err := s.comment(c.Actor, events.CommentRejection, c.Reason)
		return append(said, events.InstallPlanRejected{Digest: s.Proposed.Digest}), err
	}
	return nil, s.refuse("rejected")
}

func (c Start) decide(s State) ([]events.Payload, error) {
	if err := mustExist(s); err != nil {
		return nil, err
	}
	if s.Begun {
		return nil, nil
	}
	if why := c.unauthorised(s); why != "" {
		return c.note(s, why), nil
	}
	return one(events.InstallPlanStarted{Steps: s.Proposed.Steps}), nil
}

const (
	// StartReportDelay is for how long after the end of a grant a start is still taken for one under it: its report is
	// on the way. Executors report at once and again every 15 seconds, the recorder tries again within 10.
	StartReportDelay = 2 * time.Minute
	// StartClockSkew is how far the clock of an executor may be ahead when it says when it began.
	StartClockSkew = time.Minute
)

// unauthorised is why a start is not authorised, "" where it is.
func (c Start) unauthorised(s State) string {
	switch {
	case s.Phase == Superseded:
		return events.StartSuperseded
	case s.Phase == Rejected:
		return events.StartRejected
	case s.Phase != Installing:
		return events.StartNotApproved
	case c.Grant.IsZero():
		return events.StartNoGrant
	case !s.Executable(c.Now) && c.Now.After(c.Grant.Add(StartReportDelay)),
		c.Begun.After(c.Grant.Add(StartClockSkew)):
		return events.StartGrantExpired
	}
	return ""
}

// note records an unauthorised start, once for each hold.
func (c Start) note(s State, why string) []events.Payload {
	if s.Unauthorised.Reason != "" && s.Unauthorised.Epoch == c.Epoch {
		return nil
	}
	return one(events.InstallPlanStartUnauthorised{Epoch: c.Epoch, Reason: why})
}

func (c Block) decide(s State) ([]events.Payload, error) {
	if err := mustExist(s); err != nil {
		return nil, err
	}
	if !s.Live() || s.Blocked == Blocked(c) {
		return nil, nil
	}
	if c.Class == "" || c.Reason == "" {
		return nil, errs.New(errs.Invalid, "install plan %s: a block needs class and reason", s.Proposed.Name)
	}
	return one(events.InstallPlanBlocked(c)), nil
}

func (c Finish) decide(s State) ([]events.Payload, error) {
	if s.Phase == Complete {
		return nil, nil
	}
	return c.Start.end(s, "finished", events.InstallPlanFinished{Steps: s.Proposed.Steps, StepLog: c.StepLog})
}

func (c Fail) decide(s State) ([]events.Payload, error) {
	if s.Phase == Failed {
		return nil, nil
	}
	return c.Start.end(s, "failed", events.InstallPlanFailed{Step: c.Step, Reason: c.Reason, StepLog: c.StepLog})
}

// end appends the last event of a plan, and the start where its report was lost. Without authority nothing has ended.
func (c Start) end(s State, word string, last events.Payload) ([]events.Payload, error) {
	if err := mustExist(s); err != nil {
		return nil, err
	}
	switch {
	case s.Phase == Complete || s.Phase == Failed:
		return nil, s.refuse(word)
	case s.Begun:
		return one(last), nil
	}
	first, err := c.decide(s)
	if err != nil || c.unauthorised(s) != "" {
		return first, err
	}
	return append(first, last), nil
}

func mustExist(s State) error {
	if s.Exists() {
		return nil
	}
	return errs.New(errs.NotFound, "there is no such install plan")
}

func wrongDigest(s State, what, digest string) error {
	return errs.New(errs.Conflict, "%s names digest %q, but install plan %s has digest %q: look at the plan again",
		what, digest, s.Proposed.Name, s.Proposed.Digest).At("digest", "R-IP-10")
}

// refuse is the one sentence for a command that comes too late.
func (s State) refuse(word string) error {
	why := map[Phase]string{
		Installing: "it has begun, and a plan that has begun is brought to its end" + s.wayOut(),
		Complete:   "it is complete",
		Failed:     "it has failed",
		Superseded: "it was superseded",
		Rejected:   "it was rejected",
	}[s.Phase]
	if s.SupersededBy != "" {
		why += " by plan " + s.SupersededBy
	}
	if s.SupersededReason == events.SupersededRendering {
		why += ": this release renders its bundles to other objects than those that the plan names"
	}
	return errs.New(errs.Conflict, "install plan %s cannot be %s: %s", s.Proposed.Name, word, why)
}

// wayOut says of a plan that was begun and waits what it waits for, and how a person ends it: by the removal of what it
// brings (DESIGN D6).
func (s State) wayOut() string {
	if s.Blocked == (Blocked{}) || len(s.Proposed.Bundles) == 0 {
		return ""
	}
	p := s.Proposed
	return fmt.Sprintf(
		"; it waits (%s, %s): remove what it waits for, or end it with what it has brought by: chandler uninstall "+
			"%s/%s/%s",
		s.Blocked.Class, s.Blocked.Reason, p.Cluster, p.Namespace, p.Bundles[0].CSV)
}
