package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/webhooks"
	"github.com/chandler-fleet/chandler/services/gateway/internal/watch"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const tagEvents = "Events"

// EventQuery chooses events.
type EventQuery struct {
	Type    []string `query:"type,explode" maxItems:"50" doc:"Event types, or families such as subscription.*"`
	Subject string   `query:"subject" maxLength:"600" doc:"Exactly this subject, such as cluster/namespace/name"`
	Stream  string   `query:"stream" maxLength:"128" doc:"Exactly this stream"`
	Cluster string   `query:"cluster" maxLength:"63" doc:"Only what concerns this cluster"`
	Actor   string   `query:"actor" maxLength:"63" doc:"Only what this actor asked for, or asked for on behalf of people, by its opaque id"`
	Since   string   `query:"since" maxLength:"40" doc:"Only what was recorded then or later: a time (RFC 3339), or how long ago, such as 90m or 24h"`
	After   string   `query:"after" maxLength:"128" doc:"Position behind which to begin: epoch-number, or stream@version, as answers to writes have it"`
}

func (q EventQuery) filter(limit int) model.EventFilter {
	return model.EventFilter{
		Types: q.Type, Subject: q.Subject, Stream: q.Stream, Cluster: q.Cluster, Actor: q.Actor, After: q.After,
		Limit: limit,
	}
}

// eventPage is a part of the log.
type eventPage struct {
	Items []model.Event `json:"items" nullable:"false"`
	Next  string        `json:"next" doc:"Position to go on from"`
	Done  bool          `json:"done" doc:"The end of the log was reached"`
}

// eventHandlers are the operations on the event log.
type eventHandlers struct {
	Deps

	streams *places
}

func (h eventHandlers) register(a *API) {
	register(a, whatIsSeen(access.List, access.Events),
		operation(http.MethodGet, "/events", "list-events", tagEvents, "Read the log, oldest first"),
		h.listEvents)

	erase := operation(http.MethodDelete, "/bodies/{id}", "erase-body", tagEvents,
		"Erase what events have a commitment to")
	erase.Description = "Configurations, annotations, sources of catalogs and reasons stand outside the log. Events name " +
		"them by a commitment (c1:…), which stays and tells nothing. What is erased does not come back: a decision that " +
		"rested on it cannot be recomputed. For administrators; refused under a legal hold, and while a subscription or " +
		"catalog works with it."
	register(a, fleetWide(access.Delete, access.Bodies), erase, h.eraseBody)

	stream := operation(http.MethodGet, pathStream, "stream-events", tagEvents, "Follow the log")
	stream.Description = "Server-sent events: id is the position, event the type, data the event. A client that " +
		"reconnects with " +
		"Last-Event-ID misses nothing and sees nothing twice. Without it and without after, the stream begins now."
	stream.Responses = map[string]*huma.Response{"200": {
		Description: "Events as they come",
		Content:     map[string]*huma.MediaType{mediaStream: {Schema: &huma.Schema{Type: huma.TypeString}}},
	}}
	register(a, whatIsSeen(access.Watch, access.Events), stream, h.follow)
}

// bodyPath names a body.
type bodyPath struct {
	ID string `path:"id" maxLength:"67" pattern:"^c1:[0-9a-f]{64}$" patternDescription:"a commitment" doc:"Commitment, as events have it"`
}

func (h eventHandlers) eraseBody(
	ctx context.Context, who model.Caller, in *bodyPath,
) (*output[model.ErasedBody], error) {
	return read(h.Intents.Bodies.Erase(ctx, who, in.ID))
}

type listEventsInput struct {
	EventQuery
	Until string `query:"until" maxLength:"40" doc:"Only what was recorded earlier: a time (RFC 3339), or how long ago"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

func (h eventHandlers) listEvents(
	ctx context.Context, who model.Caller, in *listEventsInput,
) (*output[eventPage], error) {
	f := in.filter(in.Limit)
	if err := h.begin(ctx, who, in.Since, &f); err != nil {
		return nil, err
	}
	until, err := momentOrAgo("until", in.Until, time.Now())
	if err != nil {
		return nil, err
	}
	if until != nil {
		f.Until = *until
	}
	items, next, done, err := h.Reads.Events.List(ctx, who, f)
	return read(eventPage{Items: items, Next: next.String(), Done: done}, err)
}

// begin turns the place behind which a list begins into a position of the log. The log may be read from behind its end,
// which a stream may not be (checkStart).
func (h eventHandlers) begin(ctx context.Context, who model.Caller, since string, f *model.EventFilter) error {
	if strings.Contains(f.After, "@") {
		position, err := h.Reads.Positions.Find(ctx, who, f.After, "query.after")
		if err != nil {
			return err
		}
		f.After = position.String()
	}
	return h.since(ctx, since, f)
}

// since has a filter begin with what was recorded since a time, if that is later than where it begins.
func (h eventHandlers) since(ctx context.Context, since string, f *model.EventFilter) error {
	t, err := momentOrAgo("since", since, time.Now())
	if err != nil || t == nil {
		return err
	}
	first, err := h.Reads.Events.Since(ctx, *t)
	if err != nil {
		return err
	}
	after, err := events.ParsePosition(f.After)
	if f.After == "" || err == nil && after.Less(first) { // what is no position is refused by who reads
		f.After = first.String()
	}
	return nil
}

const (
	tagWebhooks  = "Webhooks"
	pathWebhooks = "/webhooks"
	// pathTestWebhook is where a webhook is tested.
	pathTestWebhook = pathWebhooks + "/{name}/test"
)

// WebhookPath is a webhook in a path.
type WebhookPath struct {
	Name string `path:"name" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
}

