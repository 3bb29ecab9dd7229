package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// sync brings EVENTS into a state from which publishing can go on, and says where it ends:
//
//	the log is empty                              nothing is touched (errEmptyLog)
//	missing                                       made, filled from its start
//	another configuration, another log            replaced, filled from its start
//	empty                                         filled from its start
//	hints are missing in it                       replaced, filled from its start
//	its last hint is in the log                   filled from there
//	its last hint is an event that the log        the record lost commits, whether or not it has gone on since:
//	does not hold                                 effects are stopped (D1), and the stream is left alone, as
//	                                              evidence, until a person resumes; then replaced
//	its last message is no hint                   replaced, filled from its start
//
// The start is HintsKept before the head.
func (p *Publisher) sync(ctx context.Context) (cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	id, err := p.identity(ctx)
	if err != nil {
		return cursor{}, err
	}
	if id == "" {
		return cursor{}, errEmptyLog
	}
	info, known, err := p.stream(ctx, id)
	if err != nil {
		return cursor{}, err
	}
	if info.State.Msgs == 0 {
		return p.fromStart(ctx, info)
	}
	last, hash, err := p.hintAt(ctx, info.State.LastSeq)
	if err != nil {
		return cursor{}, err
	}
	ours, err := p.ours(ctx, last, hash, known)
	if err != nil {
		return cursor{}, err
	}
	if !ours {
		p.logger.Warn("replacing EVENTS: its last hint is no event of this log", "hint", last.String())
		return p.replace(ctx, id)
	}
	complete, err := p.complete(ctx, info, last)
	if err != nil {
		return cursor{}, err
	}
	if !complete {
		p.logger.Warn("replacing EVENTS: hints were deleted from it", "messages", info.State.Msgs)
		return p.replace(ctx, id)
	}
	return cursor{pos: last, hash: hash, seq: info.State.LastSeq, first: info.State.FirstSeq, created: info.Created},
		nil
}

// complete reports whether only hints older than HintsKept are missing.
func (p *Publisher) complete(ctx context.Context, info *jetstream.StreamInfo, last events.Position) (bool, error) {
	if info.State.NumDeleted > 0 {
		return false, nil
	}
	first, _, err := p.hintAt(ctx, info.State.FirstSeq)
	return first.N <= max(1, last.N-HintsKept+1), err
}

// errEmptyLog means that there is nothing to publish yet, and that the log of the stream cannot be identified.
var errEmptyLog = errors.New("the log is empty")

// identity names the log by its first event, which a restored backup shares and another installation
// does not; "" while the log is empty.
func (p *Publisher) identity(ctx context.Context) (string, error) {
	recs, _, err := p.log.ReadAfter(ctx, p.pool, events.Position{}, eventlog.Filter{Raw: true}, 1)
	if err != nil || len(recs) == 0 {
		return "", err
	}
	return recs[0].Hash.Short(), nil
}

// stream is EVENTS, created or replaced if it is missing or of another log. known: it was filled from
// this log before.
func (p *Publisher) stream(ctx context.Context, id string) (info *jetstream.StreamInfo, known bool, err error) {
	s, err := p.bus.js.Stream(ctx, StreamEvents)
	if err == nil {
		other := s.CachedInfo().Config.Metadata[metaLog]
		known = other == id
		if other != "" && !known {
			p.logger.Warn("replacing EVENTS: it was filled from another log", "log", other)
			if err := p.bus.js.DeleteStream(ctx, StreamEvents); err != nil &&
				!errors.Is(err, jetstream.ErrStreamNotFound) {
				return nil, false, unavailable(err, "delete stream %s", StreamEvents)
			}
		}
	}
	info, err = p.bus.ensure(ctx, eventsConfig(id))
	return info, known, err
}

