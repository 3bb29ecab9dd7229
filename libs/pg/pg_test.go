package pg_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pglocal"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

// Postgres away at start: a pool waits, says so once, and goes on when the database comes.
func TestOpenWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	o := pglocal.Options{Dir: t.TempDir() + "/data", Log: slog.New(slog.DiscardHandler)}
	s, err := pglocal.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pglocal.Remove(o.Dir); err != nil {
			t.Error(err)
		}
	})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	said := &lines{seen: make(chan struct{})}
	opened := make(chan error, 1)
	go func() {
		p, err := pg.Open(t.Context(), s.AdminURL(), pg.WithLog(slog.New(slog.NewTextHandler(said, nil))))
		if err == nil {
			p.Close()
		}
		opened <- err
	}()
	<-said.seen // it waits, and says so
	select {
	case err := <-opened:
		t.Fatalf("opened without a database: %v", err)
	default:
	}
	again, err := pglocal.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if again.AdminURL() != s.AdminURL() {
		t.Errorf("the URL of one directory changed from %s to %s", s.AdminURL(), again.AdminURL())
	}
	if err := <-opened; err != nil {
		t.Errorf("open: %v", err)
	}
	if text := said.String(); strings.Count(text, "waiting for it") != 1 ||
		!strings.Contains(text, "the database answers") {
		t.Errorf("it said:\n%s", text)
	}
}

// lines collects a log and signals when it has begun.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
	seen chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.once.Do(func() { close(l.seen) })
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// An error that waiting does not end is returned at once; the end of the context ends the wait.
func TestOpenGivesUp(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		url  string
		want func(error) bool
	}{
		"not a URL": {t.Context(), "postgres://%zz", func(err error) bool { return errs.Is(err, errs.Invalid) }},
		"no such role": {
			t.Context(), d.URL("nobody_knows"),
			func(err error) bool { return errs.Is(err, errs.Unauthenticated) },
		},
		"no such database": {
			t.Context(), strings.Replace(d.URL("gateway"), d.Name, "nowhere", 1),
			func(err error) bool { return errs.Is(err, errs.Unauthenticated) },
		},
		"away": {
			short, "postgres://x@127.0.0.1:1/x",
			func(err error) bool { return errors.Is(err, context.DeadlineExceeded) },
		},
	} {
		if p, err := pg.Open(c.ctx, c.url, pg.WithLog(slog.New(slog.DiscardHandler))); !c.want(err) {
			t.Errorf("%s: %v (%s)", name, err, errs.KindOf(err))
			if p != nil {
				p.Close()
			}
		}
	}
}

func TestTx(t *testing.T) {
	t.Parallel()
	p := pgtest.DB(t).Pool(t, pgtest.Admin)
	if _, err := p.Exec(t.Context(), "create table t (n int primary key check (n > 0))"); err != nil {
		t.Fatal(err)
	}
	insert := func(n int, after error) error {
		return p.Tx(t.Context(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), "insert into t values ($1)", n); err != nil {
				return err
			}
			return after
		})
	}
	own := errors.New("own")
	if err := insert(1, own); !errors.Is(err, own) || errs.KindOf(err) != errs.Internal {
		t.Errorf("an error of the function came back as %v", err)
	}
	if err := insert(1, nil); err != nil {
		t.Errorf("after the rollback: %v", err)
	}
	if err := insert(1, nil); !errs.Is(err, errs.AlreadyExists) {
		t.Errorf("duplicate: %v", err)
	}
	if err := insert(-1, nil); !errs.Is(err, errs.Invalid) {
		t.Errorf("check: %v", err)
	}
	err := p.Snapshot(t.Context(), func(tx pgx.Tx) error {
		for _, want := range []int{1, 1} { // what is committed in between is not seen
			var n int
			if err := tx.QueryRow(t.Context(), "select count(*) from t").Scan(&n); err != nil || n != want {
				return fmt.Errorf("%d rows: %w", n, err)
			}
			if err := insert(2, nil); err != nil && !errs.Is(err, errs.AlreadyExists) {
				return err
			}
		}
		_, err := tx.Exec(t.Context(), "insert into t values (3)")
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("a write in a snapshot: %v", err)
	}
}

