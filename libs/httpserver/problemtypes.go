package httpserver

import (
	"net/http"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// problemPages is where the pages of problem types are; docs/problems has one for each.
const problemPages = "https://github.com/chandler-fleet/chandler/blob/main/docs/problems/"

// Names of problem types that answers outside this package have.
const (
	TypeInFlight = "request-in-flight"
	TypeReused   = "key-reused"
)

// TypeOfProblem is one type of problem documents, with what its page says.
type TypeOfProblem struct {
	Name   string // of the page, and the end of the type's URI
	Status int
	Title  string
	Means  string
	Do     string
}

// URI is what documents of this type have as type.
func (t TypeOfProblem) URI() string { return problemPages + t.Name + ".md" }

// ProblemTypes are all types, by status.
func ProblemTypes() []TypeOfProblem { //nolint:funlen // one table
	return []TypeOfProblem{
		{
			"invalid-request", http.StatusBadRequest, "Bad Request",
			"Something in the request breaks a rule of its form: a field, a parameter, a header or the JSON itself.",
			"`errors` names each place and its rule; `help` of an entry explains the rule. Correct the request: sent " +
				"again unchanged it fails again.",
		},
		{
			"unauthenticated", http.StatusUnauthorized, "Unauthorized",
			"The request has no bearer token, several of them, or one that is not known, was revoked or has expired.",
			"Send `Authorization: Bearer TOKEN` with a token that is good.",
		},
		{
			"forbidden", http.StatusForbidden, "Forbidden",
			"The token is good, and what it allows does not include this operation.",
			"Ask with a token that allows it, or have an administrator extend what yours allows.",
		},
		{
			"not-found", http.StatusNotFound, "Not Found",
			"Nothing has this name, or nothing is offered at this path.",
			"Check the name. What was made a moment ago is found with `minPosition` and the position of its write.",
		},
		{
			"method-not-allowed", http.StatusMethodNotAllowed, "Method Not Allowed",
			"The path is there, and this method is not offered at it.",
			"Use one of the methods in the header `Allow`.",
		},
		{
			"not-acceptable", http.StatusNotAcceptable, "Not Acceptable",
			"The header `Accept` admits none of the media types in which this operation answers.",
			"`detail` names the media types that there are. Without `Accept` every one is admitted.",
		},
		{
			"already-exists", http.StatusConflict, "Conflict",
			"What was to be made is there.",
			"Take another name, or change what is there.",
		},
		{
			"conflict", http.StatusConflict, "Conflict",
			"The request was decided on a state that has moved on, or contradicts another object.",
			"Read again what `detail` names, and decide again.",
		},
		{
			TypeInFlight, http.StatusConflict, "Conflict",
			"A request with the same `Idempotency-Key` is being carried out.",
			"Wait as `Retry-After` says, and send the same request with the same key: it gets the answer of the first.",
		},
		{
			"precondition-failed", http.StatusPreconditionFailed, "Precondition Failed",
			"`If-Match` names another version than the one that is there: somebody changed it meanwhile.",
			"Read it again, apply your change to what is there now, and send that with its `ETag`.",
		},
		{
			"too-large", http.StatusRequestEntityTooLarge, "Request Entity Too Large",
			"The body is beyond the limit of this operation.",
			"`detail` has the limit. Send less.",
		},
		{
			"unsupported-media-type", http.StatusUnsupportedMediaType, "Unsupported Media Type",
			"The body has another content type, character set or encoding than this operation reads.",
			"Send what `errors` names, uncompressed and in UTF-8.",
		},
		{
			"unprocessable", http.StatusUnprocessableEntity, "Unprocessable Entity",
			"The request is well formed and contradicts what is known, such as a channel that the package does not have.",
			"`errors` names each place and its rule.",
		},
		{
			TypeReused, http.StatusUnprocessableEntity, "Unprocessable Entity",
			"The `Idempotency-Key` was used for another request: of another body, path or query.",
			"Make a new key for each intent, and keep it for repetitions of the same request alone.",
		},
		{
			"precondition-required", http.StatusPreconditionRequired, "Precondition Required",
			"A replacement wants `If-Match`, so that nobody's change is lost.",
			"Read the object, and send its `ETag` as `If-Match`; `If-Match: *` replaces whatever is there.",
		},
		{
			"too-many-requests", http.StatusTooManyRequests, "Too Many Requests",
			"More was asked for than one person, program or address may. Requests are counted by class: reads, lists, writes " +
				"and what makes tokens; `RateLimit-Policy` names the one that is used up.",
			"Wait as `Retry-After` says.",
		},
		{
			"internal", http.StatusInternalServerError, "Internal Server Error",
			"A fault of Chandler. The answer says nothing of it, since it may speak of what is not yours; the log " +
				"holds it under the id in `instance`.",
			"Report it with `instance`.",
		},
		{
			"unavailable", http.StatusServiceUnavailable, "Service Unavailable",
			"A part that the request needs, such as the database, is away for now.",
			"Try again as `Retry-After` says. A POST with an `Idempotency-Key` is not carried out twice.",
		},
		{
			"timeout", http.StatusGatewayTimeout, "Gateway Timeout",
			"What was waited for did not come in time, such as a position in a read model.",
			"Try again as `Retry-After` says.",
		},
	}
}

// problemByStatus and problemByName are the types. Where a status has several, that of the general case is taken.
var problemByStatus, problemByName = problemTables()

func problemTables() (map[int]TypeOfProblem, map[string]TypeOfProblem) {
	byStatus, byName := map[int]TypeOfProblem{}, map[string]TypeOfProblem{}
	for _, t := range ProblemTypes() {
		byName[t.Name] = t
		if _, taken := byStatus[t.Status]; !taken {
			byStatus[t.Status] = t
		}
	}
	byStatus[http.StatusConflict] = byName["conflict"]
	return byStatus, byName
}

// typed sets status, title and type. A status that has no type of its own is that of its class.
func (p *ProblemDetails) typed(status int) {
	t, ok := problemByStatus[status]
	switch {
	case errs.Kind(p.Kind) == errs.AlreadyExists && status == http.StatusConflict:
		t = problemByName["already-exists"]
	case !ok && status >= http.StatusInternalServerError:
		t = problemByStatus[http.StatusInternalServerError]
	case !ok:
		t = problemByStatus[http.StatusBadRequest]
	}
	p.Status, p.Type, p.Title = status, t.URI(), http.StatusText(status)
}

// SetStatus gives a problem another status, with the title and the type of it.
func (p *ProblemDetails) SetStatus(status int) { p.typed(status) }

// SetType gives a problem the status, title and type of a named type.
func (p *ProblemDetails) SetType(name string) {
	t := problemByName[name]
	p.Status, p.Type, p.Title = t.Status, t.URI(), t.Title
}

// Occurred names this occurrence by the id of the request, as the server's log does.
func (p *ProblemDetails) Occurred(request string) {
	p.Request = request
	if request != "" {
		p.Instance = "urn:chandler:request:" + request
	}
}
