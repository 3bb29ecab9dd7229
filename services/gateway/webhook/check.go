package webhook

import (
	"fmt"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/reach"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// What is sent.
const (
	TargetCloudEvents = "CloudEvents"
	TargetSlack       = "Slack"
	TargetPagerDuty   = "PagerDuty"
)

// How CloudEvents are sent.
const (
	ModeStructured = "Structured" // the whole event is the body
	ModeBinary     = "Binary"     // its data is the body, the rest are headers
)

const (
	// MaxWebhooks bounds the webhooks of a tenant: every event is compared with each of them.
	MaxWebhooks = 50
	// MaxTypes bounds the types of a webhook, as a list of events does: who means more means a family.
	MaxTypes = 50
	// MaxURL bounds an address: the longest that is in use, with a token in it, has some 300 characters.
	MaxURL = 2048
)

// Names of rules that only webhooks have.
const (
	RuleURL   = "webhook-address"
	RuleEvent = "event-type"
)

// check collects everything that is wrong with a webhook. Places are JSON pointers into the request.
func check(name string, s events.WebhookSpec) error {
	var v rule.Violations
	v.DNSSubdomainName("path.name", name)
	v.OneOf("/target/type", s.Target, TargetCloudEvents, TargetSlack, TargetPagerDuty)
	if s.Target == TargetCloudEvents {
		v.OneOf("/target/mode", s.Mode, ModeStructured, ModeBinary)
	} else if s.Mode != "" {
		v.Addf("/target/mode", rule.Together, "/target/mode is of target %s, and the target is %s: leave it out", TargetCloudEvents,
			s.Target)
	}
	if len(s.Types) > MaxTypes {
		v.Addf("/types", rule.MaxItems, "/types has %d entries, %d are allowed: name families such as subscription.*",
			len(s.Types), MaxTypes)
	}
	for i, t := range s.Types {
		if len(events.Expand(t)) == 0 {
			v.Addf(fmt.Sprintf("/types/%d", i), RuleEvent,
				"no event type %q exists; a whole family is written as subscription.*", t)
		}
	}
	access.CheckScope(&v, s.Scope)
	return v.Err()
}

// RoutingKey is the parameter of an address that has the integration key of PagerDuty's Events API v2. It goes into the
// body: the address is what is kept as a credential.
const RoutingKey = "routing_key"

// CheckURL refuses an address that cannot be sent to. Where it leads is looked at when it is sent to. The error does
// not quote the address, which may hold a credential.
func CheckURL(target, given string) error {
	if len(given) <= MaxURL && reach.SafeURL(given) == nil {
		if _, key := Address(target, given); target == TargetPagerDuty && key == "" {
			return errs.New(errs.Invalid, "the address names no integration key: want "+
				"https://events.pagerduty.com/v2/enqueue?%s=KEY", RoutingKey).At("/url", RuleURL)
		}
		return nil
	}
	return errs.New(errs.Invalid,
		"the address is none that can be sent to: want https://HOST/PATH, without a user, of at most %d characters; "+
			"plain http goes to this machine alone", MaxURL).At("/url", RuleURL)
}
