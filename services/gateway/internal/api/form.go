package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/spelling"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/seconds"
)

const (
	// maxQueryParts bounds the parameters of one request: the largest search has some hundred.
	maxQueryParts = 1000
	// maxQuoted bounds what a message repeats of a request.
	maxQuoted = 64
	// maxIdleBody bounds what is read of a body that an operation does not take: an empty object and its spaces.
	maxIdleBody = 64
)

// mayBeEmpty are the parameters whose empty value has a meaning: the beginning, or no text to search for.
var mayBeEmpty = []string{"cursor", "minPosition", "after", "search"}

// conditional are headers by which a client wants a request to be carried out once, or only in a certain state. An
// operation that does not declare them would carry it out all the same.
var conditional = []string{"If-Match", "If-None-Match", "If-Unmodified-Since", "Idempotency-Key"}

// declared is what the OpenAPI document says that an operation takes.
type declared struct {
	query   map[string]*huma.Param
	names   []string // of query, sorted
	headers []string
	body    []string // content types; nil: no body
	maxBody int64    // bytes
	asks    bool     // and intends nothing, or answers the same again
	tries   bool     // a dry run carries it out and takes it back
	answers []string // content types of an answer that is no problem
	class   limit.Class
	lasts   bool         // a write that can be waited for
	fields  reflect.Type // of what fields are chosen; nil where none are
}

type declaredKey struct{}

// declare notes what every operation of the document takes. It runs when all of them are registered.
func (a *API) declare() {
	a.declared = map[string]declared{}
	for path, item := range a.huma.OpenAPI().Paths {
		for method, op := range map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPut: item.Put, http.MethodPost: item.Post,
			http.MethodDelete: item.Delete, http.MethodOptions: item.Options, http.MethodHead: item.Head,
			http.MethodPatch: item.Patch, http.MethodTrace: item.Trace,
		} {
			if op != nil {
				d := declaredBy(op)
				d.asks = slices.Contains(questions, path)
				a.declared[method+" "+prefix+path] = d
			}
		}
	}
}

func declaredBy(op *huma.Operation) declared {
	d := declared{query: map[string]*huma.Param{}, maxBody: op.MaxBodyBytes}
	d.tries, _ = op.Metadata[triedOperation].(bool)
	d.class, _ = op.Extensions[classExtension].(limit.Class)
	d.lasts, _ = op.Metadata[lastingOperation].(bool)
	d.fields, _ = op.Metadata[fieldedOperation].(reflect.Type)
	for _, p := range op.Parameters {
		switch p.In {
		case "query":
			p.AllowEmptyValue = slices.Contains(mayBeEmpty, p.Name)
			d.query[p.Name] = p
			d.names = append(d.names, p.Name)
		case "header":
			if p.Name != headerPrefer { // it may be given several times, and what is not known is passed over
				d.headers = append(d.headers, http.CanonicalHeaderKey(p.Name))
			}
		}
	}
	slices.Sort(d.names)
	for status, answer := range op.Responses {
		if strings.HasPrefix(status, "2") {
			d.answers = slices.AppendSeq(d.answers, maps.Keys(answer.Content))
		}
	}
	slices.Sort(d.answers)
	d.answers = slices.Compact(d.answers)
	if op.RequestBody != nil {
		for contentType := range op.RequestBody.Content {
			d.body = append(d.body, contentType)
		}
	}
	return d
}

// operationOf asks the router which operation a request is for. The route is nil where there is none. escaped says that
// what it has of the path is escaped.
func (a *API) operationOf(r *http.Request) (d declared, route *chi.Context, escaped bool) {
	path, escaped := r.URL.RawPath, true
	if path == "" {
		path, escaped = r.URL.Path, false
	}
	route = chi.NewRouteContext()
	pattern := a.router.Find(route, httpserver.RouteMethod(r), path)
	if pattern == "" {
		return d, nil, escaped
	}
	return a.declared[httpserver.RouteMethod(r)+" "+pattern], route, escaped
}

