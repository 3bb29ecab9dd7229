package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// scanWindow is how many positions one ReadAfter with a filter looks at: a reader of rare events gets
// its turn back within a few milliseconds, with a position to go on from.
const scanWindow = 10_000

// Filter narrows ReadAfter; the zero value takes everything. A type that this program does not know
// passes Types (never Kinds): a reader must stop there, since it may be a later version of a type that it wants.
type Filter struct {
	Tenant  string
	Kinds   []events.Kind
	Types   []events.Type
	Stream  *events.StreamID
	Subject string
	// Raw leaves Payload nil, so that unknown types and broken bytes pass: for those that only hand events on, and
	// those that decide about each event that cannot be read.
	Raw bool
}

// narrows reports whether rows may be left out.
func (f Filter) narrows() bool {
	return f.Tenant != "" || len(f.Kinds) > 0 || len(f.Types) > 0 || f.Stream != nil || f.Subject != ""
}

// Head returns the position of the last event that has one; its N is 0 in an empty log.
func (l *Log) Head(ctx context.Context, q pg.Querier) (events.Position, error) {
	var p events.Position
	if err := q.QueryRow(ctx, `select epoch, position from eventlog.sequencer order by revision desc limit 1`).Scan(&p.Epoch, &p.N); err != nil {
		return p, fmt.Errorf("read the head of the log: %w", pg.Err(err))
	}
	return p, nil
}

// sinceSQL searches between the ends of the record: positions are dense, and what is recorded later has a later time.
const sinceSQL = `
with recursive search(low, high) as (
  select 0::bigint, (select position from eventlog.sequencer order by revision desc limit 1)
  union all
  select case when e.recorded < $1 then m.at else s.low end, case when e.recorded < $1 then s.high else m.at - 1 end
  from search s, lateral (select (s.low + s.high + 1) / 2 as at) m,
    lateral (select v.recorded from eventlog.events v where v.position = m.at) e
  where s.low < s.high)
select low, coalesce((select v.epoch from eventlog.events v where v.position = low), 1)
from search where low >= high`

// Since returns the position behind which the events begin that were recorded at a time or later. It reads the events
// of all tenants, so that q has to see them.
func (l *Log) Since(ctx context.Context, q pg.Querier, t time.Time) (p events.Position, err error) {
	if err = q.QueryRow(ctx, sinceSQL, t).Scan(&p.N, &p.Epoch); err != nil {
		return p, fmt.Errorf("find what was recorded since %s: %w", t.Format(time.RFC3339), pg.Err(err))
	}
	return p, nil
}

// PositionOf returns the position of one event, and false while it has none or does not exist.
func (l *Log) PositionOf(ctx context.Context, q pg.Querier, tenant string, s events.StreamID, version int64) (
	events.Position, bool, error,
) {
	var epoch, n *int64
	err := q.QueryRow(ctx, `select epoch, position from eventlog.position_of($1, $2, $3, $4)`,
		tenant, s.Key, s.Incarnation, version).Scan(&epoch, &n)
	if err != nil {
		return events.Position{}, false, fmt.Errorf("read the position of %s@%d: %w", s, version, pg.Err(err))
	}
	if epoch == nil || n == nil {
		return events.Position{}, false, nil
	}
	return events.Position{Epoch: *epoch, N: *n}, true, nil
}

// Latest returns the head of the last incarnation of a natural key, such as "cluster/namespace/name".
// Where there has never been one, Version is 0 and ID the first incarnation.
func (l *Log) Latest(ctx context.Context, q pg.Querier, tenant string, kind events.Kind, natural string) (
	StreamHead, error,
) {
	h := StreamHead{ID: events.StreamID{Kind: kind, Key: events.Key(tenant, kind, natural), Incarnation: 1}}
	err := q.QueryRow(ctx, `select incarnation, version, closed from eventlog.streams
		where tenant = $1 and key = $2 order by incarnation desc limit 1`, tenant, h.ID.Key).
		Scan(&h.ID.Incarnation, &h.Version, &h.Closed)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return h, fmt.Errorf("read the head of %s %q: %w", kind, natural, pg.Err(err))
	}
	return h, nil
}

const readStreamSQL = `
select at, in_epoch, recorded, tenant, kind, stream_key, incarnation, version, type, body, hash
from eventlog.read_stream($1, $2, $3, $4)`

