package store

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// sealEvery is how often rows are looked for that are in the clear, or sealed by another key than the active one: a
	// minute after a key has become active nothing is left of the one before.
	sealEvery = time.Minute
	// askEvery is how often it is asked whether the last process of an older release has gone.
	askEvery = 10 * time.Second
	// sealBatch bounds what is held in memory, and locked, at once: 100 rows of 256 KiB at most.
	sealBatch = 100
)

// Sealer seals by the active keys what releases before stored in the clear, and what is sealed by keys that are on
// their way out.
//
// Every row is replaced by compare-and-set on the key that it was sealed by: killed between two batches the next run
// goes on with the rest, and of two replicas one replaces nothing. A row that was erased meanwhile stays erased.
type Sealer struct {
	Pool   *pg.Pool
	Bodies Bodies
	Log    *slog.Logger

	failed int
	clear  metric.Int64Gauge
}

// NewSealer makes a sealer. Until Begin, new bodies are stored in the clear.
func NewSealer(pool *pg.Pool, b Bodies, log *slog.Logger) (*Sealer, error) {
	g, err := otel.Meter("github.com/chandler-fleet/chandler/services/gateway").Int64Gauge("chandler.bodies.clear",
		metric.WithDescription("bodies that are not sealed yet: those of an older release, while one runs and right after"))
	return &Sealer{Pool: pool, Bodies: b, Log: log, clear: g}, errs.Wrap(errs.Internal, err, "make metrics")
}

// Begin lets bodies be sealed where every live process can open them, which stays so from then on. It returns whether
// they are.
func (s *Sealer) Begin(ctx context.Context) (bool, error) {
	if !s.Bodies.Clear.Load() {
		return true, nil
	}
	var may bool
	if err := s.Pool.QueryRow(ctx, `select gateway.begin_sealing()`).Scan(&may); err != nil {
		return false, pg.Err(err)
	}
	s.Bodies.Clear.Store(!may)
	return may, nil
}

