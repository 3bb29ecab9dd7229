package app_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/webhook"
)

// TestTestsOfWebhooksAreBounded: one test of a webhook at a time, so that nobody sends much to others by it; what it
// says of an address does not tell which names there are.
func TestTestsOfWebhooksAreBounded(t *testing.T) {
	t.Parallel()
	b := webhookBench(t, &movingClock{})
	r := receive(t)
	hold := make(chan struct{})
	r.answers(func(_ http.ResponseWriter, req *http.Request) {
		select {
		case <-hold:
		case <-req.Context().Done():
		}
	})
	b.setWebhook("portal", model.WebhookSpec{URL: r.URL})
	test := func() answer { return b.send(b.url, token, "POST", "/api/v1/webhooks/portal/test", nil) }
	first := make(chan answer, 1)
	go func() { first <- test() }()
	r.wait(1)
	a := test()
	if p := must[problem](b, http.StatusTooManyRequests, a); a.header.Get("Retry-After") == "" ||
		!strings.Contains(p.Detail, "a test of this webhook is under way") {
		t.Errorf("a test beside another: %v %v", p, a.header)
	}
	close(hold)
	if d := must[model.WebhookDelivery](b, 200, <-first); d.State != "Delivered" {
		t.Errorf("the first: %+v", d)
	}
	eventually(t, func() bool { return test().status == 200 })

	must[model.Removed](b, 200, b.write("DELETE", "/api/v1/webhooks/portal", nil))
	b.setWebhook("portal", model.WebhookSpec{URL: r.URL})
	if a := test(); a.status != http.StatusTooManyRequests {
		t.Errorf("one more test by making the webhook again: %d", a.status)
	}
}

// TestTestsTellNoNames: neither what a test says of an address nor when it says so tells which names there are, and
// which addresses are inside; making a webhook of another name for each test has no bound of its own.
func TestTestsTellNoNames(t *testing.T) {
	t.Parallel()
	b := webhookBench(t, &movingClock{})
	urls := []string{"https://nowhere.invalid/", "https://10.1.2.3/", "https://169.254.169.254/"}
	const most = 8 // as many of a tenant are tested at a time
	for i := range most + 1 {
		b.setWebhook(fmt.Sprint("n-", i), model.WebhookSpec{URL: urls[i%len(urls)]})
	}
	said, refused := map[string]int{}, 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range most + 1 {
		all.Go(func() {
			began := time.Now()
			a := b.send(b.url, token, "POST", fmt.Sprint("/api/v1/webhooks/n-", i, "/test"), nil)
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			if a.status == http.StatusTooManyRequests {
				refused++
				return
			}
			d := must[model.WebhookDelivery](b, 200, a)
			said[fmt.Sprint(d.Error, d.Status, d.TookMicros)]++
			if d.Error == "" || took < webhook.Timeout || took > webhook.Timeout+5*time.Second {
				t.Errorf("%s after %s: %+v", urls[i%len(urls)], took, d)
			}
		})
	}
	all.Wait()
	if len(said) != 1 || refused != 1 {
		t.Errorf("the answers differ: %v; %d were refused, want 1", said, refused)
	}
}

