// Package ask carries questions and answers over NATS request and reply: JSON either way, compressed where it is
// large, an error with its kind. It is apart from package bus since executors answer, too, and must not reach
// Postgres (DESIGN D8).
package ask

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/telemetry"
)

const (
	// timeout bounds a question whose context has no deadline.
	timeout = 15 * time.Second
	// packed is the size from which a body is compressed: NATS takes 1 MiB a message by default, and
	// plans of hundreds of steps come near to it.
	packed = 64 << 10
	// unpacked bounds what a compressed body may become.
	unpacked = 64 << 20
	// parallel bounds the questions that one subscription answers at once.
	parallel = 8
)

const (
	headerEncoding = "Content-Encoding"
	headerTrace    = "traceparent"
	headerError    = "Chandler-Error" // "1": the body is a wireError
)

// wireError is an error on its way back; its kind survives.
type wireError struct {
	Kind    errs.Kind `json:"kind"`
	Message string    `json:"message"`
	Field   string    `json:"field,omitempty"`
	Rule    string    `json:"rule,omitempty"`
}

// Answer answers a question, which is JSON, with a value to be encoded as JSON.
type Answer func(ctx context.Context, question json.RawMessage) (any, error)

// Serve answers questions on a subject until ctx ends, then lets what is under way finish. All that serve a subject
// share it.
func Serve(ctx context.Context, conn *nats.Conn, log *slog.Logger, subject string, fn Answer) error {
	return ServeAll(ctx, conn, log, subject, func(string) (Answer, bool) { return fn, true })
}

// ServeAll is Serve for a subject with wildcards: choose gives the answer to a question by its own subject. Those
// that it does not know are refused.
func ServeAll(ctx context.Context, conn *nats.Conn, log *slog.Logger, subject string,
	choose func(subject string) (Answer, bool),
) error {
	slots := make(chan struct{}, parallel)
	sub, err := conn.QueueSubscribe(subject, "chandler", func(m *nats.Msg) {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			answer(context.WithoutCancel(ctx), conn, log, m, choose)
		}()
	})
	if err != nil {
		return errs.Wrap(errs.Unavailable, err, "serve %s", subject)
	}
	<-ctx.Done()
	if err := sub.Drain(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return errs.Wrap(errs.Unavailable, err, "stop serving %s", subject)
	}
	for range parallel { // all slots free: all answers sent
		slots <- struct{}{}
	}
	return nil
}

func answer(ctx context.Context, conn *nats.Conn, log *slog.Logger, m *nats.Msg, choose func(string) (Answer, bool)) {
	ctx, cancel := context.WithTimeout(telemetry.WithTraceParent(ctx, m.Header.Get(headerTrace)), timeout)
	defer cancel()
	reply, err := replyTo(ctx, conn, m, choose)
	if err != nil {
		reply = errorReply(err)
	}
	if err := m.RespondMsg(reply); err != nil {
		log.WarnContext(ctx, "could not answer a question", "subject", m.Subject, "error", err)
	}
}

func replyTo(ctx context.Context, conn *nats.Conn, m *nats.Msg, choose func(string) (Answer, bool)) (
	msg *nats.Msg, err error,
) {
	defer func() {
		if r := recover(); r != nil { // one question must not end the service
			err = errs.New(errs.Internal, "panic while answering %s: %v", m.Subject, r)
		}
	}()
	fn, ok := choose(m.Subject)
	if !ok {
		return nil, errs.New(errs.NotFound, "%s is not a question that is answered here", m.Subject)
	}
	question, err := unpackBody(m)
	if err != nil {
		return nil, err
	}
	v, err := fn(ctx, question)
	if err != nil {
		return nil, err
	}
	return packBody(conn, "", v)
}

func errorReply(err error) *nats.Msg {
	w := wireError{Kind: errs.KindOf(err), Message: err.Error()}
	if e, ok := errors.AsType[*errs.Error](err); ok {
		w.Field, w.Rule = e.Field, e.Rule
	}
	body, encErr := json.Marshal(w)
	if encErr != nil { // strings only: cannot fail
		body = []byte(`{"kind":"internal","message":"an error that cannot be encoded"}`)
	}
	m := nats.NewMsg("")
	m.Header.Set(headerError, "1")
	m.Data = body
	return m
}

// Put sends a question and decodes the answer into out. A service that is away is errs.Unavailable; an
// error of the one who answers keeps its kind, field and rule.
func Put(ctx context.Context, conn *nats.Conn, subject string, in, out any) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	m, err := packBody(conn, subject, in)
	if err != nil {
		return err
	}
	if tp := telemetry.TraceParent(ctx); tp != "" {
		m.Header.Set(headerTrace, tp)
	}
	answer, err := conn.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrNoResponders) {
		return errs.New(errs.Unavailable, "nobody answers %s at the moment", subject)
	}
	if err != nil {
		return errs.Wrap(errs.Unavailable, err, "ask %s", subject)
	}
	return decodeAnswer(subject, answer, out)
}

func decodeAnswer(subject string, m *nats.Msg, out any) error {
	body, err := unpackBody(m)
	if err != nil {
		return err
	}
	if m.Header.Get(headerError) != "" {
		var w wireError
		if err := json.Unmarshal(body, &w); err != nil {
			return errs.Wrap(errs.Internal, err, "read the error of %s", subject)
		}
		return errs.New(w.Kind, "%s", w.Message).At(w.Field, w.Rule)
	}
	if out == nil {
		return nil
	}
	return errs.Wrap(errs.Internal, json.Unmarshal(body, out), "read the answer of %s", subject)
}

func packBody(conn *nats.Conn, subject string, v any) (*nats.Msg, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "encode for %s", subject)
	}
	m := nats.NewMsg(subject)
	if len(body) > packed {
		var buf bytes.Buffer
		z := gzip.NewWriter(&buf)
		if _, err := z.Write(body); err != nil {
			return nil, errs.Wrap(errs.Internal, err, "pack for %s", subject)
		}
		if err := z.Close(); err != nil {
			return nil, errs.Wrap(errs.Internal, err, "pack for %s", subject)
		}
		m.Header.Set(headerEncoding, "gzip")
		body = buf.Bytes()
	}
	if limit := conn.MaxPayload(); int64(len(body)) > limit {
		return nil, errs.New(errs.TooLarge, "%d bytes do not fit into a message of at most %s", len(body),
			strconv.FormatInt(limit, 10))
	}
	m.Data = body
	return m, nil
}

func unpackBody(m *nats.Msg) ([]byte, error) {
	if m.Header.Get(headerEncoding) != "gzip" {
		return m.Data, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(m.Data))
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "unpack a message")
	}
	body, err := io.ReadAll(io.LimitReader(z, unpacked+1))
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "unpack a message")
	}
	if len(body) > unpacked {
		return nil, errs.New(errs.TooLarge, "a message unpacks to more than %d bytes", unpacked)
	}
	return body, nil
}
