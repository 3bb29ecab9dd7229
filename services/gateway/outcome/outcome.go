// Package outcome says what became of an intent that takes long: a pure function of its event, of the events behind
// it in its stream, and of the object as it is read. Nothing of it is stored (ADR 0070), so that it survives
// every restart, and cannot say anything else than the object.
//
//	intent                  is over when
//	subscription.created    what it resolves to is installed and its operator runs, or nothing can be planned
//	subscription.rollback-requested   likewise
//	installplan.approved, installplan.approval-given   the plan is complete, failed or ended
//	csv.removal-requested   the operator is gone, or the removal is refused
//	cluster.registered      the executor has connected to it, or is refused
//	catalog.added, catalog.refresh-requested   the source was read since
//
// What else is intended is over when it is written, or leaves nothing behind by which its end could be told: that a
// changed subscription was looked at and resolves to the same is recorded by nobody.
package outcome

import (
	"encoding/json"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Fact is an event of a stream.
type Fact struct {
	Type    events.Type
	Subject string
	Time    time.Time
	Actor   string
	Data    json.RawMessage
}

// State is how far an intent is, without what names it.
type State struct {
	State, Reason string
	Since         time.Time // when it came to be so, as far as it is known
	Plan          string    // id of the plan that it led to
}

// is says whether a fact has the type of a payload.
func (f Fact) is(p events.Payload) bool { return f.Type == p.EventType() }

// Behind are the types of the events behind an intent that say what became of it; of others the object says it. known
// is false for events of which nothing can be told.
func Behind(t events.Type) (types []events.Type, known bool) {
	switch t {
	case events.SubscriptionCreated{}.EventType(), events.SubscriptionRollbackRequested{}.EventType():
		return typesOf(
			events.SubscriptionChanged{}, events.SubscriptionPlaced{}, events.SubscriptionRollbackRequested{},
			events.SubscriptionDeleted{}, events.SubscriptionRemoved{},
			events.ResolutionFailed{}, events.ResolutionSucceeded{},
		), true
	case events.CSVRemovalRequested{}.EventType():
		return typesOf(events.CSVRemoved{}, events.CSVRemovalRequested{}, events.CSVRemovalDirected{},
			events.CSVRemovalRefused{}, events.CSVRemovalStarted{}, events.CSVRemovalBlocked{}), true
	case events.InstallPlanApproved{}.EventType(), events.InstallPlanApprovalGiven{}.EventType(),
		events.ClusterRegistered{}.EventType(), events.CatalogAdded{}.EventType(),
		events.CatalogRefreshRequested{}.EventType():
		return nil, true
	}
	return nil, false
}

func typesOf(list ...events.Payload) []events.Type {
	types := make([]events.Type, len(list))
	for i, p := range list {
		types[i] = p.EventType()
	}
	return types
}

func running(reason string, since time.Time) State {
	return State{State: model.OperationRunning, Reason: reason, Since: since}
}

func failed(reason string, since time.Time) State {
	return State{State: model.OperationFailed, Reason: reason, Since: since}
}

// OfSubscription is what became of a subscription since an intent. A change of the intent takes its place: what comes
// then is not of this one.
func OfSubscription(intent Fact, after []Fact, s model.Subscription) State {
	var last Fact // what the resolver said last
	for _, f := range after {
		switch {
		case f.is(events.SubscriptionChanged{}), f.is(events.SubscriptionPlaced{}),
			f.is(events.SubscriptionRollbackRequested{}), f.is(events.SubscriptionDeleted{}),
			f.is(events.SubscriptionRemoved{}):
			return State{State: model.OperationSuperseded, Reason: string(f.Type), Since: f.Time}
		case f.is(events.ResolutionFailed{}), f.is(events.ResolutionSucceeded{}):
			last = f
		}
	}
	switch {
	case last.Type == "":
		return running("Resolving", intent.Time)
	case last.is(events.ResolutionFailed{}):
		var why events.ResolutionFailed
		if json.Unmarshal(last.Data, &why) != nil {
			return failed("ResolutionFailed", last.Time)
		}
		return failed(why.Reason, last.Time)
	}
	var to events.ResolutionSucceeded
	if json.Unmarshal(last.Data, &to) != nil {
		return running("Resolving", last.Time)
	}
	out := ofPlanned(to, s, last.Time)
	out.Plan = to.Plan
	return out
}

func ofPlanned(to events.ResolutionSucceeded, s model.Subscription, at time.Time) State {
	if p := s.Status.InstallPlan; to.Plan != "" && (p == nil || p.ID != to.Plan) {
		return running("Planned", at) // the read model comes to it
	} else if to.Plan != "" && p.Phase != phaseComplete {
		return ofPhase(p.Phase, "", s.UpdatedAt)
	}
	switch {
	case s.Status.InstalledCSV != to.CSV:
		return running("Installing", at)
	case s.Status.Phase == "Succeeded":
		return State{State: model.OperationSucceeded, Reason: s.Status.Phase, Since: s.UpdatedAt}
	case s.Status.Phase == "Failed":
		return failed("OperatorFailed", s.UpdatedAt)
	default:
		return running(s.Status.Phase, s.UpdatedAt)
	}
}

// phaseComplete is of a plan whose steps are all done.
const phaseComplete = "Complete"

// ofPhase is how far a plan is; reason is why it waits or failed.
func ofPhase(phase, reason string, since time.Time) State {
	switch phase {
	case "RequiresApproval":
		return State{State: model.OperationWaiting, Reason: phase, Since: since}
	case phaseComplete:
		return State{State: model.OperationSucceeded, Reason: phase, Since: since}
	case "Failed", "Rejected":
		if reason == "" {
			reason = "Plan" + phase
		}
		return failed(reason, since)
	case "Superseded":
		return State{State: model.OperationSuperseded, Reason: "Plan" + phase, Since: since}
	default:
		if reason == "" {
			reason = phase
		}
		return running(reason, since)
	}
}

// OfPlan is what became of a plan that somebody has approved.
func OfPlan(p model.InstallPlan) State {
	reason := ""
	switch {
	case p.Failure != nil:
		reason = p.Failure.Reason
	case p.Blocked != nil:
		reason = p.Blocked.Reason
	}
	out := ofPhase(p.Phase, reason, p.UpdatedAt)
	out.Plan = p.ID
	return out
}

// OfRemoval is what became of a request to uninstall an operator.
func OfRemoval(intent Fact, after []Fact) (State, error) {
	out := running("Requested", intent.Time)
	for _, f := range after {
		switch {
		case f.is(events.CSVRemoved{}):
			return State{State: model.OperationSucceeded, Reason: "Removed", Since: f.Time}, nil
		case f.is(events.CSVRemovalRequested{}), f.is(events.CSVRemovalDirected{}):
			return State{State: model.OperationSuperseded, Reason: string(f.Type), Since: f.Time}, nil
		case f.is(events.CSVRemovalRefused{}):
			var why events.CSVRemovalRefused
			if err := json.Unmarshal(f.Data, &why); err != nil {
				return out, errs.Wrap(errs.Internal, err, "read %s", f.Type)
			}
			return failed(why.Reason, f.Time), nil
		case f.is(events.CSVRemovalStarted{}):
			out = running("Started", f.Time)
		case f.is(events.CSVRemovalBlocked{}):
			var why events.CSVRemovalBlocked
			if err := json.Unmarshal(f.Data, &why); err != nil {
				return out, errs.Wrap(errs.Internal, err, "read %s", f.Type)
			}
			out = running(why.Reason, f.Time)
		}
	}
	return out, nil
}

// OfCluster is what became of a cluster that was registered. One that does not answer is tried again.
func OfCluster(c model.Cluster) State {
	switch c.Connection {
	case "Connected":
		return State{State: model.OperationSucceeded, Reason: c.Connection, Since: c.UpdatedAt}
	case "Unauthorized", "Refused", "HeldElsewhere":
		if c.Reason != "" {
			return failed(c.Reason, c.UpdatedAt)
		}
		return failed(c.Connection, c.UpdatedAt)
	default:
		return running(c.Connection, c.UpdatedAt)
	}
}

// OfCatalog is what became of a catalog that was added or asked to look at its source: it counts what was read
// since, of every variant.
func OfCatalog(intent Fact, c model.Catalog) State {
	if intent.is(events.CatalogAdded{}) && c.State == "Ready" {
		return State{State: model.OperationSucceeded, Reason: c.State, Since: c.UpdatedAt}
	}
	var latest time.Time
	for _, v := range c.Variants {
		if v.PolledAt == nil || v.PolledAt.Before(intent.Time) {
			return running("Polling", intent.Time)
		}
		if v.PolledAt.After(latest) {
			latest = *v.PolledAt
		}
	}
	switch {
	case len(c.Variants) == 0, c.State == "Loading":
		return running("Loading", intent.Time)
	case c.State == "Failed":
		return failed(c.Reason, latest)
	default:
		return State{State: model.OperationSucceeded, Reason: c.State, Since: latest}
	}
}
