package events

// webhookEvents are the events of webhooks, by which events are sent to others, in the order of docs/events.md.
func webhookEvents() []Definition {
	return []Definition{
		define(KindWebhook, Gateway, WebhookSet{}, "Events are sent to an address from now on, or otherwise than before."),
		define(KindWebhook, Gateway, WebhookSecretRotated{},
			"A webhook signs by another secret; the one before holds for a while beside it."),
		define(KindWebhook, Gateway, WebhookReplayRequested{}, "A webhook sends events from a position again."),
		define(KindWebhook, Gateway, WebhookDisabled{}, "A webhook sends nothing until somebody sets it again."),
		define(KindWebhook, Gateway, WebhookDeleted{}, "A webhook ended."),
	}
}

// WebhookSet carries the whole of a webhook. Subject: its name. Address and secrets stand outside of the log.
type WebhookSet struct {
	Name  string       `json:"name"`
	Spec  WebhookSpec  `json:"spec"`
	Owner WebhookOwner `json:"owner"`
}

// EventType implements Payload.
func (WebhookSet) EventType() Type { return "webhook.set.v1" }

// WebhookSpec is which events are sent, and how.
type WebhookSpec struct {
	Address string      `json:"address"`         // commitment: addresses of chats are credentials
	Target  string      `json:"target"`          // CloudEvents, Slack, PagerDuty
	Mode    string      `json:"mode,omitempty"`  // of CloudEvents: Structured, Binary
	Types   []string    `json:"types,omitempty"` // event types, or families such as subscription.*; all without one
	Scope   AccessScope `json:"scope"`
	// Suspended says that nothing is sent, by the wish of who set it.
	Suspended bool `json:"suspended,omitempty"`
}

// WebhookOwner is who set a webhook last: it sends what they may see.
type WebhookOwner struct {
	Kind   string   `json:"kind"`             // User, ServiceAccount
	Actor  string   `json:"actor"`            // opaque id
	Groups []string `json:"groups,omitempty"` // that their provider vouched for
}

// WebhookSecretRotated says that another secret signs. Neither is in it.
type WebhookSecretRotated struct {
	OverlapSeconds int64 `json:"overlapSeconds"` // how long the one before signs, too
}

// EventType implements Payload.
func (WebhookSecretRotated) EventType() Type { return "webhook.secret-rotated.v1" }

// WebhookReplayRequested says that events behind a position are sent again.
type WebhookReplayRequested struct {
	After string `json:"after"` // position
}

// EventType implements Payload.
func (WebhookReplayRequested) EventType() Type { return "webhook.replay-requested.v1" }

// WebhookDisabled says that a webhook was given up.
type WebhookDisabled struct {
	Reason string `json:"reason"` // Failing, Gone, NoRights
}

// EventType implements Payload.
func (WebhookDisabled) EventType() Type { return "webhook.disabled.v1" }

// WebhookDeleted ends a webhook.
type WebhookDeleted struct{}

// EventType implements Payload.
func (WebhookDeleted) EventType() Type { return "webhook.deleted.v1" }
