package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// retryFirst and retryMost bound the pause before a broken stream is opened again.
	retryFirst = 250 * time.Millisecond
	retryMost  = 10 * time.Second
	// maxEventLine bounds one line of a stream; the largest event is a catalog revision of some 100 KB.
	maxEventLine = 16 << 20
)

// Follow calls each for every event after s.After as it comes, and opens the stream again where it
// broke off, until ctx ends, each fails or the gateway refuses. lost, when not nil, is told of every break.
func (c *Client) Follow(ctx context.Context, s EventSelection, each func(model.Event) error, lost func(error)) error {
	pause := retryFirst
	for {
		last := s.After
		err := c.stream(ctx, &s, each)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the caller ended it; what broke off is no error
		}
		if final, ok := errors.AsType[*finalError](err); ok {
			return final.err
		}
		if s.After != last {
			pause = retryFirst
		}
		if lost != nil && err != nil {
			lost(err)
		}
		if !wait(ctx, pause) {
			return nil
		}
		pause = min(2*pause, retryMost)
	}
}

// finalError is one that opening the stream again cannot fix.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }

// stream reads one connection and moves s.After along.
func (c *Client) stream(ctx context.Context, s *EventSelection, each func(model.Event) error) error {
	q := s.query()
	header := http.Header{"Accept": {"text/event-stream"}}
	if s.After != "" {
		header.Set("Last-Event-ID", s.After)
	}
	res, err := c.send(ctx, http.MethodGet, "/events/stream", q, http.NoBody, header)
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		err = errors.Join(err, res.Body.Close())
		if res.StatusCode >= http.StatusInternalServerError {
			return errors.Join(problem(res, raw), err)
		}
		return &finalError{problem(res, raw)}
	}
	err = read(res.Body, s, each)
	return errors.Join(err, res.Body.Close())
}

// read takes events in the format of Server-Sent Events: lines "id:", "data:", and an empty line at each end.
func read(r io.Reader, s *EventSelection, each func(model.Event) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<16), maxEventLine)
	var id, kind string
	var data []string
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			data = append(data, value)
		case "":
			if lines.Text() != "" {
				continue // a comment, which keeps the connection alive
			}
			if err := deliver(id, kind, data, each); err != nil {
				return err
			}
			if id != "" {
				s.After = id
			}
			kind, data = "", nil
		}
	}
	return lines.Err()
}

func deliver(id, kind string, data []string, each func(model.Event) error) error {
	if len(data) == 0 {
		return nil
	}
	if kind == "error" {
		return fmt.Errorf("the gateway ended the stream: %s", strings.Join(data, " "))
	}
	var e model.Event
	if err := json.Unmarshal([]byte(strings.Join(data, "\n")), &e); err != nil {
		return &finalError{fmt.Errorf("event %s of the stream is not what this version expects: %w", id, err)}
	}
	if e.Type == "" {
		return nil
	}
	if err := each(e); err != nil {
		return &finalError{err}
	}
	return nil
}

// wait reports whether the pause passed before ctx ended.
func wait(ctx context.Context, pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
