package rpc

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/telemetry"
)

// Headers of signed questions and answers.
const (
	headerNonce     = "Chandler-Nonce"     // of the question: an answer is to that question and to no other
	headerSignature = "Chandler-Signature" // over the text that questionText and answerText make
)

// The first line of a signed text names its type, so that none may be used as another.
const (
	questionType = "chandler.question.v1"
	answerType   = "chandler.answer.v1"
)

type (
	// Sign signs a text.
	Sign func(text []byte) (signature string, err error)
	// Verify reports whether who is believed signed a text. It may look up keys.
	Verify func(ctx context.Context, text []byte, signature string) bool
)

// Asker asks signed questions and believes signed answers alone.
type Asker struct {
	Sign   Sign // may be nil: anybody may ask
	Verify Verify
}

// Ask sends a question and decodes the answer into out. An answer whose signature Verify refuses is ignored, however
// soon it comes: the next one is waited for. So who else can write to the bus decides nothing. If nobody serves the
// subject, or there is no answer in time that is believed, the error is errs.Unavailable, and counts those that were
// not; an error of the handler keeps its kind, field and rule.
func (a Asker) Ask(ctx context.Context, conn *nats.Conn, subject string, in, out any) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	m, err := encodeBody(conn, subject, in)
	if err != nil {
		return err
	}
	m.Reply = natsauth.ReplyTo(conn.Opts.InboxPrefix, subject) + "." + rand.Text()
	if _, ok := natsauth.Asker(subject, m.Reply); !ok {
		return errs.New(errs.Internal, "who has the inboxes %s may not ask on %s (libs/natsauth)", conn.Opts.InboxPrefix,
			subject)
	}
	m.Header.Set(headerReply, m.Reply)
	m.Header.Set(headerNonce, rand.Text())
	if tp := telemetry.TraceParent(ctx); tp != "" {
		m.Header.Set(headerTrace, tp)
	}
	if end, ok := ctx.Deadline(); ok {
		m.Header.Set(headerTimeout, strconv.FormatInt(max(0, time.Until(end).Milliseconds()), 10))
	}
	if a.Sign != nil {
		signature, err := a.Sign(questionText(m))
		if err != nil {
			return err
		}
		m.Header.Set(headerSignature, signature)
	}
	reply, err := a.exchange(ctx, conn, m)
	if err != nil {
		return err
	}
	return decodeReply(subject, reply, out)
}

func (a Asker) exchange(ctx context.Context, conn *nats.Conn, m *nats.Msg) (*nats.Msg, error) {
	sub, err := conn.SubscribeSync(m.Reply)
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "ask %s", m.Subject)
	}
	defer func() { _ = sub.Unsubscribe() }() // a connection that is closed has no subscription any more
	if err := conn.PublishMsg(m); err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "ask %s", m.Subject)
	}
	for refused := 0; ; refused++ {
		reply, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return nil, errs.New(errs.Unavailable, "nobody serves %s at the moment", m.Subject)
		case err != nil && refused > 0:
			return nil, errs.New(errs.Unavailable, "ask %s: %d answers were not signed by who may answer, and are not "+
				"believed: see who else answers there", m.Subject, refused)
		case err != nil:
			return nil, errs.Wrap(errs.Unavailable, err, "ask %s", m.Subject)
		case a.Verify(ctx, answerText(m, reply), reply.Header.Get(headerSignature)):
			return reply, nil
		}
	}
}

// Answerer answers questions that it believes, and signs what it answers.
type Answerer struct {
	Verify Verify // may be nil: who may publish there may ask; Limits.Bytes is set then
	Sign   Sign
	Limits Limits
}

// ServeAll handles questions on a subject, which may have wildcards, until ctx ends, then finishes those that have
// begun. choose returns the handler for the subject of a question; one without a handler is refused. A question that
// Verify refuses gets no answer. Processes that serve the same subject form one queue group: each question goes to one
// of them.
func (a Answerer) ServeAll(ctx context.Context, conn *nats.Conn, log *slog.Logger, subject string,
	choose func(subject string) (Handler, bool),
) error {
	return serve(ctx, conn, log, subject, a.Limits, func(ctx context.Context, m *nats.Msg) {
		if a.Verify != nil && !a.believes(ctx, m) {
			log.DebugContext(ctx, "a question that is not signed by who may ask gets no answer", "subject", m.Subject)
			return
		}
		handle(ctx, conn, log, m, choose, func(reply *nats.Msg) error {
			signature, err := a.Sign(answerText(m, reply))
			reply.Header.Set(headerSignature, signature)
			return err
		})
	})
}

// believes reports whether who may ask signed the question.
func (a Answerer) believes(ctx context.Context, m *nats.Msg) bool {
	return a.Verify(ctx, questionText(m), m.Header.Get(headerSignature))
}

// Serve is ServeAll for one handler.
func (a Answerer) Serve(ctx context.Context, conn *nats.Conn, log *slog.Logger, subject string, fn Handler) error {
	return a.ServeAll(ctx, conn, log, subject, func(string) (Handler, bool) { return fn, true })
}

// questionText is what is signed of a question. The subject for the answer is in it: who repeats a question that he has
// heard gets no answer himself.
func questionText(m *nats.Msg) []byte {
	head := []string{
		questionType, m.Subject, replySubject(m), m.Header.Get(headerNonce), m.Header.Get(headerEncoding),
		m.Header.Get(headerTimeout), "",
	}
	return append([]byte(strings.Join(head, "\n")), m.Data...)
}

// answerText is what is signed of an answer: to which question, by the digest of all that was asked, and whether it is
// an error. So an answer to a question that was changed on its way is none to the one that was asked.
func answerText(question, m *nats.Msg) []byte {
	asked := sha256.Sum256(questionText(question))
	head := []string{
		answerType, question.Subject, hex.EncodeToString(asked[:]), m.Header.Get(headerError),
		m.Header.Get(headerEncoding), "",
	}
	return append([]byte(strings.Join(head, "\n")), m.Data...)
}
