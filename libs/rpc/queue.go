package rpc

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/natsauth"
)

// Limits bound what those who ask on one subject can cause. Zero values are the defaults.
type Limits struct {
	// Bytes bounds a question as it comes; packed ones are refused then. Without it a question has what fits into a
	// message, and is unpacked once its signature is believed.
	Bytes int
	// Every is the time for which an agent gets one answer, and Burst how many it gets at once; no bound without it.
	// Services ask for all their users and clusters, and are bounded by what waits.
	Every time.Duration
	Burst int
	// Parallel bounds the questions that are worked on at once, and AtOnce those of one asker; parallel without them.
	Parallel, AtOnce int
}

const (
	// parallel bounds the questions that one subscription works on at once, where Limits do not say it.
	parallel = 8
	// maxWaiting and maxWaitingBytes bound what waits of one asker: a second's questions of an installer with
	// thousands of tenants, and a few large plans.
	maxWaiting      = 1024
	maxWaitingBytes = 16 << 20
	// maxAskers bounds the askers that are remembered: more than an installation has clusters.
	maxAskers = 50_000
)

func (l Limits) withDefaults() Limits {
	if l.Parallel == 0 {
		l.Parallel = parallel
	}
	if l.AtOnce == 0 {
		l.AtOnce = l.Parallel
	}
	return l
}

// queue holds questions until they are worked on: those of each asker in a line of its own, the lines in turn, so that
// many questions of one asker keep nobody else waiting. It takes the time from its caller.
type queue struct {
	limits Limits
	lines  map[string]*line
	turn   []*line // those with questions that wait
	busy   int
}

// line is what waits of one asker.
type line struct {
	asker   string
	waiting []question
	bytes   int
	busy    int
	inTurn  bool
	// owed is until when the answers that the asker got are paid for.
	owed time.Time
}

// question is one that waits until nobody waits for its answer any more.
type question struct {
	*nats.Msg
	until time.Time
}

func newQueue(l Limits) *queue { return &queue{limits: l.withDefaults(), lines: map[string]*line{}} }

// offer takes a question, or says why not.
func (q *queue) offer(m *nats.Msg, now time.Time) (refused string) {
	asker, ok := natsauth.Asker(m.Subject, replySubject(m))
	if !ok {
		return "who may ask there has no inbox where the answer should go"
	}
	if q.limits.Bytes > 0 && (len(m.Data) > q.limits.Bytes || m.Header.Get(headerEncoding) != "") {
		return "it is too large, or packed"
	}
	l := q.lines[asker]
	if l == nil {
		if len(q.lines) >= maxAskers && !q.forget(now) {
			return "too many ask"
		}
		l = &line{asker: asker}
		q.lines[asker] = l
	}
	if len(l.waiting) >= maxWaiting || l.bytes+len(m.Data) > maxWaitingBytes {
		return "too many questions of this asker wait"
	}
	if q.limits.Every > 0 && strings.HasPrefix(asker, natsauth.AgentName("")) {
		if l.owed.Before(now) {
			l.owed = now
		}
		if l.owed.Sub(now) > time.Duration(q.limits.Burst-1)*q.limits.Every {
			return "it asks too often"
		}
		l.owed = l.owed.Add(q.limits.Every)
	}
	l.waiting = append(l.waiting, question{m, now.Add(waits(m))})
	l.bytes += len(m.Data)
	if !l.inTurn {
		l.inTurn, q.turn = true, append(q.turn, l)
	}
	return ""
}

// next is the question to work on now; done is called after it. Those for whose answer nobody waits any more are
// dropped, and counted.
func (q *queue) next(now time.Time) (it question, asker string, late int, ok bool) {
	for range len(q.turn) {
		if q.busy >= q.limits.Parallel {
			break
		}
		l := q.turn[0]
		q.turn = q.turn[1:]
		for len(l.waiting) > 0 && !now.Before(l.waiting[0].until) {
			l.pop()
			late++
		}
		if len(l.waiting) > 0 && l.busy < q.limits.AtOnce {
			it, ok = l.pop(), true
			l.busy++
			q.busy++
		}
		if l.inTurn = len(l.waiting) > 0; l.inTurn {
			q.turn = append(q.turn, l)
		}
		if ok {
			return it, l.asker, late, true
		}
	}
	return question{}, "", late, false
}

func (l *line) pop() question {
	it := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.bytes -= len(it.Data)
	return it
}

func (q *queue) done(asker string) {
	q.busy--
	q.lines[asker].busy--
}

// forget forgets askers of whom there is nothing to remember, and reports whether there were any.
func (q *queue) forget(now time.Time) bool {
	before := len(q.lines)
	for name, l := range q.lines {
		if l.busy == 0 && len(l.waiting) == 0 && !l.owed.After(now) {
			delete(q.lines, name)
		}
	}
	return len(q.lines) < before
}

// waits is for how long who asked waits, by what the question says: no two clocks are compared.
func waits(m *nats.Msg) time.Duration {
	ms, err := strconv.ParseInt(m.Header.Get(headerTimeout), 10, 64)
	if err != nil || ms < 0 || ms > timeout.Milliseconds() {
		return timeout
	}
	return time.Duration(ms) * time.Millisecond
}

// server works on the questions of a queue.
type server struct {
	refusals refusals
	work     func(context.Context, *nats.Msg)

	mu    sync.Mutex
	queue *queue
	ended bool
	idle  sync.Cond
}

func newServer(l Limits, log *slog.Logger, work func(context.Context, *nats.Msg)) *server {
	s := &server{refusals: refusals{log: log}, work: work, queue: newQueue(l)}
	s.idle.L = &s.mu
	return s
}

// take takes a question that has come. It does not wait.
func (s *server) take(ctx context.Context, m *nats.Msg) {
	s.mu.Lock()
	refused := "the service ends"
	if !s.ended {
		refused = s.queue.offer(m, time.Now())
	}
	s.mu.Unlock()
	if refused != "" {
		s.refusals.note(ctx, m, refused)
		return
	}
	s.begin(ctx)
}

// begin begins to work on as many questions as may be.
func (s *server) begin(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		it, asker, late, ok := s.queue.next(time.Now())
		if late > 0 {
			refusedQuestions.Add(ctx, int64(late))
		}
		if !ok {
			s.idle.Broadcast()
			return
		}
		go func() {
			until, cancel := context.WithDeadline(ctx, it.until)
			s.work(until, it.Msg)
			cancel()
			s.mu.Lock()
			s.queue.done(asker)
			s.mu.Unlock()
			s.begin(ctx)
		}()
	}
}

// end waits until all questions that were taken are answered; no other is taken then.
func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.queue.busy > 0 || len(s.queue.turn) > 0 {
		s.idle.Wait()
	}
	s.ended = true
}
