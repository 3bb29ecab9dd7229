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
		who, err := a.d.Tokens.Caller(r.Context(), token)
		if err != nil {
			httpserver.Problem(w, r, public(err))
			httpserver.NoteError(r.Context(), err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

func bearer(r *http.Request) (string, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxTokenChars {
		return "", errs.New(errs.Unauthenticated, "the request has no bearer token: send 'Authorization: Bearer <token>'")
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
