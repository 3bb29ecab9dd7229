package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
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
	Ticket      string `query:"ticket" maxLength:"64" doc:"In place of a bearer token, of POST /streams/tickets"`
	LastEventID string `header:"Last-Event-ID" maxLength:"128" doc:"Position of the last event that was received"`
}

// follow checks the request while an error can still be an answer, then streams.
func (h eventHandlers) follow(ctx context.Context, who model.Caller, in *streamInput) (*huma.StreamResponse, error) {
	f, from, since := in.filter(streamBatch), "query.after", in.Since
	if in.LastEventID != "" {
		f.After, from, since = in.LastEventID, "header.Last-Event-ID", ""
	}
	if err := h.checkStart(ctx, who, since, &f, from); err != nil {
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
	if r.Method == http.MethodHead {
		begin(w)
		return nil
	}
	at, err := events.ParsePosition(f.After)
	if err != nil {
		return err
	}
	follower, err := h.Reads.Tail.Join(who, f)
	if err != nil {
		return err
	}
	defer follower.Leave()
	s := &stream{follower: follower, at: at, w: w, rc: http.NewResponseController(w)}
	return s.run(r.Context())
}

// checkStart makes the stream begin now where nothing else is asked for, and refuses a position that
// the record does not hold; from is where it was given.
func (h eventHandlers) checkStart(
	ctx context.Context, who model.Caller, since string, f *model.EventFilter, from string,
) error {
	if f.After == "" && since == "" {
		head, err := h.Reads.Events.Head(ctx)
		f.After = head.String()
		return err
	}
	if f.After != "" {
		after, err := h.Reads.Positions.Find(ctx, who.Tenant, f.After, from)
		if err != nil {
			return err
		}
		f.After = after.String()
	}
	return h.since(ctx, since, f)
}

// stream is one open stream.
type stream struct {
	follower *eventlist.Follower
	at       events.Position // of the last event that was written or passed over
	w        http.ResponseWriter
	rc       *http.ResponseController
}

// begin says that events follow.
func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
}

// run writes events until the client goes, the server stops or the stream has lived long enough. All
// of these are a good end: the client goes on with the last id.
func (s *stream) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, streamLife)
	defer cancel()
	begin(s.w)
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

const (
	pathStream = "/events/stream"
	// paramTicket is the parameter with a ticket. It works once, so that it may stand in an address.
	paramTicket = "ticket"
)

// ticketHandlers are the operations on tickets of streams.
type ticketHandlers struct{ Deps }

func (h ticketHandlers) register(a *API) {
	op := classed(created("/streams/tickets", "make-stream-ticket", tagEvents,
		"Make a ticket by which a page opens one stream, once, within 30 seconds"), limit.SignIn)
	op.Description = "The EventSource of a browser sends no bearer token. A ticket stands for it in the address of one " +
		"stream. A page that wants to go on after a break asks for another one, with after at the last id."
	register(a, whatIsSeen(access.Watch, access.Events), op, h.make)
}

type makeTicketInput struct{ Body model.AskTicket }

func (h ticketHandlers) make(
	ctx context.Context, who model.Caller, in *makeTicketInput,
) (*written[model.StreamTicket], error) {
	target, err := url.Parse(in.Body.URL)
	if err != nil || target.IsAbs() || target.Host != "" || target.Path != prefix+pathStream ||
		target.Query().Has(paramTicket) {
		return nil, errs.New(errs.Invalid, "the address is none of a stream: want %s with its parameters",
			prefix+pathStream).At("/url", "stream-address")
	}
	ticket, expires, ok, err := h.Tickets.Make(ctx, who, streamAddress(target))
	if err == nil && !ok {
		err = noPlace("%d tickets of this identity wait, which is the limit: use them, or wait for %s", store.MaxTickets,
			store.TicketLife)
	}
	q := target.Query()
	q.Set(paramTicket, ticket)
	return wrote(model.StreamTicket{URL: target.Path + "?" + q.Encode(), ExpiresAt: expires}, "", "", err)
}

// streamAddress is the address of a stream in one form, without the ticket.
func streamAddress(u *url.URL) string {
	q := u.Query()
	q.Del(paramTicket)
	return u.Path + "?" + q.Encode()
}

// ticketOf is the ticket that a request for a stream brings in place of a token, with the address that it has to be
// for.
func ticketOf(r *http.Request) (ticket, address string) {
	if r.Method != http.MethodGet || r.URL.Path != prefix+pathStream || len(r.Header.Values("Authorization")) > 0 {
		return "", ""
	}
	return r.URL.Query().Get(paramTicket), streamAddress(r.URL)
}
