package webhooks

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/outbound"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/webhook"
)

// TestSender: a name that leads to this machine when the connection is made is refused, whatever it led to before; a
// redirect is not followed; answers are garbage, endless, or none, and cost little; what is told names no address, and
// is the same of a name that is not known and of one that leads inside.
func TestSender(t *testing.T) {
	t.Parallel()
	visited := make(chan struct{}, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/taken", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/again", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	mux.Handle("/sends-on", http.RedirectHandler("/inside", http.StatusTemporaryRedirect))
	mux.HandleFunc("/inside", func(http.ResponseWriter, *http.Request) { visited <- struct{}{} })
	mux.HandleFunc("/endless", func(w http.ResponseWriter, req *http.Request) {
		for req.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/headers", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 2*outbound.MaxHeader))
	})
	mux.HandleFunc("/garbage", func(w http.ResponseWriter, _ *http.Request) {
		conn, out, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = fmt.Fprint(out, "no answer of HTTP\r\n\r\n")
		_ = out.Flush()
	})
	here := httptest.NewServer(mux)
	t.Cleanup(here.Close)
	secure := httptest.NewTLSServer(mux)
	t.Cleanup(secure.Close)
	closed := httptest.NewServer(mux)
	closed.Close()
	named := strings.Replace(here.URL, "127.0.0.1", "localhost", 1)
	allowed := NewSender([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")})
	for name, c := range map[string]struct {
		sender *Sender
		url    string
		status int
		wants  string // what is told; "" where it is taken
	}{
		"taken":                {allowed, here.URL + "/taken", 200, ""},
		"by name":              {allowed, named + "/taken", 200, ""},
		"endless":              {allowed, here.URL + "/endless", 200, ""},
		"not now":              {allowed, here.URL + "/again", 429, "it answered 429"},
		"sends on":             {allowed, here.URL + "/sends-on", 307, "redirects are not followed"},
		"long headers":         {allowed, here.URL + "/headers", 0, "the connection failed"},
		"garbage":              {allowed, here.URL + "/garbage", 0, "the connection failed"},
		"nobody":               {allowed, closed.URL, 0, "refused the connection"},
		"unknown name":         {allowed, "https://nowhere.invalid", 0, nowhere},
		"unknown authority":    {allowed, secure.URL + "/taken", 0, "its certificate is not good"},
		"this machine":         {NewSender(nil), here.URL + "/taken", 0, nowhere},
		"this machine by name": {NewSender(nil), named + "/taken", 0, nowhere},
		"metadata of a cloud":  {allowed, "http://169.254.169.254/", 0, nowhere},
	} {
		row := store.WebhookRow{Spec: events.WebhookSpec{}, Sealed: webhook.Sealed{URL: c.url}}
		a, err := c.sender.deliver(t.Context(), row, "msg_1", []byte(`{}`), time.Unix(1, 0))
		if a.Error == nowhere && a.Took != 0 {
			t.Errorf("%s: %s tells what the resolver knew", name, a.Took)
		}
		if err != nil || a.Status != c.status || a.Taken() != (c.wants == "") || !strings.Contains(a.Error, c.wants) ||
			strings.Contains(a.Error, "127.0.0.1") {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		if name == "not now" && a.RetryAfter != 2*time.Minute {
			t.Errorf("asked to come after %s", a.RetryAfter)
		}
	}
	select {
	case <-visited:
		t.Error("a redirect was followed")
	default:
	}
}

// TestDue: of a subject the first that waits decides, and others go on.
func TestDue(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	soon, before := now.Add(time.Second), now.Add(-time.Second)
	s := &sending{waiting: []store.Delivery{
		{ID: "1", Subject: "a", Next: &soon},
		{ID: "2", Subject: "b"},
		{ID: "3", Subject: "a"},
		{ID: "4", Subject: "c", Next: &before},
		{ID: "5", Subject: "b"},
	}}
	var got []string
	for _, subject := range s.due(now) {
		for _, d := range subject {
			got = append(got, d.ID)
		}
		got = append(got, "|")
	}
	if text := strings.Join(got, ""); text != "25|4|" {
		t.Errorf("due %s", text)
	}
}

// TestRefused: what is refused for good gives its place up where the receiver takes others, and nothing else does.
func TestRefused(t *testing.T) {
	t.Parallel()
	first := time.Unix(1000, 0)
	later, before := first.Add(time.Minute), first.Add(-time.Minute)
	d := func(id string, status, attempts int) store.Delivery {
		return store.Delivery{ID: id, First: &first, Status: status, Attempts: attempts}
	}
	waiting := []store.Delivery{
		d("a", 422, 2), d("b", 422, 1), d("c", 500, 9), d("d", 0, 9), d("e", 429, 9), {ID: "f"}, d("g", 400, 3),
	}
	ids := func(list []store.Delivery) (out string) {
		for _, d := range list {
			out += d.ID
		}
		return out
	}
	if got := ids(refused(waiting, &later)); got != "ag" {
		t.Errorf("given up %q", got)
	}
	for name, success := range map[string]*time.Time{"nothing": nil, "only before": &before} {
		if got := ids(refused(waiting, success)); got != "" {
			t.Errorf("%s was taken: given up %q", name, got)
		}
	}
	var many []store.Delivery
	for range maxWaiting {
		many = append(many, d("x", 422, 2))
	}
	if got := refused(many, &later); len(got) != maxTaken {
		t.Errorf("%d are given up at once", len(got))
	}
}

// TestLeaseOutlivesABatch: what a batch has sent is recorded while the lease holds, however late its last attempt ends.
func TestLeaseOutlivesABatch(t *testing.T) {
	t.Parallel()
	if left := DefaultLease * 2 / 3; batchTime+webhook.Timeout+recordWithin > left {
		t.Errorf("a batch has %s of its lease", left)
	}
}
