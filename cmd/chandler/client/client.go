// Package client is the client of the gateway's REST API (ADR 0023): one method for each route that the command line
// uses, problem documents as errors, and a stream of events that survives a broken connection.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/libs/events"
)

const (
	apiPath = "/api/v1"
	// maxAnswer bounds a response; the largest is a plan document of a few megabytes.
	maxAnswer = 64 << 20
	// requestTimeout bounds one request that is not a stream.
	requestTimeout = 60 * time.Second
	// headerPosition carries the position of a write.
	headerPosition = "Chandler-Position"
	// scopeElements are clusters, <name>, namespaces, <name> before the kind of a scoped thing.
	scopeElements = 4
	// maxPages bounds how many pages of a list are followed, against a server that never ends one.
	maxPages = 10_000
)

// Client asks one gateway. It is safe for concurrent use.
type Client struct {
	base     string
	token    string
	http     *http.Client
	deferred *deferredWaits // nil: every write waits until lists show it
}

// deferredWaits are writes of which it is not known whether lists show them.
type deferredWaits struct {
	mu    sync.Mutex
	last  map[string]events.Position // by list
	other [][2]string                // list and stream@version of writes without a position yet
}

// DeferWaits returns a client whose writes do not wait until lists show them: WaitAll waits for all of them at once.
func (c *Client) DeferWaits() *Client {
	l := *c
	l.deferred = &deferredWaits{last: map[string]events.Position{}}
	return &l
}

// WaitAll waits until lists show all writes of a client that defers that.
func (c *Client) WaitAll(ctx context.Context) {
	if c.deferred == nil {
		return
	}
	c.deferred.mu.Lock()
	waits := c.deferred.other
	for lists, position := range c.deferred.last {
		waits = append(waits, [2]string{lists, position.String()})
	}
	c.deferred.last, c.deferred.other = map[string]events.Position{}, nil
	c.deferred.mu.Unlock()
	for _, w := range waits {
		c.wait(ctx, w[0], w[1])
	}
}

func (l *deferredWaits) add(lists, position string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := events.ParsePosition(position)
	if err != nil { // stream@version
		l.other = append(l.other, [2]string{lists, position})
	} else if l.last[lists].Less(p) {
		l.last[lists] = p
	}
}

// New returns a client of the gateway at base, such as https://chandler.example, with a bearer token.
func New(base, token string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the URL of Chandler is %q: want http://host:port or https://host", base)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the token contains a space, a line end or another invalid character")
	}
	return &Client{base: strings.TrimSuffix(base, "/"), token: token, http: &http.Client{}}, nil
}

// Problem is an answer of the gateway that is not a success (RFC 9457).
type Problem struct { //nolint:errname // RFC 9457 calls it a problem
	Title   string        `json:"title"`
	Status  int           `json:"status"`
	Detail  string        `json:"detail"`
	Kind    string        `json:"kind"`
	Request string        `json:"request"`
	Errors  []ProblemItem `json:"errors"`
}

// ProblemItem is one place in the input that breaks a rule.
type ProblemItem struct {
	Location string `json:"location"`
	Message  string `json:"message"`
	Rule     string `json:"rule"`
}

// Error is one sentence on one line: what is wrong, where, and the rule that says so. It may quote what others wrote.
func (p *Problem) Error() string { return plain.Cell(p.sentence()) }

func (p *Problem) sentence() string {
	var parts []string
	for _, e := range p.Errors {
		parts = append(parts, e.String())
	}
	detail := p.Detail
	if detail == "" {
		detail = p.Title
	}
	switch {
	case len(parts) == 1 && strings.Contains(detail, p.Errors[0].Message):
		e := p.Errors[0]
		if strings.Contains(detail, e.Location) {
			e.Location = ""
		}
		return detail + e.place()
	case len(parts) > 0:
		return detail + ": " + strings.Join(parts, "; ")
	case p.Status >= http.StatusInternalServerError && p.Request != "":
		return detail + " (request " + p.Request + ")"
	default:
		return detail
	}
}