// form holds every request to what the document declares of its operation, before anything of it is read: what cannot
// be decoded, is given twice or is not known would otherwise be dropped, and the rest be carried out. It asks the
// router which operation is meant, so that no route can be forgotten; one that the document does not have takes
// nothing.
func (a *API) form(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, route, escaped := a.operationOf(r)
		if route == nil {
			next.ServeHTTP(w, r) // to the answer that nothing is there
			return
		}
		var v rule.Violations
		pathValues(&v, route.URLParams, escaped)
		values := d.queryValues(&v, r.URL.RawQuery)
		d.checkWatch(&v, values)
		chosen := d.chooses(&v, values)
		d.checkHeaders(&v, r)
		if err := v.Err(); err != nil {
			answerProblem(w, problemOf(r.Context(), err))
			return
		}
		if p := d.checkAccept(r, values); p != nil {
			answerProblem(w, p)
			return
		}
		if p := d.checkBody(w, r); p != nil {
			answerProblem(w, p)
			return
		}
		// What was checked is what is read: the parts behind have readers of their own.
		u := *r.URL
		u.RawQuery = values.Encode()
		r = r.WithContext(context.WithValue(context.WithValue(r.Context(), declaredKey{}, d), fieldsKey{}, chosen))
		r.URL = &u
		next.ServeHTTP(w, r)
	})
}

// answerProblem writes a problem outside huma.
func answerProblem(w http.ResponseWriter, p *Problem) {
	if w.Header().Get("Retry-After") == "" {
		maps.Copy(w.Header(), p.GetHeaders())
	}
	w.Header().Set("Content-Type", httpserver.ProblemType)
	w.WriteHeader(p.Status)
	// The caller may have gone; the access log has what was answered.
	_ = json.NewEncoder(w).Encode(p)
}

// pathValues refuses parts of a path that are no text.
func pathValues(v *rule.Violations, params chi.RouteParams, escaped bool) {
	for i, name := range params.Keys {
		if name == "*" {
			continue
		}
		value := params.Values[i]
		if escaped {
			value, _ = url.PathUnescape(value) // the server has decoded the whole path
		}
		text(v, "path."+name, name, value)
	}
}

// text refuses what no name or value holds, and a database cannot keep.
func text(v *rule.Violations, field, name, value string) bool {
	switch {
	case !utf8.ValidString(value):
		v.Addf(field, rule.Text, "%s is not valid UTF-8", name)
	case strings.ContainsFunc(value, unicode.IsControl):
		v.Addf(field, rule.Text, "%s holds a control character", name)
	default:
		return true
	}
	return false
}

