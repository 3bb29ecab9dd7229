package api

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/spelling"
	"github.com/chandler-fleet/chandler/services/gateway/internal/api/document"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// Problem is an RFC 9457 problem document: libs/httpserver's, as an error.
type Problem struct { //nolint:errname // the name is that of the schema in the OpenAPI document
	httpserver.ProblemDetails
}

// Error implements error, and with GetStatus huma.StatusError.
func (p *Problem) Error() string { return p.Detail }

// GetStatus is the status of the answer.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders says when asking again makes sense.
func (p *Problem) GetHeaders() http.Header {
	switch p.Status {
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return http.Header{"Retry-After": {"1"}}
	default:
		return nil
	}
}

// noPlaceError is an error of one who asks for more than there is place for: 429, and not 503, since nothing is away.
type noPlaceError struct{ err *errs.Error }

func noPlace(format string, args ...any) error {
	return noPlaceError{errs.New(errs.Unavailable, format, args...)}
}

func (e noPlaceError) Error() string { return e.err.Error() }
func (e noPlaceError) Unwrap() error { return e.err }

// ContentType makes an answer in JSON one in problem JSON.
func (p *Problem) ContentType(string) string { return httpserver.ProblemType }

// problemOf turns an error of the field into a problem, and lets the access log know the error itself.
func problemOf(ctx context.Context, err error) *Problem {
	httpserver.NoteError(ctx, err)
	p := newProblem(ctx, httpserver.Details(public(err)))
	if _, full := errors.AsType[noPlaceError](err); full {
		p.SetStatus(http.StatusTooManyRequests)
	}
	if e, ok := errors.AsType[*unit.PreconditionError](err); ok {
		status := http.StatusPreconditionFailed
		if e.Required {
			status = http.StatusPreconditionRequired
		}
		p.SetStatus(status)
	}
	var late interface{ Timeout() bool }
	if errors.As(err, &late) && late.Timeout() && errs.Is(err, errs.Unavailable) {
		p.SetStatus(http.StatusGatewayTimeout)
	}
	for i := range p.Errors {
		p.Errors[i].Location = location(p.Errors[i].Location)
	}
	return p
}

// public is what a caller may read of an error. Drivers' messages about a part that is unavailable name hosts,
// ports and roles, those of the database tables and values; the log has it.
func public(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errs.New(errs.Unavailable, "the request took longer than %s", requestTimeout)
	}
	if _, database := errors.AsType[*pgconn.PgError](err); database || errors.Is(err, pgx.ErrNoRows) {
		return ofDatabase(errs.KindOf(err))
	}
	e, ok := errors.AsType[*errs.Error](err)
	if ok && e.Kind == errs.Unavailable && errors.Unwrap(e) != nil {
		return errs.New(errs.Unavailable,
			"a service or database that this request needs is unavailable; try again in a moment")
	}
	return err
}

// ofDatabase is what a caller reads where the database refused something. What it says of the caller's input should
// have been found before, and is a fault of ours.
func ofDatabase(kind errs.Kind) error {
	switch kind {
	case errs.Conflict:
		return errs.New(kind, "somebody else changed it at the same time: read it again, and try again")
	case errs.AlreadyExists:
		return errs.New(kind, "it is there: somebody made it before or at the same time")
	case errs.NotFound:
		return errs.New(kind, "there is nothing of this name")
	case errs.Unavailable, errs.Unauthenticated, errs.Forbidden: // of the gateway to its database
		return errs.New(errs.Unavailable,
			"a service or database that this request needs is unavailable; try again in a moment")
	default:
		return errs.New(errs.Internal, "the database refused a request")
	}
}

func newProblem(ctx context.Context, d httpserver.ProblemDetails) *Problem {
	p := &Problem{ProblemDetails: d}
	for i := range p.Errors {
		p.Errors[i].Help = ruleHelp(p.Errors[i].Rule)
	}
	p.Occurred(httpserver.RequestID(ctx))
	return p
}

var arrayIndex = regexp.MustCompile(`\.(\d+)(\.|$)`)

// location writes a JSON pointer into the body as huma writes places: body.targetNamespaces[0].
func location(pointer string) string {
	if !strings.HasPrefix(pointer, "/") {
		return pointer
	}
	path := strings.TrimSuffix("body."+strings.ReplaceAll(pointer[1:], "/", "."), ".")
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(arrayIndex.ReplaceAllString(path, "[$1]$2"))
}

// humaContext is embedded under this name, since its own is that of one of its methods.
type humaContext = huma.Context

// answerContext lets a transformer change the status of an answer that huma made.
type answerContext struct {
	humaContext
	status int
}

// Unwrap gives huma's adapter its own context back.
func (c *answerContext) Unwrap() huma.Context { return c.humaContext }

// SetStatus implements huma.Context.
func (c *answerContext) SetStatus(code int) {
	if c.status != 0 {
		code = c.status
	}
	c.humaContext.SetStatus(code)
}

// answer gives every request an answerContext.
func (a *API) answer(ctx huma.Context, next func(huma.Context)) {
	next(&answerContext{humaContext: ctx})
}

