package e2e

import (
	"github.com/jackc/pgx/v5/pgxpool"
)

// database looks at the record directly, for what no service can be asked while it is down.
func (w *world) database() *pgxpool.Pool {
	pool, err := pgxpool.New(w.ctx, w.Postgres().AdminURL())
	if err != nil {
		panic(err) // an address that we made ourselves
	}
	w.t.Cleanup(pool.Close)
	return pool
}
