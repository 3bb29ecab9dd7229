// Package viewtest gives tests of read models a PostgreSQL of their own, and folds events into it as a projection does.
// Only tests import it.
package viewtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Ann is of the tenant whose events are folded, Eve of another, which must see nothing of them.
var (
	Ann = model.Caller{Tenant: events.DefaultTenant, Actor: "ann", Rights: access.Everything()}
	Eve = model.Caller{Tenant: "other", Actor: "eve", Rights: access.Everything()}
)

// Env is a database with the projections of read models.
type Env struct {
	T           *testing.T
	DB          *pgtest.Database
	Pool        *pg.Pool
	Projections []projection.Projection

	n        int64 // events so far
	versions map[events.StreamID]int64
}

// Start is one second before the first event; each event is a second later than the one before.
var Start = time.Date(2031, 2, 3, 12, 0, 0, 0, time.UTC)

// New makes an environment.
func New(t *testing.T, projections ...projection.Projection) *Env {
	t.Helper()
	d := pgtest.DB(t)
	places := make([]string, len(projections))
	for i, p := range projections {
		places[i] = p.Place()
	}
	e := &Env{
		T: t, DB: d, Pool: d.Pool(t, "gateway", pg.WithSearchPath(places...)), Projections: projections,
		versions: map[events.StreamID]int64{},
	}
	for _, p := range projections { // of an empty log
		r, err := projection.New(p, projection.Deps{Log: eventlog.New(e.Pool), Pool: e.Pool})
		if err == nil {
			err = r.Rebuild(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// At is the time of the event with a number; the first one is 1. Its id is Event.
func At(n int64) time.Time { return Start.Add(time.Duration(n) * time.Second) }

// Event is the id of the event with a number.
func Event(n int64) string { return fmt.Sprintf("e%d", n) }

// Fold folds events of one stream into every projection that reads them.
func (e *Env) Fold(kind events.Kind, subject string, payloads ...events.Payload) {
	e.T.Helper()
	for _, p := range payloads {
		if err := e.Try(kind, subject, p); err != nil {
			e.T.Fatalf("%s of %s: %v", p.EventType(), subject, err)
		}
	}
}

// Try folds one event, which may be refused.
func (e *Env) Try(kind events.Kind, subject string, p events.Payload) error {
	e.T.Helper()
	id := events.StreamID{Kind: kind, Key: events.Key(Ann.Tenant, kind, subject), Incarnation: 1}
	e.n++
	e.versions[id]++
	r := eventlog.Recorded{
		Envelope: events.Envelope{
			ID: Event(e.n), Tenant: Ann.Tenant, Type: p.EventType(), Subject: subject, Stream: id.String(),
			Version: e.versions[id], Actor: Ann.Actor, Time: At(e.n),
		},
		StreamID: id, Position: events.Position{Epoch: 1, N: e.n}, Payload: p,
	}
	return e.apply(r)
}

func (e *Env) apply(r eventlog.Recorded) error {
	return e.Pool.Tx(e.T.Context(), func(tx pgx.Tx) error {
		for _, p := range e.Projections {
			for _, t := range p.Types {
				if t != r.Type {
					continue
				}
				if err := p.Apply(e.T.Context(), tx, p.Live(), r); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Exec runs a statement as the superuser, for what other services keep.
func (e *Env) Exec(sql string, args ...any) {
	e.T.Helper()
	if _, err := e.DB.Pool(e.T, pgtest.Admin).Exec(e.T.Context(), sql, args...); err != nil {
		e.T.Fatal(err)
	}
}
