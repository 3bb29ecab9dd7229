package httpserver

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// ProblemType is the media type of RFC 9457.
const ProblemType = "application/problem+json"

// ProblemDetails is an RFC 9457 problem document.
type ProblemDetails struct {
	Type     string `json:"type" format:"uri" doc:"Page that says what this type of problem means and what to do"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail,omitempty"`
	Instance string `json:"instance,omitempty" doc:"Names this occurrence, as the server's log does"`
	// Kind is the errs.Kind, by which programs distinguish two problems of one status.
	Kind string `json:"kind,omitempty"`
	// Request is the id under which the server's log holds this request.
	Request string        `json:"request,omitempty"`
	Errors  []ProblemItem `json:"errors,omitempty"`
}

// ProblemItem is one place in the input that breaks a rule.
type ProblemItem struct {
	Location string `json:"location,omitempty"` // JSON pointer, parameter or file:line
	Message  string `json:"message"`
	Rule     string `json:"rule,omitempty"`
	Help     string `json:"help,omitempty" doc:"Where the API explains the rule"`
}

// Status is the HTTP status of a kind. This is the only such table.
func Status(k errs.Kind) int {
	switch k {
	case errs.Invalid:
		return http.StatusBadRequest
	case errs.Unprocessable:
		return http.StatusUnprocessableEntity
	case errs.TooLarge:
		return http.StatusRequestEntityTooLarge
	case errs.Unauthenticated:
		return http.StatusUnauthorized
	case errs.Forbidden:
		return http.StatusForbidden
	case errs.NotFound:
		return http.StatusNotFound
	case errs.AlreadyExists, errs.Conflict:
		return http.StatusConflict
	case errs.Unavailable:
		return http.StatusServiceUnavailable
	case errs.Internal:
		return http.StatusInternalServerError
	default:
		return http.StatusInternalServerError
	}
}

// Details turns an error into a problem document. The text of an internal error stays in the log:
// it speaks of tables and addresses, which are not the caller's.
func Details(err error) ProblemDetails {
	kind := errs.KindOf(err)
	p := ProblemDetails{Kind: string(kind)}
	p.typed(Status(kind))
	if kind == errs.Internal {
		p.Detail = "an internal error; the server's log says more under this request's id"
		return p
	}
	p.Detail = err.Error()
	for _, e := range located(err) {
		p.Errors = append(p.Errors, ProblemItem{Location: e.Field, Message: e.Error(), Rule: e.Rule})
	}
	return p
}

// located collects the errors that name a place or a rule, also from errors.Join.
func located(err error) []*errs.Error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*errs.Error
		for _, e := range many.Unwrap() {
			all = append(all, located(e)...)
		}
		return all
	}
	//nolint:errorlint // each link of the chain is looked at by itself, so that none is found twice
	if e, ok := err.(*errs.Error); ok && (e.Field != "" || e.Rule != "") {
		return []*errs.Error{e}
	}
	if inner := errors.Unwrap(err); inner != nil {
		return located(inner)
	}
	return nil
}

// Problem answers with the problem document of err.
func Problem(w http.ResponseWriter, r *http.Request, err error) { write(w, r, err, Details(err)) }

func write(w http.ResponseWriter, r *http.Request, err error, p ProblemDetails) {
	p.Occurred(RequestID(r.Context()))
	noteError(r.Context(), err)
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Content-Type", ProblemType)
	w.WriteHeader(p.Status)
	// The caller may have gone; the access log has the response.
	_ = json.NewEncoder(w).Encode(p)
}