// queryValues reads a query strictly. It splits by itself, since url.ParseQuery goes on behind what it cannot read.
func (d declared) queryValues(v *rule.Violations, raw string) url.Values {
	values := url.Values{}
	parts := strings.Split(raw, "&")
	if len(parts) > maxQueryParts {
		v.Addf("query", rule.MaxItems, "the query has %d parameters, %d are allowed", len(parts), maxQueryParts)
		return values
	}
	for _, part := range parts {
		if part == "" {
			continue // nothing is said between two separators
		}
		rawName, rawValue, given := strings.Cut(part, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil || !utf8.ValidString(name) {
			v.Addf("query", rule.Encoding, "the name of a query parameter cannot be decoded: %s", quoted(rawName))
			continue
		}
		field := "query." + shortened(name)
		p, known := d.query[name]
		if !known {
			v.Addf(field, rule.UnknownParameter, "unknown query parameter%s: %s",
				spelling.DidYouMean(name, d.names), d.takes())
			continue
		}
		value, err := url.QueryUnescape(rawValue)
		switch {
		case err != nil:
			v.Addf(field, rule.Encoding, "%s cannot be decoded, %s: want %% and two hexadecimal digits", name,
				quoted(rawValue))
		case strings.Contains(part, ";"):
			v.Addf(field, rule.Encoding,
				"%s holds ';', which some read as a separator: parameters are joined by &, and a ';' in a value is "+
					"written %%3B", name)
		case !text(v, field, name, value):
		case !given:
			v.Addf(field, rule.HasValue, "%s has no value: want %s=VALUE", name, name)
		case !p.AllowEmptyValue && emptyIn(p, value):
			v.Addf(field, rule.HasValue, "%s is empty: leave it out or give it a value", name)
		case len(values[name]) > 0 && !repeatable(p):
			v.Addf(field, rule.Once, "%s is given more than once: %s", name, onceOf(p))
		default:
			values.Add(name, value)
		}
	}
	return values
}

func (d declared) takes() string {
	if len(d.names) == 0 {
		return "this operation takes none"
	}
	return "this operation takes " + strings.Join(d.names, ", ")
}

func isList(p *huma.Param) bool { return p.Schema != nil && p.Schema.Type == huma.TypeArray }

// repeatable says whether a parameter is a list whose values are given one by one.
func repeatable(p *huma.Param) bool { return isList(p) && p.Explode != nil && *p.Explode }

func onceOf(p *huma.Param) string {
	if isList(p) {
		return "its values are joined by commas"
	}
	return "it has one value"
}

// emptyIn says whether a value, or one of a list that is joined by commas, is empty.
func emptyIn(p *huma.Param, value string) bool {
	if isList(p) && !repeatable(p) {
		return slices.Contains(strings.Split(value, ","), "")
	}
	return value == ""
}

// quoted is a part of a request in a message, in characters that every terminal and log can show.
func quoted(raw string) string { return strconv.QuoteToASCII(shortened(raw)) }

func shortened(raw string) string {
	if len(raw) <= maxQuoted {
		return raw
	}
	return strings.ToValidUTF8(raw[:maxQuoted], "") + "…"
}

// checkHeaders refuses headers that would change what a request means, if they were read.
func (d declared) checkHeaders(v *rule.Violations, r *http.Request) {
	for _, name := range conditional {
		if len(r.Header.Values(name)) == 0 || slices.Contains(d.headers, name) {
			continue
		}
		if name == "If-None-Match" && httpserver.RouteMethod(r) == http.MethodGet {
			continue // every read has it
		}
		v.Addf("header."+name, rule.UnsupportedHeader,
			"%s is not offered by this operation, which would act as if it were not there: leave it out", name)
	}
	for _, name := range append([]string{"Content-Type"}, d.headers...) {
		values := r.Header.Values(name)
		if len(values) > 1 {
			v.Addf("header."+name, rule.Once, "%s is given more than once: it has one value", name)
			continue
		}
		if len(values) == 1 {
			text(v, "header."+name, name, values[0])
		}
	}
}

// checkWatch refuses parameters that would mean nothing: of pages in a watch, and of a watch where none is asked for.
func (d declared) checkWatch(v *rule.Violations, q url.Values) {
	if d.query[paramWatch] == nil {
		return
	}
	idle, why := watched, "is for a list that is watched: add watch=true"
	if watches(q) {
		idle, why = unwatched, "is not for a list that is watched: all of it is told, in no order"
	}
	for _, name := range idle {
		if q.Has(name) {
			v.Addf("query."+name, rule.Together, "%s %s", name, why)
		}
	}
}

// answersTo are the content types of the answer to a request.
func (d declared) answersTo(q url.Values) []string {
	if d.query[paramWatch] == nil {
		return d.answers
	}
	streams := watches(q)
	return slices.DeleteFunc(slices.Clone(d.answers), func(one string) bool { return (one == mediaStream) != streams })
}

// checkAccept refuses to answer in a form that the client does not read.
func (d declared) checkAccept(r *http.Request, q url.Values) *Problem {
	accept, answers := strings.Join(r.Header.Values("Accept"), ","), d.answersTo(q)
	if accept == "" || len(answers) == 0 || slices.ContainsFunc(answers, func(answer string) bool {
		return admits(accept, answer)
	}) {
		return nil
	}
	p := problemOf(r.Context(), errs.New(errs.Invalid, "Accept admits none of the media types of this operation: %s",
		strings.Join(answers, ", ")).At("header.Accept", rule.ContentType))
	p.SetStatus(http.StatusNotAcceptable)
	return p
}

// admits says whether the header Accept admits a media type: the most particular range that it falls under decides.
func admits(accept, mediaType string) bool {
	kind, _, _ := strings.Cut(mediaType, "/")
	best, admitted := 0, false
	for part := range strings.SplitSeq(accept, ",") {
		given, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue // as if it were not there: who says nothing that can be read is refused
		}
		rank := 0
		switch given {
		case mediaType:
			rank = 3
		case kind + "/*":
			rank = 2
		case "*/*":
			rank = 1
		}
		if rank <= best {
			continue
		}
		quality, err := strconv.ParseFloat(cmp.Or(params["q"], "1"), 64)
		best, admitted = rank, err == nil && quality > 0
	}
	return admitted
}

// checkBody refuses a body that nobody would read, and one of another kind than is read.
func (d declared) checkBody(w http.ResponseWriter, r *http.Request) *Problem {
	if d.body != nil {
		return d.checkContentType(r)
	}
	if r.ContentLength == 0 {
		return nil
	}
	// A slow sender is not waited for; not every writer has a deadline, and then the server's holds.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(io.LimitReader(r.Body, maxIdleBody))
	// Programs send an empty object where there is nothing to say: nothing of it can be missed.
	if given := strings.TrimSpace(string(body)); err != nil || given != "" && given != "{}" {
		w.Header().Set("Connection", "close") // or the server would wait for the rest of the body before it answers
		return problemOf(r.Context(), errs.New(errs.Invalid,
			"this operation takes no body, and would not read it: parameters go into the query").At("body",
			rule.NoBody))
	}
	r.Body = http.NoBody
	return nil
}