func (e ProblemItem) String() string { return e.Message + e.place() }

func (e ProblemItem) place() string {
	var parts []string
	if e.Location != "" {
		parts = append(parts, "at "+e.Location)
	}
	if e.Rule != "" {
		parts = append(parts, "rule "+e.Rule)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// IsStatus reports whether err is an answer with this HTTP status.
func IsStatus(err error, status int) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.Status == status
}

// call sends one request; in and out may be nil.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var body io.Reader = http.NoBody
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	res, err := c.send(ctx, method, path, query, body, http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json"},
	})
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	err = errors.Join(err, res.Body.Close())
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: the answer broke off: %w", method, path, err)
	case len(raw) > maxAnswer:
		return fmt.Errorf("%s %s: the answer is larger than %d bytes", method, path, maxAnswer)
	case res.StatusCode >= http.StatusBadRequest:
		return problem(res, raw)
	case method != http.MethodGet:
		c.waitForWrite(ctx, path, res.Header.Get(headerPosition))
	}
	if out == nil || len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("%s %s: the answer is not what this version expects: %w", method, path, err)
	}
	return nil
}

// waitForWrite waits until lists show a write, so that the next command of a script sees what this one
// did. The write has succeeded; that lists lag behind is no error of it.
func (c *Client) waitForWrite(ctx context.Context, path, position string) {
	lists := listOf(path)
	switch {
	case position == "" || lists == "":
	case c.deferred != nil:
		c.deferred.add(lists, position)
	default:
		c.wait(ctx, lists, position)
	}
}

func (c *Client) wait(ctx context.Context, lists, position string) {
	query := url.Values{"limit": {"1"}, "minPosition": {position}}
	// As above: whatever this says, the write has succeeded.
	_ = c.call(ctx, http.MethodGet, lists, query, nil, nil)
}

// listOf is the list that shows what a path names, "" where there is none.
func listOf(path string) string {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch {
	case parts[0] == "clusters" && len(parts) > scopeElements:
		return "/" + parts[scopeElements]
	case slices.Contains([]string{"effects", "operatorhub", "cataloghealth", "previews", "shadow"}, parts[0]),
		parts[len(parts)-1] == "hook":
		return ""
	default:
		return "/" + parts[0]
	}
}

// send returns any answer that comes.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, body io.Reader, header http.Header) (
	*http.Response, error,
) {
	target := c.base + apiPath + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	req.Header = header
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
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

func problem(res *http.Response, raw []byte) error {
	p := &Problem{Status: res.StatusCode, Title: http.StatusText(res.StatusCode)}
	if err := json.Unmarshal(raw, p); err != nil || p.Title == "" {
		p.Title = fmt.Sprintf("%s answered %s", res.Request.URL.Host, res.Status)
	}
	p.Status = res.StatusCode
	if p.Status == http.StatusUnauthorized {
		what := p.Detail
		if what == "" {
			what = "the token is not valid"
		}
		if res.Request.Header.Get("Authorization") == "" {
			what = "no token was given"
		}
		p.Detail = what + ": it comes from --token, from CHANDLER_TOKEN or from the settings"
	}
	return p
}

// ask sends one request and returns what was answered.
func ask[T any](ctx context.Context, c *Client, method, path string, query url.Values, in any) (T, error) {
	var out T
	err := c.call(ctx, method, path, query, in, &out)
	return out, err
}

// page is one part of a list.
type page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
}

// list follows the pages of a list to its end.
func list[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	all := []T{}
	q := url.Values{}
	for k, v := range query {
		if len(v) > 0 && v[0] != "" {
			q[k] = v
		}
	}
	for range maxPages {
		var p page[T]
		if err := c.call(ctx, http.MethodGet, path, q, nil, &p); err != nil {
			return nil, err
		}
		all = append(all, p.Items...)
		if p.Next == "" {
			return all, nil
		}
		q.Set("cursor", p.Next)
	}
	return nil, fmt.Errorf("GET %s: the list did not end after %d pages", path, maxPages)
}

func join(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(p))
	}
	return b.String()
}
