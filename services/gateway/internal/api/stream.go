package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/eventlist"
	"github.com/chandler-fleet/chandler/services/gateway/internal/watch"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/seconds"
	"github.com/chandler-fleet/chandler/services/gateway/sparse"
)

const (
	mediaJSON   = "application/json"
	mediaStream = "text/event-stream"
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
	leave, err := h.streams.enter(who)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		defer leave()
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
	s := &stream{follower: follower, at: at, sink: newSink(w)}
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
		after, err := h.Reads.Positions.Find(ctx, who, f.After, from)
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
	sink
}

// sink is a client that takes what it is sent in time, or is ended.
type sink struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

func newSink(w http.ResponseWriter) sink { return sink{w, http.NewResponseController(w)} }

// begin says that events follow.
func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", mediaStream)
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

func (s sink) write(b []byte) error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return errs.Wrap(errs.Internal, err, "bound the time of a write")
	}
	if _, err := s.w.Write(b); err != nil {
		return errs.Wrap(errs.Unavailable, err, "the client reads no more events")
	}
	return s.rc.Flush()
}

// WatchQuery are the parameters of a list that can be watched.
type WatchQuery struct {
	Watch       bool   `query:"watch" doc:"Answer with what is in the list and then with what changes in it, as Server-Sent Events, until the client ends it"`
	Since       string `query:"since" maxLength:"128" doc:"With watch: the id of a BOOKMARK that was received; the stream begins with RESET"`
	Ticket      string `query:"ticket" maxLength:"64" doc:"With watch: in place of a bearer token, of POST /streams/tickets"`
	LastEventID string `header:"Last-Event-ID" maxLength:"128" doc:"With watch: the id of a BOOKMARK that was received, as since"`
}

func (q WatchQuery) watching() WatchQuery { return q }

// paramWatch says that a list is watched.
const paramWatch = "watch"

// unwatched are parameters of lists that mean nothing in a watch, watched are those that mean something there alone.
var (
	unwatched = []string{"limit", "cursor", "sort"}
	watched   = []string{"since", paramTicket}
)

// watchPage is how many objects of a watched list are read and written at a time, and so the memory that a slow client
// costs: some 2 KB each.
const watchPage = 200

// watchable is the input of a list that can be watched.
type watchable[I any] interface {
	*I
	watching() WatchQuery
	paged() *ListQuery
	// part narrows a list to a part; false says that it has nothing of it.
	part(in watch.Scope) bool
}

// watchedAs is how objects of a list are watched.
type watchedAs[T any] struct {
	kinds     []events.Kind // of events that change something in the list
	undivided bool          // part does not narrow it
	name      func(T) (watch.Scope, watch.Name)
}

// inNamespace is the name of an object in a namespace of a cluster.
func inNamespace(cluster, namespace, name string) (watch.Scope, watch.Name) {
	return watch.Scope{Cluster: cluster, Namespace: namespace},
		watch.Name{Cluster: cluster, Namespace: namespace, Name: name}
}

// narrow makes the cluster and namespace of a filter those of a part; false where the filter wants others.
func narrow(cluster, namespace *string, in watch.Scope) bool {
	if in.Cluster != "" && *cluster != "" && *cluster != in.Cluster ||
		in.Namespace != "" && *namespace != "" && *namespace != in.Namespace {
		return false
	}
	*cluster, *namespace = cmp.Or(in.Cluster, *cluster), cmp.Or(in.Namespace, *namespace)
	return true
}

func (p *NamespacePath) part(in watch.Scope) bool { return narrow(&p.Cluster, &p.Namespace, in) }

// FleetListQuery are the parameters of a list of what is the fleet's.
type FleetListQuery struct {
	ListQuery
	WatchQuery
}

func (*FleetListQuery) part(watch.Scope) bool { return true }

// watchedInFleet is how a list of what is the fleet's is watched: as a whole.
func watchedInFleet[T any](name func(T) watch.Name, kinds ...events.Kind) watchedAs[T] {
	return watchedAs[T]{
		kinds: kinds, undivided: true,
		name: func(o T) (watch.Scope, watch.Name) { return watch.Scope{}, name(o) },
	}
}

// watchedOutput is the answer of a list, or the stream of what changes in it.
type watchedOutput struct {
	Tagged
	Body func(huma.Context)
}

const watchDescription = "With watch=true the answer is a stream of Server-Sent Events: ADDED with each object, then " +
	"BOOKMARK, then ADDED, MODIFIED (data is the object as the list has it) and DELETED (data is its name) as they come, " +
	"among what the filters choose and the caller may list. The id of a BOOKMARK is a position of the event log. To a " +
	"client that reconnects with it as Last-Event-ID or since, RESET (data: {}) comes first: it forgets what it has of " +
	"the list, and what there is follows as ADDED, up to a BOOKMARK. ERROR ends a stream for good; data.detail says why."

