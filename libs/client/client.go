// Package client is the Go client of Chandler's REST API. Types and a method for each operation are generated of the
// OpenAPI document (api.gen.go). What every caller needs and no generator knows is written by hand: keys, waits, pages,
// events and problems (ADR 0066).
package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// apiPath is where the API lies below the address of Chandler.
	apiPath = "/api/v1"
	// maxAnswer bounds an answer; the largest is a plan document of a few megabytes.
	maxAnswer = 64 << 20
	// answerTimeout bounds how long one answer may take. The gateway works on a request for 30 seconds at most.
	answerTimeout = 60 * time.Second

	jsonType = "application/json"

	headerKey         = "Idempotency-Key"
	headerRetryAfter  = "Retry-After"
	headerContentType = "Content-Type"
)

// Config says which gateway is asked, and how.
type Config struct {
	// URL is the address of Chandler, such as https://chandler.example.
	URL string
	// Token is a bearer token; "" sends none.
	Token string
	// TokenSource gives the token of each request instead, so that tokens that end can be renewed. Its error is
	// returned as it is, and nothing is sent.
	TokenSource func(context.Context) (string, error)
	// Certificates are for gateways with TLS: who may vouch for them, and what a machine shows. With HTTP they are not
	// looked at.
	Certificates Certificates
	// HTTP sends requests; nil is a client of its own.
	HTTP *http.Client
	// Retry says when a request is sent again. The zero value is DefaultRetry.
	Retry Retry
}

// Client asks one gateway. It is safe for concurrent use.
type Client struct {
	base  string
	token func(context.Context) (string, error)
	http  *http.Client
	retry Retry
}

// New returns a client of a gateway.
func New(conf Config) (*Client, error) {
	u, err := url.Parse(conf.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the URL of Chandler is %q: want http://host:port or https://host", conf.URL)
	}
	c := &Client{base: strings.TrimRight(conf.URL, "/"), token: conf.TokenSource, http: conf.HTTP, retry: conf.Retry}
	if c.token == nil {
		if err := checkToken(conf.Token); err != nil {
			return nil, err
		}
		c.token = func(context.Context) (string, error) { return conf.Token, nil }
	}
	if c.http == nil {
		transport, err := conf.Certificates.transport()
		if err != nil {
			return nil, err
		}
		// A redirect is an answer: followed, it would take the tokens of the caller and of a person to another host.
		c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}
	}
	if c.retry == (Retry{}) {
		c.retry = DefaultRetry()
	}
	return c, nil
}

// checkToken refuses what no header may have.
func checkToken(token string) error {
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the token contains a space, a line end or another invalid character")
	}
	return nil
}

// Request is one request of the API, without what belongs to every one.
type Request struct {
	Method string
	Query  url.Values
	Body   any // nil, or what is encoded as JSON

	path  string
	media string // of the body
	// accept is the media type that is wanted; "" is JSON.
	accept string
}

// Path is the path of the request below that of the API.
func (r *Request) Path() string { return r.path }

// NewRequest is a request that this version has no function for, such as one of a newer gateway. The path is below that
// of the API, and escaped.
func NewRequest(method, path string, query url.Values, body any) Request {
	return Request{Method: method, path: path, Query: query, Body: body}
}

// DryRun makes the request ask what would come of it.
func (r *Request) DryRun() {
	if r.Query == nil {
		r.Query = url.Values{}
	}
	r.Query.Set("dryRun", "true")
}

// Option changes one call.
type Option func(*call)

// call is a request on its way.
type call struct {
	header http.Header
	query  url.Values // beside that of the request
	answer *http.Header
	once   bool
}

// IfMatch lets a change happen only while the object has this entity tag; "*" is any.
func IfMatch(tag string) Option { return Header("If-Match", tag) }

// IfNoneMatch reads only what has another entity tag (ErrNotModified otherwise). With "*" a PUT makes what is not
// there, and replaces nothing.
func IfNoneMatch(tag string) Option { return Header("If-None-Match", tag) }

// Key names the intent of a POST, which is carried out once however often it is sent within 24 hours. Without it each
// call has a key of its own. "" sends none: for many objects, whose names make each of them once.
func Key(key string) Option { return Header(headerKey, key) }

// Fields has a read answer with these fields alone, by their names in JSON such as spec.channel: of each item of a
// list, else of the answer. Fields of the result that were not asked for have their zero value.
func Fields(names ...string) Option {
	return func(c *call) { c.query = url.Values{"fields": {strings.Join(names, ",")}} }
}

// OnBehalfOf asks for a person, whose token of an identity provider it is.
func OnBehalfOf(token string) Option { return Header("Chandler-On-Behalf-Of", "Bearer "+token) }

// Once has a request sent once, whatever becomes of it.
func Once() Option { return func(c *call) { c.once = true } }

// Header sets a header of the request.
func Header(name, value string) Option { return func(c *call) { c.header.Set(name, value) } }

// AnswerHeader keeps the header of the answer, such as ETag, Location and Chandler-Position.
func AnswerHeader(into *http.Header) Option { return func(c *call) { c.answer = into } }

// ErrNotModified is the answer to a read whose entity tag is still that of IfNoneMatch.
var ErrNotModified = errors.New("not modified")

// Content is an answer that is no JSON.
type Content struct {
	MediaType string
	Data      []byte
}

