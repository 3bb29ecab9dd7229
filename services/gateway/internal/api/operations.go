package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/eventlist"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/installplans"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operators"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/outcome"
)

const (
	tagOperations  = "Operations"
	pathOperations = "/operations"

	headerPrefer    = "Prefer"
	headerApplied   = "Preference-Applied"
	headerOperation = "Chandler-Operation"
	headerPosition  = "Chandler-Position"

	// longestWait is less than the idle time-outs of usual proxies, which begin at 30 s, and than requestTimeout.
	longestWait = 25 * time.Second
	// maxWaits bounds the requests that wait in a process, ownWaits those of one identity: each costs a goroutine, and
	// looks again when something happens. Beyond that nobody waits, and asks again after Retry-After.
	maxWaits, ownWaits = 500, 20
	// lookPause is the least time between two looks, lookAnyway how soon is looked without an event: what the indexer
	// has polled no event tells.
	lookPause, lookAnyway = 200 * time.Millisecond, 2 * time.Second
	// operationRetry is after how many seconds who does not wait may ask again.
	operationRetry = "1"
)

// lastingOperation marks, among the metadata of a write, that it takes Prefer.
const lastingOperation = "lasts"

// lasting is a write whose end takes long: with Prefer it is waited for, and is an operation (ADR 0070).
func lasting(a *API, op huma.Operation) huma.Operation {
	if op.Metadata == nil {
		op.Metadata = map[string]any{}
	}
	op.Metadata[lastingOperation] = true
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: headerPrefer, In: "header",
		Description: "RFC 7240. wait=10: answer when what was written has come to its end, or after so many seconds, at " +
			"most 25; respond-async: do not wait. The answer is 202 with the operation where that has not succeeded by then",
		Schema: &huma.Schema{Type: huma.TypeString},
	})
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	text := func(doc string) *huma.Param {
		return &huma.Param{Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	op.Responses["202"] = &huma.Response{
		Description: "With Prefer: it was written, and has not succeeded yet",
		Content: map[string]*huma.MediaType{mediaJSON: {
			Schema: a.huma.OpenAPI().Components.Schemas.Schema(typeOf[model.Operation](), true, ""),
		}},
		Headers: map[string]*huma.Param{
			"Location": text("Of the operation"), headerApplied: text("What of Prefer was done"),
			"Retry-After": text("After how many seconds to ask again"),
		},
	}
	return op
}

// preference is what a client says about waiting.
type preference struct {
	given bool
	wait  time.Duration
	said  string // as it is applied
}

// preferenceOf reads Prefer. What it does not know it passes over, as RFC 7240 wants it.
func preferenceOf(headers []string) (p preference) {
	for part := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "respond-async":
			if !p.given {
				p.given, p.said = true, "respond-async"
			}
		case "wait":
			seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
			if err != nil || p.wait > 0 {
				continue
			}
			p.given, p.wait = true, min(time.Duration(seconds)*time.Second, longestWait)
			p.said = "wait=" + strconv.Itoa(int(p.wait/time.Second))
		}
	}
	return p
}

// operationHandlers read operations.
type operationHandlers struct{ a *API }

func (h operationHandlers) register(a *API) {
	op := classed(operation(http.MethodGet, pathOperations+"/{id}", "get-operation", tagOperations,
		"Get what became of a write that takes long"), limit.Read)
	op.Description = "Its id is the position of the write. Who may read what it is about may read it. With Prefer: " +
		"wait=10 the answer comes when its state is another one, or after so many seconds, at most 25."
	register(a, everybody, op, h.get)
}

type getOperationInput struct {
	ID     string `path:"id" maxLength:"128" doc:"Position of the write: epoch-number, or stream@version" example:"1-42"`
	Prefer string `header:"Prefer" doc:"wait=10: wait until the state is another one, so many seconds at most"`
}

type operationOutput struct {
	Applied    string `header:"Preference-Applied" doc:"What of Prefer was done"`
	RetryAfter string `header:"Retry-After" doc:"After how many seconds to ask again, while it is not over"`
	Tagged
	Body model.Operation
}

func (h operationHandlers) get(
	ctx context.Context, who model.Caller, in *getOperationInput,
) (*operationOutput, error) {
	p := preferenceOf([]string{in.Prefer})
	var first string
	op, waited, err := h.a.await(ctx, who, in.ID, p.wait, func(state string) bool {
		if first == "" {
			first = state
		}
		return state != first
	})
	if err != nil {
		return nil, err
	}
	out := &operationOutput{Body: op}
	if waited && p.wait > 0 {
		out.Applied = p.said
	}
	if !op.Over {
		out.RetryAfter = operationRetry
	}
	return out, nil
}

