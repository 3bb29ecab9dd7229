package pgtest

import (
	"fmt"
	"sync"
	"testing"
)

// Prepared is a migrated database in which something was done that each test of a package would do first. It is done
// once in each process, and tests get copies.
type Prepared struct {
	// Do does it. What it opens on the database it has to close: only a database without connections is copied.
	Do func(tb testing.TB, d *Database)

	once sync.Once
	name string // "" until it is done
}

// DB clones a fresh database for tb. The first one is copied, too, so that all tests begin with the same.
func (p *Prepared) DB(tb testing.TB) *Database {
	tb.Helper()
	p.once.Do(func() { p.prepare(tb) })
	if p.name == "" {
		tb.Fatal("test database: preparing it has failed, as the test that came first says")
	}
	return owned(tb, func(in instance) string { return " template " + p.name + in.strategy })
}

// prepare makes a database that outlives tb. It goes with the instance, or by reap.
func (p *Prepared) prepare(tb testing.TB) {
	tb.Helper()
	in, err := prepared()
	if err != nil {
		tb.Fatalf("test database: %v", err)
	}
	d, err := create(in, " template "+in.template+in.strategy)
	if err == nil {
		err = d.own()
	}
	if err != nil {
		tb.Fatalf("test database: %v", err)
	}
	p.Do(tb, d)
	// nobody, autovacuum neither, may be there when it is copied
	if err := in.exec(fmt.Sprintf("alter database %s with allow_connections false", d.Name)); err != nil {
		tb.Fatalf("test database: %v", err)
	}
	if !tb.Failed() {
		p.name = d.Name
	}
}