// Do sends a request, again where that is harmless, and reads what was answered into out, which may be nil.
func (c *Client) Do(ctx context.Context, r Request, out any, opts ...Option) error {
	header, raw, err := c.exchange(ctx, r, opts)
	if err != nil || out == nil || len(raw) == 0 {
		return err
	}
	switch out := out.(type) {
	case *string:
		*out = string(raw)
	case *Content:
		*out = Content{MediaType: header.Get(headerContentType), Data: raw}
	default:
		if err := json.Unmarshal(raw, out); err != nil {
			return fmt.Errorf("%s %s: the answer is not what this version expects: %w", r.Method, r.path, err)
		}
	}
	return nil
}

// Text makes a request ask for text, which Do reads into a string.
func (r *Request) Text() { r.accept = "text/plain" }

func answer[T any](ctx context.Context, c *Client, r Request, opts []Option) (*T, error) {
	var out T
	if err := c.Do(ctx, r, &out, opts...); err != nil {
		return nil, err
	}
	return &out, nil
}

func (c *Client) text(ctx context.Context, r Request, opts []Option) (string, error) {
	r.Text()
	var out string
	err := c.Do(ctx, r, &out, opts...)
	return out, err
}

func (c *Client) content(ctx context.Context, r Request, opts []Option) (*Content, error) {
	r.accept = "*/*"
	return answer[Content](ctx, c, r, opts)
}

// exchange returns the header and the whole body of an answer of success.
func (c *Client) exchange(ctx context.Context, r Request, opts []Option) (http.Header, []byte, error) {
	body, sent, err := prepare(r, opts)
	if err != nil {
		return nil, nil, err
	}
	if sent.query != nil {
		r.Query = maps.Clone(r.Query)
		if r.Query == nil {
			r.Query = url.Values{}
		}
		maps.Copy(r.Query, sent.query)
	}
	for attempt := 1; ; attempt++ {
		res, raw, err := c.once(ctx, r, body, sent.header) //nolint:bodyclose // once has read and closed it
		if ctx.Err() != nil || isToken(err) {
			return nil, nil, err
		}
		became := outcome{answer: res, err: err}
		wait, again := c.retry.wait(attempt, r.Method, sent.header, became, time.Now(), jitter())
		if again && !sent.once && pause(ctx, wait) {
			continue
		}
		switch {
		case err != nil:
			return nil, nil, err
		case sent.answer != nil:
			*sent.answer = res.Header
		}
		switch {
		case res.StatusCode == http.StatusNotModified:
			return nil, nil, ErrNotModified
		case res.StatusCode >= http.StatusMultipleChoices:
			return nil, nil, problemOf(res, raw)
		}
		return res.Header, raw, nil
	}
}

// prepare encodes the body once, for all attempts, and collects the headers of the caller.
func prepare(r Request, opts []Option) ([]byte, *call, error) {
	sent := &call{header: http.Header{"Accept": {jsonType}}}
	if r.accept != "" {
		sent.header.Set("Accept", r.accept)
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = json.Marshal(r.Body); err != nil {
			return nil, nil, fmt.Errorf("encode the request: %w", err)
		}
		sent.header.Set(headerContentType, jsonType)
		if r.media != "" {
			sent.header.Set(headerContentType, r.media)
		}
	}
	if r.Method == http.MethodPost {
		sent.header.Set(headerKey, rand.Text())
	}
	for _, o := range opts {
		o(sent)
	}
	if sent.header.Get(headerKey) == "" {
		sent.header.Del(headerKey)
	}
	return body, sent, nil
}

// once sends a request once and reads the whole answer: one that breaks off is none.
func (c *Client) once(ctx context.Context, r Request, body []byte, header http.Header) (
	*http.Response, []byte, error,
) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	res, err := c.send(ctx, r, body, header)
	if err != nil {
		return nil, nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	err = errors.Join(err, res.Body.Close())
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%s %s: the answer broke off: %w", r.Method, r.path, err)
	case len(raw) > maxAnswer:
		return nil, nil, fmt.Errorf("%s %s: the answer is larger than %d bytes", r.Method, r.path, maxAnswer)
	}
	return res, raw, nil
}

// send returns any answer that comes.
func (c *Client) send(ctx context.Context, r Request, body []byte, header http.Header) (*http.Response, error) {
	target := c.base + apiPath + r.path
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	var reader io.Reader = http.NoBody
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target, reader)
	if err != nil {
		return nil, err
	}
	req.Header = header.Clone()
	token, err := c.token(ctx)
	if err == nil {
		err = checkToken(token)
	}
	if err != nil {
		return nil, &TokenError{cause: err}
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // it would repeat method and address
		}
		return nil, &UnreachableError{at: c.base, cause: err}
	}
	return res, nil
}

// Open sends a request once and returns the body of its answer, which may never end. The caller closes it.
func (c *Client) Open(ctx context.Context, r Request, opts ...Option) (io.ReadCloser, error) {
	body, sent, err := prepare(r, opts)
	if err != nil {
		return nil, err
	}
	res, err := c.send(ctx, r, body, sent.header)
	if err != nil {
		return nil, err
	}
	if sent.answer != nil {
		*sent.answer = res.Header
	}
	if res.StatusCode < http.StatusBadRequest {
		return res.Body, nil
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	return nil, errors.Join(problemOf(res, raw), err, res.Body.Close())
}

// TokenError is a request that was not sent, since there is no token for it.
type TokenError struct{ cause error }

func (e *TokenError) Error() string { return e.cause.Error() }

// Unwrap returns what the source of tokens said.
func (e *TokenError) Unwrap() error { return e.cause }

func isToken(err error) bool {
	_, ok := errors.AsType[*TokenError](err)
	return ok
}

// UnreachableError is a request that got no answer.
type UnreachableError struct {
	at    string
	cause error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("cannot reach Chandler at %s: %v", e.at, e.cause)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.cause }
