package app_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// patience bounds every wait of a test on a busy machine.
const patience = time.Minute

// until polls until ok; it is for what has no signal.
func (b *bench) until(ok func() bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.t.Fatal("it did not come true in time")
		}
	}
}

func TestEventsAreListedAndFiltered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.cluster("other")
	b.catalog("fleet")
	must[model.OperatorGroup](b, 201, b.do("POST", "/api/v1/clusters/spoke/namespaces/ops/operatorgroups",
		model.CreateOperatorGroup{Name: "g"}))
	last := must[model.Subscription](b, 201, b.do("POST", subscriptions, subscribe("tidegauge", "tidegauge")))
	b.until(func() bool {
		return strings.Contains(string(b.do("GET", "/api/v1/events", nil).body), "subscription.created.v1")
	})
	type page struct {
		Items []model.Event
		Next  string
		Done  bool
	}
	all := must[page](b, 200, b.do("GET", "/api/v1/events", nil))
	if len(all.Items) != 7 || all.Items[0].Type != "access.token-created.v1" || !all.Done {
		t.Fatalf("got %+v", all)
	}
	for i, e := range all.Items {
		if e.Sequence != fmt.Sprintf("1-%d", i+1) || e.SpecVersion != "1.0" || e.Hash == "" || e.ID == "" {
			t.Errorf("got %+v", e)
		}
	}
	if e := all.Items[1]; e.Actor != "token-admin" || e.TraceParent == "" && e.Correlation == "" {
		t.Errorf("got %+v", e)
	}
	count := func(query string, want int) {
		t.Helper()
		if got := must[page](b, 200, b.do("GET", "/api/v1/events?"+query, nil)); len(got.Items) != want {
			t.Errorf("%s: %d events, want %d: %+v", query, len(got.Items), want, got.Items)
		}
	}
	count("type=cluster.registered.v1", 2)
	count("type=cluster.*&type=subscription.created.v1", 3)
	count("cluster=spoke", 3)
	count("subject=spoke/ops/tidegauge", 1)
	count("stream="+last.Stream, 1)
	count("after=1-5", 2)
	count("actor=token-admin", 5)
	count("actor=nobody", 0)
	count("actor=token-admin&type=cluster.*", 2)
	at := func(i int, d time.Duration) string {
		return url.QueryEscape(all.Items[i].Recorded.Add(d).Format(time.RFC3339Nano))
	}
	since := func(i int) (n int) { // events of one batch are recorded at one time
		for _, e := range all.Items {
			if !e.Recorded.Before(all.Items[i].Recorded) {
				n++
			}
		}
		return n
	}
	for i := range all.Items {
		count("since="+at(i, 0), since(i))
		count("until="+at(i, 0), 7-since(i))
		count("since="+at(i, 0)+"&until="+at(i, 0), 0)
	}
	count("since="+at(6, time.Second), 0) // times are answered in whole seconds
	count("since=1h", 7)
	count("since=0s", 0)
	count("until=1h", 0)
	count("since="+at(0, 0)+"&after=1-5", 2)
	if p := must[page](b, 200, b.do("GET", "/api/v1/events?until="+at(6, 0), nil)); !p.Done ||
		p.Next != fmt.Sprintf("1-%d", 7-since(6)) {
		t.Errorf("until the last: %+v", p)
	}
	for _, bad := range []string{"since=yesterday", "until=-1h", "since=2026-01-31"} {
		p := must[problem](b, 400, b.do("GET", "/api/v1/events?"+bad, nil))
		if len(p.Errors) != 1 || p.Errors[0].Rule != "date-time" || !strings.HasPrefix(bad, p.Errors[0].Location[6:]) {
			t.Errorf("%s: %+v", bad, p)
		}
	}
	s := b.stream("since="+at(0, 0)+"&actor=token-admin", "")
	defer s.close()
	if id, _, ok := s.next(); !ok || id != "1-2" {
		t.Errorf("a stream since the beginning has %q first", id)
	}
	first := must[page](b, 200, b.do("GET", "/api/v1/events?limit=4", nil))
	rest := must[page](b, 200, b.do("GET", "/api/v1/events?limit=4&after="+first.Next, nil))
	if len(first.Items) != 4 || first.Done || len(rest.Items) != 3 || !rest.Done || rest.Next != "1-7" {
		t.Errorf("got %+v then %+v", first, rest)
	}
}

// sse is one open stream.
type sse struct {
	lines *bufio.Scanner
	close func()
	res   *http.Response
}

func (b *bench) stream(query, lastID string) sse {
	b.t.Helper()
	return b.streamAs(token, query, lastID)
}

func (b *bench) streamAs(bearer, query, lastID string) sse {
	b.t.Helper()
	return b.streamBy(http.DefaultClient, b.url, bearer, query, lastID)
}

