package migrate_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/migrations"
)

// withoutTenant are the tables that hold no tenant's data, with the reason.
var withoutTenant = map[string]string{
	"schema_migrations":     "golang-migrate's book",
	"migrations_applied":    "the book of migrations",
	"eventlog.schema_info":  "what the schemas are",
	"eventlog.event_types":  "the registry, the same for all",
	"eventlog.epochs":       "history of the record as a whole",
	"eventlog.partitions":   "which positions stand where",
	"eventlog.incidents":    "what happened to the server of the record",
	"eventlog.server":       "which server the record stands on",
	"eventlog.sequencer":    "the one row that gives positions to all",
	"eventlog.installation": "who the installation is, the same for all",
	"eventlog.coming_types": "the registry, the same for all",
	"eventlog.readers":      "which processes read the log",
	"eventlog.models":       "which versions of read models have tables",
	"eventlog.needs":        "what processes have to know",
	"gateway.sealed_kinds":  "which kinds of bodies are sealed, for all",
	"eventlog.service_keys": "public keys of processes",
	"eventlog.rebuilds":     "what services are asked to do for all tenants",
	"eventlog.stops":        "losing commits concerns everybody; its tenant column says whom a stop is for",
}

// DESIGN D10: a tenant column and row-level security on every table, from the first migration, also for its owner, with
// whose rights functions and views run.
func TestEveryTableHasATenant(t *testing.T) {
	t.Parallel()
	admin := pgtest.DB(t).Pool(t, pgtest.Admin)
	for _, schema := range migrations.Schemas() {
		rows, err := admin.Query(t.Context(), `
			select c.relname::text, c.relrowsecurity and c.relforcerowsecurity, pg_get_userbyid(c.relowner)::text,
			  exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant' and a.attnotnull
			  and a.atttypid = 'text'::regtype),
			  coalesce((select string_agg(p.polname || ': ' || pg_get_expr(p.polqual, c.oid), '; ') from pg_policy p
			  where p.polrelid = c.oid), '')
			from pg_class c where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
			order by 1`, schema)
		if err != nil {
			t.Fatal(err)
		}
		var name, owner, policy string
		var secured, tenant bool
		_, err = pgx.ForEachRow(rows, []any{&name, &secured, &owner, &tenant, &policy}, func() error {
			full := schema + "." + name
			if owner != migrate.Owner {
				t.Errorf("%s belongs to %s", full, owner)
			}
			if withoutTenant[name]+withoutTenant[full] != "" {
				return nil
			}
			if !tenant {
				t.Errorf("%s has no column tenant text not null", full)
			}
			if strings.HasPrefix(policy, "tenant: ") && !strings.Contains(policy, "tenant = ( SELECT") {
				t.Errorf("%s: whose rows a statement sees is found out for each row (policy %s)", full, policy)
			}
			if !secured || !strings.HasPrefix(policy, "tenant: ") || !strings.Contains(policy, "chandler.tenant") {
				t.Errorf("%s is not protected (policies %q): select eventlog.protect('%s')", full, policy, full)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Views run with the owner's rights: each must keep tenants apart itself, and let no function of a
// reader see rows before that.
func TestEveryViewKeepsTenantsApart(t *testing.T) {
	t.Parallel()
	admin := pgtest.DB(t).Pool(t, pgtest.Admin)
	rows, err := admin.Query(t.Context(), `select n.nspname || '.' || c.relname, pg_get_viewdef(c.oid),
		coalesce(array_to_string(c.reloptions, ','), '')
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'v' and n.nspname not in ('pg_catalog', 'information_schema') order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	var name, text, options string
	_, err = pgx.ForEachRow(rows, []any{&name, &text, &options}, func() error {
		if !strings.Contains(text, "current_setting('chandler.tenant'::text, true)") {
			t.Errorf("view %s has no condition on chandler.tenant", name)
		}
		if !strings.Contains(options, "security_barrier=true") && !strings.Contains(options, "security_barrier=on") {
			t.Errorf("view %s is no security_barrier (options %q)", name, options)
		}
		if schema, _, _ := strings.Cut(name, "."); !strings.HasSuffix(schema, "_api") {
			t.Errorf("view %s stands outside of an _api schema", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Functions with the owner's rights name their search_path, so that no caller's objects get into them.
func TestDefinerFunctionsFixTheirPath(t *testing.T) {
	t.Parallel()
	admin := pgtest.DB(t).Pool(t, pgtest.Admin)
	rows, err := admin.Query(t.Context(), `select p.oid::regprocedure::text from pg_proc p
		join pg_namespace n on n.oid = p.pronamespace
		where p.prosecdef and n.nspname not in ('pg_catalog', 'information_schema')
		and not coalesce(array_to_string(p.proconfig, ',') like '%search_path=%', false)`)
	if err != nil {
		t.Fatal(err)
	}
	bad, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(bad) > 0 {
		t.Errorf("security definer without search_path: %v %v", bad, err)
	}
}

// Files are numbered without gaps, in pairs, and hold nothing that leaves their transaction.
func TestMigrationFiles(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^(\d{4})_([a-z0-9_]+)\.(up|down)\.sql$`)
	leaves := regexp.MustCompile(`(?im)^\s*(begin|commit|rollback|start transaction)\s*;|\bconcurrently\b`)
	for _, schema := range migrations.Schemas() {
		names, err := fs.Glob(migrations.FS, schema+"/*.sql")
		if err != nil {
			t.Fatal(err)
		}
		var ups, downs []string
		for _, n := range names {
			m := form.FindStringSubmatch(strings.TrimPrefix(n, schema+"/"))
			if m == nil {
				t.Errorf("%s: its name must be NNNN_title.up.sql or NNNN_title.down.sql", n)
				continue
			}
			if m[3] == "up" {
				ups = append(ups, m[1]+"_"+m[2])
			} else {
				downs = append(downs, m[1]+"_"+m[2])
			}
			body, err := fs.ReadFile(migrations.FS, n)
			if err != nil {
				t.Fatal(err)
			}
			concurrent, err := migrate.ConcurrentStatements(body)
			if err != nil {
				t.Errorf("%s: %v", n, err)
			}
			if found := leaves.Find(body); found != nil && concurrent == nil {
				t.Errorf("%s: %q leaves the transaction of the file", n, found)
			}
		}
		if !slices.Equal(ups, downs) {
			t.Errorf("%s: up %v, down %v: want pairs", schema, ups, downs)
		}
		for i, n := range ups {
			if want := fmt.Sprintf("%04d_", i+1); !strings.HasPrefix(n, want) {
				t.Errorf("%s: migration %s, want number %s", schema, n, want)
			}
		}
	}
}

// Every down migration undoes its up migration: down all the way leaves nothing but the books, and up works again.
func TestDownAndUpAgain(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	admin := d.Pool(t, pgtest.Admin)
	all := migrations.Schemas()
	for _, schema := range slices.Backward(all) {
		names, err := fs.Glob(migrations.FS, schema+"/*.down.sql")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range slices.Backward(names) {
			body, err := fs.ReadFile(migrations.FS, n)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := admin.Exec(t.Context(), string(body)); err != nil {
				t.Fatalf("%s: %v", n, err)
			}
		}
		for _, s := range []string{schema, schema + "_api"} {
			for _, left := range tables(t, admin, s) {
				if !books(left) {
					t.Errorf("%s.%s is left", s, left)
				}
			}
		}
		var functions int
		if err := admin.QueryRow(t.Context(), "select count(*) from pg_proc where pronamespace = $1::regnamespace",
			schema).Scan(&functions); err != nil || functions != 0 {
			t.Errorf("%d functions of %s are left (%v)", functions, schema, err)
		}
		if len(names) > 0 {
			if _, err := admin.Exec(t.Context(), fmt.Sprintf(
				"truncate %[1]s.schema_migrations, %[1]s.migrations_applied", schema)); err != nil {
				t.Fatal(err)
			}
		}
	}
	up(t, d)
}