// checkContentType wants one of the content types of the operation, and for a merge patch takes JSON without more, too.
func (d declared) checkContentType(r *http.Request) *Problem {
	if slices.Contains(d.body, "*/*") {
		return nil
	}
	if packed := r.Header.Get("Content-Encoding"); packed != "" && packed != "identity" {
		return unsupported(r, errs.New(errs.Invalid, "the body is compressed (%s): send it uncompressed",
			quoted(packed)).At("header.Content-Encoding", rule.ContentType))
	}
	given := r.Header.Get("Content-Type")
	if given == "" {
		return nil
	}
	kind, params, err := mime.ParseMediaType(given)
	charset := params["charset"]
	if err == nil && (slices.Contains(d.body, kind) || kind == "application/json") &&
		(charset == "" || strings.EqualFold(charset, "utf-8")) {
		return nil
	}
	slices.Sort(d.body)
	return unsupported(r, errs.New(errs.Invalid, "the content type is %s: want %s, in UTF-8", quoted(given),
		strings.Join(d.body, " or ")).At("header.Content-Type", rule.ContentType))
}

// unsupported is an answer about the form of a body.
func unsupported(r *http.Request, e *errs.Error) *Problem {
	p := problemOf(r.Context(), e)
	p.SetStatus(http.StatusUnsupportedMediaType)
	return p
}

// strictCasing makes huma compare the names of fields as JSON does, to the letter. By its default "NAME" passes as
// name without its value being checked, and is then decoded over it.
var strictCasing = sync.OnceFunc(func() { huma.ValidateStrictCasing = true }) // huma has no other switch

// strictJSON is JSON in which nothing is dropped: no field stands twice, nothing follows the document, all is text. The
// times of answers are in whole seconds.
var strictJSON = huma.Format{
	Marshal: func(w io.Writer, v any) error { return huma.DefaultJSONFormat.Marshal(w, seconds.Of(v)) },
	Unmarshal: func(data []byte, into any) error {
		if _, first := into.(*any); first { // huma reads a body twice: for its check, then into the type
			if err := checkJSON(data); err != nil {
				return err
			}
		}
		return json.Unmarshal(data, into)
	},
}

// place is where a reader of JSON stands: in an object with its keys so far, or in a list.
type place struct {
	keys  map[string]bool // nil in a list
	key   string          // that was read last
	open  bool            // the key's value comes next
	index int             // of the element of a list
}

// jsonReader checks a document token by token.
type jsonReader struct {
	*json.Decoder

	places []place
}

// checkJSON refuses what encoding/json reads without a word: keys that stand twice, of which it takes the last, bytes
// that are no UTF-8, and U+0000, which a database does not keep. What is no JSON at all is left to its reader.
func checkJSON(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("body: the body is not valid UTF-8")
	}
	r := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(data))}
	r.UseNumber()
	for {
		token, err := r.Token()
		if err != nil {
			return nil //nolint:nilerr // the end, or what json.Unmarshal reports better
		}
		if err := r.take(token); err != nil {
			return err
		}
	}
}

func (r *jsonReader) take(token json.Token) error {
	top := len(r.places) - 1
	if s, ok := token.(string); ok && strings.ContainsRune(s, 0) {
		return fmt.Errorf("%s: the text holds U+0000, which is not taken", r.where())
	}
	if key, ok := token.(string); ok && top >= 0 && r.places[top].keys != nil && !r.places[top].open {
		p := &r.places[top]
		p.key, p.open = key, true
		if p.keys[key] {
			return fmt.Errorf("%s: the field stands twice", r.where())
		}
		p.keys[key] = true
		return nil
	}
	switch token {
	case json.Delim('{'):
		r.places = append(r.places, place{keys: map[string]bool{}})
		return nil
	case json.Delim('['):
		r.places = append(r.places, place{})
		return nil
	case json.Delim('}'), json.Delim(']'):
		r.places = r.places[:top]
		top--
	}
	if top >= 0 { // a value ended
		r.places[top].open = false
		r.places[top].index++
	}
	return nil
}

// where writes the place as huma does: body.targetNamespaces[0].
func (r *jsonReader) where() string {
	var b strings.Builder
	b.WriteString("body")
	for _, p := range r.places {
		switch {
		case p.keys == nil:
			b.WriteString("[" + strconv.Itoa(p.index) + "]")
		case p.open:
			b.WriteString("." + shortened(p.key))
		}
	}
	return b.String()
}
