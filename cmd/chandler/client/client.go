// Package client is the command line's side of libs/client, which sends its requests: the types of the gateway's own
// model, writes that wait until lists show them, and dry runs of whatever is asked (ADR 0066).
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/libs/events"
)

const (
	// attempts is how often a request is sent at most: a person waits for it.
	attempts = 3
	// longestWait is the longest wait between two of them.
	longestWait = 10 * time.Second
	// headerPosition carries the position of a write.
	headerPosition = "Chandler-Position"
	// scopeElements are clusters, <name>, namespaces, <name> before the kind of a scoped thing.
	scopeElements = 4
	// maxPages bounds how many pages of a list are followed, against a server that never ends one.
	maxPages = 10_000
)

// Client asks one gateway. It is safe for concurrent use.
type Client struct {
	api      *client.Client
	hasToken bool
	deferred *deferredWaits // nil: every write waits until lists show it
	expected string         // entity tag that every replacement wants; "" is that of its own read
	dryRun   bool
	// watches keep lists up to date while the context watching lasts; nil: every list is asked for.
	watches  *Watches
	watching context.Context
}

// Expect returns a client whose replacements are refused (412) unless the object still has this entity tag.
func (c *Client) Expect(tag string) *Client {
	e := *c
	e.expected = tag
	return &e
}

// DryRun returns a client whose writes are checked by the server and not carried out. Where the server answers such a
// write with a preview, NewPreview is what asks for one.
func (c *Client) DryRun() *Client {
	l := *c
	l.dryRun = true
	return &l
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
func New(base, token string) (*Client, error) { return NewWith(base, token, Certificates{}) }

// Certificates are files of certificates.
type Certificates = client.Certificates

// NewWith is New for a gateway that is trusted by, or let in with, certificates of one's own.
func NewWith(base, token string, certificates Certificates) (*Client, error) {
	api, err := client.New(client.Config{
		URL: base, Token: token, Certificates: certificates,
		Retry: client.Retry{Attempts: attempts, MaxWait: longestWait, RefusedStands: true},
	})
	if err != nil {
		return nil, err
	}
	return &Client{api: api, hasToken: token != "" || certificates.Client != ""}, nil
}

// Problem is an answer of the gateway that is not a success (RFC 9457).
type Problem = client.Problem //nolint:errname // the name that RFC 9457 gives it

// ProblemItem is one place in the input that breaks a rule.
type ProblemItem = client.ProblemItem

// UnreachableError is a request that got no answer.
type UnreachableError = client.UnreachableError

// IsStatus reports whether err is an answer with this HTTP status.
func IsStatus(err error, status int) bool { return client.IsStatus(err, status) }

// shown prepares an error for a terminal: a problem may quote what others wrote, and one about the token says where it
// comes from.
func (c *Client) shown(err error) error {
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		return err
	}
	for _, text := range []*string{&p.Title, &p.Detail, &p.Request} {
		*text = plain.Cell(*text)
	}
	for i := range p.Errors {
		item := &p.Errors[i]
		item.Location, item.Message = plain.Cell(item.Location), plain.Cell(item.Message)
		item.Rule = plain.Cell(item.Rule)
	}
	if p.Status == http.StatusUnauthorized {
		what := p.Detail
		if what == "" {
			what = "the token is not valid"
		}
		if !c.hasToken {
			what = "no token was given"
		}
		p.Detail = what + ": it comes from --token, from CHANDLER_TOKEN or from the settings"
	}
	return err
}

// do sends one request; out may be nil.
func (c *Client) do(ctx context.Context, r client.Request, out any, opts ...client.Option) error {
	if c.dryRun && r.Method != http.MethodGet {
		r.DryRun()
	}
	if c.deferred != nil { // many objects, whose names make each of them once
		opts = append(slices.Clone(opts), client.Key(""))
	}
	var head http.Header
	if err := c.api.Do(ctx, r, out, append(slices.Clone(opts), client.AnswerHeader(&head))...); err != nil {
		return c.shown(err)
	}
	if r.Method != http.MethodGet {
		c.waitForWrite(ctx, r.Path(), head.Get(headerPosition))
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
	_ = c.do(ctx, client.NewRequest(http.MethodGet, lists, query, nil), nil, client.Once())
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
	case parts[0] == "fleet" && len(parts) > 1: // subscriptions and rollouts
		return "/fleet/" + parts[1]
	default:
		return "/" + parts[0]
	}
}

// with gives a request a body of the gateway's own type.
func with(r client.Request, body any) client.Request {
	r.Body = body
	return r
}

// where gives a request a query; what is empty is left out.
func where(r client.Request, query url.Values) client.Request {
	r.Query = url.Values{}
	for name, values := range query {
		if len(values) > 0 && values[0] != "" {
			r.Query[name] = values
		}
	}
	return r
}

// get sends one request and returns what was answered.
func get[T any](ctx context.Context, c *Client, r client.Request, opts ...client.Option) (T, error) {
	var out T
	err := c.do(ctx, r, &out, opts...)
	return out, err
}

// replace replaces an object whose entity tag is match. Without one it makes an object that is not there.
func replace[T any](ctx context.Context, c *Client, r client.Request, match string) (T, error) {
	only := client.IfNoneMatch("*")
	if c.expected != "" {
		match = c.expected
	}
	if match != "" {
		only = client.IfMatch(match)
	}
	return get[T](ctx, c, r, only)
}

// page is one part of a list.
type page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
}

// all follows the pages of a list to its end, or to the limit that the request has.
func all[T any](ctx context.Context, c *Client, r client.Request) ([]T, error) {
	found := []T{}
	if c.watches != nil {
		items, ok, err := c.watches.items(ctx, c, r)
		if err != nil || ok {
			return decoded(found, items, err)
		}
	}
	r.Query = maps.Clone(r.Query)
	for range maxPages {
		p, err := get[page[T]](ctx, c, r)
		if err != nil {
			return nil, err
		}
		found = append(found, p.Items...)
		if p.Next == "" || r.Query.Has("limit") { // as many as were asked for
			return found, nil
		}
		if r.Query == nil {
			r.Query = url.Values{}
		}
		r.Query.Set("cursor", p.Next)
	}
	return nil, fmt.Errorf("GET %s: the list did not end after %d pages", r.Path(), maxPages)
}

// decoded adds objects that a watch has brought to a list.
func decoded[T any](list []T, items []json.RawMessage, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	for _, raw := range items {
		var item T
		if err := json.Unmarshal(raw, &item); err != nil {
			return nil, fmt.Errorf("an object of a watch is not what this version expects: %w", err)
		}
		list = append(list, item)
	}
	return list, nil
}

func cloned(q url.Values) url.Values {
	if q == nil {
		return url.Values{}
	}
	return maps.Clone(q)
}
