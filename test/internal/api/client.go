// Package api speaks to the REST API as a portal does: it reads what it has written.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
)

// maxAnswer bounds an answer of the API; the largest are plan documents of a few hundred kilobytes.
const maxAnswer = 64 << 20

// Client is one person at the API.
type Client struct {
	URL   string
	Token string

	written *atomic.Value // position of the last write
}

// New returns a client of the API at this address.
func New(address, token string) Client {
	return Client{URL: address, Token: token, written: &atomic.Value{}}
}

// RefusedError is an answer that is not a success: a problem document of RFC 9457.
type RefusedError struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Location string `json:"location"`
		Message  string `json:"message"`
		Rule     string `json:"rule"`
	} `json:"errors"`
	ContentType string `json:"-"`
}

func (r *RefusedError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d %s: %s", r.Status, r.Title, r.Detail)
	for _, e := range r.Errors {
		fmt.Fprintf(&text, "; %s: %s (%s)", e.Location, e.Message, e.Rule)
	}
	return text.String()
}

// Do sends in, if any, as JSON and decodes the answer into out, if any. An answer that is no success is a
// *RefusedError. A replacement replaces whatever is there.
func (c Client) Do(ctx context.Context, method, path string, in, out any) error {
	err := c.send(ctx, method, path, "", in, out)
	if refused, ok := errors.AsType[*RefusedError](err); ok && refused.Status == http.StatusPreconditionRequired {
		return c.send(ctx, method, path, "*", in, out)
	}
	return err
}

func (c Client) send(ctx context.Context, method, path, match string, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+c.reading(method, path), body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if match != "" {
		req.Header.Set("If-Match", match)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read whole below
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if position := resp.Header.Get(positionHeader); position != "" && method != http.MethodGet {
		c.written.Store(position)
	}
	return decode(method+" "+path, resp, answer, out)
}

// Written is the position of the last acknowledged write, "" before the first.
func (c Client) Written() string {
	position, _ := c.written.Load().(string)
	return position
}

// positionHeader carries the position of a write.
const positionHeader = "Chandler-Position"

// reading asks a read to have seen our last write.
func (c Client) reading(method, path string) string {
	position, ok := c.written.Load().(string)
	if !ok || method != http.MethodGet || strings.HasPrefix(path, "/api/v1/events") {
		return path
	}
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	return path + separator + "minPosition=" + url.QueryEscape(position)
}

func decode(what string, resp *http.Response, answer []byte, out any) error {
	if resp.StatusCode >= http.StatusBadRequest {
		refused := &RefusedError{Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type")}
		if err := json.Unmarshal(answer, refused); err != nil {
			return fmt.Errorf("%s: %s: %s", what, resp.Status, answer)
		}
		return fmt.Errorf("%s: %w", what, refused)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s: %w: %s", what, err, answer)
	}
	return nil
}

// Get reads one resource.
func (c Client) Get(ctx context.Context, path string, out any) error {
	return c.Do(ctx, http.MethodGet, path, nil, out)
}

// Post sends one resource.
func (c Client) Post(ctx context.Context, path string, in, out any) error {
	return c.Do(ctx, http.MethodPost, path, in, out)
}