// ReadStream returns the events of a stream behind a version, in order, whether they have a position
// or not: what a decider folds. Both tables are read in one snapshot, so that an event on its way from
// one to the other is there once. An unknown type is an *events.UnknownTypeError.
func (l *Log) ReadStream(ctx context.Context, q pg.Querier, tenant string, s events.StreamID, afterVersion int64) (
	[]Recorded, error,
) {
	list, err := l.ReadStreamRaw(ctx, q, tenant, s, afterVersion)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if err := list[i].decode(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// ReadStreamRaw is ReadStream without decoding: who takes events one by one decides about one that cannot be read.
func (l *Log) ReadStreamRaw(ctx context.Context, q pg.Querier, tenant string, s events.StreamID, afterVersion int64) (
	[]Recorded, error,
) {
	return readStream(ctx, q, s, readStreamSQL, tenant, s.Key, s.Incarnation, afterVersion)
}

// readEndsSQL takes of each type two events, so that what is answered does not grow with the stream.
const readEndsSQL = `
select at, in_epoch, recorded, tenant, kind, stream_key, incarnation, version, type, body, hash
from (select x.at, x.in_epoch, x.recorded, x.tenant, x.kind, x.stream_key, x.incarnation, x.version, x.type, x.body,
    x.hash, row_number() over (partition by type order by version) as first,
    row_number() over (partition by type order by version desc) as last
  from eventlog.read_stream($1, $2, $3, $4) x where type = any ($5)) ends
where first = 1 or last = 1
order by version`

// ReadEnds returns of the events of a stream behind a version the first and the last one of each of some types, in
// order, without decoding.
func (l *Log) ReadEnds(
	ctx context.Context, q pg.Querier, tenant string, s events.StreamID, afterVersion int64, types []events.Type,
) ([]Recorded, error) {
	return readStream(ctx, q, s, readEndsSQL, tenant, s.Key, s.Incarnation, afterVersion, types)
}

// EndOf returns the position of the last event of a stream; zero while it has none.
func (l *Log) EndOf(ctx context.Context, q pg.Querier, tenant string, s events.StreamID) (
	p events.Position, err error,
) {
	var version int64
	if err := q.QueryRow(ctx, `select coalesce(max(version), 0) from eventlog.streams
		where tenant = $1 and key = $2 and incarnation = $3`, tenant, s.Key, s.Incarnation).Scan(&version); err != nil {
		return p, fmt.Errorf("read the head of %s: %w", s, pg.Err(err))
	}
	p, _, err = l.PositionOf(ctx, q, tenant, s, version)
	return p, err
}

func readStream(ctx context.Context, q pg.Querier, s events.StreamID, sql string, args ...any) ([]Recorded, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", s, pg.Err(err))
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (Recorded, error) {
		var w row
		if err := r.Scan(w.fields()...); err != nil {
			return Recorded{}, err
		}
		return w.event(), nil
	})
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", s, pg.Err(err))
	}
	return list, nil
}

// readAfterSQL. An older epoch may have counted further than the record now does: a reader that saw
// position n of epoch e goes on behind the last position that epoch e has kept. The bounds and the
// events come from one snapshot.
const readAfterSQL = `
with low as materialized (
  select least($2::bigint, coalesce((select first_position - 1 from eventlog.epochs where epoch > $1
  order by epoch limit 1), $2::bigint)) as n),
bounds as materialized (
  select low.n as low, low.n + $3 as high, head.epoch, head.position,
    (select max(epoch) from eventlog.epochs where first_position <= low.n + $3) as high_epoch
  from low, (select epoch, position from eventlog.sequencer order by revision desc limit 1) head)
select b.epoch, b.position, b.high, b.high_epoch,
  coalesce(e.position, 0), coalesce(e.epoch, 0), e.recorded, coalesce(e.tenant, ''), coalesce(e.kind, ''),
  coalesce(e.stream_key, '00000000-0000-0000-0000-000000000000'), coalesce(e.incarnation, 0), coalesce(e.version, 0),
  coalesce(e.type, ''), e.body, e.hash
from bounds b left join lateral (
  select v.position, v.epoch, v.recorded, v.tenant, v.kind, v.stream_key, v.incarnation, v.version, v.type, v.body,
  v.hash
  from eventlog.events v
  where v.position > b.low and v.position <= b.high
    and ($4 = '' or v.tenant = $4)
    and ($5::text[] is null or v.kind = any ($5))
    and ($6::text[] is null or v.type = any ($6) or v.type <> all ($7::text[]))
    and ($8::uuid is null or v.stream_key = $8 and v.incarnation = $9)
    and ($10 = '' or v.subject = $10)
  order by v.position limit $11) e on true
order by e.position`