// TestRefusedEventsLeaveRoom: a receiver that refuses one kind of event, and takes all others, gets the others, also
// when those that it refuses have taken every place; what was given up for that says so.
func TestRefusedEventsLeaveRoom(t *testing.T) {
	t.Parallel()
	clock := &movingClock{}
	b := webhookBench(t, clock)
	r := receive(t)
	r.answers(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Ce-Type") == "csv.phase-changed.v1" {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	})
	b.setWebhook("portal", model.WebhookSpec{
		URL: r.URL, Types: []string{"csv.*", "cluster.*"}, Target: model.WebhookTarget{Mode: "Binary"},
	})
	const subjects, each = 100, 10 // with others between: more than places
	for i := range subjects {
		var phases []events.Payload
		for range each {
			phases = append(phases, events.CSVPhaseChanged{Phase: "Succeeded", Package: "tidegauge"})
		}
		csv := fmt.Sprintf("spoke/ops/tidegauge-%d.v1.0.0", i)
		b.fact(events.Installer, events.KindCSV, csv, csv, phases...)
	}
	b.cluster("behind-all-of-them")
	taken := func(subject string) bool {
		return slices.ContainsFunc(r.wait(0), func(g got) bool { return g.header.Get("Ce-Subject") == subject })
	}
	eventually(t, func() bool { return b.webhook("portal").Pending > 872 })
	// Nothing was taken yet: as far as one can know the receiver is broken, and nothing is given up.
	clock.move(time.Minute)
	if list := b.deliveries("portal", "?state=Failed"); len(list) > 0 {
		t.Fatalf("given up without anything taken: %+v", list[0])
	}
	// It takes an event between: it is not broken.
	r.answers(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Ce-Type") == "csv.phase-changed.v1" &&
			!strings.HasSuffix(req.Header.Get("Ce-Subject"), "-7.v1.0.0") {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	})
	eventually(t, func() bool { clock.move(10 * time.Second); return taken("behind-all-of-them") })
	list := b.deliveries("portal", "?state=Failed")
	if len(list) == 0 || list[0].Error != "it answered 422, and others needed its place" || list[0].Status != 422 {
		t.Errorf("given up %+v", list)
	}
	if w := b.webhook("portal"); w.State != "Active" {
		t.Errorf("%+v", w)
	}
}

// TestWebhooksShareSlots: a webhook with nothing to send lets go where others have no place.
func TestWebhooksShareSlots(t *testing.T) {
	t.Parallel()
	const slots, hooks = 2, 5
	b := setupWith(t, func(c *app.Config) {
		c.WebhookNetworks = "127.0.0.0/8"
		c.SetWebhooks(slots)
	})
	r := receive(t)
	for i := range hooks {
		b.setWebhook(fmt.Sprint("hook-", i), model.WebhookSpec{
			URL: fmt.Sprintf("%s/%d", r.URL, i), Types: []string{"cluster.*"},
		})
	}
	began := time.Now()
	b.cluster("one")
	r.wait(hooks)
	// By turns of 20 s the last ones would wait for 40 s; where claims are lost, for 30 s.
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestWhatChangedIsNotGivenUp: who gives a webhook up decides about what it was, and not about what somebody has set
// meanwhile.
func TestWhatChangedIsNotGivenUp(t *testing.T) {
	t.Parallel()
	b := webhookBench(t, &movingClock{})
	b.setWebhook("portal", model.WebhookSpec{URL: "https://hooks.example.org/a", Suspended: true}) // nobody claims it
	revision := func() int64 { return int64(b.count(`select revision from gateway.webhooks`)) }
	before, stream := revision(), b.webhook("portal").Stream
	b.setWebhook("portal", model.WebhookSpec{URL: "https://hooks.example.org/b", Suspended: true})
	if err := b.app.GiveUp(t.Context(), "portal", stream, before); !errs.Is(err, errs.Conflict) {
		t.Errorf("given up: %v", err)
	}
	if w := b.webhook("portal"); w.Reason != "" || w.Version != 2 {
		t.Errorf("%+v", w)
	}
	must[model.Removed](b, 200, b.write("DELETE", "/api/v1/webhooks/portal", nil))
	again := b.setWebhook("portal", model.WebhookSpec{URL: "https://hooks.example.org/b", Suspended: true})
	if revision() != before {
		t.Fatalf("revisions %d and %d: the test proves nothing", before, revision())
	}
	if err := b.app.GiveUp(t.Context(), "portal", stream, before); !errs.Is(err, errs.Conflict) {
		t.Errorf("another one of its name was given up: %v", err)
	}
	if err := b.app.GiveUp(t.Context(), "portal", again.Stream, revision()); err != nil ||
		b.webhook("portal").Reason != "NoRights" {
		t.Errorf("not given up: %v", err)
	}
}

// TestReplaySkipsNothing: a position that the webhook has not come to yet is no reason to leave out what is before it.
func TestReplaySkipsNothing(t *testing.T) {
	t.Parallel()
	b := webhookBench(t, &movingClock{})
	r := receive(t)
	spec := model.WebhookSpec{URL: r.URL, Types: []string{"cluster.*"}, Suspended: true}
	b.setWebhook("portal", spec)
	b.cluster("one")
	b.cluster("two")
	again := model.ReplayWebhook{After: b.position}
	must[model.Webhook](b, 200, b.write("POST", "/api/v1/webhooks/portal/replay", again))
	spec.Suspended = false
	b.setWebhook("portal", spec)
	if all := r.wait(2); !strings.Contains(string(all[0].body)+string(all[1].body), `"one"`) {
		t.Errorf("got %s, %s", all[0].body, all[1].body)
	}
}

// TestWebhooksAreLockedInOneOrder: whatever changes a webhook locks its row, then its stream. In two orders two
// changes wait for each other, until PostgreSQL ends one.
func TestWebhooksAreLockedInOneOrder(t *testing.T) {
	t.Parallel()
	b := webhookBench(t, &movingClock{})
	b.setWebhook("portal", model.WebhookSpec{URL: "https://hooks.example.org/a", Suspended: true})
	const path = "/api/v1/webhooks/portal"
	for _, c := range []struct {
		method, path string
		body         any
		header       []string
	}{
		{"POST", path + "/rotate", nil, nil},
		{"POST", path + "/replay", model.ReplayWebhook{After: "1-0"}, nil},
		{
			"PUT", path,
			model.WebhookSpec{URL: "https://hooks.example.org/b", Suspended: true},
			[]string{"If-Match", "*"},
		},
		{"DELETE", path, nil, nil},
	} {
		b.heldBack(c.method+" "+c.path, func() answer {
			return b.send(b.url, token, c.method, c.path, c.body, c.header...)
		})
	}
}

// TestWhatWasSentIsRecorded: where the database takes longer than usual for the record of what was sent, it is waited
// for as long as the lease allows. Nothing is sent again for it.
func TestWhatWasSentIsRecorded(t *testing.T) {
	t.Parallel()
	b := setupWith(t, func(c *app.Config) { c.WebhookNetworks = "127.0.0.0/8" })
	r := receive(t)
	locked, answered := make(chan struct{}), make(chan struct{})
	r.answers(func(http.ResponseWriter, *http.Request) {
		select {
		case answered <- struct{}{}:
			<-locked
		default:
		}
	})
	b.setWebhook("portal", model.WebhookSpec{URL: r.URL, Types: []string{"cluster.*"}})
	go b.cluster("one")
	ctx := t.Context()
	err := b.pool("admin").Tx(ctx, func(tx pgx.Tx) error {
		<-answered
		if _, err := tx.Exec(ctx, `lock table gateway.webhook_deliveries in share mode`); err != nil {
			return err
		}
		close(locked)
		eventually(t, func() bool {
			return b.count(`select count(*) from pg_stat_activity where datname = current_database()
				and wait_event_type = 'Lock' and clock_timestamp() - query_start > interval '3 seconds'`) > 0
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(b.deliveries("portal", "?state=Delivered")) == 1 })
	if n := len(r.wait(1)); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
}

var errUndo = errors.New("undo")

// heldBack wants a change to wait for the row of the only webhook, and to have nothing of its stream locked meanwhile.
func (b *bench) heldBack(name string, change func() answer) {
	b.t.Helper()
	done := make(chan answer, 1)
	pool := b.pool("admin")
	ctx := b.t.Context()
	err := pool.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select from gateway.webhooks for update`); err != nil {
			return err
		}
		go func() { done <- change() }()
		eventually(b.t, func() bool {
			select {
			case a := <-done:
				b.t.Fatalf("%s did not wait: %d %s", name, a.status, a.body)
			default:
			}
			return b.count(`select count(*) from pg_stat_activity where datname = current_database()
				and wait_event_type = 'Lock'`) > 0
		})
		if _, err := tx.Exec(ctx, `select from eventlog.streams where kind = 'webhook' for update nowait`); err != nil {
			b.t.Errorf("%s has its stream, and waits for its row: %v", name, err)
		}
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		b.t.Fatal(err)
	}
	if a := <-done; a.status != http.StatusOK {
		b.t.Errorf("%s: %d %s", name, a.status, a.body)
	}
}
