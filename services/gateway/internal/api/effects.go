package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const tagEffects = "Effects"

// effectsHandlers are the operations on the stop switch.
type effectsHandlers struct{ Deps }

func (h effectsHandlers) register(a *API) {
	register(a, needRead, operation(http.MethodGet, "/effects", "get-effects", tagEffects,
		"Whether plans may take steps"), h.getEffects)
	register(a, needWrite, operation(http.MethodPost, "/effects", "set-effects", tagEffects,
		"Stop plans from taking steps, or let them go on"), h.setEffects)
}

type getEffectsInput struct {
	Cluster string `query:"cluster" maxLength:"63" doc:"Of this cluster; of the fleet without it"`
}

func (h effectsHandlers) getEffects(
	ctx context.Context, who model.Caller, in *getEffectsInput,
) (*output[model.Effects], error) {
	return read(h.Intents.Effects.Get(ctx, who, in.Cluster))
}

type setEffectsInput struct{ Body model.EffectsRequest }

func (h effectsHandlers) setEffects(
	ctx context.Context, who model.Caller, in *setEffectsInput,
) (*written[model.Effects], error) {
	e, err := h.Intents.Effects.Set(ctx, who, in.Body)
	return wrote(e, e.Position, "", err)
}