// problems turns huma's own errors into problems. What breaks the schema is invalid, by the one table
// of libs/httpserver; huma would call it unprocessable. Values are not repeated: one may be a secret.
func problems(ctx huma.Context, _ string, v any) (any, error) {
	e, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	kind := kindOf(e.Status)
	status := e.Status
	if status == http.StatusUnprocessableEntity {
		status = httpserver.Status(errs.Invalid)
	}
	d := httpserver.ProblemDetails{Kind: string(kind), Detail: e.Detail}
	d.SetStatus(status)
	for _, x := range e.Errors {
		if x != nil {
			d.Errors = append(d.Errors, problemItem(x))
		}
	}
	if kind == errs.Internal {
		httpserver.NoteError(ctx.Context(), e)
		d.Detail, d.Errors = "an internal error; the server's log says more under this request's id", nil
	}
	if len(d.Errors) > 0 {
		d.Detail += ": " + d.Errors[0].Location + ": " + d.Errors[0].Message
	}
	if c, ok := ctx.(*answerContext); ok {
		c.status = status
	}
	return newProblem(ctx.Context(), d), nil
}

// problemItem is one of huma's findings. Those of strictJSON begin with their place, which huma does not carry.
func problemItem(x *huma.ErrorDetail) httpserver.ProblemItem {
	place, message, ok := strings.Cut(x.Message, ": ")
	if x.Location != "body" || !ok || !strings.HasPrefix(place, "body") {
		place, message = x.Location, x.Message
	}
	return httpserver.ProblemItem{Location: place, Message: message + meant(x), Rule: ruleOf(message)}
}

// oneOf is how huma begins the list of the values that a field takes.
const oneOf = "expected value to be one of"

// meant asks for the near ones of the values that are taken, where another is given.
func meant(x *huma.ErrorDetail) string {
	given, isText := x.Value.(string)
	_, list, ok := strings.Cut(x.Message, oneOf)
	if !isText || !ok {
		return ""
	}
	known := strings.Split(strings.Trim(list, ` "`), ", ")
	return spelling.DidYouMean(given, known)
}

func kindOf(status int) errs.Kind {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusUnsupportedMediaType,
		http.StatusNotAcceptable, http.StatusRequestTimeout:
		return errs.Invalid
	case http.StatusRequestEntityTooLarge:
		return errs.TooLarge
	default:
		return errs.Internal
	}
}

// humaRules are the beginnings of huma's sentences and the rules that they stand for, longest first
// where one begins another.
var humaRules = []struct{ prefix, rule string }{
	{"unexpected property", "unknown-field"},
	{"the field stands twice", rule.Once},
	{"the text holds", rule.Text},
	{"the body is not valid UTF-8", rule.Text},
	{"expected required property", rule.Required},
	{"required ", rule.Required},
	{"request body is required", rule.Required},
	{"expected string to be a DNS-1123 label", rule.DNSLabel},
	{"expected string to be a DNS-1123 subdomain", rule.DNSSubdomain},
	{"expected string to be RFC 4122 uuid", "uuid"},
	{"expected string to be RFC 3339", "date-time"},
	{oneOf, rule.OneOf},
	{"expected length >=", "min-length"},
	{"expected length <=", rule.MaxLength},
	{"expected number >=", "minimum"},
	{"expected number <=", "maximum"},
	{"expected array length <=", rule.MaxItems},
	{"expected object with at most", rule.MaxItems},
	{"expected ", "type"},
	{"invalid character", "syntax"},
	{"invalid ", "type"},
}

func ruleOf(message string) string {
	for _, r := range humaRules {
		if strings.HasPrefix(message, r.prefix) {
			return r.rule
		}
	}
	return "syntax"
}

// withProblems documents the problems that every operation can answer with. Each is described once.
func withProblems(
	responses map[string]*huma.Response, components *huma.Components, op *huma.Operation, conditional bool,
) map[string]*huma.Response {
	if responses == nil {
		responses = map[string]*huma.Response{}
	}
	codes := []int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
		http.StatusNotAcceptable, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}
	if op.Method == http.MethodGet {
		responses["304"] = &huma.Response{Description: "Not Modified: If-None-Match has the ETag of the answer"}
	} else {
		codes = append(codes, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity)
	}
	if conditional {
		codes = append(codes, http.StatusPreconditionFailed, http.StatusPreconditionRequired)
	}
	for _, code := range codes {
		name := strings.ReplaceAll(http.StatusText(code), " ", "")
		if components.Responses == nil {
			components.Responses = map[string]*huma.Response{}
		}
		if components.Responses[name] == nil {
			components.Responses[name] = &huma.Response{
				Description: http.StatusText(code),
				Content: map[string]*huma.MediaType{
					httpserver.ProblemType: {Schema: components.Schemas.Schema(typeOf[Problem](), true, "Problem")},
				},
				Headers: document.HeadersOf(code),
			}
		}
		responses[strconv.Itoa(code)] = &huma.Response{Ref: "#/components/responses/" + name}
	}
	return responses
}
