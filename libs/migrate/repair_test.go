package migrate_test

import (
	"io/fs"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/migrations"
)

// gatewayWith is the gateway's folder with some more files.
func gatewayWith(t *testing.T, more map[string]string) fs.FS {
	t.Helper()
	folder := fstest.MapFS{}
	sub, err := fs.Sub(migrations.FS, "gateway")
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(sub, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		body, err := fs.ReadFile(sub, n)
		if err != nil {
			t.Fatal(err)
		}
		folder[n] = &fstest.MapFile{Data: body}
	}
	for n, body := range more {
		folder[n] = &fstest.MapFile{Data: []byte(body)}
	}
	return folder
}

func upGateway(t *testing.T, d *pgtest.Database, more map[string]string) error {
	t.Helper()
	return migrate.UpFolder(t.Context(), d.URL(pgtest.Admin), "gateway", gatewayWith(t, more),
		slog.New(slog.DiscardHandler))
}

func exec(t *testing.T, p *pg.Pool, sql string) {
	t.Helper()
	if _, err := p.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// A run that failed in the middle of a file leaves nothing of it behind; once the file is fixed the
// next run carries it out, without a person touching the books.
func TestRepairAfterAFailure(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	admin := d.Pool(t, pgtest.Admin)
	broken := map[string]string{
		"9001_more.up.sql":   "create table gateway.more (n int);\ncreate tabel gateway.typo (n int);",
		"9001_more.down.sql": "",
	}
	err := upGateway(t, d, broken)
	if err == nil || !strings.Contains(err.Error(), "line 2") ||
		!strings.Contains(err.Error(), `syntax error at or near "tabel"`) {
		t.Fatalf("broken file: %v", err)
	}
	if _, err := admin.Exec(t.Context(), "select from gateway.more"); err == nil {
		t.Fatal("half of the broken file has taken effect")
	}
	var dirty bool
	if err := admin.QueryRow(t.Context(), "select dirty from gateway.schema_migrations").Scan(&dirty); err != nil ||
		!dirty {
		t.Fatalf("dirty %v %v", dirty, err)
	}
	fixed := maps.Clone(broken)
	fixed["9001_more.up.sql"] = strings.ReplaceAll(broken["9001_more.up.sql"], "tabel", "table")
	for range 2 {
		if err := upGateway(t, d, fixed); err != nil {
			t.Fatalf("fixed file: %v", err)
		}
	}
	exec(t, admin, "select from gateway.more, gateway.typo")
}

// A process that died just behind a file, before golang-migrate noted it: the file is not run again.
func TestRepairAfterSuccess(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	admin := d.Pool(t, pgtest.Admin)
	files := map[string]string{"9001_more.up.sql": "create table gateway.more (n int)", "9001_more.down.sql": ""}
	if err := upGateway(t, d, files); err != nil {
		t.Fatal(err)
	}
	exec(t, admin, "update gateway.schema_migrations set dirty = true")
	files["9002_further.up.sql"], files["9002_further.down.sql"] = "alter table gateway.more add m int -- without a "+
		"newline", ""
	if err := upGateway(t, d, files); err != nil {
		t.Fatal(err)
	}
	exec(t, admin, "select n, m from gateway.more")
}

// A process that died before its first file took effect.
func TestRepairOfTheFirst(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	admin := d.Pool(t, pgtest.Admin)
	exec(t, admin, "create schema fresh authorization chandler_owner")
	exec(t, admin,
		"create table fresh.migrations_applied (version bigint primary key, file text not null, digest text not null)")
	exec(t, admin, "alter table fresh.migrations_applied owner to chandler_owner")
	run := func(body string) error {
		folder := fstest.MapFS{"0001_first.up.sql": {Data: []byte(body)}, "0001_first.down.sql": {}}
		return migrate.UpFolder(t.Context(), d.URL(pgtest.Admin), "fresh", folder, slog.New(slog.DiscardHandler))
	}
	if err := run("select 1/0"); err == nil {
		t.Fatal("no error")
	}
	if err := run("create table fresh.t (n int)"); err != nil {
		t.Fatal(err)
	}
	exec(t, admin, "select from fresh.t")
}

// A file that was carried out in another wording is refused: the tables are not what the code expects.
func TestChangedFileIsRefused(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	files := map[string]string{"9001_more.up.sql": "create table gateway.more (n int)", "9001_more.down.sql": ""}
	if err := upGateway(t, d, files); err != nil {
		t.Fatal(err)
	}
	files["9001_more.up.sql"] = "create table gateway.more (n bigint)"
	if err := upGateway(t, d, files); !errs.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(),
			"migration gateway/9001_more.up.sql was changed after it had been carried out here") {
		t.Errorf("%v", err)
	}
}
