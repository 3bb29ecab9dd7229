package cluster

import (
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Seen is what the state of a cluster follows from.
type Seen struct {
	// Connection is the state of the last events.ClusterObserved, model.ClusterRegistered before the first.
	Connection string
	Reason     string
	Since      time.Time  // since when Connection and Reason are as they are
	Cordoned   *time.Time // since when it is cordoned, nil where it is not
}

// New is what is seen of a cluster that was registered then.
func New(registered time.Time) Seen {
	return Seen{Connection: model.ClusterRegistered, Reason: model.ClusterNoReport, Since: registered}
}

// Conditions are what is true of a cluster, the most telling first: that is its state. There is always one. What keeps
// Chandler from doing anything in the cluster comes before what is only wrong with it, and that before what a person
// decided:
//
//	HeldElsewhere  its API server is held for another registration
//	Unreachable    it does not answer, refuses the credential, or cannot be served
//	Pending        no executor has reported of it
//	OLMRunning     it can be reached, and OLM is at work in it
//	Degraded       it can be reached, and something else is wrong
//	Cordoned       no new plans are made for it
//	Connected      none of the others
//
// Of all but Cordoned exactly one is true.
func Conditions(s Seen) []model.ClusterCondition {
	now := model.ClusterCondition{Type: connected(s), Reason: s.Reason, Since: s.Since}
	switch {
	case s.Cordoned == nil:
		return []model.ClusterCondition{now}
	case now.Type == model.ClusterConnected:
		return []model.ClusterCondition{{Type: model.ClusterCordoned, Since: *s.Cordoned}, now}
	}
	return []model.ClusterCondition{now, {Type: model.ClusterCordoned, Since: *s.Cordoned}}
}

// connected is the state without regard to what people decided. A connection that a later release reports is none.
func connected(s Seen) string {
	switch {
	case s.Connection == events.ObservedHeldElsewhere, s.Reason == events.ReasonDuplicateCluster:
		return model.ClusterHeldElsewhere
	case s.Connection == model.ClusterRegistered:
		return model.ClusterPending
	case s.Connection != events.ObservedConnected:
		return model.ClusterUnreachable
	case s.Reason == events.ReasonOLMRunning:
		return model.ClusterOLMRunning
	case s.Reason != "":
		return model.ClusterDegraded
	}
	return model.ClusterConnected
}
