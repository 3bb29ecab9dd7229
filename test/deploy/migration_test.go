package deploy_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg/pglocal"
)

// The migration of chart and compose, run for real with the variables that they hand over: all four roles
// get their passwords.
func TestMigrationMakesRolesWithPasswords(t *testing.T) {
	t.Parallel()
	server, err := pglocal.Start(t.Context(), pglocal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	container := deliver(t, "default").migration.Spec.Template.Spec.Containers[0]
	migrate(t, server.AdminURL(), container.Args, deliver(t, "default").environment(t, container, secretValue(t)))
	file := compose(t, nil).Services["migrate"]
	migrate(t, server.AdminURL(), file.Command, file.Environment)
}

// migrate runs the migration and takes the passwords away again.
func migrate(t *testing.T, url string, args []string, env map[string]string) {
	t.Helper()
	env["CHANDLER_DATABASE_URL"] = url
	if _, err := chandler(t.Context(), env, args...); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"chandler_catalog_indexer", "chandler_gateway", "chandler_gateway_api", "chandler_installer",
		"chandler_resolver",
	}
	if got := takePasswords(t, url); !slices.Equal(got, want) {
		t.Errorf("roles with a password: %v, want %v", got, want)
	}
}

// takePasswords returns the roles that have a password, and leaves them without.
func takePasswords(t *testing.T, url string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // nothing is under way any more
	rows, err := conn.Query(t.Context(), `select rolname from pg_authid where rolname like 'chandler\_%'
		and rolpassword is not null and rolcanlogin order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := conn.Exec(t.Context(), "alter role "+pgx.Identifier{name}.Sanitize()+
			" password null"); err != nil {
			t.Fatal(err)
		}
	}
	return names
}
