package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// sync brings EVENTS into a state from which publishing can go on, and says where it ends:
//
//	missing                                       made, filled from its start
//	somebody else's                               left alone; an error that names the owner
//	empty                                         filled from its start
//	hints are missing in it                       emptied, filled from its start
//	its last hint is in the log                   filled from there
//	its last hint is ours, and the log does       the record lost commits, whether or not it has gone on since:
//	not hold the event                            effects are stopped (D1), and the stream is left alone, as
//	                                              evidence, until a person resumes; then emptied
//	its last message is no hint of ours           emptied, filled from its start
//
// The start is HintsKept before the head. A hint is ours if its MAC is right: what anybody else wrote there, whatever
// position it claims, says nothing about the record. Only a connection that shapes streams makes and empties them; for
// others that is errs.Unavailable until it was done.
func (p *Publisher) sync(ctx context.Context) (cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	key, err := p.hintKey(ctx)
	if err != nil {
		return cursor{}, err
	}
	info, err := p.bus.ensure(ctx, protocol.StreamEvents)
	p.bus.streams.found(protocol.StreamEvents, info, p.bus.keeper, err)
	if err != nil {
		return cursor{}, err
	}
	if info.State.Msgs == 0 {
		return p.fromStart(ctx, info)
	}
	last, err := p.lastHint(ctx, key)
	if err != nil {
		return cursor{}, err
	}
	if !last.ours {
		return p.empty(ctx, "its last message is no hint of this installation")
	}
	held, err := p.holds(ctx, last)
	if err != nil {
		return cursor{}, err
	}
	if !held {
		return p.empty(ctx, "its last hint is of an event that the record lost")
	}
	head, err := p.log.Head(ctx, p.pool)
	if err != nil {
		return cursor{}, err
	}
	kept := hintsKept(info.Config)
	if lacksHints(info.State, last, head.N-kept) {
		return p.empty(ctx, "hints were deleted from it")
	}
	return cursor{
		pos: last.pos, hash: last.hash, seq: last.seq, first: info.State.FirstSeq, created: info.Created,
		kept: kept, limit: hintLimit(info.Config),
	}, nil
}

// lacksHints reports whether a stream lacks hints of events behind start. Its state was read before its last hint, and
// another process may publish, or fill it, meanwhile: so the hints are counted by the sequence of that one, and not by
// the state. Positions have no gaps; a stream that is being filled begins behind a start that is older than this one.
func lacksHints(s jetstream.StreamState, last lastHint, start int64) bool {
	if last.seq < s.FirstSeq { // it was made anew meanwhile, which the next look sees
		return false
	}
	held := int64(last.seq - s.FirstSeq + 1)
	return s.NumDeleted > 0 || last.pos.N-held > max(0, start)
}

// hintsKept is how many hints a stream keeps at least: bounds that somebody else set count, and those by bytes or age
// promise nothing.
func hintsKept(c jetstream.StreamConfig) int64 {
	switch {
	case c.MaxBytes > 0 || c.MaxAge > 0:
		return 0
	case c.MaxMsgs > 0:
		return min(c.MaxMsgs, HintsKept)
	default:
		return HintsKept
	}
}

// hintLimit is the largest event that travels inside its hint.
func hintLimit(c jetstream.StreamConfig) int {
	if c.MaxMsgSize > 0 {
		return max(0, min(hintBytes, int(c.MaxMsgSize)-hintHeaderBytes))
	}
	return hintBytes
}

