// Package rpc carries questions and answers over NATS: JSON in both directions, compressed if it is large, errors with
// their kind, and signed: what another says than who may answer is not believed (DESIGN D7). It is separate from
// package bus because executors use it, too, and must not reach PostgreSQL (DESIGN D8).
package rpc

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
	// timeout bounds a request whose context has no deadline.
	timeout = 15 * time.Second
	// compressAbove is the size in bytes above which a body is compressed: a message of NATS has at most 1 MiB by
	// default, and plans of hundreds of steps come near to it.
	compressAbove = 64 << 10
	// maxBody bounds the bytes of a body after decompression.
	maxBody = 64 << 20
)

const (
	headerEncoding = "Content-Encoding"
	headerTrace    = "traceparent"
	headerError    = "Chandler-Error"   // "1": the body is a wireError
	headerTimeout  = "Chandler-Timeout" // of a question: for how many milliseconds an answer is waited for
	// headerReply is where a question is to be answered. Between accounts the server puts a subject of its own in the
	// place of the one that the message names.
	headerReply = "Chandler-Reply"
)

// wireError is an error on its way back; its kind survives.
type wireError struct {
	Kind    errs.Kind `json:"kind"`
	Message string    `json:"message"`
	Field   string    `json:"field,omitempty"`
	Rule    string    `json:"rule,omitempty"`
}

// Handler handles one request, given as JSON. Its result is encoded as JSON.
type Handler func(ctx context.Context, request json.RawMessage) (any, error)

func serve(ctx context.Context, conn *nats.Conn, log *slog.Logger, subject string, limits Limits,
	fn func(context.Context, *nats.Msg),
) error {
	work := newServer(limits, log, fn)
	sub, err := conn.QueueSubscribe(subject, "chandler", func(m *nats.Msg) { work.take(context.WithoutCancel(ctx), m) })
	if err != nil {
		return errs.Wrap(errs.Unavailable, err, "serve %s", subject)
	}
	<-ctx.Done()
	if err := sub.Drain(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return errs.Wrap(errs.Unavailable, err, "stop serving %s", subject)
	}
	work.end()
	return nil
}

func handle(ctx context.Context, conn *nats.Conn, log *slog.Logger, m *nats.Msg, choose func(string) (Handler, bool),
	sign func(reply *nats.Msg) error,
) {
	ctx, cancel := context.WithTimeout(telemetry.WithTraceParent(ctx, m.Header.Get(headerTrace)), timeout)
	defer cancel()
	reply, err := replyTo(ctx, conn, m, choose)
	if err != nil {
		reply = errorReply(err)
	}
	if err := sign(reply); err != nil {
		log.WarnContext(ctx, "could not sign the reply to a request", "subject", m.Subject, "error", err)
		return
	}
	reply.Subject = replySubject(m)
	if err := conn.PublishMsg(reply); err != nil {
		log.WarnContext(ctx, "could not reply to a request", "subject", m.Subject, "error", err)
	}
}

func replyTo(ctx context.Context, conn *nats.Conn, m *nats.Msg, choose func(string) (Handler, bool)) (
	msg *nats.Msg, err error,
) {
	defer func() {
		if r := recover(); r != nil { // one request must not end the service
			err = errs.New(errs.Internal, "panic while handling %s: %v", m.Subject, r)
		}
	}()
	fn, ok := choose(m.Subject)
	if !ok {
		return nil, errs.New(errs.NotFound, "%s is no subject that is served here", m.Subject)
	}
	request, err := decodeBody(m)
	if err != nil {
		return nil, err
	}
	v, err := fn(ctx, request)
	if err != nil {
		return nil, err
	}
	return encodeBody(conn, "", v)
}

// replySubject is where who asked wants to be answered.
func replySubject(m *nats.Msg) string {
	if s := m.Header.Get(headerReply); s != "" {
		return s
	}
	return m.Reply // of a release that asks without the header
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

func decodeReply(subject string, m *nats.Msg, out any) error {
	body, err := decodeBody(m)
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
	return errs.Wrap(errs.Internal, json.Unmarshal(body, out), "read the reply of %s", subject)
}

func encodeBody(conn *nats.Conn, subject string, v any) (*nats.Msg, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "encode for %s", subject)
	}
	m := nats.NewMsg(subject)
	if len(body) > compressAbove {
		var buf bytes.Buffer
		z := gzip.NewWriter(&buf)
		if _, err := z.Write(body); err != nil {
			return nil, errs.Wrap(errs.Internal, err, "compress for %s", subject)
		}
		if err := z.Close(); err != nil {
			return nil, errs.Wrap(errs.Internal, err, "compress for %s", subject)
		}
		m.Header.Set(headerEncoding, "gzip")
		body = buf.Bytes()
	}
	if limit := conn.MaxPayload(); int64(len(body)) > limit {
		return nil, errs.New(errs.TooLarge, "%d bytes do not fit into a message of at most %s bytes", len(body),
			strconv.FormatInt(limit, 10))
	}
	m.Data = body
	return m, nil
}

func decodeBody(m *nats.Msg) ([]byte, error) {
	if m.Header.Get(headerEncoding) != "gzip" {
		return m.Data, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(m.Data))
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "decompress a message")
	}
	body, err := io.ReadAll(io.LimitReader(z, maxBody+1))
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "decompress a message")
	}
	if len(body) > maxBody {
		return nil, errs.New(errs.TooLarge, "a message has more than %d bytes after decompression", maxBody)
	}
	return body, nil
}