// TenantTx narrows one transaction, not the session.
func TestTenantTx(t *testing.T) {
	t.Parallel()
	p := pgtest.DB(t).Pool(t, "gateway", pg.WithMaxConns(1))
	tenant := func(q pg.Querier) (s string) {
		if err := q.QueryRow(t.Context(), "select current_setting('chandler.tenant')").Scan(&s); err != nil {
			t.Error(err)
		}
		return s
	}
	for _, name := range []string{"blue", "", "*", `it's\'; select '`, "blå"} {
		err := p.TenantTx(t.Context(), name, func(tx pgx.Tx) error {
			if got := tenant(tx); got != name {
				t.Errorf("inside: %q, want %q", got, name)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := p.TenantTx(t.Context(), "\x00", func(pgx.Tx) error { return nil }); err == nil {
		t.Error("a tenant that PostgreSQL cannot hold was set")
	}
	if got := tenant(p); got != "*" {
		t.Errorf("behind: %q", got)
	}
}

// TestConfine: what is done with a context that is confined sees one tenant, on a connection that others have used and
// will use; after a failure, too.
func TestConfine(t *testing.T) {
	t.Parallel()
	p := pgtest.DB(t).Pool(t, "resolver", pg.WithMaxConns(1))
	for _, c := range []struct{ tenant, sees string }{
		{"blue", "blue"},
		{"blue", "blue"},
		{`it's\'; select '`, `it's\'; select '`},
		{"\x00", ""}, // PostgreSQL cannot hold it
		{"*", "*"},
		{"red", "red"},
		{"", "*"},
	} {
		var sees string
		err := p.QueryRow(pg.Confine(t.Context(), c.tenant), "select current_setting('chandler.tenant')").Scan(&sees)
		if sees != c.sees || (err != nil) != (c.sees == "") {
			t.Errorf("confined to %q: %q, want %q: %v", c.tenant, sees, c.sees, err)
		}
	}
	within := pg.Confine(t.Context(), "blue")
	err := p.TenantTx(within, "red", func(tx pgx.Tx) (err error) {
		_, err = tx.Exec(within, "select 1 / 0")
		return err
	})
	var sees string
	if again := p.QueryRow(t.Context(), "select current_setting('chandler.tenant')").Scan(&sees); again != nil || sees != "*" {
		t.Errorf("behind a failure (%v): %q, %v", err, sees, again)
	}
}

// TestTenantRead: issue 13, section 5: reads need no transaction of their own. They see one tenant, whoever had the
// connection before, and who comes behind them without a tenant sees none.
func TestTenantRead(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	p := d.Pool(t, "gateway-api", pg.WithMaxConns(1), pg.WithoutTenant())
	const ask = "select current_setting('chandler.tenant')"
	read := func(tenant string) (sees string, err error) {
		err = p.TenantRead(t.Context(), tenant, func(q pg.Querier) error {
			return q.QueryRow(t.Context(), ask).Scan(&sees)
		})
		return sees, err
	}
	write := func(tenant string) (sees string, err error) {
		err = p.TenantTx(t.Context(), tenant, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), ask).Scan(&sees)
		})
		return sees, err
	}
	none := func(string) (sees string, err error) {
		err = p.QueryRow(t.Context(), ask).Scan(&sees)
		return sees, err
	}
	for i, c := range []struct {
		do           func(string) (string, error)
		tenant, sees string
	}{
		{read, "blue", "blue"},
		{read, "red", "red"},
		{none, "", ""},
		{read, "red", "red"},
		{write, "blue", "blue"},
		{none, "", ""},
		{write, "red", "red"},
		{read, "red", "red"},
		{read, "*", ""},
		{read, "", ""},
	} {
		if sees, err := c.do(c.tenant); err != nil || sees != c.sees {
			t.Errorf("step %d, tenant %q: sees %q, want %q: %v", i, c.tenant, sees, c.sees, err)
		}
	}
	failed := p.TenantRead(t.Context(), "blue", func(q pg.Querier) error {
		_, err := q.Exec(t.Context(), "select 1 / 0")
		return err
	})
	if sees, err := none(""); failed == nil || err != nil || sees != "" {
		t.Errorf("behind a failure (%v): %q, %v", failed, sees, err)
	}
	missing := d.Pool(t, "gateway", pg.WithSearchPath("gateway_clusters_v999")).TenantRead(t.Context(), "default",
		func(q pg.Querier) error {
			return q.QueryRow(t.Context(), `select count(*) from nowhere`).Scan(new(int))
		})
	if !errs.Is(missing, errs.Unavailable) {
		t.Errorf("of a read model that is being made: %v", missing)
	}
}

// A table that is missing is a fault, but where requests read what a version of a read model has.
func TestTableThatIsMissing(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	read := func(tx pgx.Tx) error {
		var n int
		return pg.Err(tx.QueryRow(t.Context(), `select count(*) from nowhere`).Scan(&n))
	}
	reads := d.Pool(t, "gateway", pg.WithSearchPath("gateway_clusters_v999"))
	if err := reads.TenantTx(t.Context(), "default", read); !errs.Is(err, errs.Unavailable) {
		t.Errorf("of a read model that is being made: %v", err)
	}
	if err := reads.Tx(t.Context(), read); !errs.Is(err, errs.Internal) {
		t.Errorf("in a transaction for all tenants: %v", err)
	}
	if err := d.Pool(t, "resolver").TenantTx(t.Context(), "default", read); !errs.Is(err, errs.Internal) {
		t.Errorf("of a service without read models: %v", err)
	}
}

// A batch that is sent is one transaction.
func TestSend(t *testing.T) {
	t.Parallel()
	p := pgtest.DB(t).Pool(t, pgtest.Admin)
	if _, err := p.Exec(t.Context(), "create table sent (n int primary key)"); err != nil {
		t.Fatal(err)
	}
	send := func(values ...int) error {
		b := &pgx.Batch{}
		for _, n := range values {
			b.Queue("insert into sent values ($1)", n)
		}
		return p.Send(t.Context(), b)
	}
	if err := send(1, 2); err != nil {
		t.Error(err)
	}
	if err := send(3, 2, 4); !errs.Is(err, errs.AlreadyExists) {
		t.Errorf("a batch that fails: %v", err)
	}
	var n int
	if err := p.QueryRow(t.Context(), "select sum(n) from sent").Scan(&n); err != nil || n != 3 {
		t.Errorf("sum %d, %v: want what the first batch wrote", n, err)
	}
}

// A session that holds a transaction open without doing anything is ended: its role says so.
func TestIdleTransactionsAreBounded(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	for _, role := range []string{"gateway", "resolver", "installer", "catalog-indexer"} {
		var limit string
		if err := d.Pool(t, role).QueryRow(t.Context(), "show idle_in_transaction_session_timeout").Scan(
			&limit); err != nil || limit != "1min" {
			t.Errorf("%s: %q %v", role, limit, err)
		}
	}
}

func TestErr(t *testing.T) {
	t.Parallel()
	kinded := errs.New(errs.TooLarge, "x")
	for _, c := range []struct {
		err  error
		want errs.Kind
	}{
		{nil, ""},
		{kinded, errs.TooLarge},
		{fmt.Errorf("around: %w", kinded), errs.TooLarge},
		{pgx.ErrNoRows, errs.NotFound},
		{&pgconn.PgError{Code: pg.CodeConflict}, errs.Conflict},
		{&pgconn.PgError{Code: pg.CodeExists}, errs.AlreadyExists},
		{&pgconn.PgError{Code: pg.CodeForbidden}, errs.Forbidden},
		{&pgconn.PgError{Code: pg.CodeClosed}, errs.Conflict},
		{&pgconn.PgError{Code: pg.CodeDeposed}, errs.Conflict},
		{&pgconn.PgError{Code: pg.CodeUnknownType}, errs.Invalid},
		{&pgconn.PgError{Code: "40P01"}, errs.Conflict},
		{&pgconn.PgError{Code: "42501"}, errs.Forbidden},
		{&pgconn.PgError{Code: "53300"}, errs.Unavailable},
		{&pgconn.PgError{Code: "57P01"}, errs.Unavailable},
		{&pgconn.PgError{Code: "25P03"}, errs.Unavailable},
		{&pgconn.PgError{Code: "22P02"}, errs.Invalid},
		{&pgconn.PgError{Code: "42P01"}, errs.Internal},
		{&pgconn.PgError{Code: "42703"}, errs.Internal},
		{&pgconn.ConnectError{}, errs.Unavailable},
		{io.ErrUnexpectedEOF, errs.Unavailable},
		{errors.New("anything else"), errs.Internal},
	} {
		got := pg.Err(c.err)
		if errs.KindOf(got) != c.want || !errors.Is(got, c.err) {
			t.Errorf("%v became %v (%s), want %s", c.err, got, errs.KindOf(got), c.want)
		}
	}
	for _, err := range []error{context.Canceled, context.DeadlineExceeded} {
		if got := pg.Err(err); !errors.Is(got, err) || errs.KindOf(got) != errs.Internal {
			t.Errorf("%v became %v", err, got)
		}
	}
}

// Postgres away in mid-run: what was under way fails as unavailable, the pool goes on afterwards.
func TestPoolSurvivesARestart(t *testing.T) {
	t.Parallel()
	o := pglocal.Options{Dir: t.TempDir() + "/data", Log: slog.New(slog.DiscardHandler)}
	s, err := pglocal.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pglocal.Remove(o.Dir); err != nil {
			t.Error(err)
		}
	})
	p, err := pg.Open(t.Context(), s.AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	err = p.Tx(t.Context(), func(tx pgx.Tx) error {
		if err := s.Stop(); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), "select 1")
		return err
	})
	if !errs.Is(err, errs.Unavailable) {
		t.Errorf("in mid-transaction: %v (%s)", err, errs.KindOf(err))
	}
	if err := p.Tx(t.Context(), func(pgx.Tx) error { return nil }); !errs.Is(err, errs.Unavailable) {
		t.Errorf("while it is away: %v (%s)", err, errs.KindOf(err))
	}
	if _, err := pglocal.Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := p.Tx(t.Context(), func(pgx.Tx) error { return nil }); err != nil {
		t.Errorf("after it has come back: %v", err)
	}
}
