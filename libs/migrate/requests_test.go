package migrate_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

// TestRequestsSeeOneTenant: on every table and view that it may read, the role of requests sees rows of the tenant of
// its transaction, nothing without one, and nothing as the tenant of all. Constraints and triggers are taken away, so
// that each table, those of tomorrow included, takes a row that is nothing but its tenant.
func TestRequestsSeeOneTenant(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	admin := d.Pool(t, pgtest.Admin)
	if _, err := admin.Exec(t.Context(), `do $$
		declare
			r record;
			col record;
		begin
			for r in select c.conrelid::regclass as of, c.conname from pg_constraint c
				join pg_namespace n on n.oid = c.connamespace join pg_class k on k.oid = c.conrelid
				where c.contype in ('c', 'p', 'u', 'f') and c.conislocal and not k.relispartition
				and n.nspname in ('eventlog', 'catalog', 'resolver', 'installer', 'gateway')
			loop
				execute format('alter table %s drop constraint if exists %I cascade', r.of, r.conname);
			end loop;
			for r in select k.oid::regclass as of, k.oid, k.relkind from pg_class k join pg_namespace n on n.oid = k.relnamespace
				where k.relkind in ('r', 'p') and not k.relispartition
				and n.nspname in ('eventlog', 'catalog', 'resolver', 'installer', 'gateway')
				and exists (select from pg_attribute a where a.attrelid = k.oid and a.attname = 'tenant')
			loop
				for col in select a.attname from pg_attribute a where a.attrelid = r.oid and a.attnum > 0 and a.attnotnull
					and a.attidentity = '' and a.attname <> 'tenant' and not a.attisdropped
				loop
					execute format('alter table %s alter column %I drop not null', r.of, col.attname);
				end loop;
				if r.relkind = 'p' then
					execute format('create table public.%I partition of %s default', 'rest_' || r.oid, r.of);
				end if;
				execute format('alter table %s disable trigger user', r.of);
				execute format('delete from %s', r.of);
				execute format('insert into %s (tenant) values (''a''), (''b''), (''*'')', r.of);
			end loop;
		end $$`); err != nil {
		t.Fatal(err)
	}
	rows, err := admin.Query(t.Context(), `select k.oid::regclass::text, k.relkind = 'v' from pg_class k
		join pg_namespace n on n.oid = k.relnamespace join pg_attribute a on a.attrelid = k.oid and a.attname = 'tenant'
		where k.relkind in ('r', 'p', 'v', 'm') and has_schema_privilege($1, n.oid, 'usage')
		and has_table_privilege($1, k.oid, 'select') and n.nspname not in ('pg_catalog', 'information_schema', 'public')
		order by 1`, migrate.GatewayRequests)
	if err != nil {
		t.Fatal(err)
	}
	type relation struct {
		Name string
		View bool
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[relation])
	if err != nil || len(list) < 50 {
		t.Fatalf("the role may read %d relations (%v)", len(list), err)
	}
	requests, work := d.Pool(t, "gateway-api"), d.Pool(t, "gateway")
	tenants := func(p *pg.Pool, of, tenant string) (seen []string) {
		t.Helper()
		err := p.TenantTx(t.Context(), tenant, func(tx pgx.Tx) error {
			rows, err := tx.Query(t.Context(), `select distinct tenant from `+of+` order by 1`)
			if err == nil {
				seen, err = pgx.CollectRows(rows, pgx.RowTo[string])
			}
			return err
		})
		if err != nil {
			t.Errorf("%s as %q: %v", of, tenant, err)
		}
		return seen
	}
	for _, r := range list {
		if withoutTenant[r.Name] != "" {
			continue
		}
		var n int
		if err := requests.QueryRow(t.Context(), `select count(*) from `+r.Name).Scan(&n); err != nil || n > 0 {
			t.Errorf("without a tenant the role of requests sees %d rows of %s (%v)", n, r.Name, err)
		}
		for _, nobody := range []string{"", "*"} {
			if got := tenants(requests, r.Name, nobody); len(got) > 0 {
				t.Errorf("as tenant %q the role of requests sees rows of %q in %s", nobody, got, r.Name)
			}
		}
		got, all := tenants(requests, r.Name, "a"), tenants(work, r.Name, "*")
		if !r.View && (!slices.Equal(got, []string{"a"}) || len(all) != 3) {
			t.Errorf("of %s the role of requests sees %q as a, and the gateway %q", r.Name, got, all)
		}
		if r.View && slices.ContainsFunc(got, func(s string) bool { return s != "a" }) {
			t.Errorf("as a the role of requests sees rows of %q in %s", got, r.Name)
		}
	}
	// Nor can it write rows of another.
	for _, tenant := range []string{"", "*", "a"} {
		err := requests.TenantTx(t.Context(), tenant, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `insert into gateway.tokens (tenant) values ('b')`)
			return err
		})
		if err == nil {
			t.Errorf("as tenant %q the role of requests writes a row of b", tenant)
		}
	}
}

// TestRequestsStayWhoTheyAre: what a statement can do to its session gives the role of requests no other tenant's rows,
// and functions with the owner's rights do not take it for all tenants either.
func TestRequestsStayWhoTheyAre(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	if _, err := d.Pool(t, pgtest.Admin).Exec(t.Context(), `insert into gateway.tokens (tenant, id, hash, role)
		values ('b', 'token-b', 'b', 'admin')`); err != nil {
		t.Fatal(err)
	}
	requests := d.Pool(t, "gateway-api")
	for _, attack := range []string{
		`select set_config('chandler.tenant', '*', false)`,
		`select set_config('role', 'chandler_gateway', false)`,
		`set role chandler_gateway`,
		`set session authorization chandler_gateway`,
		`reset all`,
	} {
		err := requests.AcquireFunc(t.Context(), func(c *pgxpool.Conn) error {
			_, failed := c.Exec(t.Context(), attack, pgx.QueryExecModeExec)
			var n int
			err := c.QueryRow(t.Context(), `select count(*) from gateway.tokens`, pgx.QueryExecModeExec).Scan(&n)
			if err != nil || n > 0 {
				t.Errorf("after %s (%v) %d rows of another tenant are seen (%v)", attack, failed, n, err)
			}
			_, err = c.Exec(t.Context(), `discard all`, pgx.QueryExecModeExec)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	for _, call := range []string{
		`select eventlog.append('b', 'cluster', gen_random_uuid(), 1, 'x', 0, false, array['cluster.registered.v1'],
			array[gen_random_uuid()], array['{}'::bytea])`,
		`select eventlog.retry_parked('b', 'x', 'x')`,
		`select * from catalog_api.search_packages('b', array['x'], array['x'])`,
	} {
		for _, tenant := range []string{"*", "", "a"} {
			err := requests.TenantTx(t.Context(), tenant, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), call)
				return err
			})
			var refused *pgconn.PgError
			if !errors.As(err, &refused) || refused.Code != "CH003" {
				t.Errorf("as tenant %q: %s: %v, want CH003", tenant, call, err)
			}
		}
	}
}
