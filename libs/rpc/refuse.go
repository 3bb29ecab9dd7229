package rpc

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// refusedQuestions counts questions that get no answer: what who asks may not cause to be answered, or asks too often.
var refusedQuestions = counter("chandler.rpc.refused", "Questions that get no answer: from or for somebody else, too many, too large or too late.")

func counter(name, doc string) metric.Int64Counter {
	c, err := otel.Meter("github.com/chandler-fleet/chandler/libs/rpc").Int64Counter(name, metric.WithDescription(doc))
	if err != nil {
		otel.Handle(err)
	}
	return c
}

// sayEvery is how often a refusal is logged: who asks decides how many there are.
const sayEvery = time.Minute

// refusals counts questions that get no answer, and logs one now and then. Its methods may be called side by side.
type refusals struct {
	log *slog.Logger

	mu     sync.Mutex
	said   time.Time
	unsaid int // since then
}

// note takes down a question that gets no answer.
func (r *refusals) note(ctx context.Context, m *nats.Msg, why string) {
	refusedQuestions.Add(ctx, 1)
	r.mu.Lock()
	now := time.Now()
	if now.Sub(r.said) < sayEvery {
		r.unsaid++
		r.mu.Unlock()
		return
	}
	others := r.unsaid
	r.said, r.unsaid = now, 0
	r.mu.Unlock()
	r.log.WarnContext(ctx, "a question gets no answer", "why", why, "subject", m.Subject, "reply", m.Reply,
		"othersBefore", others)
}
