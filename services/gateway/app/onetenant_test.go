package app_test

import (
	"io"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestRequestsSeeTheirTenant: a query that got into the transaction of a request sees nothing of another tenant, even
// after it set the tenant of all. A trigger stands for it: it runs in that transaction, with the rights of its session.
func TestRequestsSeeTheirTenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.pool(pgtest.Admin).Exec(t.Context(), `
		insert into gateway.tokens (tenant, id, hash, role) values ('other', 'token-other', 'x', 'admin');
		create table public.seen (role text, others bigint, all_of_them bigint);
		grant insert on public.seen to public;
		create function public.look() returns trigger language plpgsql as $$
		declare
			was text := current_setting('chandler.tenant');
			others bigint := (select count(*) from gateway.tokens where tenant <> was);
		begin
			perform set_config('chandler.tenant', '*', true);
			insert into public.seen select session_user, others, count(*) from gateway.tokens;
			perform set_config('chandler.tenant', was, true);
			return null;
		end $$;
		create trigger look after insert on gateway.tokens for each row execute function public.look()`); err != nil {
		t.Fatal(err)
	}
	must[model.NewToken](b, 201, b.do("POST", "/api/v1/tokens",
		model.AddToken{Name: "portal", Role: model.RoleViewer}))
	if n := b.count(`select count(*) from public.seen
		where role = 'chandler_gateway_api' and others = 0 and all_of_them = 0`); n != 1 {
		t.Errorf("the request ran as another role, or saw rows of others: %d", n)
	}
	if n := b.count(`select count(*) from public.seen`); n != 1 {
		t.Errorf("the trigger ran %d times", n)
	}
}

// TestRequestsDatabase: a gateway that was given no role for requests serves, and one that was given the database of
// another installation does not start.
func TestRequestsDatabase(t *testing.T) {
	t.Parallel()
	d, nats := pgtest.DB(t), bustest.Start(t)
	cfg := config(t, d.URL("gateway"), nats, "a-token-of-the-administrator", io.Discard)
	cfg.Requests.Password = ""
	b := &bench{t: t, db: d, url: run(t, cfg)}
	if a := b.as(cfg.AdminToken, "GET", "/api/v1/clusters", nil); a.status != 200 {
		t.Errorf("without a role for requests the gateway answers %d", a.status)
	}
	other := pgtest.DB(t)
	if _, err := other.Pool(t, pgtest.Admin).Exec(t.Context(),
		`update eventlog.installation set id = gen_random_uuid()`); err != nil {
		t.Fatal(err)
	}
	cfg.Requests.URL = other.URL("gateway-api")
	if _, err := app.New(t.Context(), cfg, quiet()); !errs.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "CHANDLER_REQUESTS_DATABASE_URL names another database") {
		t.Errorf("with the database of another installation: %v", err)
	}
	cfg.Requests.URL, cfg.Requests.Password = "", "x"
	cfg.DatabaseURL = "host=127.0.0.1 user=x"
	if _, err := app.New(t.Context(), cfg, quiet()); !errs.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "CHANDLER_REQUESTS_DATABASE_URL instead") {
		t.Errorf("with a password and a URL of another form: %v", err)
	}
}