// webhookHandlers are the operations on webhooks, which send events. Those on hooks, which are called, are
// hookHandlers.
type webhookHandlers struct{ Deps }

func (h webhookHandlers) register(a *API) {
	registerList(a, fleetWide(access.List, access.Webhooks), operation(http.MethodGet, pathWebhooks, "list-webhooks",
		tagWebhooks, "List webhooks by name"), watchedWebhooks, h.list)
	register(a, fleetWide(access.Get, access.Webhooks), operation(http.MethodGet, pathWebhooks+"/{name}", "get-webhook",
		tagWebhooks, "Get a webhook, without its address and secret"), h.get)
	set := operation(http.MethodPut, pathWebhooks+"/{name}", "set-webhook", tagWebhooks,
		"Have events sent to an address, or replace all of a webhook but its secret")
	set.Description = "The answer to a new webhook has the secret that signs, this once. It sends what its owner, who " +
		"set it last, may watch within its scope, at each moment. One that was given up goes on when it is set again."
	register(a, fleetWide(access.Update, access.Webhooks), set, h.set)
	register(a, fleetWide(access.Delete, access.Webhooks), operation(http.MethodDelete, pathWebhooks+"/{name}",
		"delete-webhook", tagWebhooks, "End a webhook; what waits is not sent"), h.delete)
	register(a, fleetWide(access.Get, access.Webhooks), operation(http.MethodGet, pathWebhooks+"/{name}/deliveries",
		"list-webhook-deliveries", tagWebhooks,
		"List what a webhook sends and has sent, newest first: 30 days, and the newest 10,000 that have ended"),
		h.deliveries)
	register(a, fleetWide(access.Update, access.Webhooks), operation(http.MethodPost, pathTestWebhook, "test-webhook",
		tagWebhooks, "Send a test event now, once, and answer what became of it"), h.test)
	register(a, fleetWide(access.Update, access.Webhooks), operation(http.MethodPost, pathWebhooks+"/{name}/replay",
		"replay-webhook", tagWebhooks, "Send the events behind a position again, with the same webhook-id"), h.replay)
	register(a, fleetWide(access.Update, access.Webhooks), operation(http.MethodPost, pathWebhooks+"/{name}/rotate",
		"rotate-webhook", tagWebhooks,
		"Sign by another secret, which is answered this once; the one before signs beside it for a day"), h.rotate)
}

// watchedWebhooks: how many deliveries wait no event tells.
var watchedWebhooks = watchedInFleet(func(w model.Webhook) watch.Name { return watch.Name{Name: w.Name} },
	events.KindWebhook)

func (h webhookHandlers) list(
	ctx context.Context, who model.Caller, in *FleetListQuery,
) (*listOutput[model.Webhook], error) {
	page, err := in.page() // it is never behind a write
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Webhooks.List(ctx, who, page))
}

type getWebhookInput struct {
	WebhookPath
	ReadQuery
}

func (h webhookHandlers) get(
	ctx context.Context, who model.Caller, in *getWebhookInput,
) (*output[model.Webhook], error) {
	return read(h.Reads.Webhooks.Get(ctx, who, in.Name))
}

type setWebhookInput struct {
	WebhookPath
	MakeHeaders
	TryQuery
	Body model.WebhookSpec
}

func (h webhookHandlers) set(
	ctx context.Context, who model.Caller, in *setWebhookInput,
) (*written[model.Webhook], error) {
	w, err := h.Intents.Webhooks.Set(ctx, who, in.Name, in.Body)
	if in.DryRun {
		w.Secret = "" // nothing is signed by it
	}
	return wrote(w, w.Position, "", err)
}

type deleteWebhookInput struct {
	WebhookPath
	TryQuery
}

func (h webhookHandlers) delete(
	ctx context.Context, who model.Caller, in *deleteWebhookInput,
) (*written[model.Removed], error) {
	r, err := h.Intents.Webhooks.Delete(ctx, who, in.Name)
	return wrote(r, r.Position, "", err)
}

type listDeliveriesInput struct {
	WebhookPath
	ListQuery
	State string `query:"state" enum:"Pending,Delivered,Failed,Withdrawn" doc:"Only those in this state"`
}

func (h webhookHandlers) deliveries(
	ctx context.Context, who model.Caller, in *listDeliveriesInput,
) (*listOutput[model.WebhookDelivery], error) {
	page, err := in.page()
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Webhooks.Deliveries(ctx, who, in.Name, model.DeliveryFilter{State: in.State, Page: page}))
}

func (h webhookHandlers) test(
	ctx context.Context, who model.Caller, in *WebhookPath,
) (*output[model.WebhookDelivery], error) {
	d, err := h.Intents.Webhooks.Test(ctx, who, in.Name)
	if errors.Is(err, webhooks.ErrTesting) {
		err = noPlaceError{webhooks.ErrTesting}
	}
	return read(d, err)
}

type replayWebhookInput struct {
	WebhookPath
	Body model.ReplayWebhook
}

func (h webhookHandlers) replay(
	ctx context.Context, who model.Caller, in *replayWebhookInput,
) (*written[model.Webhook], error) {
	after, err := h.Reads.Positions.Find(ctx, who, in.Body.After, "/after")
	if err != nil {
		return nil, err
	}
	w, err := h.Intents.Webhooks.Replay(ctx, who, in.Name, after)
	return wrote(w, w.Position, "", err)
}

func (h webhookHandlers) rotate(
	ctx context.Context, who model.Caller, in *WebhookPath,
) (*written[model.Webhook], error) {
	w, err := h.Intents.Webhooks.Rotate(ctx, who, in.Name)
	return wrote(w, w.Position, "", err)
}
