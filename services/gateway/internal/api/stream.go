package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/eventlist"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// streamBatch bounds what is read and written at a time, and so the memory that a slow client costs.
	streamBatch = 100
	// writeTimeout ends the stream of a client that does not take a batch: it resumes where it was.
	writeTimeout = 10 * time.Second
	// heartbeatInterval is less than the idle time-outs of usual proxies, which begin at 30 s.
	heartbeatInterval = 15 * time.Second
	// streamLife bounds what a client that is forgotten costs.
	streamLife = time.Hour
)

// streamInput is a request to follow the log.
type streamInput struct {
	EventQuery
	LastEventID string `header:"Last-Event-ID" maxLength:"64" doc:"Position of the last event that was received"`
}

// follow checks the request while an error can still be an answer, then streams.
func (h eventHandlers) follow(ctx context.Context, who model.Caller, in *streamInput) (*huma.StreamResponse, error) {
	f, from := in.filter(streamBatch), "query.after"
	if in.LastEventID != "" {
		f.After, from = in.LastEventID, "header.Last-Event-ID"
	}
	if err := h.checkStart(ctx, &f, from); err != nil {
		return nil, err
	}
	probe := f
	probe.Limit = 1
	if _, _, _, err := h.Reads.Events.List(ctx, who, probe); err != nil {
		return nil, err
	}
	if !h.own.enter(who) {
		return nil, noPlace("%d streams of this identity are open, which is the limit: end one", h.own.max)
	}
	select {
	case h.streams <- struct{}{}:
	default:
		h.own.leave(who)
		return nil, noPlace("%d streams are open, which is the limit: try again later", cap(h.streams))
	}
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		defer h.own.leave(who)
		defer func() { <-h.streams }()
		r, w := humachi.Unwrap(hctx)
		if err := h.serve(r, w, who, f); err != nil {
			httpserver.NoteError(r.Context(), err)
		}
	}}, nil
}

func (h eventHandlers) serve(r *http.Request, w http.ResponseWriter, who model.Caller, f model.EventFilter) error {
	token, err := bearer(r)
	if err != nil {
		return err
	}
	at, err := events.ParsePosition(f.After)
	if err != nil {
		return err
	}
	follower, err := h.Reads.Tail.Join(who, model.HashToken(token), f)
	if err != nil {
		return err
	}
	defer follower.Leave()
	s := &stream{follower: follower, at: at, w: w, rc: http.NewResponseController(w)}
	return s.run(r.Context())
}

// checkStart makes the stream begin now where nothing else is asked for, and refuses a position that
// the record does not hold; from is where it was given.
func (h eventHandlers) checkStart(ctx context.Context, f *model.EventFilter, from string) error {
	head, err := h.Reads.Events.Head(ctx)
	if err != nil {
		return err
	}
	if f.After == "" {
		f.After = head.String()
		return nil
	}
	after, err := events.ParsePosition(f.After)
	if err != nil {
		return errs.New(errs.Invalid, "%s", err).At(from, "position")
	}
	if head.Less(after) {
		return errs.New(errs.Conflict, "position %s is beyond the event log, which ends at %s", after, head).At(from,
			"position-in-record")
	}
	return nil
}

// stream is one open stream.
type stream struct {
	follower *eventlist.Follower
	at       events.Position // of the last event that was written or passed over
	w        http.ResponseWriter
	rc       *http.ResponseController
}

// run writes events until the client goes, the server stops or the stream has lived long enough. All
// of these are a good end: the client goes on with the last id.
func (s *stream) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, streamLife)
	defer cancel()
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.w.Header().Set("Cache-Control", "no-store")
	s.w.Header().Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	// The position goes first, so that a client that began now and is cut off before the first event
	// misses nothing.
	if err := s.write(fmt.Appendf(nil, "retry: 1000\nid: %s\n\n", s.at)); err != nil {
		return nil // the client went: nothing failed here
	}
	beat := time.NewTicker(heartbeatInterval)
	defer beat.Stop()
	for {
		moved := s.follower.Moved()
		more, err := s.batch(ctx)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if more {
			continue
		}
		select {
		case <-moved:
		case <-beat.C:
			// The position goes along, so that a client whose events are rare resumes near the end.
			if s.write(fmt.Appendf(nil, ": heartbeat\nid: %s\n\n", s.at)) != nil {
				return nil
			}
		case <-httpserver.Draining(ctx):
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// batch writes what there is, at most streamBatch events, and says whether there is more. A client
// that went ends the context; that is no error.
func (s *stream) batch(ctx context.Context) (more bool, err error) {
	items, next, done, err := s.follower.Next(ctx, s.at, streamBatch)
	if ctx.Err() != nil {
		return false, nil //nolint:nilerr // the end of the stream, not a fault
	}
	if errs.Is(err, errs.Unavailable) && !errors.Is(err, eventlist.ErrBehind) {
		return false, nil // the database is away: the stream waits for it
	}
	if err != nil {
		return false, err
	}
	var b bytes.Buffer
	for _, e := range items {
		fmt.Fprintf(&b, "id: %s\nevent: %s\ndata: %s\n\n", e.Position, e.Type, e.JSON)
	}
	if b.Len() > 0 {
		if err := s.write(b.Bytes()); err != nil {
			return false, err
		}
	}
	s.at = next
	select {
	case <-httpserver.Draining(ctx):
		return false, nil
	default:
		return !done, nil
	}
}

func (s *stream) write(b []byte) error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return errs.Wrap(errs.Internal, err, "bound the time of a write")
	}
	if _, err := s.w.Write(b); err != nil {
		return errs.Wrap(errs.Unavailable, err, "the client reads no more events")
	}
	return s.rc.Flush()
}
