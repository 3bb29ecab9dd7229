package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	headerKey = "Idempotency-Key"
	// headerReplayed says that the answer is that of an earlier request.
	headerReplayed = "Idempotent-Replayed"
	// maxKeyChars bounds a key: a UUID has 36 characters.
	maxKeyChars = 255
	// fullRetry is after how many seconds who has too many answers kept may try again: some have ended by then.
	fullRetry = "600"
)

// Bounds of requests with a key: each holds a connection to the database and a transaction, for anybody who is known.
const (
	// ownKeyed of them are carried out of one identity at a time: one, and its repetition, which is told that the first
	// is under way.
	ownKeyed = 2
	// lineKeyed of one identity are there at a time, those that are carried out included: each holds its body.
	lineKeyed = 16
	// keyedWait is how long one waits for its turn: many turns of the others.
	keyedWait = 2 * time.Second
)

// questions are the POST operations that ask, or that may be repeated as they are. They are carried out as without a
// key, and so are dry runs: they wait for other services, and whoever may ask would hold the transactions and fill the
// table of those who intend something.
var questions = []string{pathPreviews, pathPreviews + "/{id}/apply", "/shadow", pathTestWebhook}

// keyed documents the key of a POST, which may be one that takes dry runs.
func keyed(op *huma.Operation, tries bool) {
	if op.Method != http.MethodPost {
		return
	}
	longest := maxKeyChars
	text := "Random text of the client's, such as a UUID, for one intent: the same request with the same key is " +
		"carried out once and gets the same answer for 24 hours"
	switch {
	case slices.Contains(questions, op.Path):
		text = "Not needed: the request may be repeated, and is carried out again"
	case tries:
		text += "; a dry run is carried out again"
	}
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: headerKey, In: "header", Description: text,
		Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &longest, Pattern: `^[\x21-\x7e]+$`},
	})
}

// once carries a POST with an Idempotency-Key out once (ADR 0048).
func (a *API) once(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get(headerKey)
		who, known := r.Context().Value(callerKey{}).(model.Caller)
		if key == "" || r.Method != http.MethodPost || !known || a.keys == nil {
			next.ServeHTTP(w, r)
			return
		}
		if len(key) > maxKeyChars || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
			answerProblem(w, problemOf(r.Context(), errs.New(errs.Invalid,
				"the key has %d characters: want 1 to %d of ASCII, without spaces", len(key), maxKeyChars).
				At("header."+headerKey, "idempotency-key")))
			return
		}
		d, _ := r.Context().Value(declaredKey{}).(declared)
		if d.maxBody == 0 || d.asks || dryRun(r) { // the first: nothing is there
			next.ServeHTTP(w, r)
			return
		}
		queued, ok := a.turns.Queue(identity(who))
		if !ok {
			w.Header().Set("Connection", "close") // or the server would wait for the body before it answers
			answerProblem(w, keyProblem(r, limit.ErrOwn))
			return
		}
		defer queued.Leave()
		in, body, err := keyedRequest(w, r, who, d.maxBody)
		if err != nil {
			answerProblem(w, keyProblem(r, err))
			return
		}
		in.Key = key
		a.carryOutOnce(w, r, next, keyedTurn{in, body, who, queued})
	})
}

// keyedRequest reads a request, as a whole: other requests with its key are compared with it.
func keyedRequest(
	w http.ResponseWriter, r *http.Request, who model.Caller, maxBody int64,
) (in store.KeyedRequest, body []byte, err error) {
	shown, err := credentials(r)
	if err != nil {
		return in, nil, err
	}
	// Not every writer has a deadline, and then the server's holds.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return in, nil, errs.New(errs.TooLarge, "the body has more than %d bytes, the limit of this operation", maxBody)
	}
	if err != nil {
		return in, nil, errs.New(errs.Invalid, "the body did not arrive as a whole")
	}
	return store.KeyedRequest{
		Tenant: who.Tenant, Actor: who.Person(), Bearer: shown.Bearer, Machine: who.Machine,
		Digest: digestOf(r, who, body),
	}, body, nil
}

// keyedTurn is a request with a key that waits for its turn.
type keyedTurn struct {
	in     store.KeyedRequest
	body   []byte
	who    model.Caller
	queued *limit.Queued
}

func (a *API) carryOutOnce(w http.ResponseWriter, r *http.Request, next http.Handler, t keyedTurn) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	if err := t.queued.Wait(ctx); err != nil {
		answerProblem(w, keyProblem(r, err))
		return
	}
	answer, replayed, err := a.keys.Do(ctx, t.in, func(tx pgx.Tx) store.Answer {
		noting := t.who
		var used func() access.Used
		noting.Rights, used = t.who.Rights.Noting()
		within := context.WithValue(unit.Join(ctx, tx, t.who.Tenant), callerKey{}, noting)
		answer := heldAnswer(within, w, r, next, t.body)
		answer.Used = used()
		return answer
	})
	if err == nil && replayed {
		err = t.who.Rights.Still(answer.Used)
	}
	if err != nil {
		if errors.Is(err, store.ErrKeyInFlight) {
			w.Header().Set("Retry-After", "1")
		}
		if errors.Is(err, store.ErrKeysFull) {
			w.Header().Set("Retry-After", fullRetry)
		}
		answerProblem(w, keyProblem(r, err))
		return
	}
	if replayed {
		w.Header().Set(headerReplayed, "true")
	}
	send(w, answer)
}

