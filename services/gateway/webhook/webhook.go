// Package webhook is the aggregate of one webhook: which events are sent to whom, and how. It also has what a message
// is made of (CloudEvents, Standard Webhooks) and when one is tried again. It is pure.
//
// Webhooks send. What registries call to have a catalog polled is a hook of that catalog (package cataloghook).
package webhook

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// Why a webhook is disabled.
const (
	ReasonFailing  = "Failing"  // nothing was taken for as long as messages are tried again
	ReasonGone     = "Gone"     // the receiver answered 410
	ReasonNoRights = "NoRights" // who set it may see no event in its scope any more
)

// Overlap is how long the secret before signs beside a new one: a day, so that receivers change at office hours.
const Overlap = 24 * time.Hour

// State is a webhook as folded from its events. The zero value but for the name was never set, or is deleted.
type State struct {
	Name     string // given by the caller
	Set      bool
	Spec     events.WebhookSpec
	Owner    events.WebhookOwner
	Disabled string // reason
}

// Command is one of Set, Rotate, Replay, Disable and Delete.
type Command interface{ webhookCommand() }

// Set makes the webhook, or replaces all of it. One that was disabled goes on.
type Set struct {
	Spec  events.WebhookSpec
	Owner events.WebhookOwner
	// Rights are those of the owner: nobody has sent what they may not see.
	Rights *access.Rights
	// Others is how many webhooks the tenant has beside this one.
	Others int
}

// Rotate has another secret sign.
type Rotate struct{}

// Replay has events behind a position sent again.
type Replay struct{ After events.Position }

// Disable gives the webhook up.
type Disable struct{ Reason string }

// Delete ends the webhook.
type Delete struct{}

func (Set) webhookCommand()     {}
func (Rotate) webhookCommand()  {}
func (Replay) webhookCommand()  {}
func (Disable) webhookCommand() {}
func (Delete) webhookCommand()  {}

// Decide returns the events that the command leads to; none if it changes nothing.
func Decide(s State, c Command) ([]events.Payload, error) {
	if set, ok := c.(Set); ok {
		return set.decide(s)
	}
	if !s.Set {
		return nil, NotKnown(s.Name)
	}
	switch c := c.(type) {
	case Rotate:
		return []events.Payload{events.WebhookSecretRotated{OverlapSeconds: int64(Overlap / time.Second)}}, nil
	case Replay:
		return []events.Payload{events.WebhookReplayRequested{After: c.After.String()}}, nil
	case Disable:
		if s.Disabled != "" {
			return nil, nil
		}
		return []events.Payload{events.WebhookDisabled(c)}, nil
	case Delete:
		return []events.Payload{events.WebhookDeleted{}}, nil
	default:
		return nil, fmt.Errorf("webhook: command %T is not known", c)
	}
}

// NotKnown is the error about a webhook that is not there.
func NotKnown(name string) error { return errs.New(errs.NotFound, "no webhook %q exists", name) }

func (c Set) decide(s State) ([]events.Payload, error) {
	spec := normal(c.Spec)
	if err := check(s.Name, spec); err != nil {
		return nil, err
	}
	if !c.Rights.CoverScope(access.Watch, access.Events, spec.Scope) {
		return nil, errs.New(errs.Forbidden,
			"you may not %s %s in all of the scope of webhook %q: nobody has events sent that they may not see; give a "+
				"spec.scope that lies in your own", access.Watch, access.Events, s.Name).
			At("/scope", access.RuleEscalation)
	}
	if !s.Set && c.Others >= MaxWebhooks {
		return nil, errs.New(errs.Unprocessable, "webhook %q would be number %d, at most %d are allowed: delete one", s.Name,
			c.Others+1, MaxWebhooks).At("path.name", rule.MaxItems)
	}
	next := events.WebhookSet{Name: s.Name, Spec: spec, Owner: c.Owner}
	next.Owner.Groups = slices.Compact(slices.Sorted(slices.Values(c.Owner.Groups)))
	have := events.WebhookSet{Name: s.Name, Spec: s.Spec, Owner: s.Owner}
	if s.Set && s.Disabled == "" && reflect.DeepEqual(have, next) {
		return nil, nil
	}
	return []events.Payload{next}, nil
}

// Evolve returns the state after an event. An event of another kind of stream is an error.
func Evolve(s State, p events.Payload) (State, error) {
	switch e := p.(type) {
	case events.WebhookSet:
		return State{Name: s.Name, Set: true, Spec: normal(e.Spec), Owner: e.Owner}, nil
	case events.WebhookDisabled:
		s.Disabled = e.Reason
		return s, nil
	case events.WebhookSecretRotated, events.WebhookReplayRequested:
		return s, nil
	case events.WebhookDeleted:
		return State{Name: s.Name}, nil
	default:
		return s, fmt.Errorf("webhook: event %s does not belong in a webhook's stream", p.EventType())
	}
}

// normal gives what means the same one form.
func normal(s events.WebhookSpec) events.WebhookSpec {
	s.Types = slices.Compact(slices.Sorted(slices.Values(s.Types)))
	s.Scope = access.NormalScope(s.Scope)
	if s.Target == "" {
		s.Target = TargetCloudEvents
	}
	if s.Target == TargetCloudEvents && s.Mode == "" {
		s.Mode = ModeStructured
	}
	return s
}
