package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const tagEffects = "Effects"

// effectsHandlers are the operations on the stop switch.
type effectsHandlers struct{ Deps }

func (h effectsHandlers) register(a *API) {
	register(a, whereAsked(access.Get, access.Effects), operation(http.MethodGet, "/effects", "get-effects", tagEffects,
		"Whether plans may take steps"), h.getEffects)
	register(a, whereAsked(access.Stop, access.Effects),
		operation(http.MethodPost, "/effects", "set-effects", tagEffects,
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

const tagReplicas = "Replicas"

// replicaHandlers are the operations on the replicas of the installer. They are the installation's, as its keys are:
// administrators see and drain them.
type replicaHandlers struct{ Deps }

func (h replicaHandlers) register(a *API) {
	register(a, fleetWide(access.List, access.Replicas),
		operation(http.MethodGet, "/replicas", "list-replicas", tagReplicas,
			"List the replicas of the installer and what they run; for administrators"), h.list)
	register(a, fleetWide(access.Update, access.Replicas),
		operation(http.MethodPost, "/replicas/drain", "drain-replica", tagReplicas,
			"Have a replica give its clusters to others, or take clusters again"), h.drain)
}

func (h replicaHandlers) list(
	ctx context.Context, who model.Caller, _ *struct{},
) (*listOutput[model.Replica], error) {
	items, err := h.Intents.Replicas.List(ctx, who)
	return listed(items, nil, err)
}

type drainReplicaInput struct{ Body model.DrainReplica }

func (h replicaHandlers) drain(ctx context.Context, who model.Caller, in *drainReplicaInput) (*struct{}, error) {
	if err := h.Intents.Replicas.Drain(ctx, who, in.Body); err != nil {
		return nil, err
	}
	return &struct{}{}, nil
}