// send sends an answer that was held back.
func send(w http.ResponseWriter, answer store.Answer) {
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.Status)
	// The caller may have gone; the access log has what was answered.
	_, _ = w.Write(answer.Body)
}

// heldAnswer is what a request is answered, before anything of it is sent.
func heldAnswer(
	ctx context.Context, w http.ResponseWriter, r *http.Request, next http.Handler, body []byte,
) store.Answer {
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	kept := &keptAnswer{under: w, header: http.Header{}}
	next.ServeHTTP(kept, r)
	return kept.answer()
}

// dryRun says whether a request writes nothing, as its operation will read it.
func dryRun(r *http.Request) bool {
	dry, err := strconv.ParseBool(r.URL.Query().Get("dryRun"))
	return err == nil && dry
}

// digestOf tells requests apart that one key must not be used for.
func digestOf(r *http.Request, who model.Caller, body []byte) [sha256.Size]byte {
	h := sha256.New()
	for _, part := range []string{
		who.Person(), r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Content-Type"),
	} {
		fmt.Fprintf(h, "%d:%s\n", len(part), part)
	}
	h.Write(body)
	return [sha256.Size]byte(h.Sum(nil))
}

func keyProblem(r *http.Request, err error) *Problem {
	kind, name := errs.Conflict, ""
	switch {
	case errors.Is(err, store.ErrKeyInFlight):
		name = httpserver.TypeInFlight
	case errors.Is(err, store.ErrKeyReused):
		kind, name = errs.Unprocessable, httpserver.TypeReused
	case errors.Is(err, store.ErrKeyUnread):
	case errors.Is(err, store.ErrKeysFull), errors.Is(err, limit.ErrOwn):
		return problemOf(r.Context(), noPlace("%s", err))
	case errors.Is(err, limit.ErrAll):
		kind = errs.Unavailable
	default:
		return problemOf(r.Context(), err)
	}
	p := problemOf(r.Context(), errs.New(kind, "%s", err).At("header."+headerKey, "idempotency-key"))
	if name != "" {
		p.SetType(name)
	}
	return p
}

// keptAnswer holds an answer back until it is known that what it says was committed.
type keptAnswer struct {
	under  http.ResponseWriter
	header http.Header
	status int
	body   bytes.Buffer
}

// answer is what is held back.
func (k *keptAnswer) answer() store.Answer {
	return store.Answer{Status: k.status, Header: k.header, Body: k.body.Bytes()}
}

// Header implements http.ResponseWriter.
func (k *keptAnswer) Header() http.Header { return k.header }

// WriteHeader implements http.ResponseWriter.
func (k *keptAnswer) WriteHeader(status int) {
	if k.status == 0 {
		k.status = status
	}
}

// Write implements http.ResponseWriter.
func (k *keptAnswer) Write(b []byte) (int, error) {
	k.WriteHeader(http.StatusOK)
	return k.body.Write(b)
}

// Unwrap gives deadlines of the connection to who sets them.
func (k *keptAnswer) Unwrap() http.ResponseWriter { return k.under }

// triedOperation marks, among the metadata of an operation, that a dry run carries it out and takes it back.
const triedOperation = "tries"

// TryQuery asks for a write that is carried out, with all its checks, and taken back (ADR 0053). DryRunQuery is its
// sister for writes that lead to plans.
type TryQuery struct {
	DryRun bool `query:"dryRun" doc:"Nothing is written: after all checks the answer is what the write would be answered, without a position"`
}

func (TryQuery) tries() {}

// try carries a dry run out in a transaction that is taken back: the very code of the write says what would become of
// it. Like requests with a key, it holds a connection to the database while its operation reads by others, and waits
// with these for its turn.
func (a *API) try(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := r.Context().Value(declaredKey{}).(declared)
		who, known := r.Context().Value(callerKey{}).(model.Caller)
		if !d.tries || !known || !dryRun(r) {
			next.ServeHTTP(w, r)
			return
		}
		queued, ok := a.turns.Queue(identity(who))
		if !ok {
			w.Header().Set("Connection", "close") // or the server would wait for the body before it answers
			answerProblem(w, keyProblem(r, limit.ErrOwn))
			return
		}
		defer queued.Leave()
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		_, body, err := keyedRequest(w, r, who, d.maxBody)
		if err == nil {
			err = queued.Wait(ctx)
		}
		var answer store.Answer
		if err == nil {
			answer, err = a.keys.Try(ctx, who.Tenant, func(tx pgx.Tx) store.Answer {
				return heldAnswer(unit.Try(ctx, tx, who.Tenant), w, r, next, body)
			})
		}
		if err != nil {
			answerProblem(w, keyProblem(r, err))
			return
		}
		for _, ofWhatIsNotThere := range []string{"Location", "Etag"} {
			delete(answer.Header, ofWhatIsNotThere)
		}
		send(w, answer)
	})
}