// streamBy is streamAs by a client of its own, of a gateway; "" sends no token.
func (b *bench) streamBy(by *http.Client, base, bearer, query, lastID string) sse {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/v1/events/stream?"+query, http.NoBody)
	if err != nil {
		b.t.Fatal(err)
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res, err := by.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		b.t.Fatalf("stream: %d %v", res.StatusCode, res.Header)
	}
	s := sse{lines: bufio.NewScanner(res.Body), res: res}
	s.close = func() {
		cancel()
		if err := res.Body.Close(); err != nil {
			b.t.Errorf("close the stream: %v", err)
		}
	}
	return s
}

// next returns id and type of the next event, false at the end of the stream.
func (s sse) next() (id, typ string, ok bool) {
	for s.lines.Scan() {
		line := s.lines.Text()
		switch {
		case strings.HasPrefix(line, "id: "):
			id = line[4:]
		case strings.HasPrefix(line, "event: "):
			typ = line[7:]
		case line == "" && typ != "":
			return id, typ, true
		}
	}
	return "", "", false
}

// tickets: a ticket opens the stream that it was made for, once, in place of a token, and is in no log.
func (b *bench) tickets() {
	b.t.Helper()
	const stream = "/api/v1/events/stream?after=1-0&type=cluster.%2A"
	newTicket := func() string {
		a := b.do("POST", "/api/v1/streams/tickets", model.AskTicket{URL: stream})
		return must[model.StreamTicket](b, 201, a).URL
	}
	open := func(url string) (int, string) {
		ctx, cancel := context.WithTimeout(b.t.Context(), patience)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+url, http.NoBody)
		if err != nil {
			b.t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			b.t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		first, err := bufio.NewReader(resp.Body).ReadString('\n')
		if err != nil {
			b.t.Fatal(err)
		}
		return resp.StatusCode, first
	}
	once := newTicket()
	if status, first := open(once); status != 200 || !strings.HasPrefix(first, "retry:") {
		b.t.Errorf("with a ticket: %d %s", status, first)
	}
	for name, url := range map[string]string{
		"a second time": once, "another address": newTicket() + "&cluster=a", "none": stream + "&ticket=none",
		"another route": strings.Replace(newTicket(), "/stream?", "?", 1),
	} {
		if status, _ := open(url); status != 401 {
			b.t.Errorf("%s: %d", name, status)
		}
	}
	for _, bad := range []string{"/api/v1/events", "https://a" + stream, "//a" + stream, stream + "&ticket=a"} {
		must[problem](b, 400, b.do("POST", "/api/v1/streams/tickets", model.AskTicket{URL: bad}))
	}
	_, ticket, _ := strings.Cut(once, "ticket=")
	if a := b.do("GET", "/api/v1/access", nil); strings.Contains(string(a.body), ticket[:10]) {
		b.t.Errorf("the access log has a ticket: %s", a.body)
	}
}

// TestStreamResumesWithoutGaps: a client that is cut off again and again, and goes on with
// Last-Event-ID, sees every event once and in order, while events are appended.
func TestStreamResumesWithoutGaps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const total = 60
	appended := make(chan struct{})
	go func() {
		defer close(appended)
		for i := range total {
			b.do("POST", "/api/v1/clusters", model.RegisterCluster{
				Name:       fmt.Sprintf("spoke-%d", i),
				Kubeconfig: kubeconfig,
			})
		}
	}()
	last, seen := "1-0", 0
	for seen < total {
		s := b.stream("type=cluster.registered.v1", last)
		for range 7 { // then the connection breaks
			id, typ, ok := s.next()
			if !ok {
				t.Fatal("the stream ended by itself")
			}
			seen++
			if want := fmt.Sprintf("1-%d", seen+1); id != want || typ != "cluster.registered.v1" {
				t.Fatalf("got %s %s, want %s", id, typ, want)
			}
			if last = id; seen == total {
				break
			}
		}
		s.close()
	}
	<-appended
	b.tickets()
}

// TestStreamBeginsNowAndEndsWithTheServer: without a position only news comes, and a stop of the
// gateway ends the stream in good order.
func TestStreamBeginsNowAndEndsWithTheServer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("before")
	b.until(func() bool { return b.count(`select count(*) from eventlog.events`) == 2 })
	s := b.stream("", "")
	defer s.close()
	begun := false // the first thing sent is where to go on if nothing comes
	for !begun && s.lines.Scan() {
		begun = s.lines.Text() == "id: 1-2"
	}
	b.fact(events.Installer, events.KindCluster, "before", "before", events.ClusterObserved{State: "Connected"})
	if id, typ, ok := s.next(); !ok || id != "1-3" || typ != "cluster.observed.v1" {
		t.Errorf("got %s %s %v", id, typ, ok)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		b.stop()
	}()
	if _, _, ok := s.next(); ok {
		t.Error("an event after the end")
	}
	if err := s.lines.Err(); err != nil {
		t.Errorf("the stream was cut off: %v", err)
	}
	<-stopped
}