// registerList adds a list that can be watched. The list itself reads what is watched, with the same filters and
// rights.
func registerList[T, I any, P watchable[I]](
	a *API, n need, op huma.Operation, as watchedAs[T],
	h func(ctx context.Context, who model.Caller, in *I) (*listOutput[T], error),
) {
	op.Description = watchDescription
	op.Responses = map[string]*huma.Response{"200": {
		Description: "OK; with watch=true a stream of what changes",
		Content: map[string]*huma.MediaType{
			mediaJSON:   {Schema: a.huma.OpenAPI().Components.Schemas.Schema(typeOf[list[T]](), true, "")},
			mediaStream: {Schema: &huma.Schema{Type: huma.TypeString}},
		},
	}}
	op.Metadata = map[string]any{fieldedOperation: typeOf[T]()}
	register(a, n, op, func(ctx context.Context, who model.Caller, in *I) (*watchedOutput, error) {
		fields := chosenFields(ctx)
		if P(in).watching().Watch {
			return a.watch(ctx, who, P(in).watching(), P(in).paged().MinPosition,
				listOf[T, I, P](a, n, *in, as, fields, h))
		}
		out, err := h(ctx, who, in)
		if err != nil {
			return nil, err
		}
		return &watchedOutput{Tagged: out.Tagged, Body: func(hctx huma.Context) {
			hctx.SetHeader("Content-Type", mediaJSON)
			hctx.SetStatus(http.StatusOK)
			// The client may have gone.
			if err := strictJSON.Marshal(hctx.BodyWriter(), out.Body.some(fields)); err != nil {
				r, _ := humachi.Unwrap(hctx)
				httpserver.NoteError(r.Context(), err)
			}
		}}, nil
	})
}

// listOf is a list as it is watched.
func listOf[T, I any, P watchable[I]](
	a *API, n need, asked I, as watchedAs[T], fields sparse.Fields,
	h func(ctx context.Context, who model.Caller, in *I) (*listOutput[T], error),
) watch.List {
	return watch.List{
		Kinds: as.kinds, Undivided: as.undivided,
		Covers: func(part watch.Scope) bool {
			in := asked
			return P(&in).part(part)
		},
		Allowed: func(ctx context.Context, who model.Caller) error {
			in := asked
			return a.authorize(ctx, who, n, &in)
		},
		Page: func(
			ctx context.Context, who model.Caller, part watch.Scope, cursor string,
		) ([]watch.Object, string, error) {
			in := asked
			if !P(&in).part(part) {
				return nil, "", nil
			}
			*P(&in).paged() = ListQuery{Limit: watchPage, Cursor: cursor}
			out, err := h(ctx, who, &in)
			if err != nil {
				return nil, "", err
			}
			page := make([]watch.Object, len(out.Body.Items))
			for i, item := range out.Body.Items {
				if page[i].JSON, err = json.Marshal(seconds.Of(fields.Of(item))); err != nil {
					return nil, "", errs.Wrap(errs.Internal, err, "write an object of a list")
				}
				page[i].In, page[i].Name = as.name(item)
			}
			return page, out.Body.Next, nil
		},
	}
}

// followed is the log for a stream that watches a list.
type followed struct{ *eventlist.Follower }

func (f followed) Next(
	ctx context.Context, after events.Position, limit int,
) ([]model.StreamedEvent, events.Position, bool, error) {
	items, next, done, err := f.Follower.Next(ctx, after, limit)
	if errors.Is(err, eventlist.ErrBehind) {
		err = errors.Join(watch.ErrEnd, err)
	}
	return items, next, done, err
}

// watch checks the request while an error can still be an answer, then streams.
func (a *API) watch(
	ctx context.Context, who model.Caller, q WatchQuery, minPosition string, l watch.List,
) (out *watchedOutput, err error) {
	if err := a.reads.Positions.WaitFor(ctx, who, "", ""); err != nil {
		return nil, err
	}
	if minPosition != "" {
		if _, err := a.reads.Positions.Find(ctx, who, minPosition, "query.minPosition"); err != nil {
			return nil, err
		}
	}
	again, err := q.again()
	if err != nil {
		return nil, err
	}
	head, err := a.reads.Events.Head(ctx)
	if err != nil {
		return nil, err
	}
	leave, err := a.streams.enter(who)
	if err != nil {
		return nil, err
	}
	follower := a.reads.Tail.JoinUnseen(who)
	end := func() {
		follower.Leave()
		leave()
	}
	s, err := watch.Open(ctx, watch.Deps{
		List: l, Log: followed{follower}, Hold: func(ctx context.Context, at events.Position) error {
			return a.reads.Positions.HoldAll(ctx, at)
		},
		Heartbeat: heartbeatInterval, Life: streamLife, Room: a.streams.room, Identity: identity(who),
		Take: func() (time.Duration, bool) { return a.takeList(who) },
	}, head, again)
	if err != nil {
		end()
		if full, ok := errors.AsType[*watch.FullError](err); ok {
			return nil, noPlace("%s", full)
		}
		return nil, err
	}
	return &watchedOutput{Body: func(hctx huma.Context) {
		defer end()
		r, w := humachi.Unwrap(hctx)
		begin(w)
		if r.Method == http.MethodHead {
			return
		}
		s.Write = newSink(w).write
		if err := s.Run(r.Context()); err != nil {
			httpserver.NoteError(r.Context(), err)
		}
	}}, nil
}

