// Package pgtest gives a test its own migrated database on a real PostgreSQL.
//
// The instance is the one that all tests of the machine share (pglocal.Shared), or that of
// CHANDLER_DATABASE_URL, whose role must be a superuser; the passwords of Chandler's roles there are
// set to a known one, so never point it at an instance that serves anything else. A database is cloned
// from a template that is migrated once for each state of the migrations. Only tests import this package.
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pglocal"
)

// Admin is the role name of URL and Pool for the superuser.
const Admin = "admin"

// setup bounds the preparation of an instance and its template.
const setup = 2 * time.Minute

// Database is one migrated database, dropped when its test ends.
type Database struct {
	Name     string
	instance string // URL of the superuser
}

// serial makes the names of this process's databases differ.
var serial atomic.Int64

// DB clones a fresh database for tb.
func DB(tb testing.TB) *Database {
	tb.Helper()
	return owned(tb, func(in instance) string { return " template " + in.template + in.strategy })
}

// owned is a copy of a migrated database.
func owned(tb testing.TB, from func(instance) string) *Database {
	tb.Helper()
	d := database(tb, from)
	if err := d.own(); err != nil {
		tb.Fatalf("test database: %v", err)
	}
	return d
}

// own gives a right on the database, which is none of the template's; the bootstrap gives it.
func (d *Database) own() error {
	return instance{url: d.instance}.exec(fmt.Sprintf("grant create on database %s to %s", d.Name, migrate.Owner))
}

// Empty makes an empty database, for tests of the migrations themselves.
func Empty(tb testing.TB) *Database {
	tb.Helper()
	return database(tb, func(instance) string { return "" })
}

func database(tb testing.TB, from func(instance) string) *Database {
	tb.Helper()
	in, err := prepared()
	if err != nil {
		tb.Fatalf("test database: %v", err)
	}
	d, err := create(in, from(in))
	if err != nil {
		tb.Fatalf("test database: %v", err)
	}
	tb.Cleanup(func() {
		if err := in.exec(fmt.Sprintf("drop database if exists %s with (force)", d.Name)); err != nil {
			tb.Errorf("drop the test database: %v", err)
		}
	})
	return d
}

// create makes a database of a clause that says of what.
func create(in instance, from string) (*Database, error) {
	d := &Database{
		Name:     fmt.Sprintf("test_%d_%d_%d", os.Getpid(), time.Now().UnixMilli(), serial.Add(1)),
		instance: in.url,
	}
	return d, in.exec("create database " + d.Name + from)
}

// URL connects as a service ("gateway", "resolver", "installer", "catalog-indexer"), as what the gateway answers
// requests as ("gateway-api"), as the fleet controller ("fleet"), which logs in as the resolver, as "admin", or as any
// other database role.
func (d *Database) URL(role string) string {
	u, err := url.Parse(d.instance)
	if err != nil {
		panic("pgtest: the URL was read before: " + err.Error())
	}
	u.Path = "/" + d.Name
	switch role {
	case Admin:
	case "fleet":
		return d.URL("resolver")
	case "gateway", "gateway-api", "resolver", "installer", "catalog-indexer":
		u.User = url.UserPassword("chandler_"+strings.ReplaceAll(role, "-", "_"), password)
	default:
		u.User = url.UserPassword(role, password)
	}
	return u.String()
}

// Pool opens a pool of a role that is closed when tb ends.
func (d *Database) Pool(tb testing.TB, role string, opts ...pg.Option) *pg.Pool {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), setup)
	defer cancel()
	p, err := pg.Open(ctx, d.URL(role), opts...)
	if err != nil {
		tb.Fatalf("test database: %v", err)
	}
	tb.Cleanup(p.Close)
	return p
}

// instance is where databases are made.
type instance struct {
	url      string
	template string
	strategy string // clause by which the files of the template are copied instead of being logged page by page
}

// prepared finds the instance and its template, once for each process.
var prepared = sync.OnceValues(func() (instance, error) {
	ctx, cancel := context.WithTimeout(context.Background(), setup)
	defer cancel()
	admin := os.Getenv("CHANDLER_DATABASE_URL")
	if admin == "" {
		s, err := pglocal.Shared(ctx)
		if err != nil {
			return instance{}, err
		}
		admin = s.AdminURL()
	}
	return prepare(ctx, admin)
})

func (in instance) exec(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), setup)
	defer cancel()
	conn, err := pgx.Connect(ctx, in.url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	if closeErr := conn.Close(ctx); err == nil {
		err = closeErr
	}
	return err
}
