package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const tagEvents = "Events"

// EventQuery chooses events.
type EventQuery struct {
	Type    []string `query:"type,explode" maxItems:"50" doc:"Event types, or families such as subscription.*"`
	Subject string   `query:"subject" maxLength:"600" doc:"Exactly this subject, such as cluster/namespace/name"`
	Stream  string   `query:"stream" maxLength:"128" doc:"Exactly this stream"`
	Cluster string   `query:"cluster" maxLength:"63" doc:"Only what concerns this cluster"`
	After   string   `query:"after" maxLength:"64" doc:"Position behind which to begin"`
}

func (q EventQuery) filter(limit int) model.EventFilter {
	return model.EventFilter{
		Types: q.Type, Subject: q.Subject, Stream: q.Stream, Cluster: q.Cluster, After: q.After, Limit: limit,
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

	streams chan struct{} // one place for each open stream
	own     *places       // of each identity
}

func newEventHandlers(d Deps) eventHandlers {
	l := d.Limits.orDefaults()
	return eventHandlers{d, make(chan struct{}, l.Streams), &places{max: l.OwnStreams}}
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

	stream := operation(http.MethodGet, "/events/stream", "stream-events", tagEvents, "Follow the log")
	stream.Description = "Server-sent events: id is the position, event the type, data the event. A client that " +
		"reconnects with " +
		"Last-Event-ID misses nothing and sees nothing twice. Without it and without after, the stream begins now."
	stream.Responses = map[string]*huma.Response{"200": {
		Description: "Events as they come",
		Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}},
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
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

func (h eventHandlers) listEvents(
	ctx context.Context, who model.Caller, in *listEventsInput,
) (*output[eventPage], error) {
	items, next, done, err := h.Reads.Events.List(ctx, who, in.filter(in.Limit))
	return read(eventPage{Items: items, Next: next.String(), Done: done}, err)
}