// prefer lets a write that takes long be waited for. It stands outside of what holds a transaction: the write is
// committed before it waits, and a repetition with the same key waits for the same operation.
func (a *API) prefer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := r.Context().Value(declaredKey{}).(declared)
		who, known := r.Context().Value(callerKey{}).(model.Caller)
		if !d.lasts || !known || dryRun(r) {
			next.ServeHTTP(w, r)
			return
		}
		kept := &keptAnswer{under: w, header: http.Header{}}
		next.ServeHTTP(kept, r)
		id := kept.header.Get(headerPosition)
		if kept.status >= http.StatusMultipleChoices || id == "" {
			send(w, kept.answer())
			return
		}
		path := prefix + pathOperations + "/" + url.PathEscape(id)
		p := preferenceOf(r.Header.Values(headerPrefer))
		if !p.given {
			kept.header.Set(headerOperation, path)
			send(w, kept.answer())
			return
		}
		op, waited, err := a.await(r.Context(), who, id, p.wait, func(state string) bool {
			return state == model.OperationWaiting
		})
		if err != nil { // it was written all the same, and who asked may not read what became of it
			httpserver.NoteError(r.Context(), err)
			send(w, kept.answer())
			return
		}
		kept.header.Set(headerOperation, path)
		if waited { // what was not done is not said to be (RFC 7240 §3)
			kept.header.Set(headerApplied, p.said)
		}
		if op.State != model.OperationSucceeded {
			kept.accepted(r.Context(), path, op)
		}
		send(w, kept.answer())
	})
}

// accepted makes the answer one about an operation that has not succeeded.
func (k *keptAnswer) accepted(ctx context.Context, path string, op model.Operation) {
	k.body.Reset()
	if err := strictJSON.Marshal(&k.body, op); err != nil {
		httpserver.NoteError(ctx, err) // it is made of texts and times
	}
	k.status = http.StatusAccepted
	k.header.Del("ETag")
	k.header.Set("Content-Type", mediaJSON)
	k.header.Set("Location", path)
	if !op.Over {
		k.header.Set("Retry-After", operationRetry)
	}
}

// await looks at an operation until it is over, until enough says so of its state, or for a time. waited says that the
// time was waited for: beyond some requests that wait, and while the gateway stops, nobody does.
func (a *API) await(
	ctx context.Context, who model.Caller, id string, wait time.Duration, enough func(state string) bool,
) (op model.Operation, waited bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	until := time.Now().Add(wait)
	op, subject, err := a.operation(ctx, who, id)
	if err != nil || op.Over || enough(op.State) || wait == 0 {
		return op, true, err
	}
	leave, err := a.waits.enter(who)
	if err != nil {
		return op, false, nil // who asks again waits in its place
	}
	defer leave()
	follower := a.reads.Tail.JoinUnseen(who)
	defer follower.Leave()
	head, err := a.reads.Events.Head(ctx)
	for stopped := false; err == nil && !stopped; {
		// What the caller may do may have changed while they waited.
		if who, _, err = follower.Caller(ctx); err != nil {
			break
		}
		now, _, found := a.operation(ctx, who, id)
		if err = found; err != nil {
			break
		}
		if op = now; op.Over || enough(op.State) || !time.Now().Before(until) {
			return op, true, nil
		}
		head, stopped, err = happens(ctx, follower, head, subject, until)
	}
	if err == nil || isUnavailable(err) { // what is known is answered
		return op, false, nil
	}
	return op, false, err
}

func isUnavailable(err error) bool { return errs.Is(err, errs.Unavailable) }

// happens waits until an event may concern an operation, or a while; stopped says that nobody should wait any more.
func happens(
	ctx context.Context, f *eventlist.Follower, at events.Position, subject string, until time.Time,
) (next events.Position, stopped bool, err error) {
	anyway := time.NewTimer(min(lookAnyway, time.Until(until)))
	defer anyway.Stop()
	pause := time.NewTimer(lookPause)
	defer pause.Stop()
	for rested, due := false, false; !rested || !due; {
		moved := f.Moved()
		items, to, _, err := f.Next(ctx, at, streamBatch)
		if err != nil {
			return at, false, err
		}
		at = to
		for _, e := range items {
			due = due || concerns(e.Subject, subject)
		}
		select {
		case <-moved:
		case <-pause.C:
			rested = true
		case <-anyway.C:
			return at, false, nil
		case <-httpserver.Draining(ctx):
			return at, true, nil
		case <-ctx.Done():
			return at, true, nil
		}
	}
	return at, false, nil
}

// concerns says whether an event may change what becomes of an intent: one of the same namespace, cluster or catalog.
func concerns(event, intent string) bool {
	of, in := strings.SplitN(event, "/", nameParts), strings.SplitN(intent, "/", nameParts)
	shared := min(len(of), len(in), nameParts-1)
	return slices.Equal(of[:shared], in[:shared])
}

// nameParts are those of a subject cluster/namespace/name.
const nameParts = 3

