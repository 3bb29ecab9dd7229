package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/libs/projection/projectiontest"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// nextRelease has another version of every read model. fold, where set, is called before each event.
func nextRelease(fold func(context.Context)) func(*app.Config) {
	return func(c *app.Config) {
		c.SetModels(func(models []projection.Projection) []projection.Projection {
			for i := range models {
				models[i].Version++
				apply := models[i].Apply
				models[i].Apply = func(ctx context.Context, tx pgx.Tx, t projection.Tables, e eventlog.Recorded) error {
					if fold != nil {
						fold(ctx)
					}
					return apply(ctx, tx, t, e)
				}
			}
			return models
		})
	}
}

// roundEvery paces the traffic, so that what it writes fits a page.
const roundEvery = 100 * time.Millisecond

// traffic writes and reads at some gateways all the time. A write at one is there for a read at any other that asks for
// its position; what one gateway has shown stays; and nothing fails.
type traffic struct {
	b      *bench
	mu     sync.Mutex
	urls   []string
	rounds int
	err    string
	stop   func()
}

func (b *bench) traffic(urls ...string) *traffic {
	b.t.Helper()
	tr := &traffic{b: b, urls: urls}
	done, ended := make(chan struct{}), make(chan struct{})
	seen := map[string]int{}
	go func() {
		defer close(ended)
		pace := time.NewTicker(roundEvery)
		defer pace.Stop()
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-pace.C:
			}
			// Whoever takes a gateway out waits for the round: a balancer does so, too, before a pod ends.
			tr.mu.Lock()
			if tr.err == "" {
				tr.err = tr.round(n, seen)
			}
			tr.rounds++
			tr.mu.Unlock()
		}
	}()
	tr.stop = sync.OnceFunc(func() { close(done); <-ended })
	b.t.Cleanup(tr.stop)
	return tr
}

func (tr *traffic) round(n int, seen map[string]int) (failed string) {
	at := tr.urls[n%len(tr.urls)]
	name := fmt.Sprintf("group-%d", n)
	a := tr.b.send(at, token, "POST", fmt.Sprintf("/api/v1/clusters/spoke/namespaces/n-%d/operatorgroups", n),
		model.CreateOperatorGroup{Name: name})
	if a.status != http.StatusCreated {
		return fmt.Sprintf("write %d: %d %s", n, a.status, a.body)
	}
	for _, u := range tr.urls {
		path := "/api/v1/operatorgroups?limit=500"
		if n%2 == 0 {
			path += "&minPosition=" + url.QueryEscape(a.header.Get("Chandler-Position"))
		}
		got := tr.b.send(u, token, "GET", path, nil)
		has := strings.Count(string(got.body), `"name":"group-`)
		switch {
		case got.status != http.StatusOK:
			return fmt.Sprintf("read %d: %d %s", n, got.status, got.body)
		case n%2 == 0 && !strings.Contains(string(got.body), `"`+name+`"`):
			return fmt.Sprintf("read %d does not show the write before it", n)
		case has < seen[u]:
			return fmt.Sprintf("read %d shows %d groups, after %d", n, has, seen[u])
		}
		seen[u] = has
	}
	return ""
}

// at has the traffic go to these gateways from its next round on.
func (tr *traffic) at(urls ...string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.urls = urls
}

// more waits for some more rounds.
func (tr *traffic) more() {
	tr.b.t.Helper()
	tr.mu.Lock()
	until := tr.rounds + 6
	tr.mu.Unlock()
	tr.b.until(func() bool {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		if tr.err != "" {
			tr.b.t.Fatal(tr.err)
		}
		return tr.rounds >= until
	})
}

// TestTwoReleasesServeSideBySide is a rolling update of gateways with another version of every read model, and a way
// back: there is traffic all the time, and nothing fails nor goes backwards. The tables of the release that is left go
// when their time has come, and no others.
func TestTwoReleasesServeSideBySide(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old, stopOld := b.url, b.stop
	b.cluster("spoke")
	models := b.count(`select count(*) from eventlog.models`)
	tr := b.traffic(old)
	tr.more()

	b.settings = nextRelease(nil)
	next, stopNext := b.gateway(token)
	b.app.Opened(t.Context())
	tr.at(old, next)
	tr.more()
	tr.at(next)
	stopOld()
	tr.more()

	const made = `select count(*) from eventlog.models where made > '`
	before := b.text(`select clock_timestamp()::text`)
	b.settings = nil
	back, _ := b.gateway(token)
	b.app.Opened(t.Context())
	tr.at(next, back)
	tr.more()
	tr.at(back)
	stopNext()
	tr.more()
	if n := b.count(made + before + `'`); n != 0 {
		t.Errorf("after the way back %d read models were made again", n)
	}

	b.exec("admin", `update eventlog.models set used = used - interval '2 days'`)
	another, _ := b.gateway(token) // it looks when it starts
	b.app.Opened(t.Context())
	tr.at(back, another)
	b.until(func() bool { return b.count(`select count(*) from eventlog.models`) == models })
	if n := b.count(made + before + `'`); n != 0 {
		t.Errorf("%d of the read models in use were made again", n)
	}
	tr.more()

	// As chandler log rebuild asks: the version that is in use can be made anew.
	groups := b.text(`select consumer from eventlog.models where model like '%operatorgroups/'`)
	projectiontest.Rebuild(t, b.pool("admin"), groups)
	tr.more()
	tr.stop()
	if tr.err != "" {
		t.Error(tr.err)
	}
}

// TestNothingIsServedBeforeItIsMade: while a gateway makes its version of the read models it says so, in readiness and
// to whoever asks, and shows nobody a part of them.
func TestNothingIsServedBeforeItIsMade(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	goOn := make(chan struct{})
	b.settings = nextRelease(func(ctx context.Context) {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
	})
	next, _ := b.gateway(token)
	a := b.send(next, token, "GET", "/api/v1/clusters", nil)
	if a.status != http.StatusServiceUnavailable || !strings.Contains(string(a.body), "is being made for version") {
		t.Errorf("while it is made: %d %s", a.status, a.body)
	}
	if a := b.do("GET", "/api/v1/clusters", nil); a.status != 200 || !strings.Contains(string(a.body), "spoke") {
		t.Errorf("the release before: %d %s", a.status, a.body)
	}
	close(goOn)
	b.app.Opened(t.Context())
	a = b.send(next, token, "GET", "/api/v1/clusters", nil)
	if a.status != 200 || !strings.Contains(string(a.body), "spoke") {
		t.Errorf("when it is made: %d %s", a.status, a.body)
	}
}

func (b *bench) text(sql string) (s string) {
	b.t.Helper()
	if err := b.pool("admin").QueryRow(b.t.Context(), sql).Scan(&s); err != nil {
		b.t.Fatal(err)
	}
	return s
}
