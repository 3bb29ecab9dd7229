package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// longestPause bounds the pause before a broken stream is opened again.
	longestPause = 10 * time.Second
	// silence is after how long a stream is broken that sends nothing: the gateway sends something every 15 seconds.
	silence = 45 * time.Second
	// maxEventLine bounds one line of a stream; the largest event is a catalog revision of some 100 KB.
	maxEventLine = 16 << 20
)

// Message is what a stream sends at once.
type Message struct {
	Position string // of the log, behind which the stream stands with it
	Type     string
	Data     []byte // an event as JSON; empty where only the position moved
}

// Follow calls each for every event behind params.After as it comes, and opens the stream again where it broke off,
// until ctx ends (nil), each fails or the gateway refuses. lost, when not nil, is told of every break.
func (c *Client) Follow(
	ctx context.Context, params StreamEventsParams, each func(Event) error, lost func(error), opts ...Option,
) error {
	return c.FollowMessages(ctx, params, func(m Message) error {
		if len(m.Data) == 0 {
			return nil
		}
		var e Event
		if err := json.Unmarshal(m.Data, &e); err != nil {
			return fmt.Errorf("event %s of the stream is not what this version expects: %w", m.Position, err)
		}
		return each(e)
	}, lost, opts...)
}

// FollowMessages is Follow for callers with types of their own, or who keep the position between events.
func (c *Client) FollowMessages(
	ctx context.Context, params StreamEventsParams, each func(Message) error, lost func(error), opts ...Option,
) error {
	return c.follow(ctx, func() Request { return NewStreamEventsRequest(&params) }, &params.After, each, lost, opts)
}

// follow reads streams one after the other, each from where the one before it ended.
func (c *Client) follow(
	ctx context.Context, request func() Request, after *string, each func(Message) error, lost func(error),
	opts []Option,
) error {
	for attempt := 1; ; attempt++ {
		last := *after
		err := c.stream(ctx, request(), after, each, opts)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the caller ended it; what broke off is no error
		}
		if final, ok := errors.AsType[*finalError](err); ok {
			return final.err
		}
		if p, ok := errors.AsType[*Problem](err); isToken(err) || ok && !passing(int(p.Status)) {
			return err
		}
		if *after != last {
			attempt = 1
		}
		if lost != nil && err != nil {
			lost(err)
		}
		if !pause(ctx, backoff(attempt, longestPause, jitter())) {
			return nil
		}
	}
}

// passing are answers after which opening the stream again may succeed.
func passing(status int) bool {
	return status >= http.StatusInternalServerError ||
		slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooManyRequests}, status)
}

// finalError is one that opening the stream again cannot fix.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }

// stream reads one connection and moves after along.
func (c *Client) stream(
	ctx context.Context, r Request, after *string, each func(Message) error, opts []Option,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	r.accept = "text/event-stream"
	if *after != "" {
		opts = append(slices.Clone(opts), Header("Last-Event-ID", *after))
	}
	body, err := c.Open(ctx, r, opts...)
	if err != nil {
		return err
	}
	err = readMessages(body, func() { quiet.Reset(silence) }, func(m Message) error {
		if m.Type == "error" {
			return fmt.Errorf("the gateway ended the stream: %s", m.Data)
		}
		if err := each(m); err != nil {
			return &finalError{err}
		}
		if m.Position != "" {
			*after = m.Position // the caller has taken it: it is behind us now
		}
		return nil
	})
	return errors.Join(err, body.Close())
}

// readMessages takes the format of Server-Sent Events: lines "id:", "event:", "data:", and an empty line at each end.
func readMessages(r io.Reader, heard func(), each func(Message) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<16), maxEventLine)
	var position, kind string
	var data []string
	for lines.Scan() {
		heard()
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			position = value
		case "event":
			kind = value
		case "data":
			data = append(data, value)
		case "":
			if lines.Text() != "" {
				continue // a comment, which keeps the connection alive
			}
			m := Message{Position: position, Type: kind, Data: []byte(strings.Join(data, "\n"))}
			if err := each(m); err != nil {
				return err
			}
			kind, data = "", nil
		}
	}
	return lines.Err()
}
