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

// DecidePlan gives the events that a report adds to a plan's stream, and an error for a report that is
// impossible: an executor that acted without a grant must not go unnoticed.
func DecidePlan(s installplan.State, r protocol.PlanReport, stepLog digest.Digest) ([]events.Payload, error) {
	var all []events.Payload
	for _, c := range commands(r, stepLog) {
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

// commands translates a report into commands of the plan, in the order in which things happened.
func commands(r protocol.PlanReport, stepLog digest.Digest) []installplan.Command {
	var all []installplan.Command
	if r.Begun {
		all = append(all, installplan.Start{})
	}
	switch r.Phase {
	case protocol.PlanBlocked:
		return append(all, installplan.Block{Class: r.Class, Reason: r.Reason})
	case protocol.PlanFinished:
		return append(all, installplan.Finish{StepLog: string(stepLog)})
	case protocol.PlanFailed:
		return append(all, installplan.Fail{Step: r.Done + 1, Reason: r.Reason, StepLog: string(stepLog)})
	case protocol.PlanStarted:
		return []installplan.Command{installplan.Start{}}
	}
	return all
}
