package pg

import (
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
)

// maxConns is how many connections a pool opens at most. Four services with two replicas each stay
// below PostgreSQL's default of 100 in sum.
const maxConns = 10

// Option changes how a pool is opened.
type Option func(*options)

type options struct {
	log  *slog.Logger
	max  int32
	name string
}

// WithLog says where waiting for the database is mentioned; the default is slog.Default().
func WithLog(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// WithMaxConns bounds the connections of the pool; the default is 10.
func WithMaxConns(n int) Option { return func(o *options) { o.max = int32(n) } }

// WithName sets application_name, by which an operator recognises the sessions in pg_stat_activity.
func WithName(name string) Option { return func(o *options) { o.name = name } }

func collect(opts []Option) options {
	o := options{log: slog.Default(), max: maxConns}
	for _, f := range opts {
		f(&o)
	}
	return o
}

func (o options) apply(cfg *pgxpool.Config) {
	cfg.MaxConns = o.max
	if o.name != "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = o.name
	}
}