// takeList takes one request of the class of lists, for a page that a stream reads. Where there is none it returns how
// long to wait.
func (a *API) takeList(who model.Caller) (wait time.Duration, ok bool) {
	left, ok := a.limits.identities.Take(limit.List, identity(who))
	if ok {
		left, ok = a.ofTenant(who, limit.List, left)
	}
	return left.Wait, ok
}

// again says whether a client goes on after an earlier stream. Its position has to be one, and says no more: all of the
// list is told either way.
func (q WatchQuery) again() (bool, error) {
	given, from := q.Since, "query.since"
	if q.LastEventID != "" {
		given, from = q.LastEventID, "header.Last-Event-ID"
	}
	if given == "" {
		return false, nil
	}
	if _, err := model.ParsePlace(given); err != nil {
		return false, errs.New(errs.Invalid, "%s", err).At(from, "position")
	}
	return true, nil
}

const (
	pathStream = "/events/stream"
	// paramTicket is the parameter with a ticket. It works once, so that it may stand in an address.
	paramTicket = "ticket"
)

// ticketHandlers are the operations on tickets of streams.
type ticketHandlers struct {
	Deps

	isStream func(u *url.URL) bool
}

func (h ticketHandlers) register(a *API) {
	op := classed(created("/streams/tickets", "make-stream-ticket", tagEvents,
		"Make a ticket by which a page opens one stream, once, within 30 seconds"), limit.SignIn)
	op.Description = "The EventSource of a browser sends no bearer token. A ticket stands for it in the address of one " +
		"stream, of events or of a list that is watched. A page that wants to go on after a break asks for another one, " +
		"with after, or since of a list, at the last id. Who may not open the stream is refused by it."
	register(a, everybody, op, h.make)
}

type makeTicketInput struct{ Body model.AskTicket }

func (h ticketHandlers) make(
	ctx context.Context, who model.Caller, in *makeTicketInput,
) (*written[model.StreamTicket], error) {
	target, err := url.Parse(in.Body.URL)
	if err != nil || target.IsAbs() || target.Host != "" || !h.isStream(target) || target.Query().Has(paramTicket) {
		return nil, errs.New(errs.Invalid, "the address is none of a stream: want %s, or that of a list with watch=true",
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

// isStream says whether a GET of an address is answered with a stream.
func (a *API) isStream(u *url.URL) bool {
	if u.Path == prefix+pathStream {
		return true
	}
	pattern := a.router.Find(chi.NewRouteContext(), http.MethodGet, u.Path)
	return a.declared[http.MethodGet+" "+pattern].query[paramWatch] != nil && watches(u.Query())
}

// watches says whether the parameters of a list ask for a stream.
func watches(q url.Values) bool {
	on, err := strconv.ParseBool(q.Get(paramWatch))
	return err == nil && on
}

// ticketOf is the ticket that a request for a stream brings in place of a token, with the address that it has to be
// for.
func ticketOf(r *http.Request) (ticket, address string) {
	if r.Method != http.MethodGet || r.URL.Path != prefix+pathStream && !watches(r.URL.Query()) ||
		len(r.Header.Values("Authorization")) > 0 {
		return "", ""
	}
	return r.URL.Query().Get(paramTicket), streamAddress(r.URL)
}

// places are those of open streams.
type places struct {
	all     chan struct{}  // one for each that is open
	tenants *limit.Tenants // of each tenant
	max     int            // of each identity
	room    *watch.Room    // for what streams that watch lists remember
	mu      sync.Mutex
	open    map[string]int
}

func newPlaces(l Limits, tenants *limit.Tenants) *places {
	l = l.orDefaults()
	return &places{
		all: make(chan struct{}, l.Streams), tenants: tenants, max: l.OwnStreams, room: watch.NewRoom(),
		open: map[string]int{},
	}
}

// enter takes a place, which leave gives back.
func (p *places) enter(who model.Caller) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[identity(who)] >= p.max {
		return nil, noPlace("%d streams of this identity are open, which is the limit: end one", p.max)
	}
	if allowed, ok := p.tenants.Enter(who.Tenant); !ok {
		return nil, noPlace("the quota of tenant %s allows %d open streams at this gateway, and they are open: end one",
			who.Tenant, allowed)
	}
	select {
	case p.all <- struct{}{}:
	default:
		p.tenants.Leave(who.Tenant)
		return nil, noPlace("%d streams are open, which is the limit: try again later", cap(p.all))
	}
	p.open[identity(who)]++
	return sync.OnceFunc(func() { p.leave(who) }), nil
}

func (p *places) leave(who model.Caller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	<-p.all
	p.tenants.Leave(who.Tenant)
	p.open[identity(who)]--
	if p.open[identity(who)] <= 0 {
		delete(p.open, identity(who))
	}
}
