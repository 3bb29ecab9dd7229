package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Effects is the stop switch.
type Effects interface {
	Effects(ctx context.Context, who model.Caller, cluster string) (model.Effects, error)
	SetEffects(ctx context.Context, who model.Caller, in model.EffectsRequest) (model.Effects, error)
}

const tagEffects = "Effects"

func (a *API) effects() {
	register(a, needRead, operation(http.MethodGet, "/effects", "get-effects", tagEffects, "Whether plans may take steps"),
		func(ctx context.Context, who model.Caller, in *struct {
			Cluster string `query:"cluster" maxLength:"63" doc:"Of this cluster; of the fleet without it"`
		},
		) (*output[model.Effects], error) {
			return read(a.d.Effects.Effects(ctx, who, in.Cluster))
		})
	register(a, needWrite, operation(http.MethodPost, "/effects", "set-effects", tagEffects, "Stop plans from taking steps, or let them go on"),
		func(ctx context.Context, who model.Caller, in *struct{ Body model.EffectsRequest }) (*written[model.Effects], error) {
			e, err := a.d.Effects.SetEffects(ctx, who, in.Body)
			return wrote(e, e.Position, "", err)
		})
}
