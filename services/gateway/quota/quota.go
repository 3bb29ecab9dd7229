// Package quota is the aggregate of what a tenant may have and ask for. It is pure: what a tenant has is counted by who
// holds it to its quota.
package quota

import (
	"fmt"
	"slices"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Stream is the natural key of the quota of a tenant.
const Stream = "quota"

// Rule is what a refusal names.
const Rule = "quota"

// Max bounds a bound: beyond it nothing is bounded.
const Max = 1_000_000

// State is the bounds that hold. The zero value bounds nothing.
type State struct{ Hard events.QuotaSet }

// Bounds are what the requests of one tenant are held to in all gateways together: requests a second, and open
// streams. Nil is none.
type Bounds struct{ Requests, Streams *int64 }

// Set replaces all bounds.
type Set struct{ Hard events.QuotaSet }

// Decide returns the event that the command leads to; none if it changes nothing.
func Decide(s State, c Set) ([]events.Payload, error) {
	for _, b := range c.Hard.Bounds {
		least := int64(0)
		if b.Resource == "requestsPerSecond" {
			least = 1 // with none nobody could ask for more
		}
		if b.Hard < least || b.Hard > Max {
			return nil, errs.New(errs.Invalid, "/hard/%s is %d: give %d to %d, or leave it out for no bound", b.Resource,
				b.Hard, least, Max).At("/hard/"+b.Resource, "between")
		}
	}
	if Same(s.Hard, c.Hard) {
		return nil, nil
	}
	return []events.Payload{c.Hard}, nil
}

// Evolve returns the state after an event.
func Evolve(s State, p events.Payload) (State, error) {
	e, ok := p.(events.QuotaSet)
	if !ok {
		return s, fmt.Errorf("quota: event %s does not belong in the stream of a quota", p.EventType())
	}
	return State{Hard: e}, nil
}

// Check refuses one more of something where there are as many as a quota allows, or more, since it was lowered. It is
// no matter of waiting: the refusal is errs.Forbidden, as that of a quota of Kubernetes.
func Check(tenant, things string, hard *int64, used int64) error {
	if hard == nil || used < *hard {
		return nil
	}
	return errs.New(errs.Forbidden, "the quota of tenant %s allows %d %s, and there are %d: delete some, or have an "+
		"administrator of the installation raise the quota", tenant, *hard, things, used).At("", Rule)
}

// Same says whether two quotas have the same bounds. Both are in the one order that events have.
func Same(a, b events.QuotaSet) bool { return slices.Equal(a.Bounds, b.Bounds) }
