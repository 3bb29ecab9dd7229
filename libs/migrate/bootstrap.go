package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/migrations"
)

// Owner is the role that owns every table and function; nobody logs in as it.
const Owner = "chandler_owner"

// idleLimit ends a session of ours that holds a transaction open without doing anything. Such a
// session keeps dead rows of the inbox from being vacuumed, which every append and every move then
// has to step over, and may hold a stream's head. No transaction of ours waits for anything but the
// database, so that a minute is far beyond any of them.
const idleLimit = "60s"

const (
	// statementLimit ends a statement that nobody waits for any more: pools give up after the same time (libs/pg).
	statementLimit = "60s"
	// lockLimit ends waiting for a lock, so that one transaction that hangs does not take all sessions along.
	lockLimit = "30s"
	// silence is after how long the server lets go of a client that does not acknowledge, with the locks that it holds.
	// The settings of keep-alives find one that is gone while nothing is sent.
	silence = "15s"
)

// service is a role that a service logs in with.
type service struct {
	role   string
	schema string // that it writes
}

// services are the roles that may log in, in the order of their schemas.
func services() []service {
	return []service{
		{Role(events.Gateway), "gateway"},
		{Role(events.Resolver), "resolver"},
		{Role(events.Installer), "installer"},
		{Role(events.Indexer), "catalog"},
	}
}

// GatewayRequests is the role that the gateway answers requests as: all that the gateway may, of one tenant at a time.
// Policies and functions name it as session_user, which no session changes (eventlog.protect, eventlog.session_tenant).
const GatewayRequests = "chandler_gateway_api"

// Role is the database role of a service.
func Role(w events.Writer) string { return "chandler_" + strings.ReplaceAll(string(w), "-", "_") }

// bootstrap makes roles, schemas and rights where they are missing. Roles belong to the instance, and
// no lock spans its databases: where another database's run touches the same role in the same moment,
// it is tried again.
func bootstrap(ctx context.Context, conn *pgx.Conn, o Options) error {
	const attempts = 20 // at 50 ms: as many databases as tests make at once
	for i := 1; ; i++ {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return bootstrapIn(ctx, tx, o) })
		if err == nil || i == attempts || !collided(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// collided reports whether two sessions changed the same shared catalog row: "tuple concurrently
// updated" has no code of its own.
func collided(err error) bool {
	var p *pgconn.PgError
	if !errors.As(err, &p) {
		return false
	}
	return p.Code == "23505" || p.Code == "42710" || p.Code == "40001" || p.Code == "40P01" ||
		p.Code == "XX000" && strings.Contains(p.Message, "tuple concurrently")
}

func bootstrapIn(ctx context.Context, tx pgx.Tx, o Options) error {
	if err := makeRole(ctx, tx, Owner, "nologin"); err != nil {
		return err
	}
	if err := joinOwner(ctx, tx); err != nil {
		return err
	}
	if err := letMakeSchemas(ctx, tx); err != nil {
		return err
	}
	for _, s := range services() {
		if err := makeService(ctx, tx, s, o.password(s.role)); err != nil {
			return err
		}
	}
	if err := makeRequests(ctx, tx, o.password(GatewayRequests)); err != nil {
		return err
	}
	if err := makeFleet(ctx, tx); err != nil {
		return err
	}
	for _, schema := range migrations.Schemas() {
		if err := makeSchema(ctx, tx, schema); err != nil {
			return err
		}
	}
	return nil
}

// makeRequests makes the role of requests. What is granted to the gateway holds for it, too, so that no grant is
// forgotten; it inherits no setting, and begins with no tenant.
func makeRequests(ctx context.Context, tx pgx.Tx, password string) error {
	if err := makeService(ctx, tx, requests(), password); err != nil {
		return err
	}
	gateway := Role(events.Gateway)
	var member, sets bool // since PostgreSQL 16 a member need not be let act as the role
	err := tx.QueryRow(ctx, `select pg_has_role($1, $2, 'USAGE'), current_setting('server_version_num')::int < 160000`,
		GatewayRequests, gateway).Scan(&member, &sets)
	if err != nil || member {
		return err
	}
	how := " with inherit true, set false"
	if sets {
		how = ""
	}
	_, err = tx.Exec(ctx, fmt.Sprintf("grant %s to %s%s", gateway, GatewayRequests, how))
	return err
}

// makeFleet makes the role of the fleet controller. It runs in the resolver, whose role is a member: nobody logs in as
// it, and nobody else may append what it appends.
func makeFleet(ctx context.Context, tx pgx.Tx) error {
	fleet, resolver := Role(events.Fleet), Role(events.Resolver)
	if err := makeRole(ctx, tx, fleet, "nologin"); err != nil {
		return err
	}
	var member bool
	if err := tx.QueryRow(ctx, `select pg_has_role($1, $2, 'MEMBER')`, resolver, fleet).Scan(&member); err != nil ||
		member {
		return err
	}
	_, err := tx.Exec(ctx, fmt.Sprintf("grant %s to %s", fleet, resolver))
	return err
}

func requests() service { return service{GatewayRequests, "gateway"} }

func makeRole(ctx context.Context, tx pgx.Tx, role, option string) error {
	var there bool
	if err := tx.QueryRow(ctx, `select exists (select from pg_roles where rolname = $1)`, role).Scan(
		&there); err != nil || there {
		return err
	}
	_, err := tx.Exec(ctx, fmt.Sprintf("create role %s %s", role, option))
	return err
}

// joinOwner lets an administrator who is no superuser act as the owner, which migrations need.
func joinOwner(ctx context.Context, tx pgx.Tx) error {
	var member bool
	err := tx.QueryRow(ctx, `select case when current_setting('server_version_num')::int >= 160000
		then pg_has_role(current_user, $1, 'SET') else pg_has_role(current_user, $1, 'MEMBER') end`, Owner).Scan(&member)
	if err != nil || member {
		return err
	}
	_, err = tx.Exec(ctx, "grant "+Owner+" to current_user")
	return err
}

// letMakeSchemas lets the owner make the schemas of versions of read models (eventlog.make_model). The right is that of
// the database, so that neither a dump nor a template brings it along.
func letMakeSchemas(ctx context.Context, tx pgx.Tx) error {
	var database string
	var may bool
	const look = `select quote_ident(current_database()), has_database_privilege($1, current_database(), 'create')`
	if err := tx.QueryRow(ctx, look, Owner).Scan(&database, &may); err != nil || may {
		return err
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf("grant create on database %s to %s", database, Owner)); err != nil {
		return err
	}
	// PostgreSQL only warns where the caller may not grant it.
	if err := tx.QueryRow(ctx, look, Owner).Scan(&database, &may); err != nil || may {
		return err
	}
	return errs.New(errs.Forbidden, "role %s may not make schemas in database %s, and this role may not let it: as the owner "+
		"of the database, grant create on database %s to %s", Owner, database, database, Owner)
}

// makeService makes the role of a service and its settings. Settings that stand already are not
// written again, since that would collide with other databases of the instance.
func makeService(ctx context.Context, tx pgx.Tx, s service, password string) error {
	if err := makeRole(ctx, tx, s.role, "login"); err != nil {
		return err
	}
	for _, kv := range settings(s) {
		if err := setRole(ctx, tx, s.role, kv[0], kv[1]); err != nil {
			return err
		}
	}
	if password == "" {
		return nil
	}
	var quoted string
	if err := tx.QueryRow(ctx, `select quote_literal($1)`, password).Scan(&quoted); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, fmt.Sprintf("alter role %s password %s", s.role, quoted))
	return err // says nothing of the statement, which holds the password
}

