package pg

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// MaxConns is how many connections a pool opens at most. Four services with two replicas each, of which the gateway has
// more, stay below PostgreSQL's default of 100 in sum, with room for an upgrade and for people.
const MaxConns = 8

// The gateway has two pools.
const (
	// WorkConns is MaxConns of what it does for all tenants: one for each projection, two for the log. Whose a token is
	// takes one of them for a moment.
	WorkConns = 10
	// RequestConns is MaxConns of requests, which take some milliseconds each.
	RequestConns = 9
)

// Option changes how a pool is opened.
type Option func(*options)

type options struct {
	log  *slog.Logger
	max  int32
	name string
	path []string
	// setting is what gives the URL.
	setting string
	// tenant of sessions, nil for that of the role.
	tenant *string
	// answer is how long a statement may take.
	answer time.Duration
}

// WithLog says where waiting for the database is mentioned; the default is slog.Default().
func WithLog(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// WithMaxConns bounds the connections of the pool; the default is MaxConns.
func WithMaxConns(n int) Option { return func(o *options) { o.max = int32(n) } }

// WithAnswerLimit bounds how long a statement may take until its answer is there; the default is a minute.
func WithAnswerLimit(d time.Duration) Option { return func(o *options) { o.answer = d } }

// WithName sets application_name, by which an operator recognises the sessions in pg_stat_activity.
func WithName(name string) Option { return func(o *options) { o.name = name } }

// WithSearchPath says in which schemas the sessions find tables that a statement names without one, instead of what is
// set for the role. Temporary tables are found by pg_temp alone.
func WithSearchPath(schemas ...string) Option { return func(o *options) { o.path = schemas } }

// WithSetting names what gives the URL, in errors; the default is CHANDLER_DATABASE_URL.
func WithSetting(name string) Option { return func(o *options) { o.setting = name } }

// WithoutTenant has sessions begin with no tenant, whatever is set for the role: outside of TenantTx they see nothing.
func WithoutTenant() Option { return func(o *options) { o.tenant = new(string) } }

func collect(opts []Option) options {
	o := options{log: slog.Default(), max: MaxConns, answer: answerLimit, setting: "CHANDLER_DATABASE_URL"}
	for _, f := range opts {
		f(&o)
	}
	return o
}

func (o options) apply(cfg *pgxpool.Config) {
	cfg.MaxConns = o.max
	cfg.PingTimeout = pingTimeout
	cfg.ConnConfig.ConnectTimeout = connectTimeout
	cfg.ConnConfig.DialFunc = dialer().DialContext
	cfg.ConnConfig.Tracer = deadline{o.answer}
	if o.name != "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = o.name
	}
	if o.tenant != nil {
		cfg.ConnConfig.RuntimeParams["chandler.tenant"] = *o.tenant
	}
	if len(o.path) > 0 {
		quoted := make([]string, 0, len(o.path)+1)
		for _, schema := range append(slices.Clip(o.path), "pg_temp") {
			quoted = append(quoted, pgx.Identifier{schema}.Sanitize())
		}
		cfg.ConnConfig.RuntimeParams["search_path"] = strings.Join(quoted, ", ")
	}
}
