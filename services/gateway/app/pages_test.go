package app_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestPages: an address that people give each other says how a thing does to whoever may see it, and the same of what
// others may see and of what is not there.
func TestPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	made := must[model.Subscription](b, 201, b.do("POST", subscriptions, subscribe("gauge", "tidegauge")))
	b.do("GET", subscriptions+"/gauge?minPosition="+made.Position, nil) // until it is seen
	const page = "/go/subscription/spoke/ops/gauge"
	a := b.do("GET", page, nil)
	for _, want := range []string{
		"<h1>subscription gauge</h1>", "tidegauge", `<a href="/go/cluster/spoke">spoke</a>`, "As of ",
	} {
		if a.status != 200 || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %d without %q: %s", page, a.status, want, a.body)
		}
	}
	policy := a.header.Get("Content-Security-Policy")
	if a.header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(policy, "default-src 'none'") ||
		a.header.Get("Cache-Control") != "no-store" || a.header.Get("Ratelimit-Remaining") == "" ||
		strings.Contains(string(a.body), "<script") {
		t.Errorf("the page has the header %v", a.header)
	}
	if head := b.ask("HEAD", page, nil); head.status != 200 || len(head.body) > 0 {
		t.Errorf("HEAD: %d %s", head.status, head.body)
	}
	if a := b.do("GET", "/go/cluster/spoke", nil); a.status != 200 || !strings.Contains(string(a.body), "Pending") {
		t.Errorf("a cluster: %d %s", a.status, a.body)
	}

	for _, bearer := range []string{"", "wrong"} {
		a := b.as(bearer, "GET", page, nil)
		if a.status != 401 || a.header.Get("WWW-Authenticate") != "Bearer" ||
			strings.Contains(string(a.body), "tidegauge") {
			t.Errorf("with the token %q: %d %s", bearer, a.status, a.body)
		}
	}
	stranger := b.give(model.AddToken{Name: "stranger", Role: "none"})
	hidden := b.as(stranger.Secret, "GET", page, nil)
	absent := b.as(stranger.Secret, "GET", "/go/subscription/spoke/ops/none", nil)
	if hidden.status != 404 || !bytes.Equal(hidden.body, absent.body) {
		t.Errorf("to a stranger it is %d %s; what is not there is %d %s", hidden.status, hidden.body, absent.status,
			absent.body)
	}
	for path, want := range map[string]int{
		"/go/": 404, "/go/secret/a": 404, "/go/cluster": 404, "/go/cluster/a/b": 404, "/go/cluster/..": 404,
		"/go/cluster/a%2Fb": 404, "/go/cluster/%3Cb%3E": 400, "/go/cluster/none": 404,
	} {
		a := b.do("GET", path, nil)
		if a.status != want || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") ||
			strings.Contains(string(a.body), "<b>") {
			t.Errorf("%s: %d %s, want %d", path, a.status, a.body, want)
		}
	}
	if a := b.do("POST", page, nil); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", a.status)
	}
}

// TestPagesAreLimited: a page that reads nothing has the id of its request, stands in the access log, and is limited
// for each address.
func TestPagesAreLimited(t *testing.T) {
	t.Parallel()
	b := setupWith(t, func(c *app.Config) { c.Limits.RequestRate = 2 }) // a burst of 8
	codes := map[int]int{}
	for range 20 {
		a := b.as("", "GET", "/go/nothing", nil)
		if a.header.Get("X-Request-ID") == "" {
			t.Fatalf("it has no id: %v", a.header)
		}
		codes[a.status]++
	}
	if codes[http.StatusNotFound] < 8 || codes[http.StatusTooManyRequests] == 0 {
		t.Errorf("answered %v", codes)
	}
	eventually(t, func() bool {
		return b.count(`select coalesce(sum(count), 0)::bigint from gateway.access_log where route = '/go/*'`) == 20
	})
}

// TestPagesLeadToTheConsole: with a console the address leads there, and says nothing of what is behind it.
func TestPagesLeadToTheConsole(t *testing.T) {
	t.Parallel()
	b := setupWith(t, func(c *app.Config) { c.Browsers.ConsoleURL = "https://console.example/fleet/" })
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for path, want := range map[string]string{
		"/go/subscription/spoke/ops/gauge?x=1": "https://console.example/fleet/subscription/spoke/ops/gauge",
		"/go/cluster/a%20b":                    "https://console.example/fleet/cluster/a%20b",
		"/go/cluster/%2e%2e":                   "",
		"/go//evil.example/a":                  "",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Error(err)
		}
		if got := res.Header.Get("Location"); got != want || (want != "") != (res.StatusCode == http.StatusFound) {
			t.Errorf("%s leads to %q with %d, want %q", path, got, res.StatusCode, want)
		}
	}
	for _, wrong := range []string{
		"console.example", "javascript:alert(1)", "https://a@b", "https://console.example/?x=1",
	} {
		if _, err := app.New(t.Context(), app.Config{Browsers: app.Browsers{ConsoleURL: wrong}}, nil); err == nil {
			t.Errorf("console %q is taken", wrong)
		}
	}
}