// hintKey reads the key once.
func (p *Publisher) hintKey(ctx context.Context) ([]byte, error) {
	p.mu.Lock()
	key := p.key
	p.mu.Unlock()
	if key != nil {
		return key, nil
	}
	i, err := p.log.Installation(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key = i.HintKey
	return p.key, nil
}

// fromStart is the cursor before the first hint that an empty stream gets.
func (p *Publisher) fromStart(ctx context.Context, info *jetstream.StreamInfo) (cursor, error) {
	at := cursor{
		seq: info.State.LastSeq, first: info.State.LastSeq + 1, created: info.Created, kept: hintsKept(info.Config),
		limit: hintLimit(info.Config),
	}
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

// lastHint is what the newest message of EVENTS claims.
type lastHint struct {
	pos  events.Position
	hash digest.Digest
	seq  uint64 // of the message
	ours bool   // this installation wrote it
}

// lastHint reads the newest message. It is asked for by subject: this is the one read of the stream that every service
// is allowed (libs/natsauth).
func (p *Publisher) lastHint(ctx context.Context, key []byte) (lastHint, error) {
	s, err := p.bus.Stream(ctx, protocol.StreamEvents)
	if err != nil {
		return lastHint{}, unavailable(err, "read stream %s", p.bus.StreamName(protocol.StreamEvents))
	}
	m, err := s.GetLastMsgForSubject(ctx, protocol.SubjectEvents+".>")
	if err != nil {
		return lastHint{}, unavailable(err, "read the last hint")
	}
	last := lastHint{seq: m.Sequence}
	last.pos, last.hash, last.ours = readHint(m.Header, key)
	return last, nil
}

// Compare notes that the record lost commits where it does not hold the event of the last hint. It changes nothing in
// the stream.
func (p *Publisher) Compare(ctx context.Context) error {
	key, err := p.hintKey(ctx)
	if err != nil {
		return err
	}
	last, err := p.lastHint(ctx, key)
	if err != nil || !last.ours {
		return err
	}
	_, err = p.holds(ctx, last)
	return err
}

// holds reports whether the log holds the event that a hint of ours claims. If it does not, that is evidence that the
// record lost commits: an error, until a person has resumed.
func (p *Publisher) holds(ctx context.Context, last lastHint) (bool, error) {
	recs, _, err := p.log.ReadAfter(ctx, p.pool, before(last.pos), eventlog.Filter{Raw: true}, 1)
	if err != nil || begins(recs, last.pos, last.hash) {
		return err == nil, err
	}
	return false, p.lost(ctx, last.pos, last.hash)
}

// lost stops effects because the log does not hold the event of a hint that was filled from it, and is
// nil once a person has resumed them: until then the stream is kept as it is.
func (p *Publisher) lost(ctx context.Context, last events.Position, hash digest.Digest) error {
	if err := p.log.CheckEvent(ctx, last, hash, "stream "+p.bus.StreamName(protocol.StreamEvents)); err != nil {
		return fmt.Errorf("the record does not hold the event of hint %s: %w", last, err)
	}
	stop, stopped, err := p.log.EffectsStopped(ctx)
	if err != nil || !stopped || last.Epoch >= stop.Epoch {
		return err
	}
	return errs.New(errs.Unavailable,
		"stream %s holds hints of events that the record lost; it is kept until effects are resumed",
		p.bus.StreamName(protocol.StreamEvents))
}

// empty takes everything out of the stream, which is this installation's (ensure), so that it is filled anew. Its
// configuration stays.
func (p *Publisher) empty(ctx context.Context, why string) (cursor, error) {
	name := p.bus.StreamName(protocol.StreamEvents)
	if p.bus.keeper == nil {
		return cursor{}, errs.New(errs.Unavailable, "stream %s has to be filled anew, since %s; the installer empties it",
			name, why)
	}
	p.logger.Warn("filling EVENTS anew", "why", why)
	s, err := p.bus.js.Stream(ctx, name)
	if err != nil {
		return cursor{}, unavailable(err, "read stream %s", name)
	}
	if err := s.Purge(ctx); err != nil {
		return cursor{}, unavailable(err, "empty stream %s", name)
	}
	info, err := s.Info(ctx)
	if err != nil {
		return cursor{}, unavailable(err, "read stream %s", name)
	}
	return p.fromStart(ctx, info)
}

// Keep does what publishers whose connections shape no streams cannot do, until ctx ends: it makes EVENTS where it is
// missing, and empties it where it has to be filled anew. It publishes nothing.
func (p *Publisher) Keep(ctx context.Context) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		if _, err := p.sync(ctx); err != nil && ctx.Err() == nil && p.bus.Check(ctx) == nil {
			p.report(fmtErr(err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Rebuild makes streams that are missing, empties EVENTS and fills it from the log; `chandler bus rebuild`. It is safe
// beside a running publisher: the expected last message id keeps them in one order. Streams that a person names are
// deleted before, whosoever they are. What PLANS, CONTENT and REPORTS held comes back by itself when their writers
// notice. A stream that is in the way of another one does not keep EVENTS from being filled.
func Rebuild(ctx context.Context, b *Bus, log *eventlog.Log, pool *pg.Pool, replace ...string) error {
	for _, name := range replace {
		if err := b.js.DeleteStream(ctx, name); err != nil {
			return unavailable(err, "delete stream %s", name)
		}
		b.streams.seen(name) // so that its files are waited for
	}
	_, ensured := b.Ensure(ctx)
	p := b.Publisher(log, pool)
	if _, err := p.sync(ctx); err != nil {
		return errors.Join(ensured, err)
	}
	if _, err := p.empty(ctx, "a person asked for it"); err != nil {
		return errors.Join(ensured, err)
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
			return errors.Join(ensured, err)
		}
		p.pause(ctx)
	}
}