// settings of every session of a service's role.
func settings(s service) [][2]string {
	tenant := events.AllTenants // a service works for all tenants; TenantTx narrows that
	if s.role == GatewayRequests {
		tenant = ""
	}
	return [][2]string{
		{"chandler.tenant", tenant},
		{"idle_in_transaction_session_timeout", idleLimit},
		{"search_path", s.schema},
		{"statement_timeout", statementLimit},
		{"lock_timeout", lockLimit},
		{"tcp_user_timeout", silence},
		{"tcp_keepalives_idle", "5"},
		{"tcp_keepalives_interval", "5"},
		{"tcp_keepalives_count", "3"},
	}
}

func setRole(ctx context.Context, tx pgx.Tx, role, name, value string) error {
	var there bool
	err := tx.QueryRow(ctx, `select exists (select from pg_db_role_setting s join pg_roles r on r.oid = s.setrole
		where r.rolname = $1 and s.setdatabase = 0 and $2 = any (s.setconfig))`, role, name+"="+value).Scan(&there)
	if err != nil || there {
		return err
	}
	_, err = tx.Exec(ctx, fmt.Sprintf("alter role %s set %s = '%s'", role, name, value))
	return err
}

// makeSchema makes a schema, its _api schema and the rights that every later table of theirs gets.
func makeSchema(ctx context.Context, tx pgx.Tx, schema string) error {
	for _, l := range schemaLines(schema) {
		if _, err := tx.Exec(ctx, l); err != nil {
			return fmt.Errorf("%s: %w", l, err)
		}
	}
	return nil
}

// schemaLines are the statements that make a schema; each may be repeated.
func schemaLines(schema string) []string {
	api := schema + "_api"
	all := make([]string, 0, len(services()))
	own := ""
	for _, s := range services() {
		all = append(all, s.role)
		if s.schema == schema {
			own = s.role
		}
	}
	readers := strings.Join(all, ", ")
	lines := []string{
		fmt.Sprintf("create schema if not exists %s authorization %s", schema, Owner),
		fmt.Sprintf("create schema if not exists %s authorization %s", api, Owner),
		fmt.Sprintf("grant usage on schema %s to %s", api, readers),
		fmt.Sprintf("alter default privileges for role %s in schema %s grant select on tables to %s", Owner, api,
			readers),
		fmt.Sprintf(
			"create table if not exists %s.migrations_applied (version bigint primary key, file text not null, "+
				"digest text not null, applied timestamptz not null default clock_timestamp())", schema),
		fmt.Sprintf("alter table %s.migrations_applied owner to %s", schema, Owner),
	}
	if own == "" { // eventlog: shared, every right is granted by name
		lines = append(lines, fmt.Sprintf("grant usage on schema %s to %s", schema, readers))
	} else {
		lines = append(lines,
			fmt.Sprintf("grant usage on schema %s to %s", schema, own),
			fmt.Sprintf(
				"alter default privileges for role %s in schema %s grant select, insert, update, delete, truncate on "+
					"tables to %s", Owner, schema, own),
			fmt.Sprintf("alter default privileges for role %s in schema %s grant usage on sequences to %s", Owner,
				schema, own))
	}
	return lines
}

// Bootstrap describes what bootstrap makes, for those who cache its result.
func Bootstrap() string {
	var b strings.Builder
	for _, s := range append(services(), requests()) {
		fmt.Fprintln(&b, s.role, s.schema, settings(s))
	}
	for _, schema := range migrations.Schemas() {
		fmt.Fprintln(&b, strings.Join(schemaLines(schema), "\n"))
	}
	return b.String()
}
