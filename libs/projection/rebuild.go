package projection

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// rebuildBatch is how many events one transaction of a rebuild folds: nobody waits for it, so it is
	// larger than a live batch.
	rebuildBatch = 2000
	// sequencedWithin bounds the wait for positions of what was decided before the last step of a rebuild: longer than
	// a hand-over of the sequencing takes. Nothing is decided meanwhile.
	sequencedWithin = 10 * time.Second
	// sequencedEvery is how often that is looked at.
	sequencedEvery = 20 * time.Millisecond
	// swapWithin bounds a statement of the last step, which replaces a whole table: tens of millions of rows. Readers
	// are served meanwhile; who was ended here would fold the whole log again, only to be ended again.
	swapWithin = 30 * time.Minute
	// beside is the schema of a session's temporary tables.
	beside = "pg_temp"
)

// Making is what the tables of a consumer are made of, for a rebuild beside the live ones. Every table that its
// handlers write has a part; a rebuild that finds another one written fails, and changes nothing.
type Making struct {
	Consumer *bus.Consumer
	Schema   string
	// Handle makes the effects of one event by its transaction alone, as Consumer.Handle does, but remembers nothing.
	Handle bus.Handler
	// Derived are the tables that hold what the handlers made of the log: they are replaced. Each has a primary key.
	Derived []string
	// Keep are columns of derived tables that others write, by table: they stay as they are.
	Keep map[string][]string
	// Marks are tables of lanes: what the replay marks is marked in the live one. All that the tables know is looked at
	// once more by that, since it may be other than it was.
	Marks []string
	// Aside are tables that handlers write for those who work, such as a claim that an event makes void. They are of
	// those who work, and stay as they are; the replay sees empty ones.
	Aside []string
	// Reached, where set, is called after each batch with where the replay is; its error ends the rebuild.
	Reached func(ctx context.Context, at events.Position) error

	// shape is the schema whose tables have the shape of those that are made; Schema where it is empty.
	shape string
	// model says that the tables are a read model, by which nobody decides.
	model bool
	// first, where set, is called once this replica alone is at it, and may say that nothing is left to do.
	first func(ctx context.Context, conn *pgxpool.Conn) (done bool, err error)
	// place, where set, makes the live tables, in the transaction that puts the result there.
	place func(ctx context.Context, tx pgx.Tx) error
	// only has a rebuild take place on one replica at a time.
	only bool
	// finish, where set, is called in the transaction that puts the result in place.
	finish func(ctx context.Context, tx pgx.Tx) error
}

// like is the schema whose tables have the shape of those beside.
func (m Making) like() string { return cmp.Or(m.shape, m.Schema) }

// sides are the tables that are made beside.
func (m Making) sides() []string { return slices.Concat(m.Derived, m.Marks, m.Aside) }

// rebuild folds the log from its beginning into tables beside the live ones, which serve and decide meanwhile, and puts
// the result in place in one transaction with the checkpoint. An event that cannot be taken parks its stream, as live.
// An error, as of an event type that is unknown to this program, leaves everything as it is, and so does the end of the
// process: the tables beside are temporary ones of one session.
func (m Making) rebuild(ctx context.Context, pool *pg.Pool, log *slog.Logger) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("rebuild %s: %w", m.Consumer.Name, pg.Err(err))
	}
	defer conn.Release()
	to := redirect(m.Schema, m.sides())
	s := session{Making: m, conn: conn, log: log}
	s.replay = m.Consumer.Replay(func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
		return m.Handle(ctx, redirected{tx, to}, e)
	})
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("rebuild %s: %w", m.Consumer.Name, pg.Err(err))
	}
	return nil
}

// session is one rebuild, on the connection that has the tables beside.
type session struct {
	Making

	conn   *pgxpool.Conn
	log    *slog.Logger
	replay *bus.Replay
}

