package projection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// Versions side by side
//
// Each version of a read model has tables of its own, in a schema that eventlog.make_model makes, and a checkpoint of
// its own. Processes of two releases fold into and read what is theirs, and know nothing of each other. Nothing of a
// version can be seen before it holds what the log held: tables, rows and checkpoint come with one commit.

// own makes the tables of this version where they are not there.
func (r *Runner) own(ctx context.Context) error {
	there, err := r.there(ctx, r.d.Pool)
	if err != nil || there {
		return err
	}
	return r.fresh().rebuild(ctx, r.d.Pool, r.d.Logger)
}

// there says whether this version has tables.
func (r *Runner) there(ctx context.Context, q pg.Querier) (there bool, err error) {
	err = q.QueryRow(ctx, `select exists (select from eventlog.models where consumer = $1)`, r.p.consumer()).Scan(&there)
	return there, pg.Err(err)
}

// Rebuild makes the read model anew beside the live one.
func (r *Runner) Rebuild(ctx context.Context) error {
	there, err := r.there(ctx, r.d.Pool)
	if err != nil {
		return err
	}
	if !there {
		return r.own(ctx)
	}
	return r.Making().rebuild(ctx, r.d.Pool, r.d.Logger)
}

// Making is what the tables of this version are made of, once they are there; for a Rebuilder.
func (r *Runner) Making() Making {
	side := r.p.tables(beside)
	return Making{
		Consumer: r.consumer, Schema: r.p.Place(), Derived: r.p.Tables, model: true,
		Handle: func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error { return r.p.Apply(ctx, tx, side, e) },
		Reached: func(_ context.Context, at events.Position) error {
			r.reached(at)
			return nil
		},
	}
}

// fresh is what tables are made of that are not there yet. One replica makes them.
func (r *Runner) fresh() Making {
	m := r.Making()
	m.only, m.shape, m.first = true, r.p.Schema, r.atOnce
	m.place = func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select eventlog.make_model($1, $2)`, r.p.consumer(), r.p.Tables)
		return err
	}
	return m
}

// atOnce makes the tables where the log need not be read: another replica has just made them, a release that kept one
// version at a time has those of this one, or the log is empty.
func (r *Runner) atOnce(ctx context.Context, conn *pgxpool.Conn) (done bool, err error) {
	if done, err = r.there(ctx, conn); err != nil || done {
		return done, err
	}
	if done, err = r.adopt(ctx, conn); err != nil || done {
		return done, err
	}
	head, err := r.d.Log.Head(ctx, conn)
	if err != nil {
		return false, err
	}
	if head.N > 0 {
		r.d.Logger.InfoContext(ctx, "making the tables of a version of a read model beside those of others", "projection",
			r.p.Name, "version", r.p.Version, "positions", head.N)
		return false, nil
	}
	return true, pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return r.fresh().place(ctx, tx) })
}

// errOther says that the tables of the service's schema are of another version, or of none.
var errOther = errors.New("no tables of this version")

// adopt copies the tables of the service's schema, which a release keeps that has one version at a time, where they are
// of this version. Rows and checkpoint are read in one snapshot, so that the release is not held up: it goes on with
// its tables.
func (r *Runner) adopt(ctx context.Context, conn *pgxpool.Conn) (done bool, err error) {
	patient := pg.Patient(ctx, swapWithin)
	err = pgx.BeginTxFunc(patient, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		return r.copy(patient, tx)
	})
	if errors.Is(err, errOther) {
		return false, nil
	}
	if err == nil {
		r.d.Logger.InfoContext(ctx, "took over the tables of a version of a read model from the release before",
			"projection", r.p.Name, "version", r.p.Version)
	}
	return err == nil, err
}

func (r *Runner) copy(ctx context.Context, tx pgx.Tx) error {
	if err := patiently(ctx, tx); err != nil {
		return err
	}
	var mine bool
	if err := tx.QueryRow(ctx, `select eventlog.adopt_model($1)`, r.p.consumer()).Scan(&mine); err != nil {
		return err
	}
	if !mine {
		return errOther
	}
	if err := r.fresh().place(ctx, tx); err != nil {
		return err
	}
	for _, t := range r.p.Tables {
		s, err := shapeOf(ctx, tx, r.p.Schema, t)
		if err != nil {
			return fmt.Errorf("read the columns of %s: %w", t, err)
		}
		columns := strings.Join(s.columns, ", ")
		_, err = tx.Exec(ctx, fmt.Sprintf(`insert into %s (%s) select %s from %s`,
			pgx.Identifier{r.p.Place(), t}.Sanitize(), columns, columns, pgx.Identifier{r.p.Schema, t}.Sanitize()))
		if err != nil {
			return fmt.Errorf("copy %s: %w", t, err)
		}
	}
	return nil
}

// DefaultKeepUnused is for how long tables stay that no process keeps: a release that is taken back within a day finds
// its own, and catches up.
const DefaultKeepUnused = 24 * time.Hour

// LeastKeepUnused is the least that the database takes (eventlog.drop_models).
const LeastKeepUnused = time.Hour

// sweepEvery is how often that is looked for, in a table of a few rows.
const sweepEvery = 10 * time.Minute

// Sweeper drops the tables of versions of read models that no process has kept for some time.
type Sweeper struct {
	Pool    *pg.Pool
	Log     *slog.Logger
	Service string
	After   time.Duration // LeastKeepUnused or more
}

// NewSweeper checks the time.
func NewSweeper(s Sweeper) (*Sweeper, error) {
	if s.After < LeastKeepUnused {
		return nil, errs.New(errs.Invalid, "tables of read models that no process uses are kept for %s; give at least %s", s.After,
			LeastKeepUnused).At("keep-unused-models", "")
	}
	return &s, nil
}

// Run sweeps until ctx ends, and returns nil then.
func (s *Sweeper) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if _, err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "cannot drop the tables of read models that nobody uses; trying again", "error", err)
		}
		pause(ctx, sweepEvery)
	}
	return nil
}

// Sweep drops what has not been in use for long, and says what. Each version goes in a transaction of its own: who ends
// in between leaves the rest for later.
func (s *Sweeper) Sweep(ctx context.Context) (dropped []string, err error) {
	for {
		names, err := s.drop(ctx)
		if err != nil || len(names) == 0 {
			return dropped, err
		}
		for _, name := range names {
			s.Log.InfoContext(ctx, "dropped the tables of a version of a read model that no process uses", "checkpoint", name,
				"unused", s.After.String())
		}
		dropped = append(dropped, names...)
	}
}

// drop drops one version, or what releases of before keep of one read model.
func (s *Sweeper) drop(ctx context.Context) ([]string, error) {
	rows, err := s.Pool.Query(ctx, `select eventlog.drop_models($1, make_interval(secs => $2))`, prefix+s.Service+".",
		s.After.Seconds())
	if err != nil {
		return nil, pg.Err(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return names, pg.Err(err)
}