// Run works until ctx ends. It returns nil.
func (s *Sealer) Run(ctx context.Context) error {
	for {
		pause := askEvery
		may, err := s.Begin(ctx)
		if err == nil && may {
			pause = sealEvery
			_, err = s.Once(ctx)
		}
		if err != nil && ctx.Err() == nil && !errs.Is(err, errs.Unavailable) {
			s.Log.WarnContext(ctx, "cannot seal bodies by the active keys; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// Once goes through all bodies that are not sealed by an active key, and returns how many it sealed.
func (s *Sealer) Once(ctx context.Context) (done int, err error) {
	failed := 0
	for _, kind := range append(bodies.Kinds(), bodies.Question, bodies.Webhook) {
		var last tenantRow
		for {
			list, err := s.next(ctx, kind, last)
			if err != nil {
				return done, err
			}
			n, bad, err := s.seal(ctx, list)
			done, failed = done+n, failed+bad
			if err != nil {
				return done, err
			}
			if len(list) < sealBatch {
				break
			}
			last = list[len(list)-1]
		}
	}
	if done > 0 {
		s.Log.InfoContext(ctx, "sealed bodies by the active keys", "rows", done)
	}
	if failed != s.failed {
		s.failed = failed
		s.Log.WarnContext(ctx, "some bodies are sealed by keys that are not set here, are damaged, or are in the clear and must not be", "rows", failed)
	}
	if err := s.end(ctx); err != nil {
		return done, err
	}
	return done, s.count(ctx)
}

// end has the record say of which kinds all bodies are sealed. From then on nobody believes one in the clear, and it is
// not sealed here either: it came from somebody who has no key.
func (s *Sealer) end(ctx context.Context) error {
	var ended []string
	if err := s.Pool.QueryRow(ctx, `select gateway.end_sealing()`).Scan(&ended); err != nil {
		return pg.Err(err)
	}
	if len(ended) > 0 {
		s.Log.InfoContext(ctx, "all bodies of these kinds are sealed; none in the clear is believed from now on", "kinds", ended)
	}
	return nil
}

// count says how many bodies are in the clear.
func (s *Sealer) count(ctx context.Context) error {
	var n int64
	if err := s.Pool.QueryRow(ctx, `select gateway_api.clear_bodies()`).Scan(&n); err != nil {
		return pg.Err(err)
	}
	s.clear.Record(ctx, n)
	return nil
}

// tenantRow is a row with whose it is.
type tenantRow struct {
	Tenant string
	bodies.Row
}

// next reads the rows behind one, in the order of the index of keys.
func (s *Sealer) next(ctx context.Context, kind bodies.Kind, last tenantRow) ([]tenantRow, error) {
	query := `select tenant, commitment, kind, key_id, salt, body, kind = ` + bodies.OnlySealed + ` from gateway.bodies
		where kind = $1 and key_id <> $2 and (key_id, tenant, commitment) > ($3, $4, $5)
		order by key_id, tenant, commitment limit $6`
	switch kind {
	case bodies.Configuration, bodies.Source, bodies.Annotations, bodies.Reason:
	case bodies.Answer: // it ends by itself, within a day
	case bodies.Webhook:
		query = `select tenant, name, $1, key_id, ''::bytea, sealed, $1 = ` + bodies.OnlySealed + ` from gateway.webhooks
			where key_id <> $2 and (key_id, tenant, name) > ($3, $4, $5) order by key_id, tenant, name limit $6`
	case bodies.Question:
		query = `select tenant, id::text, $1, key_id, ''::bytea, request, $1 = ` + bodies.OnlySealed + ` from gateway.previews
			where key_id <> $2 and (key_id, tenant, id::text) > ($3, $4, $5) order by key_id, tenant, id::text limit $6`
	}
	rows, err := s.Pool.Query(ctx, query, kind, s.Bodies.Keys.Active(kind), last.KeyID, last.Tenant, last.Commitment,
		sealBatch)
	if err != nil {
		return nil, pg.Err(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[tenantRow])
	return list, pg.Err(err)
}

// seal replaces rows, each for itself: one that cannot be opened stays as it is, and the others go on.
func (s *Sealer) seal(ctx context.Context, list []tenantRow) (done, failed int, err error) {
	var batch pgx.Batch
	for _, was := range list {
		plain, err := s.Bodies.Keys.Clear(was.Tenant, was.Row)
		if err != nil {
			failed++
			continue
		}
		now, err := s.Bodies.Keys.Seal(was.Tenant, plain)
		if err != nil {
			return 0, failed, err
		}
		statement := `update gateway.bodies set key_id = $4, body = $5, salt = $6
			where tenant = $1 and commitment = $2 and key_id = $3`
		switch was.Kind {
		case bodies.Configuration, bodies.Source, bodies.Annotations, bodies.Reason:
		case bodies.Answer: // it ends by itself, within a day
		case bodies.Webhook:
			// Another process may have set it meanwhile: bodies and previews never change, a webhook does.
			statement = `update gateway.webhooks set key_id = $4, sealed = $5
				where tenant = $1 and name = $2 and key_id = $3 and $6::bytea is not null and sealed = $7`
		case bodies.Question:
			statement = `update gateway.previews set key_id = $4, request = $5
				where tenant = $1 and id::text = $2 and key_id = $3 and $6::bytea is not null`
		}
		arguments := []any{was.Tenant, was.Commitment, was.KeyID, now.KeyID, now.Body, now.Salt}
		if was.Kind == bodies.Webhook {
			arguments = append(arguments, was.Body)
		}
		batch.Queue(statement, arguments...).
			Exec(func(tag pgconn.CommandTag) error {
				done += int(tag.RowsAffected())
				return nil
			})
	}
	if batch.Len() == 0 {
		return 0, failed, nil
	}
	return done, failed, s.Pool.Send(ctx, &batch)
}