// ReadAfter returns at most limit events behind a position that pass the filter, in order, and the
// position up to which the log was scanned, from which the next call goes on. With a filter one call
// looks at a bounded part of the log, so that a call may return nothing although there is more: a
// reader is at the end when the scanned position is Head. An unknown type ends the result before it;
// as the first event it is an *events.UnknownTypeError.
func (l *Log) ReadAfter(ctx context.Context, q pg.Querier, after events.Position, f Filter, limit int) (
	[]Recorded, events.Position, error,
) {
	if limit < 1 {
		return nil, after, errs.New(errs.Invalid, "read the log: limit is %d, want at least 1", limit)
	}
	window := limit
	if f.narrows() {
		window = max(limit, scanWindow)
	}
	rows, err := q.Query(ctx, readAfterSQL, readAfterArgs(after, f, window, limit)...)
	if err != nil {
		return nil, after, fmt.Errorf("read the log after %s: %w", after, pg.Err(err))
	}
	list, scanned, err := collect(rows, limit)
	if err != nil {
		return nil, after, fmt.Errorf("read the log after %s: %w", after, pg.Err(err))
	}
	if f.Raw {
		return list, later(after, scanned), nil
	}
	for i := range list {
		if err := list[i].decode(); err != nil {
			if i == 0 {
				return nil, after, err
			}
			return list[:i], list[i-1].Position, nil
		}
	}
	return list, later(after, scanned), nil
}

func readAfterArgs(after events.Position, f Filter, window, limit int) []any {
	var (
		kinds, types, known []string
		key                 *uuid.UUID
		incarnation         int
	)
	for _, k := range f.Kinds {
		kinds = append(kinds, string(k))
	}
	for _, t := range f.Types {
		types = append(types, string(t))
	}
	if types != nil {
		for _, d := range events.All() {
			known = append(known, string(d.Type))
		}
	}
	if f.Stream != nil {
		key, incarnation = &f.Stream.Key, f.Stream.Incarnation
	}
	return []any{after.Epoch, after.N, window, f.Tenant, kinds, types, known, key, incarnation, f.Subject, limit}
}

// later returns the later of two positions: a scan never takes a reader back.
func later(a, b events.Position) events.Position {
	if a.Less(b) {
		return b
	}
	return a
}

// collect reads the rows of readAfterSQL. Without an event there is one row with the bounds alone.
func collect(rows pgx.Rows, limit int) ([]Recorded, events.Position, error) {
	defer rows.Close()
	var (
		w         row
		list      []Recorded
		head, end events.Position // end: the last position that was looked at, if the log has it
		fields    = append([]any{&head.Epoch, &head.N, &end.N, &end.Epoch}, w.fields()...)
	)
	for rows.Next() {
		if err := rows.Scan(fields...); err != nil {
			return nil, head, err
		}
		if w.position.IsZero() {
			break
		}
		e := w.event()
		if list == nil {
			list = make([]Recorded, 0, max(1, min(int64(limit), min(end.N, head.N)-w.position.N+1)))
		}
		list = append(list, e)
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return nil, head, err
	}
	switch {
	case len(list) == limit:
		return list, list[limit-1].Position, nil
	case end.N < head.N:
		return list, end, nil
	}
	return list, head, nil
}

// row is one row of the log or the inbox, in types that the driver reads without a detour.
type row struct {
	position    events.Position
	recorded    pgtype.Timestamptz // null in the inbox
	tenant      string
	kind        string
	key         pgtype.UUID
	incarnation int
	version     int64
	typ         string
	body        []byte
	hash        pgtype.DriverBytes // the driver's memory, until the next row
}

// fields are the places of the columns from position to hash.
func (w *row) fields() []any {
	return []any{
		&w.position.N, &w.position.Epoch, &w.recorded, &w.tenant, &w.kind, &w.key, &w.incarnation, &w.version, &w.typ,
		&w.body, &w.hash,
	}
}

// event reads the envelope. What filters and streams go by is taken from the columns, so that Verify
// sees where they differ from the bytes.
func (w *row) event() Recorded {
	e := Recorded{Position: w.position, Bytes: w.body, Hash: digest.FromSum(w.hash)}
	e.StreamID = events.StreamID{Kind: events.Kind(w.kind), Key: w.key.Bytes, Incarnation: w.incarnation}
	if w.recorded.Valid {
		e.Recorded = w.recorded.Time.UTC()
	}
	if !readEnvelope(w.body, &e.Envelope) {
		e.Envelope = events.Envelope{}
		if err := json.Unmarshal(w.body, &e.Envelope); err != nil {
			e.Envelope = events.Envelope{}
			e.Broken = errs.Wrap(errs.Internal, err, "event at %s: read its bytes", w.position)
		}
	}
	e.Tenant, e.Type, e.Version = w.tenant, events.Type(w.typ), w.version
	return e
}

// decode fills Payload.
func (r *Recorded) decode() error {
	if r.Broken != nil {
		return r.Broken
	}
	p, err := events.Decode(r.Envelope)
	if err != nil {
		return fmt.Errorf("event at %s of stream %s: %w", r.Position, r.StreamID, err)
	}
	r.Payload = p
	return nil
}
