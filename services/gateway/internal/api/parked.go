package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const tagLog = "Event log"

// parkedHandlers are the operations on parked events; all of them are for administrators, since the bytes of an event
// are shown, and a skipped one changes what is shown for good.
type parkedHandlers struct{ Deps }

func (h parkedHandlers) register(a *API) {
	register(a, fleetWide(access.List, access.Parked),
		operation(http.MethodGet, "/log/parked", "list-parked-events", tagLog,
			"List events that a consumer of the log could not take, and those that wait behind them; for administrators"),
		h.list)
	register(a, fleetWide(access.Get, access.Parked),
		operation(http.MethodGet, "/log/parked/event", "get-parked-event", tagLog,
			"Get a parked event with its bytes; for administrators"), h.get)
	register(a, fleetWide(access.Update, access.Parked),
		operation(http.MethodPost, "/log/parked/retry", "retry-parked-events", tagLog,
			"Have parked events tried again at once"), h.retry)
	register(a, fleetWide(access.Update, access.Parked),
		operation(http.MethodPost, "/log/parked/skip", "skip-parked-event", tagLog,
			"Have a consumer go on without an event, for good"), h.skip)
	register(a, fleetWide(access.List, access.Parked),
		operation(http.MethodGet, "/log/skipped", "list-skipped-events", tagLog,
			"List events that consumers went on without, who decided that and why; for administrators"), h.skipped)
}

type consumerQuery struct {
	Consumer string `query:"consumer" maxLength:"200" doc:"Of this consumer; of all without it"`
}

func (h parkedHandlers) list(
	ctx context.Context, who model.Caller, in *consumerQuery,
) (*listOutput[model.ParkedEvent], error) {
	items, err := h.Intents.Parked.List(ctx, who, in.Consumer)
	return listed(items, nil, err)
}

func (h parkedHandlers) skipped(
	ctx context.Context, who model.Caller, in *consumerQuery,
) (*listOutput[model.SkippedEvent], error) {
	items, err := h.Intents.Parked.Skipped(ctx, who, in.Consumer)
	return listed(items, nil, err)
}

type parkedQuery struct {
	Consumer string `query:"consumer" required:"true" minLength:"1" maxLength:"200" doc:"As the list names it"`
	Stream   string `query:"stream" required:"true" minLength:"1" maxLength:"200" doc:"As the list names it"`
	Version  int64  `query:"version" required:"true" minimum:"1"`
}

func (h parkedHandlers) get(
	ctx context.Context, who model.Caller, in *parkedQuery,
) (*output[model.ParkedEvent], error) {
	return read(h.Intents.Parked.Get(ctx, who, model.ParkedRef(*in)))
}

type retryParkedInput struct{ Body model.RetryParked }

func (h parkedHandlers) retry(ctx context.Context, who model.Caller, in *retryParkedInput) (*struct{}, error) {
	if err := h.Intents.Parked.Retry(ctx, who, in.Body); err != nil {
		return nil, err
	}
	return &struct{}{}, nil
}

type skipParkedInput struct{ Body model.SkipParked }

func (h parkedHandlers) skip(ctx context.Context, who model.Caller, in *skipParkedInput) (*struct{}, error) {
	if err := h.Intents.Parked.Skip(ctx, who, in.Body); err != nil {
		return nil, err
	}
	return &struct{}{}, nil
}
