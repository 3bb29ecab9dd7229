package accesslog

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var (
	ann = httpserver.Caller{Tenant: events.DefaultTenant, Actor: "ann", Token: "token-a", Role: "admin"}
	eve = httpserver.Caller{Tenant: "other", Actor: "eve", Token: "token-e", Role: "viewer"}
)

func asked(who httpserver.Caller, status int, at time.Time) httpserver.Access {
	return httpserver.Access{
		Began: at, Took: 1500 * time.Microsecond, Caller: who, Address: "203.0.113.9", Method: http.MethodGet,
		Path: "/api/v1/clusters/spoke", Route: "/api/v1/clusters/{cluster}", Status: status, Request: "r1",
	}
}

func newLog(t *testing.T, pool *pg.Pool) *Log {
	t.Helper()
	l, err := New(pool, pool, DefaultRetention, false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func list(t *testing.T, l *Log, tenant string, f model.AccessFilter, p model.Page) ([]model.AccessEntry, []string) {
	t.Helper()
	if p.Limit == 0 {
		p.Limit = 100
	}
	items, next, err := l.List(t.Context(), model.Caller{Tenant: tenant}, f, p)
	if err != nil {
		t.Fatal(err)
	}
	return items, next
}

// TestAccessIsKept: rows are written, read by tenant, filter and page, and nobody with the gateway's role changes them.
func TestAccessIsKept(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	pool := d.Pool(t, "gateway")
	l := newLog(t, pool)
	now := time.Now().UTC().Truncate(time.Microsecond)
	for i := range 5 {
		l.Take(asked(ann, 200+i, now.Add(-time.Duration(i)*time.Second)))
	}
	l.Take(asked(eve, 403, now))
	l.Take(asked(httpserver.Caller{}, 401, now.Add(-time.Minute)))
	if err := l.Write(t.Context()); err == nil {
		t.Error("a row was written into a day that is not there")
	}
	for range 2 {
		if err := l.Keep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Write(t.Context()); err != nil {
		t.Fatalf("what could not be written is not written later: %v", err)
	}
	items, _ := list(t, l, events.DefaultTenant, model.AccessFilter{}, model.Page{})
	want := model.AccessEntry{
		At: now, Actor: "ann", Token: "token-a", Role: "admin", Address: "203.0.113.9", Method: http.MethodGet,
		Path: "/api/v1/clusters/spoke", Route: "/api/v1/clusters/{cluster}", Status: 200, TookMicros: 1500,
		Request: "r1", Count: 1,
	}
	if len(items) != 6 || items[0] != want || items[5].Status != 401 || items[5].Actor+items[5].Path != "" {
		t.Errorf("got %+v", items)
	}
	var all []model.AccessEntry
	for p := (model.Page{Limit: 4}); ; {
		items, next := list(t, l, events.DefaultTenant, model.AccessFilter{}, p)
		if all = append(all, items...); next == nil {
			break
		}
		p.After = next
	}
	if len(all) != 6 || all[4].Status != 204 {
		t.Errorf("by pages: %+v", all)
	}
	if items, _ := list(t, l, "other", model.AccessFilter{}, model.Page{}); len(items) != 1 || items[0].Actor != "eve" {
		t.Errorf("another tenant reads %+v", items)
	}
	from, until := now.Add(-3*time.Second), now.Add(-time.Second)
	for name, c := range map[string]struct {
		f    model.AccessFilter
		want int
	}{
		"actor":   {model.AccessFilter{Actor: "ann"}, 5},
		"token":   {model.AccessFilter{Token: "token-e"}, 0},
		"address": {model.AccessFilter{Address: "203.0.113.9"}, 6},
		"status":  {model.AccessFilter{MinStatus: 204}, 2},
		"time":    {model.AccessFilter{From: &from, Until: &until}, 2},
	} {
		if items, _ := list(t, l, events.DefaultTenant, c.f, model.Page{}); len(items) != c.want {
			t.Errorf("by %s: %d rows, want %d", name, len(items), c.want)
		}
	}
	part := "gateway.access_log_" + now.Format("20060102")
	for _, sql := range []string{
		"delete from gateway.access_log", "update gateway.access_log set actor = ''", "truncate gateway.access_log",
		"drop table gateway.access_log", "delete from " + part, "select from " + part,
		"select gateway.keep_access_log(1)",
	} {
		if _, err := pool.Exec(t.Context(), sql); err == nil {
			t.Errorf("the gateway's role can: %s", sql)
		}
	}
}

// TestDaysGo: days older than the retention are dropped whole, none under a legal hold.
func TestDaysGo(t *testing.T) {
	t.Parallel()
	d := pgtest.DB(t)
	pool, admin := d.Pool(t, "gateway"), d.Pool(t, pgtest.Admin)
	today := time.Now().UTC().Truncate(day)
	for _, ago := range []int{29, 30, 31, 500} {
		begins := today.AddDate(0, 0, -ago)
		if _, err := admin.Exec(t.Context(), fmt.Sprintf(`create table gateway.access_log_%s partition of gateway.access_log
			for values from ('%s') to ('%s'); alter table gateway.access_log_%[1]s owner to chandler_owner`,
			begins.Format("20060102"), begins.Format(time.RFC3339), begins.Add(day).Format(time.RFC3339))); err != nil {
			t.Fatal(err)
		}
	}
	days := func() (n int) {
		t.Helper()
		if err := admin.QueryRow(t.Context(), `select count(*) from pg_inherits
			where inhparent = 'gateway.access_log'::regclass`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	keep := func(retention time.Duration, hold bool, want int) {
		t.Helper()
		l, err := New(pool, pool, retention, hold, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Keep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := days(); n != want {
			t.Errorf("%d days are there, want %d", n, want)
		}
	}
	keep(LeastRetention, true, 8) // yesterday, today and two to come, too
	keep(DefaultRetention, false, 7)
	keep(LeastRetention, false, 6)
	if _, err := New(pool, pool, LeastRetention-1, false, nil); !errs.Is(err, errs.Invalid) {
		t.Errorf("too short a retention: %v", err)
	}
}

// TestWaitingIsBounded: what waits is bounded, and what found no room is a row with its number.
func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	var w waiting
	now := time.Now()
	for range maxWaiting + 7 {
		w.take(asked(ann, 200, now))
	}
	if len(w.rows) != maxWaiting || w.lost != 7 {
		t.Errorf("%d rows wait and %d are lost", len(w.rows), w.lost)
	}
	var since waiting
	since.take(asked(ann, 200, now))
	since.take(asked(httpserver.Caller{}, 401, now))
	since.back(w)
	if len(since.rows) != maxWaiting || since.lost != 9 {
		t.Errorf("with what came since: %d rows wait and %d are lost", len(since.rows), since.lost)
	}
	pool := pgtest.DB(t).Pool(t, "gateway")
	l := newLog(t, pool)
	l.waiting = waiting{lost: 9}
	if err := l.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	items, _ := list(t, l, events.DefaultTenant, model.AccessFilter{}, model.Page{})
	if len(items) != 1 || items[0].Status != 0 || items[0].Count != 9 {
		t.Errorf("what was lost: %+v", items)
	}
}

// TestRefusedAreCounted: guesses without end become one row for an address and status, and those of many addresses a
// bounded number of rows; what a guess says is not kept.
func TestRefusedAreCounted(t *testing.T) {
	t.Parallel()
	var w waiting
	now := time.Now()
	guess := func(from string, status int) {
		a := asked(httpserver.Caller{}, status, now)
		a.Address, a.Path = from, "/api/v1/"+strings.Repeat("x", 1000)
		w.take(a)
	}
	for range 1000 {
		guess("203.0.113.1", 401)
		guess("203.0.113.1", 429)
	}
	if len(w.rows) != 2 || w.rows[0].Count != 1000 || w.rows[1].Count != 1000 || w.rows[0].Path != "" {
		t.Errorf("got %+v", w.rows)
	}
	for i := range 10 * maxAddresses {
		guess(fmt.Sprintf("198.51.100.%d", i), 401)
	}
	last := w.rows[len(w.rows)-1]
	if len(w.rows) != maxAddresses+1 || last.Address != otherAddresses || last.Count != 9*maxAddresses+2 {
		t.Errorf("%d rows, the last %+v", len(w.rows), last)
	}
	w.take(asked(ann, 429, now))
	w.take(asked(ann, 200, now))
	if n := len(w.rows); w.rows[n-1].Status != 200 || w.rows[n-1].Count != 1 {
		t.Errorf("a good request is counted with others: %+v", w.rows[n-1])
	}
}