func (s session) run(ctx context.Context) error {
	release, err := s.alone(ctx)
	if err != nil {
		return err
	}
	defer release()
	if s.first != nil {
		if done, err := s.first(ctx, s.conn); err != nil || done {
			return err
		}
	}
	if err := s.reached(ctx); err != nil {
		return err
	}
	defer s.dropBeside(context.WithoutCancel(ctx))
	if err := s.makeBeside(ctx); err != nil {
		return err
	}
	for moved := int64(1); moved > 0; {
		err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) (err error) {
			moved, err = s.fold(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
		if err := s.reached(ctx); err != nil {
			return err
		}
	}
	patient := pg.Patient(ctx, swapWithin)
	return pgx.BeginFunc(patient, s.conn, func(tx pgx.Tx) error { return s.swap(patient, tx) })
}

func (s session) reached(ctx context.Context) error {
	if s.Reached == nil {
		return nil
	}
	return s.Reached(ctx, s.replay.At())
}

// fold takes a batch, and makes sure that it was written beside.
func (s session) fold(ctx context.Context, tx pgx.Tx) (moved int64, err error) {
	before, err := written(ctx, tx, s.like())
	if err != nil {
		return 0, err
	}
	if moved, err = s.replay.Fold(ctx, tx, rebuildBatch); err != nil {
		return 0, err
	}
	after, err := written(ctx, tx, s.like())
	if err != nil {
		return 0, err
	}
	for table, n := range after {
		if n != before[table] {
			return 0, errs.New(errs.Internal, "a handler wrote to %s.%s, of which a rebuild does not know what to make", s.like(),
				table)
		}
	}
	return moved, nil
}

func (s session) makeBeside(ctx context.Context) error {
	s.dropBeside(ctx)
	for _, t := range s.sides() {
		_, err := s.conn.Exec(ctx, fmt.Sprintf(`create temporary table %s (like %s including all)`,
			pgx.Identifier{beside, t}.Sanitize(), pgx.Identifier{s.like(), t}.Sanitize()))
		if err != nil {
			return fmt.Errorf("make a table beside %s: %w", t, err)
		}
	}
	return nil
}

func (s session) dropBeside(ctx context.Context) {
	for _, t := range s.sides() {
		if _, err := s.conn.Exec(ctx, `drop table if exists `+pgx.Identifier{beside, t}.Sanitize()); err != nil {
			s.log.DebugContext(ctx, "a temporary table stays until its session ends", "table", t, "error", err)
		}
	}
}

// swap locks out the live consumer and who decides by its tables, folds what came meanwhile and puts the result in
// place. Readers go on with the old contents until it commits. A process that is frozen here is let go of soon.
func (s session) swap(ctx context.Context, tx pgx.Tx) error {
	if err := patiently(ctx, tx); err != nil {
		return err
	}
	if !s.model {
		if err := s.holdWork(ctx, tx); err != nil {
			return err
		}
	}
	if s.place != nil {
		if err := s.place(ctx, tx); err != nil {
			return err
		}
	}
	// The transaction that the live consumer has open ends first, and the next one does not begin.
	if _, err := tx.Exec(ctx, `select eventlog.lock_checkpoints($1, $1)`, s.Consumer.Name); err != nil {
		return err
	}
	for moved := int64(1); moved > 0; {
		var err error
		if moved, err = s.fold(ctx, tx); err != nil {
			return err
		}
	}
	for _, t := range s.Derived {
		if err := replace(ctx, tx, s.Schema, t, s.Keep[t]); err != nil {
			return err
		}
	}
	for _, t := range s.Marks {
		err := bus.MarkAll(ctx, tx, pgx.Identifier{s.Schema, t}.Sanitize(), pgx.Identifier{beside, t}.Sanitize())
		if err != nil {
			return err
		}
	}
	if s.finish != nil {
		if err := s.finish(ctx, tx); err != nil {
			return err
		}
	}
	return s.replay.Finish(ctx, tx)
}

// patiently lets the statements of a transaction take long, while a process that is frozen in it is let go of soon.
func patiently(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `select set_config('idle_in_transaction_session_timeout', $1, true),
		set_config('statement_timeout', $2, true)`,
		fmt.Sprint(frozenFor.Milliseconds()), fmt.Sprint(swapWithin.Milliseconds()))
	return err
}

// holdWork keeps out those who decide by the tables, and waits until what they have decided before has positions. A
// decision is folded into the tables at once; the live consumer passes over it when the log brings it back. So whatever
// is in the live tables must be in those beside, too.
func (s session) holdWork(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('replay/' || $1))`, s.Consumer.Name); err != nil {
		return err
	}
	var last int64
	if err := tx.QueryRow(ctx, `select coalesce(max(id), 0) from eventlog.appended`).Scan(&last); err != nil {
		return err
	}
	for end := time.Now().Add(sequencedWithin); ; {
		var open bool
		err := tx.QueryRow(ctx, `select exists (select from eventlog.appended where id <= $1)`, last).Scan(&open)
		if err != nil || !open {
			return err
		}
		if time.Now().After(end) {
			return errs.New(errs.Unavailable, "events get no positions: nobody leads the sequencing")
		}
		pause(ctx, sequencedEvery)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}
