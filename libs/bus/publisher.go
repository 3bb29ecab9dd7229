package bus

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Headers of a hint beside Nats-Msg-Id, which is the event's position.
const (
	HeaderType    = "Chandler-Type"    // event type
	HeaderSubject = "Chandler-Subject" // natural key of the event's stream
	HeaderVersion = "Chandler-Version" // of the event in its stream
	HeaderHash    = "Chandler-Hash"    // digest of the event's bytes
	HeaderMAC     = "Chandler-Mac"     // shows that a process with the log's database wrote the hint
	HeaderOmitted = "Chandler-Omitted" // set where the event is too large for a message; read it from the log
	headerTrace   = "traceparent"
)

const (
	// publishBatch is how many hints are on their way at once: enough to fill the round trip.
	publishBatch = 1024
	// ackTimeout is when a hint without an acknowledgement counts as lost; then the stream is read again. Where
	// the stream is missing there is no answer, as consumers listen on the same subjects.
	ackTimeout = 2 * time.Second
	// checkEvery is how often an idle publisher checks that the stream is unchanged.
	checkEvery = 2 * time.Second
	// publishPause is the wait after a failure of NATS or Postgres.
	publishPause = 500 * time.Millisecond
	// hintBytes is the largest event that travels inside its hint: half of NATS' default limit.
	hintBytes = 512 << 10
	// hintHeaderBytes is kept free for headers and subject where the stream bounds messages.
	hintHeaderBytes = 4 << 10
)

// Publisher keeps EVENTS equal to the end of the log. Give Lead to the options of a sequencer's
// candidate: it runs while that candidate leads.
type Publisher struct {
	bus    *Bus
	log    *eventlog.Log
	pool   *pg.Pool
	logger *slog.Logger

	mu    sync.Mutex
	state string
	key   []byte // of hints, once it was read
}

// Publisher returns the publisher of hints for a log. pool is any pool that may read the log.
func (b *Bus) Publisher(log *eventlog.Log, pool *pg.Pool) *Publisher {
	return &Publisher{bus: b, log: log, pool: pool, logger: b.log}
}

// Lead publishes while its candidate leads, and returns nil when ctx ends. Failures of NATS are logged
// once per change; publishing continues when they end.
func (p *Publisher) Lead(ctx context.Context) error {
	js, err := p.bus.asyncPublisher()
	if err != nil {
		return err
	}
	defer js.CleanupPublisher()
	for ctx.Err() == nil {
		err := p.term(ctx, js)
		// The connection logs when NATS is away.
		quiet := ctx.Err() != nil || errors.Is(err, errResync) || p.bus.Check(ctx) != nil
		if !quiet {
			p.report(fmtErr(err))
		}
		p.pause(ctx)
	}
	return nil
}

// term makes the stream equal to the log and publishes until it differs.
func (p *Publisher) term(ctx context.Context, js jetstream.JetStream) error {
	at, err := p.sync(ctx)
	if err != nil {
		return err
	}
	p.report("")
	return p.follow(ctx, js, at)
}

// asyncPublisher publishes without waiting for each answer; CleanupPublisher ends it.
func (b *Bus) asyncPublisher() (jetstream.JetStream, error) {
	js, err := jetstream.New(b.conn, jetstream.WithPublishAsyncMaxPending(2*publishBatch),
		jetstream.WithPublishAsyncTimeout(ackTimeout))
	return js, errs.Wrap(errs.Internal, err, "open JetStream")
}

// errResync means that the stream has changed since the last publication: read it again and continue from its end.
var errResync = errors.New("EVENTS was changed by another")

// report logs a failure when it begins, changes or ends.
func (p *Publisher) report(state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if state == p.state {
		return
	}
	p.state = state
	if state == "" {
		p.logger.Info("publishing hints again")
		return
	}
	p.logger.Warn("cannot publish hints; consumers go on from Postgres", "error", state)
}

func (p *Publisher) pause(ctx context.Context) {
	t := time.NewTimer(publishPause)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// cursor is the end of the stream.
type cursor struct {
	pos     events.Position // of the last hint; zero for an empty stream
	hash    digest.Digest   // of the last hint's event
	start   events.Position // where an empty stream begins: everything up to here is left out
	seq     uint64          // sequence of the last message, also of one that is gone
	first   uint64          // sequence of the first message, unless it grew too old
	created time.Time       // of the stream
	kept    int64           // how many hints the stream keeps at least
	limit   int             // how many bytes of an event travel inside a hint
}

// follow publishes everything after at, and then what comes, until the stream is not as it should be.
func (p *Publisher) follow(ctx context.Context, js jetstream.JetStream, at cursor) error {
	ctx, unwatch, err := p.watchDeletion(ctx)
	if err != nil {
		return err
	}
	defer unwatch()
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		// The channel is taken before the read, so that news in between is not missed.
		changed := p.log.Changed()
		if at, err = p.publishAll(ctx, js, at); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-tick.C:
			if err := p.check(ctx, at); err != nil {
				return err
			}
		}
	}
}

