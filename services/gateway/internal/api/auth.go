package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// maxTokenChars bounds a bearer token before it is hashed and looked up.
const maxTokenChars = 512

type callerKey struct{}

// authenticate lets nobody in without a token that is known, wherever the request goes.
func (a *API) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := bearer(r)
		if err != nil {
			httpserver.Problem(w, r, err)
			return
		}
		who, err := a.tokens.Caller(r.Context(), token)
		if err != nil {
			httpserver.Problem(w, r, public(err))
			httpserver.NoteError(r.Context(), err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

func bearer(r *http.Request) (string, error) {
	if len(r.Header.Values("Authorization")) > 1 {
		return "", errs.New(errs.Unauthenticated, "the request has several Authorization headers: send one")
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxTokenChars {
		return "", errs.New(errs.Unauthenticated,
			"the request has no bearer token: send 'Authorization: Bearer <token>'")
	}
	return token, nil
}

// allowed returns the caller if the token's role allows what the operation needs.
func allowed(ctx context.Context, n need) (model.Caller, error) {
	who, ok := ctx.Value(callerKey{}).(model.Caller)
	if !ok {
		return who, errs.New(errs.Unauthenticated, "the request has no caller")
	}
	switch {
	case who.Role == model.RoleAdmin && (n == needRead || n == needWrite),
		who.Role == model.RoleViewer && n == needRead:
		return who, nil
	}
	return who, errs.New(errs.Forbidden, "role %q of this token does not allow this operation", who.Role)
}

const tagTokens = "Tokens"

// TokenPath is a token in a path.
type TokenPath struct {
	ID string `path:"id" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Id of the token"`
}

// tokenHandlers are the operations on tokens; all of them are for administrators.
type tokenHandlers struct{ Deps }

func (h tokenHandlers) register(a *API) {
	register(a, needWrite, operation(http.MethodGet, "/tokens", "list-tokens", tagTokens,
		"List tokens by name, without what they are made of, revoked ones included; for administrators"), h.listTokens)
	register(a, needWrite, created("/tokens", "add-token", tagTokens,
		"Make a token for a person or program; it is answered this once"), h.addToken)
	register(a, needWrite, operation(http.MethodDelete, "/tokens/{id}", "revoke-token", tagTokens,
		"Refuse a token from now on; one administrator's token always stays"), h.revokeToken)
}

type listTokensInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"At most so many items"`
	Cursor string `query:"cursor" maxLength:"2048" doc:"next of the page before"`
}

func (h tokenHandlers) listTokens(
	ctx context.Context, who model.Caller, in *listTokensInput,
) (*listOutput[model.Token], error) {
	page, err := ListQuery{Limit: in.Limit, Cursor: in.Cursor}.page()
	if err != nil {
		return nil, err
	}
	return listed(h.Intents.Tokens.List(ctx, who, page))
}

type addTokenInput struct{ Body model.AddToken }

func (h tokenHandlers) addToken(
	ctx context.Context, who model.Caller, in *addTokenInput,
) (*output[model.NewToken], error) {
	return read(h.Intents.Tokens.Add(ctx, who, in.Body))
}

func (h tokenHandlers) revokeToken(ctx context.Context, who model.Caller, in *TokenPath) (*struct{}, error) {
	if err := h.Intents.Tokens.Revoke(ctx, who, in.ID); err != nil {
		return nil, err
	}
	return &struct{}{}, nil
}

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
