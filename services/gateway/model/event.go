package model

import (
	"encoding/json"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
)

// Event is one entry of the log, as CloudEvents 1.0.
type Event struct {
	SpecVersion   string          `json:"specversion"`
	ID            string          `json:"id"`
	Source        string          `json:"source"`
	Type          string          `json:"type"`
	Subject       string          `json:"subject"`
	Time          time.Time       `json:"time"`
	Recorded      time.Time       `json:"recordedtime" doc:"When the record took it in"`
	Sequence      string          `json:"sequence" doc:"Position in the log"`
	Stream        string          `json:"stream"`
	StreamVersion int64           `json:"streamversion"`
	Correlation   string          `json:"correlationid,omitempty"`
	Causation     string          `json:"causationid,omitempty"`
	TraceParent   string          `json:"traceparent,omitempty"`
	Actor         string          `json:"authid,omitempty" doc:"Opaque id of who asked"`
	Via           string          `json:"authvia,omitempty" doc:"Opaque id of the service account through which they asked"`
	Hash          string          `json:"hash,omitempty" doc:"Of the stored bytes"`
	Data          json.RawMessage `json:"data"`
}

// EventFilter chooses events; empty fields choose all.
type EventFilter struct {
	Types   []string
	Subject string
	Stream  string
	Cluster string
	Actor   string    // who asked, or through whom
	After   string    // position
	Until   time.Time // recorded before it; zero is no end
	Limit   int
}

// ErasedBody is what is left of a part of an intent that stood outside the log and was erased.
type ErasedBody struct {
	ID       string    `json:"id" doc:"The commitment by which events name it"`
	Kind     string    `json:"kind" doc:"subscription-config, catalog-source, annotations or plan-reason"`
	ErasedAt time.Time `json:"erasedAt"`
	ErasedBy string    `json:"erasedBy" doc:"Opaque id of who erased it"`
}

// AskTicket names the stream that a ticket is to open.
type AskTicket struct {
	URL string `json:"url" minLength:"1" maxLength:"4096" example:"/api/v1/events/stream?type=installplan.*" doc:"Path and query of the stream"`
}

// StreamTicket opens one stream, once.
type StreamTicket struct {
	URL       string    `json:"url" doc:"Path and query with the ticket: what an EventSource is given"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// WebhookTarget is what is sent.
type WebhookTarget struct {
	Type string `json:"type,omitempty" enum:"CloudEvents,Slack,PagerDuty" doc:"CloudEvents, the default; a message of Slack's incoming webhooks; an alert of PagerDuty's Events API v2"`
	Mode string `json:"mode,omitempty" enum:"Structured,Binary" doc:"Of CloudEvents: the whole event as the body, the default, or its data as the body and the rest as headers"`
}

// WebhookSpec is which events are sent to whom.
type WebhookSpec struct {
	URL       string        `json:"url,omitempty" maxLength:"2048" doc:"Where to: https://HOST/PATH. It may hold a credential and is never shown again; without it a webhook that is there keeps its own"`
	Target    WebhookTarget `json:"target,omitzero"`
	Types     []string      `json:"types,omitempty" maxItems:"50" nullable:"false" doc:"Event types, or families such as subscription.*; all without one"`
	Scope     AccessScope   `json:"scope,omitzero" doc:"Of what: it must lie in what the caller may watch; the whole tenant without it"`
	Suspended bool          `json:"suspended,omitempty" doc:"Nothing is sent; events wait"`
}

// Event is the spec as events have it, without the address.
func (s WebhookSpec) Event() events.WebhookSpec {
	return events.WebhookSpec{
		Target: s.Target.Type, Mode: s.Target.Mode, Types: s.Types, Scope: events.AccessScope(s.Scope),
		Suspended: s.Suspended,
	}
}

// WebhookSpecOf is a spec as people see it.
func WebhookSpecOf(e events.WebhookSpec) WebhookSpec {
	return WebhookSpec{
		Target: WebhookTarget{Type: e.Target, Mode: e.Mode}, Types: e.Types, Scope: AccessScope(e.Scope),
		Suspended: e.Suspended,
	}
}

// Webhook sends events to an address.
type Webhook struct {
	Name        string      `json:"name"`
	Spec        WebhookSpec `json:"spec"`
	Host        string      `json:"host" doc:"Of the address, which is not shown"`
	Owner       string      `json:"owner" doc:"Actor who set it last: it sends what they may see"`
	State       string      `json:"state" enum:"Active,Suspended,Disabled"`
	Reason      string      `json:"reason,omitempty" doc:"Why it is disabled: Failing (nothing was taken for three days), Gone (the receiver answered 410), NoRights (its owner may see nothing of it any more); set it again to go on"`
	Secret      string      `json:"secret,omitempty" doc:"That signs, when it is made or rotated, this once"`
	Pending     int64       `json:"pending" doc:"Deliveries that wait, the next one included"`
	At          string      `json:"at" doc:"Position up to which events have deliveries"`
	LastSuccess *time.Time  `json:"lastSuccess,omitempty" doc:"When a receiver took something last"`
	CreatedAt   time.Time   `json:"createdAt"`
	UpdatedAt   time.Time   `json:"updatedAt"`
	Stream      string      `json:"stream,omitempty" doc:"Id of its stream of events"`
	Version     int64       `json:"version,omitempty" doc:"Of its stream"`
	Position    string      `json:"position,omitempty" doc:"Of the write, in answers to writes"`
}

// WebhookState is whether a webhook sends.
func WebhookState(suspended bool, disabled string) string {
	switch {
	case disabled != "":
		return "Disabled"
	case suspended:
		return "Suspended"
	default:
		return "Active"
	}
}

// WebhookDelivery is one message of a webhook.
type WebhookDelivery struct {
	ID          string     `json:"id" doc:"webhook-id: the same however often it is sent"`
	Event       string     `json:"event,omitempty" doc:"Position of the event; absent for a test"`
	Type        string     `json:"type"`
	Subject     string     `json:"subject"`
	State       string     `json:"state" enum:"Pending,Delivered,Failed,Withdrawn" doc:"Failed: given up after three days; Withdrawn: the owner may not see the event any more"`
	Attempts    int        `json:"attempts"`
	Status      int        `json:"status,omitempty" doc:"Of HTTP, of the last attempt"`
	Error       string     `json:"error,omitempty" doc:"Of the last attempt"`
	TookMicros  int64      `json:"tookMicros,omitempty" doc:"Of the last attempt, in microseconds"`
	CreatedAt   time.Time  `json:"createdAt"`
	NextAttempt *time.Time `json:"nextAttempt,omitempty"`
	EndedAt     *time.Time `json:"endedAt,omitempty"`
}

// ReplayWebhook has events sent again.
type ReplayWebhook struct {
	After string `json:"after" maxLength:"128" doc:"Position behind which to begin: epoch-number, or stream@version, as answers to writes have it"`
}

// DeliveryFilter chooses deliveries; empty fields choose all.
type DeliveryFilter struct {
	State string
	Page
}

// StreamedEvent is an event as an answer, written once for everybody who gets it.
type StreamedEvent struct {
	Position events.Position
	Type     events.Type
	ID       string
	Subject  string
	JSON     []byte
}
