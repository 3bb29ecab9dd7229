package eventlog

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Stop says why no effect may happen in any cluster.
type Stop struct {
	Reason string // code: RecordLostCommits
	Source string // who had seen more than the record held
	Since  time.Time
	Epoch  int64           // the epoch that was raised; Resume wants the latest
	Seen   events.Position // what the source had seen
	Head   events.Position // where the record stood then
}

// String says it to a person, and how to go on.
func (s Stop) String() string {
	known := fmt.Sprintf("has seen the log up to %s, the record ended at %s", s.Seen, s.Head)
	if !s.Head.Less(s.Seen) {
		known = fmt.Sprintf("has seen an event at %s that the record, which had come to %s, does not hold", s.Seen,
			s.Head)
	}
	return fmt.Sprintf("effects are stopped since %s: %s %s, so that it has lost commits "+
		"(a failover or a restored backup). Compare the clusters with the record, then resume with epoch %d.",
		s.Since.UTC().Format(time.RFC3339), s.Source, known, s.Epoch)
}

// CheckEpoch compares a position that source has seen (a consumer's or cluster's checkpoint, the bus)
// with the head. Where it lies beyond, the record has lost commits: the epoch is raised, once however
// many notice, effects are stopped for everybody (EffectsStopped) and the error is errs.Unavailable and
// says how to resume. The log itself goes on. Pass only positions from those who are trusted to stop
// the fleet.
func (l *Log) CheckEpoch(ctx context.Context, seen events.Position, source string) error {
	var epoch *int64
	if err := l.pool.QueryRow(ctx, `select eventlog.check_epoch($1, $2, $3)`, seen.Epoch, seen.N, source).Scan(
		&epoch); err != nil {
		return fmt.Errorf("compare position %s of %s with the log: %w", seen, source, pg.Err(err))
	}
	return l.raised(ctx, epoch)
}

// CheckEvent is CheckEpoch for who knows the hash of the event seen: it also notices a record that lost
// commits and has gone on since, so that it holds another event at that position. It is nil for a
// position of an epoch before the current one, whose losses were noticed when that was raised.
func (l *Log) CheckEvent(ctx context.Context, seen events.Position, hash digest.Digest, source string) error {
	sum, err := hex.DecodeString(hash.Hex())
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "compare event %s of %s with the log: its hash %q", seen, source, hash)
	}
	var epoch *int64
	if err := l.pool.QueryRow(ctx, `select eventlog.check_event($1, $2, $3, $4)`, seen.Epoch, seen.N, sum, source).Scan(
		&epoch); err != nil {
		return fmt.Errorf("compare event %s of %s with the log: %w", seen, source, pg.Err(err))
	}
	return l.raised(ctx, epoch)
}

// raised tells why effects are stopped if a check has just raised the epoch.
func (l *Log) raised(ctx context.Context, epoch *int64) error {
	if epoch == nil {
		return nil
	}
	s, stopped, err := l.EffectsStopped(ctx)
	if err != nil {
		return err
	}
	if !stopped { // resumed in this very moment
		return nil
	}
	return errs.New(errs.Unavailable, "%s", s)
}

// EffectsStopped reports whether a loss of commits has stopped effects, and the latest such stop.
func (l *Log) EffectsStopped(ctx context.Context) (Stop, bool, error) {
	var s Stop
	err := l.pool.QueryRow(ctx, `select reason, source, since, epoch, seen_epoch, seen_position, head_epoch,
		head_position
		from eventlog.stops where resumed is null order by epoch desc limit 1`).
		Scan(&s.Reason, &s.Source, &s.Since, &s.Epoch, &s.Seen.Epoch, &s.Seen.N, &s.Head.Epoch, &s.Head.N)
	if errors.Is(err, pgx.ErrNoRows) {
		return Stop{}, false, nil
	}
	if err != nil {
		return Stop{}, false, fmt.Errorf("read whether effects are stopped: %w", pg.Err(err))
	}
	return s, true, nil
}

// Resume lets effects go on. epoch is the one that the person has seen and accepts: if another loss
// has raised it since, that is errs.Conflict. actor is an opaque id. Only the gateway's role may.
// Where nothing is stopped, nothing happens.
func (l *Log) Resume(ctx context.Context, epoch int64, actor string) error {
	if _, err := l.pool.Exec(ctx, `select eventlog.resume($1, $2)`, epoch, actor); err != nil {
		return fmt.Errorf("resume effects: %w", pg.Err(err))
	}
	return nil
}