// deletedAdvisory is what the server says when EVENTS is deleted.
const deletedAdvisory = "$JS.EVENT.ADVISORY.STREAM.DELETED."

// watchDeletion ends the context with errResync when the server says that the stream was deleted. An
// advisory may be lost, or not be allowed to us: check and missing acknowledgements show the same, later.
func (p *Publisher) watchDeletion(ctx context.Context) (context.Context, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	subject := deletedAdvisory + p.bus.StreamName(protocol.StreamEvents)
	sub, err := p.bus.conn.Subscribe(subject, func(*nats.Msg) { cancel(errResync) })
	if err != nil {
		cancel(nil)
		return ctx, nil, errs.Wrap(errs.Unavailable, err, "listen for advisories")
	}
	return ctx, func() {
		cancel(nil)
		// The connection may be closed already; then so is the subscription.
		if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			p.logger.Debug("unsubscribe", "error", err)
		}
	}, nil
}

// publishAll publishes up to the head of the log.
func (p *Publisher) publishAll(ctx context.Context, js jetstream.JetStream, at cursor) (cursor, error) {
	for {
		recs, err := p.next(ctx, at)
		if err != nil || len(recs) == 0 {
			return at, err
		}
		if at, err = p.publish(ctx, js, at, recs); err != nil {
			return at, err
		}
	}
}

// next reads what follows the last hint, together with the last hint's own event: where the log does not
// hold that any more, the record has lost commits while we were at work, even if it has gone on since.
func (p *Publisher) next(ctx context.Context, at cursor) ([]eventlog.Recorded, error) {
	if at.pos.IsZero() {
		recs, _, err := p.log.ReadAfter(ctx, p.pool, at.start, eventlog.Filter{Raw: true}, publishBatch)
		return recs, err
	}
	recs, _, err := p.log.ReadAfter(ctx, p.pool, before(at.pos), eventlog.Filter{Raw: true}, publishBatch+1)
	if err != nil {
		return nil, err
	}
	if !begins(recs, at.pos, at.hash) {
		return nil, cmp.Or(p.lost(ctx, at.pos, at.hash), errResync)
	}
	return recs[1:], nil
}

// before is the position from which a read begins with pos.
func before(pos events.Position) events.Position {
	return events.Position{Epoch: pos.Epoch, N: pos.N - 1}
}

// begins reports whether the first of recs is the event that a hint claims.
func begins(recs []eventlog.Recorded, pos events.Position, hash digest.Digest) bool {
	return len(recs) > 0 && recs[0].Position == pos && recs[0].Hash == hash
}

// publish sends a batch, each hint naming its predecessor: were one lost or refused, all behind it are.
func (p *Publisher) publish(ctx context.Context, js jetstream.JetStream, at cursor, recs []eventlog.Recorded) (
	cursor, error,
) {
	key, err := p.hintKey(ctx)
	if err != nil {
		return at, err
	}
	acks := make([]jetstream.PubAckFuture, 0, len(recs))
	prev := at
	for i := range recs {
		f, err := js.PublishMsgAsync(hint(&recs[i], prev, key, at.limit), jetstream.WithRetryAttempts(0))
		if err != nil {
			return at, errs.Wrap(errs.Unavailable, err, "publish hint %s", recs[i].Position)
		}
		acks = append(acks, f)
		prev.pos = recs[i].Position
	}
	for i, f := range acks {
		seq, err := await(ctx, f)
		if err != nil {
			return at, err
		}
		at.pos, at.hash, at.seq = recs[i].Position, recs[i].Hash, seq
	}
	published.Add(ctx, int64(len(recs)))
	return at, nil
}

func await(ctx context.Context, f jetstream.PubAckFuture) (uint64, error) {
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case err := <-f.Err():
		return 0, refused(err)
	case ack := <-f.Ok():
		if ack.Duplicate { // the server remembers an id whose message is gone: the stream was emptied
			return 0, errResync
		}
		return ack.Sequence, nil
	}
}

// refused distinguishes a changed stream from an unavailable server.
func refused(err error) error {
	var api *jetstream.APIError
	if errors.As(err, &api) || errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
		return errors.Join(errResync, err)
	}
	return errs.Wrap(errs.Unavailable, err, "publish a hint")
}

// check compares the stream with what this publisher left.
func (p *Publisher) check(ctx context.Context, at cursor) error {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	s, err := p.bus.Stream(ctx, protocol.StreamEvents)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return errResync
	}
	if err != nil {
		return unavailable(err, "read stream %s", p.bus.StreamName(protocol.StreamEvents))
	}
	info := s.CachedInfo()
	deleted := at.seq >= at.first && info.State.FirstSeq > at.first && int64(info.State.Msgs) < at.kept
	if deleted || info.State.NumDeleted > 0 || info.State.LastSeq != at.seq || !info.Created.Equal(at.created) {
		return errResync
	}
	return nil
}