// operation derives what became of the write at a position, as somebody may see it, and the subject of its event.
func (a *API) operation(
	ctx context.Context, who model.Caller, id string,
) (op model.Operation, subject string, err error) {
	at, err := model.ParsePlace(id)
	if err != nil {
		return op, "", errs.New(errs.Invalid, "%s", err).At("path.id", "position")
	}
	// Streams have ids that can be computed of names: what is hidden is told as what is not there.
	none := errs.New(errs.NotFound, "there is no operation %q that you may see", id).At("path.id", "")
	event, err := a.reads.Events.At(ctx, who.Tenant, at)
	types, known := outcome.Behind(event.Type)
	switch {
	case errs.Is(err, errs.NotFound), err == nil && !known:
		return op, "", none
	case err != nil:
		return op, "", err
	}
	intent := factOf(event)
	behind, end, err := a.reads.Events.Behind(ctx, who.Tenant, event, types)
	if err != nil {
		return op, "", err
	}
	// What the events say is read before what the read models show, which know the intent and are no older.
	if err := a.reads.Positions.WaitForWrite(ctx, who.Tenant, shownBy[event.StreamID.Kind], id); err != nil {
		return op, "", err
	}
	if !end.IsZero() {
		if err := a.reads.Positions.HoldAll(ctx, end); err != nil && !isUnavailable(err) {
			return op, "", err
		}
	}
	var after []outcome.Fact
	for _, e := range behind {
		after = append(after, factOf(e))
	}
	s, object, err := a.became(ctx, who, event.StreamID.Kind, intent, after)
	if errs.Is(err, errs.NotFound) || errs.Is(err, errs.Forbidden) {
		return op, "", none
	}
	if err != nil {
		return op, "", err
	}
	op = model.Operation{
		ID: id, Type: string(intent.Type), Object: object, State: s.State, Over: model.IsOver(s.State),
		Reason: s.Reason, Since: s.Since, Actor: intent.Actor, RequestedAt: intent.Time,
	}
	if s.Plan != "" {
		op.Result = prefix + "/installplans/" + s.Plan
	}
	return op, intent.Subject, nil
}

// shownBy are the read models of what intents are about.
var shownBy = map[events.Kind]string{
	events.KindSubscription: subscriptions.Name, events.KindInstallPlan: installplans.Name,
	events.KindCSV: operators.Name, events.KindCluster: clusters.Name, events.KindCatalog: catalogs.Name,
}

func factOf(e eventlog.Recorded) outcome.Fact {
	return outcome.Fact{Type: e.Type, Subject: e.Subject, Time: e.Time, Actor: e.Actor, Data: e.Data}
}

// became reads the object of an intent with the rights of the caller.
func (a *API) became(
	ctx context.Context, who model.Caller, kind events.Kind, intent outcome.Fact, after []outcome.Fact,
) (s outcome.State, object string, err error) {
	cluster, namespace, name := partsOf(intent.Subject)
	switch kind {
	case events.KindSubscription:
		sub, err := a.reads.Subscriptions.Get(ctx, who, cluster, namespace, name)
		if err != nil {
			return s, "", err
		}
		s = outcome.OfSubscription(intent, after, sub)
		return s, objectLocation("subscriptions", cluster, namespace, name), nil
	case events.KindInstallPlan:
		plan, err := a.reads.InstallPlans.ID(ctx, who, name, cluster, namespace)
		if err != nil {
			return s, "", err
		}
		p, err := a.reads.InstallPlans.Get(ctx, who, plan)
		return outcome.OfPlan(p), prefix + "/installplans/" + plan, err
	case events.KindCSV:
		at := access.Target{Cluster: cluster, Namespace: namespace}
		if !who.May(access.Get, access.Operators, at) {
			return s, "", access.Denied(access.Get, access.Operators, at)
		}
		s, err = outcome.OfRemoval(intent, after)
		return s, objectLocation("operators", cluster, namespace, name), err
	case events.KindCluster:
		at := access.Target{Cluster: intent.Subject}
		if !who.May(access.Get, access.Clusters, at) {
			return s, "", access.Denied(access.Get, access.Clusters, at)
		}
		c, err := a.reads.Clusters.Get(ctx, who, intent.Subject)
		return outcome.OfCluster(c), prefix + "/clusters/" + intent.Subject, err
	case events.KindCatalog:
		return a.catalogBecame(ctx, who, intent)
	default:
		return s, "", errs.New(errs.NotFound, "no operation is of this kind")
	}
}

func (a *API) catalogBecame(
	ctx context.Context, who model.Caller, intent outcome.Fact,
) (s outcome.State, object string, err error) {
	of := catalog.Name{Name: intent.Subject}
	object = prefix + "/catalogs/" + intent.Subject
	if cluster, namespace, name := partsOf(intent.Subject); name != "" {
		of = catalog.Name{Cluster: cluster, Namespace: namespace, Name: name}
		object = prefix + "/catalogs/" + name + "?" +
			url.Values{"cluster": {cluster}, "namespace": {namespace}}.Encode()
	}
	seen, err := a.reads.Catalogs.Offered(ctx, who, access.Get, access.Catalogs, of)
	if err == nil && !seen {
		err = catalogs.NotKnown(of)
	}
	if err != nil {
		return s, "", err
	}
	c, err := a.reads.Catalogs.Get(ctx, who, of)
	return outcome.OfCatalog(intent, c), object, err
}

// partsOf are those of a subject cluster/namespace/name; "" where it has no three.
func partsOf(subject string) (cluster, namespace, name string) {
	parts := strings.SplitN(subject, "/", nameParts)
	if len(parts) < nameParts {
		return "", "", ""
	}
	return parts[0], parts[1], parts[2]
}
