// Package intenttest gives tests of intents an event log on a PostgreSQL of their own. Only tests import it.
package intenttest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Ann and Bob are two people of one tenant; Eve is of another, which must see and change nothing of the first.
var (
	Ann = model.Caller{Tenant: events.DefaultTenant, Actor: "ann", Rights: access.Everything()}
	Bob = model.Caller{Tenant: events.DefaultTenant, Actor: "bob", Rights: access.Everything()}
	Eve = model.Caller{Tenant: "other", Actor: "eve", Rights: access.Everything()}
)

// Kubeconfig is one that a cluster can be registered with.
const Kubeconfig = `apiVersion: v1
kind: Config
current-context: main
clusters: [{name: c, cluster: {server: "https://harbour.example.org:6443"}}]
users: [{name: u, user: {token: s3cr3t-token}}]
contexts: [{name: main, context: {cluster: c, user: u}}]
`

// Env is a database with what services are made of.
type Env struct {
	T         *testing.T
	DB        *pgtest.Database
	Units     *unit.Runner
	Clusters  *clusters.Service
	Recipient string    // of an age key
	Now       time.Time // what the clock of Units says
}

// New makes an environment in which it is noon.
func New(t *testing.T) *Env {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{
		T: t, DB: pgtest.DB(t), Recipient: id.Recipient().String(),
		Now: time.Date(2031, 2, 3, 12, 0, 0, 0, time.UTC),
	}
	credentials, err := store.NewCredentials(e.Recipient)
	if err != nil {
		t.Fatal(err)
	}
	pool := e.DB.Pool(t, "gateway")
	e.Units = &unit.Runner{
		Pool: e.DB.Pool(t, "gateway-api"), Work: pool, Log: eventlog.New(pool),
		Clock: func() time.Time { return e.Now }, NewID: uuid.New, Slog: slog.New(slog.DiscardHandler),
		Bodies: store.Bodies{Keys: bodiestest.Keys(t)},
	}
	e.Clusters = &clusters.Service{Units: e.Units, Credentials: credentials}
	return e
}

// Register registers a cluster as Ann.
func (e *Env) Register(name string) {
	e.T.Helper()
	in := model.RegisterCluster{Name: name, Kubeconfig: Kubeconfig}
	if _, err := e.Clusters.Register(e.T.Context(), Ann, in); err != nil {
		e.T.Fatal(err)
	}
}

// Fact appends events of another service to a stream, in the first tenant.
func (e *Env) Fact(w events.Writer, kind events.Kind, key, subject string, payloads ...events.Payload) {
	e.T.Helper()
	ctx := e.T.Context()
	role := w
	if w == events.Fleet { // the controller runs in the resolver
		role = events.Resolver
	}
	pool := e.DB.Pool(e.T, string(role))
	log := eventlog.New(pool)
	err := pool.Tx(ctx, func(tx pgx.Tx) error {
		head, err := log.Latest(ctx, tx, Ann.Tenant, kind, key)
		if err != nil {
			return err
		}
		id, version := head.Create(), int64(0)
		if head.Exists() {
			id, version = head.ID, head.Version
		}
		m := events.Meta{Tenant: Ann.Tenant, Source: w, Command: uuid.New(), Time: e.Now}
		_, err = log.Append(ctx, tx, m, id, subject, version, payloads...)
		return err
	})
	if err != nil {
		e.T.Fatal(err)
	}
}

// Events are the types of the events of a key's last stream, in their order; none where it was never opened.
func (e *Env) Events(who model.Caller, kind events.Kind, key string) []events.Type {
	e.T.Helper()
	var out []events.Type
	for _, r := range e.Recorded(who, kind, key) {
		out = append(out, r.Type)
	}
	return out
}

// Recorded are the events of a key's last stream.
func (e *Env) Recorded(who model.Caller, kind events.Kind, key string) (out []eventlog.Recorded) {
	e.T.Helper()
	ctx := e.T.Context()
	err := e.Units.Once(ctx, who, func(u *unit.Work) error {
		head, err := e.Units.Log.Latest(ctx, u.Tx, who.Tenant, kind, key)
		if err != nil || head.Version == 0 {
			return err
		}
		out, err = e.Units.Log.ReadStream(ctx, u.Tx, who.Tenant, head.ID, 0)
		return err
	})
	if err != nil {
		e.T.Fatal(err)
	}
	return out
}

// Count runs a query that counts, as the superuser.
func (e *Env) Count(query string, args ...any) (n int) {
	e.T.Helper()
	if err := e.DB.Pool(e.T, pgtest.Admin).QueryRow(e.T.Context(), query, args...).Scan(&n); err != nil {
		e.T.Fatal(err)
	}
	return n
}

// In runs do in a unit of work of a caller.
func (e *Env) In(who model.Caller, do func(ctx context.Context, u *unit.Work) error) error {
	return e.Units.Run(e.T.Context(), who, "test", do)
}
