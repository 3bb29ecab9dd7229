package projection

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// askedEvery is how often a service looks whether somebody asks for a rebuild: of a table that is nearly always
	// empty.
	askedEvery = 2 * time.Second
	// rebuildPause is the wait before a rebuild that failed is tried again.
	rebuildPause = 30 * time.Second
	// rebuilderIdle is for how long the session of a rebuild may be silent, within a transaction as well, before the
	// database ends it, so that another replica can begin: a process that is frozen keeps it for so long.
	rebuilderIdle = "30s"
	// restoreIdle gives a session the bounds back that its role has.
	restoreIdle = `select set_config(name, reset_val, false) from pg_settings
		where name in ('idle_session_timeout', 'idle_in_transaction_session_timeout')`
)

// Rebuilder carries out the rebuilds that administrators ask for (chandler log rebuild). Of several replicas one does;
// a rebuild that was killed begins anew wherever a replica is alive.
type Rebuilder struct {
	Pool    *pg.Pool
	Log     *slog.Logger
	Makings []Making
}

// errDropped ends a rebuild that nobody wants any more.
var errDropped = errors.New("the rebuild was taken back")

// Run works until ctx ends, and returns nil then.
func (r *Rebuilder) Run(ctx context.Context) error {
	t := time.NewTicker(askedEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		asked, err := r.asked(ctx)
		for _, m := range asked {
			if err = r.rebuild(ctx, m); err != nil {
				break
			}
		}
		if err != nil && ctx.Err() == nil {
			r.Log.WarnContext(ctx, "a rebuild failed; trying again", "error", err)
			pause(ctx, rebuildPause)
		}
	}
}

// asked are the consumers here whose rebuild is wanted.
func (r *Rebuilder) asked(ctx context.Context) ([]Making, error) {
	names := make([]string, len(r.Makings))
	for i, m := range r.Makings {
		names[i] = m.Consumer.Name
	}
	rows, err := r.Pool.Query(ctx, `select consumer from eventlog.rebuilds where consumer = any ($1) order by asked`, names)
	if err != nil {
		return nil, pg.Err(err)
	}
	wanted, err := pgx.CollectRows(rows, pgx.RowTo[string])
	var list []Making
	for _, w := range wanted {
		for _, m := range r.Makings {
			if m.Consumer.Name == w {
				list = append(list, m)
			}
		}
	}
	return list, pg.Err(err)
}

// rebuild carries one out, or does nothing where another replica is at it. Why it fails is noted for those who asked.
func (r *Rebuilder) rebuild(ctx context.Context, m Making) error {
	name, reached := m.Consumer.Name, m.Reached
	m.only = true
	m.Reached = func(ctx context.Context, at events.Position) error {
		if reached != nil {
			if err := reached(ctx, at); err != nil {
				return err
			}
		}
		return r.note(ctx, name, at.N, nil)
	}
	m.finish = func(ctx context.Context, tx pgx.Tx) error {
		var wanted bool
		err := tx.QueryRow(ctx, `select eventlog.drop_rebuild($1)`, name).Scan(&wanted)
		if err == nil && !wanted {
			return errDropped
		}
		return err
	}
	r.Log.DebugContext(ctx, "rebuilding the tables of a consumer beside the live ones", "consumer", name)
	err := m.rebuild(ctx, r.Pool, r.Log)
	switch {
	case err == nil:
		r.Log.InfoContext(ctx, "the rebuilt tables of a consumer are in place", "consumer", name)
		return nil
	case errors.Is(err, errElsewhere):
		return nil
	case errors.Is(err, errDropped):
		r.Log.InfoContext(ctx, "a rebuild was taken back", "consumer", name)
		return nil
	}
	return errors.Join(err, r.note(context.WithoutCancel(ctx), name, 0, err))
}

// note says where a rebuild is, or why it failed.
func (r *Rebuilder) note(ctx context.Context, consumer string, at int64, failed error) error {
	var text *string
	if failed != nil {
		s := failed.Error()
		text = &s
	}
	var wanted bool
	err := r.Pool.QueryRow(ctx, `select eventlog.note_rebuild($1, $2, $3)`, consumer, at, text).Scan(&wanted)
	if err != nil {
		return pg.Err(err)
	}
	if !wanted && failed == nil {
		return errDropped
	}
	return nil
}

// errElsewhere says that another replica is at the same rebuild.
var errElsewhere = errs.New(errs.Conflict, "another replica rebuilds it")

// alone takes the lock on the rebuild of a consumer for the session.
func (s session) alone(ctx context.Context) (release func(), err error) {
	if !s.only {
		return func() {}, nil
	}
	lock := "rebuild/" + s.Consumer.Name
	var mine bool
	// The bounds come before the lock: a process that is frozen in between keeps nothing.
	err = s.conn.QueryRow(ctx, `select set_config('idle_session_timeout', $2, false),
		set_config('idle_in_transaction_session_timeout', $2, false), pg_try_advisory_lock(hashtext($1))`,
		lock, rebuilderIdle).Scan(new(string), new(string), &mine)
	if err != nil {
		return nil, err
	}
	if !mine {
		if _, err := s.conn.Exec(ctx, restoreIdle); err != nil {
			return nil, err
		}
		return nil, errElsewhere
	}
	return func() {
		ctx := context.WithoutCancel(ctx)
		_, err := s.conn.Exec(ctx, `select pg_advisory_unlock(hashtext($1))`, lock)
		if err == nil {
			_, err = s.conn.Exec(ctx, restoreIdle)
		}
		if err != nil { // the session is of no use to others
			_ = s.conn.Conn().Close(ctx)
		}
	}, nil
}
