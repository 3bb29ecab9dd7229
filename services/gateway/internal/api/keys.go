package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// keyHandlers are the operations on the keys of the installation; they are for administrators.
type keyHandlers struct{ Deps }

func (h keyHandlers) register(a *API) {
	register(a, needWrite, operation(http.MethodGet, "/keys", "list-key-uses", tagTokens,
		"List what uses which key of the installation, by ids of keys; for administrators"), h.listKeyUses)
}

func (h keyHandlers) listKeyUses(
	ctx context.Context, _ model.Caller, _ *struct{},
) (*listOutput[model.KeyUse], error) {
	uses, err := h.Reads.Keys.List(ctx)
	return listed(uses, nil, err)
}
