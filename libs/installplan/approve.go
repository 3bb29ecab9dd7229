package installplan

import (
	"slices"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

func (c Approve) decide(s State) ([]events.Payload, error) {
	if err := mustExist(s); err != nil {
		return nil, err
	}
	if err := c.check(s); err != nil {
		return nil, err
	}
	if s.Proposed.Approval != Manual && len(c.Choices) == 0 {
		return nil, errs.New(errs.Unprocessable, "install plan %s is %s: it needs no approval", s.Proposed.Name,
			s.Proposed.Approval).
			At("", "R-IP-10")
	}
	if !s.Live() {
		return nil, c.tooLate(s)
	}
	out, err := c.settle(s)
	if err != nil || s.Proposed.Approval != Manual || s.Begun || s.Phase == Installing && s.Approval.ValidAt(c.Now) {
		return out, err
	}
	consent, err := c.consent(s)
	if err != nil || len(consent) == 0 {
		return out, err
	}
	said, err := s.comment(c.Actor, events.CommentApproval, c.Reason)
	if err != nil {
		return nil, err
	}
	return slices.Concat(out, said, consent), nil
}

// check compares what the approver saw with what the plan is: an approval binds both digest and base.
func (c Approve) check(s State) error {
	if c.Digest != s.Proposed.Digest {
		return wrongDigest(s, "approval", c.Digest)
	}
	if c.Actor == "" {
		return errs.New(errs.Invalid, "approval of install plan %s names no approver", s.Proposed.Name).At(
			"actor", "R-IP-10")
	}
	if c.Now.IsZero() {
		return errs.New(errs.Internal, "approval of install plan %s has no time", s.Proposed.Name)
	}
	if c.Base == nil {
		return nil
	}
	if changed := BaseChanges(*c.Base, s.Proposed.Base); len(changed) > 0 {
		return errs.New(errs.Conflict, "approval of install plan %s is void: %s changed since the approver looked",
			s.Proposed.Name, strings.Join(changed, ", ")).At("base", "R-IP-10")
	}
	return nil
}

// tooLate refuses the approval of a plan that does not live any more, with what changed where another took its place.
func (c Approve) tooLate(s State) error {
	if s.Phase == Superseded && c.Successor != nil {
		if changed := Changes(s.Proposed, *c.Successor); len(changed) > 0 {
			return errs.New(errs.Conflict,
				"install plan %s cannot be approved: it was superseded by plan %s (%s), since %s changed",
				s.Proposed.Name, c.Successor.Plan, c.Successor.Name, strings.Join(changed, ", ")).At(
				"digest", "R-IP-10")
		}
	}
	return s.refuse("approved")
}

// consent gives the event of one more person who agrees: the last one's approves the plan.
func (c Approve) consent(s State) ([]events.Payload, error) {
	expires, err := c.expiry(s)
	if err != nil {
		return nil, err
	}
	given := s.Given(c.Now)
	until := expires
	for _, g := range given {
		if g.By == c.Actor {
			return nil, nil
		}
		if g.Expires.Before(until) {
			until = g.Expires
		}
	}
	if len(given)+1 < s.Approvers() {
		return one(events.InstallPlanApprovalGiven{
			Digest: c.Digest, Base: s.Proposed.Base, By: c.Actor,
			Expires: expires,
		}), nil
	}
	return one(events.InstallPlanApproved{Digest: c.Digest, Base: s.Proposed.Base, Expires: until}), nil
}

// expiry is when the approval ends:
//
//	the approver names an end    → then, no later than the policies allow
//	the policies give a time     → that long after now
//	otherwise                    → DefaultApprovalTTL after the plan may begin: now, or when its windows open
//
// An approval that ends before the windows open is refused, since it could never be used.
func (c Approve) expiry(s State) (time.Time, error) {
	name := s.Proposed.Name
	opens, ok := s.NextOpening(c.Now)
	if !ok {
		return time.Time{}, errs.New(errs.Unprocessable,
			"install plan %s cannot be approved: its maintenance windows (%s) are never open together",
			name, strings.Join(s.Proposed.Policies, ", ")).At("windows", "R-IP-11")
	}
	limit := c.Now.Add(MaxApprovalTTL)
	expires := opens.Add(DefaultApprovalTTL)
	if expires.After(limit) {
		expires = limit
	}
	if seconds := s.Proposed.ApprovalSeconds; seconds > 0 {
		limit = c.Now.Add(time.Duration(seconds) * time.Second)
		expires = limit
	}
	if !c.Expires.IsZero() {
		expires = c.Expires
	}
	if !c.Now.Before(expires) || expires.After(limit) {
		return time.Time{}, errs.New(errs.Invalid,
			"approval of install plan %s would expire at %s: want a time at most %s after now",
			name, expires.UTC().Format(time.RFC3339), limit.Sub(c.Now)).At("expires", "R-IP-10")
	}
	if !opens.Before(expires) {
		return time.Time{}, errs.New(errs.Unprocessable,
			"approval of install plan %s would expire at %s, before its maintenance window opens at %s",
			name, expires.UTC().Format(time.RFC3339), opens.UTC().Format(time.RFC3339)).At("expires", "R-IP-11")
	}
	return expires.UTC(), nil
}
