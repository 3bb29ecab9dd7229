package eventlog_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

// DESIGN §3: writers emit a new version only when the readers alive know it. Two binaries run on one database, an old
// one that lacks a type and a new one that has it: the type is refused, as something that succeeds later, until the old
// one has gone, in good order or by being dead for a minute.
func TestNewTypesWaitForAllReaders(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	admin, gateway := d.Pool(t, "admin"), d.Pool(t, "gateway")
	log := eventlog.New(gateway)
	fresh := events.CatalogAdded{Name: "one"}.EventType()
	var old []events.Type
	for _, e := range events.All() {
		if e.Type != fresh {
			old = append(old, e.Type)
		}
	}
	// As before the release that brings the type.
	if _, err := admin.Exec(t.Context(), `delete from eventlog.event_types where type = $1`, fresh); err != nil {
		t.Fatal(err)
	}
	said := &bytes.Buffer{}
	reader := func(version string, types []events.Type) *eventlog.Reader {
		r := &eventlog.Reader{
			Pool: d.Pool(t, "resolver"), Service: "resolver", Version: version, Types: types,
			Log: slog.New(slog.NewTextHandler(said, nil)),
		}
		if err := r.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		return r
	}
	leave := func(r *eventlog.Reader) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	}
	write := func(name string) error {
		id := events.StreamID{
			Kind: events.KindCatalog, Key: events.Key(events.DefaultTenant, events.KindCatalog, name), Incarnation: 1,
		}
		m := events.Meta{Tenant: events.DefaultTenant, Source: events.Gateway, Command: uuid.New(), Time: time.Now()}
		return gateway.Tx(t.Context(), func(tx pgx.Tx) error {
			_, err := log.Append(t.Context(), tx, m, id, name, 0, events.CatalogAdded{Name: name})
			return err
		})
	}
	// A writer that can write either takes the older one until then.
	writes := func(want events.Payload) {
		t.Helper()
		got, err := log.Newest(t.Context(), gateway, events.CatalogAdded{Name: "one"}, events.CatalogChanged{})
		if err != nil || got.EventType() != want.EventType() {
			t.Errorf("a writer of two versions chooses %v (%v), want %s", got, err, want.EventType())
		}
	}
	if _, err := log.Newest(t.Context(), gateway, events.CatalogAdded{}); !errs.Is(err, errs.Unavailable) {
		t.Errorf("a version that nobody may write, and no other: %v", err)
	}
	first, second := reader("0.1.0", old), reader("0.1.0", old)
	if err := migrate.Up(t.Context(), d.URL("admin"), migrate.Options{Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	next := reader("0.2.0", nil)
	for _, gone := range []*eventlog.Reader{first, second} {
		err := write("one")
		if !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "resolver 0.1.0") {
			t.Errorf("while an old reader lives: %v", err)
		}
		writes(events.CatalogChanged{})
		if gone == first {
			leave(gone)
			continue
		}
		// It dies without a word.
		if _, err := admin.Exec(t.Context(), `update eventlog.readers set seen = now() - interval '61 seconds'
			where version = '0.1.0'`); err != nil {
			t.Fatal(err)
		}
	}
	if err := next.Begin(t.Context()); err != nil { // its next sign of life
		t.Fatal(err)
	}
	writes(events.CatalogAdded{})
	if err := write("one"); err != nil {
		t.Errorf("when all readers know it: %v", err)
	}
	// An old one that comes late is told what it may meet.
	leave(reader("0.1.0", old))
	text := said.String()
	if strings.Count(text, "types of a later release") != 1 || !strings.Contains(text, string(fresh)) {
		t.Errorf("it said %q", text)
	}
}