// fromStart is the cursor before the first hint that an empty stream gets.
func (p *Publisher) fromStart(ctx context.Context, info *jetstream.StreamInfo) (cursor, error) {
	at := cursor{seq: info.State.LastSeq, first: info.State.LastSeq + 1, created: info.Created}
	head, err := p.log.Head(ctx, p.pool)
	if err != nil {
		return at, err
	}
	if head.N > 0 {
		p.logger.Info("filling EVENTS from the log", "head", head.String())
	}
	if skip := head.N - HintsKept; skip > 0 {
		at.start = events.Position{Epoch: head.Epoch, N: skip}
	}
	return at, nil
}

// hintAt reads the position and hash that a message of the stream claims.
func (p *Publisher) hintAt(ctx context.Context, seq uint64) (events.Position, digest.Digest, error) {
	s, err := p.bus.js.Stream(ctx, StreamEvents)
	if err != nil {
		return events.Position{}, "", unavailable(err, "read stream %s", StreamEvents)
	}
	m, err := s.GetMsg(ctx, seq)
	if err != nil {
		return events.Position{}, "", unavailable(err, "read hint %d", seq)
	}
	pos, err := events.ParsePosition(m.Header.Get(jetstream.MsgIDHeader))
	if err != nil {
		return events.Position{}, "", nil //nolint:nilerr // a message that is no hint at all: no event of this log
	}
	return pos, digest.Digest(m.Header.Get(HeaderHash)), nil
}

// ours reports whether the log holds the event that a hint claims. If the stream is known to be filled
// from this log, a hint of an event that the log does not hold is evidence that the record lost commits.
func (p *Publisher) ours(ctx context.Context, last events.Position, hash digest.Digest, known bool) (bool, error) {
	if _, err := digest.Parse(string(hash)); err != nil || last.IsZero() {
		return false, nil //nolint:nilerr // no publisher wrote this message: it is no hint
	}
	recs, _, err := p.log.ReadAfter(ctx, p.pool, before(last), eventlog.Filter{Raw: true}, 1)
	if err != nil || begins(recs, last, hash) {
		return err == nil, err
	}
	if known {
		return false, p.lost(ctx, last, hash)
	}
	return false, nil
}

// lost stops effects because the log does not hold the event of a hint that was filled from it, and is
// nil once a person has resumed them: until then the stream is kept as it is.
func (p *Publisher) lost(ctx context.Context, last events.Position, hash digest.Digest) error {
	if err := p.log.CheckEvent(ctx, last, hash, "stream "+StreamEvents); err != nil {
		return fmt.Errorf("the record does not hold the event of hint %s: %w", last, err)
	}
	stop, stopped, err := p.log.EffectsStopped(ctx)
	if err != nil || !stopped || last.Epoch >= stop.Epoch {
		return err
	}
	return errs.New(errs.Unavailable,
		"stream %s holds hints of events that the record lost; it is kept until effects are resumed", StreamEvents)
}

// replace makes the stream anew.
func (p *Publisher) replace(ctx context.Context, id string) (cursor, error) {
	if err := p.bus.js.DeleteStream(ctx, StreamEvents); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return cursor{}, unavailable(err, "delete stream %s", StreamEvents)
	}
	info, err := p.bus.ensure(ctx, eventsConfig(id))
	if err != nil {
		return cursor{}, err
	}
	return p.fromStart(ctx, info)
}

// Rebuild makes every stream anew where it is missing or foreign, deletes EVENTS and fills it from the
// log; `chandler bus rebuild`. It is safe beside a running publisher: the expected last message id keeps
// them in one order. What PLANS and REPORTS held comes back by itself when their writers notice.
func Rebuild(ctx context.Context, b *Bus, log *eventlog.Log, pool *pg.Pool) error {
	if _, err := b.Ensure(ctx); err != nil {
		return err
	}
	p := b.Publisher(log, pool)
	id, err := p.identity(ctx)
	if err != nil || id == "" {
		return err
	}
	if _, err := p.replace(ctx, id); err != nil {
		return err
	}
	js, err := b.asyncPublisher()
	if err != nil {
		return err
	}
	defer js.CleanupPublisher()
	for {
		at, err := p.sync(ctx)
		if err == nil {
			_, err = p.publishAll(ctx, js, at)
		}
		if !errors.Is(err, errResync) {
			return err
		}
		p.pause(ctx)
	}
}
