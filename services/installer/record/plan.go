package record

import (
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// StepLogType is the type prefix of a step log's digest.
const StepLogType = "chandler.steplog.v1"

// StepLog returns the digest and the canonical bytes of a report's step log; both are empty without one.
func StepLog(r protocol.PlanReport) (digest.Digest, []byte, error) {
	if len(r.StepLog) == 0 {
		return "", nil, nil
	}
	body, err := digest.Canonical(r.StepLog)
	if err != nil {
		return "", nil, err
	}
	d, err := digest.JSON(StepLogType, r.StepLog)
	return d, body, err
}

// DecidePlan gives the events that a report adds to a plan's stream, and an error for a report that is impossible.
// start is under what a start that the report claims counts: an executor that acted without a grant does not go
// unnoticed.
func DecidePlan(s installplan.State, r protocol.PlanReport, stepLog digest.Digest, start installplan.Start) (
	[]events.Payload, error,
) {
	start.Begun = r.Started
	var all []events.Payload
	for _, c := range commands(r, stepLog, start) {
		added, err := installplan.Decide(s, c)
		if err != nil {
			return all, err
		}
		for _, p := range added {
			if s, err = installplan.Evolve(s, p); err != nil {
				return all, err
			}
		}
		all = append(all, added...)
	}
	return all, nil
}

// ClaimsStart reports whether a report says of a plan that it has begun.
func ClaimsStart(r protocol.PlanReport) bool {
	switch r.Phase {
	case protocol.PlanStarted, protocol.PlanFinished, protocol.PlanFailed:
		return true
	}
	return r.Begun
}

// commands translates a report into commands of the plan, in the order in which things happened.
func commands(r protocol.PlanReport, stepLog digest.Digest, start installplan.Start) []installplan.Command {
	var all []installplan.Command
	if r.Begun {
		all = append(all, start)
	}
	switch r.Phase {
	case protocol.PlanBlocked:
		return append(all, installplan.Block{Class: r.Class, Reason: r.Reason})
	case protocol.PlanFinished:
		return append(all, installplan.Finish{StepLog: string(stepLog), Start: start})
	case protocol.PlanFailed:
		return append(all, installplan.Fail{
			Step: r.Done + 1, Reason: r.Reason, StepLog: string(stepLog), Start: start,
		})
	case protocol.PlanStarted:
		return []installplan.Command{start}
	}
	return all
}
