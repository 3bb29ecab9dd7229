package projection

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// rebuildBatch is how many events one transaction of a rebuild folds: nobody waits for it, so it is
// larger than a live batch.
const rebuildBatch = 2000

// beside is the schema of a session's temporary tables.
const beside = "pg_temp"

// Rebuild folds the log from its beginning beside the live tables and puts the result in place. The live
// projection goes on meanwhile, and is held up only by the last step. An event that Apply cannot take parks its stream,
// as in the live projection. An error, as of an event type that is unknown to this program, leaves the live tables as
// they are.
func (r *Runner) Rebuild(ctx context.Context) error {
	conn, err := r.d.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("rebuild %s: %w", r.p.Name, pg.Err(err))
	}
	defer conn.Release()
	if err := r.rebuildOn(ctx, conn); err != nil {
		return fmt.Errorf("rebuild %s: %w", r.p.Name, pg.Err(err))
	}
	return nil
}

func (r *Runner) rebuildOn(ctx context.Context, conn *pgxpool.Conn) error {
	defer r.dropBeside(context.WithoutCancel(ctx), conn)
	if err := r.makeBeside(ctx, conn); err != nil {
		return err
	}
	side := r.p.tables(beside)
	replay := r.consumer.Replay(func(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
		return r.p.Apply(ctx, tx, side, e)
	})
	for moved := int64(1); moved > 0; {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
			moved, err = replay.Fold(ctx, tx, rebuildBatch)
			return err
		})
		if err != nil {
			return err
		}
		r.reached(replay.At())
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return r.swap(ctx, tx, replay) })
}

func (r *Runner) makeBeside(ctx context.Context, conn *pgxpool.Conn) error {
	r.dropBeside(ctx, conn)
	side := r.p.tables(beside)
	for _, t := range r.p.Tables {
		_, err := conn.Exec(ctx, fmt.Sprintf(`create temporary table %s (like %s including all)`,
			side.Name(t), pgx.Identifier{r.p.Schema, t}.Sanitize()))
		if err != nil {
			return fmt.Errorf("make a table beside %s: %w", t, err)
		}
	}
	return nil
}

func (r *Runner) dropBeside(ctx context.Context, conn *pgxpool.Conn) {
	side := r.p.tables(beside)
	for _, t := range r.p.Tables {
		if _, err := conn.Exec(ctx, `drop table if exists `+side.Name(t)); err != nil {
			r.d.Logger.DebugContext(ctx, "a temporary table stays until its session ends", "table", t, "error", err)
		}
	}
}

// swap locks out the live projection, folds what came meanwhile and replaces the contents of the live
// tables. Readers go on with the old contents until it commits.
func (r *Runner) swap(ctx context.Context, tx pgx.Tx, replay *bus.Replay) error {
	if err := r.lockLive(ctx, tx); err != nil {
		return err
	}
	for moved := int64(1); moved > 0; {
		var err error
		if moved, err = replay.Fold(ctx, tx, rebuildBatch); err != nil {
			return err
		}
	}
	for _, t := range r.p.Tables {
		live, side := pgx.Identifier{r.p.Schema, t}.Sanitize(), pgx.Identifier{beside, t}.Sanitize()
		if _, err := tx.Exec(ctx, `delete from `+live); err != nil {
			return fmt.Errorf("empty %s: %w", t, err)
		}
		//nolint:unqueryvet // side was made "like" live in this session: the columns are the same by construction
		if _, err := tx.Exec(ctx, `insert into `+live+` select * from `+side); err != nil {
			return fmt.Errorf("fill %s: %w", t, err)
		}
	}
	return replay.Finish(ctx, tx)
}

// lockLive waits for the transaction that the live projection has open, of this version and of older
// ones, and keeps the next from beginning.
func (r *Runner) lockLive(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `select eventlog.lock_checkpoints($1, $2)`, r.p.consumer(), prefix+r.p.Name+"/v")
	return err
}
