package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// seen is a request that a server got.
type seen struct {
	method, uri, body string
	header            http.Header
}

// serve answers with what the test says and keeps what it was asked.
func serve(t *testing.T, answer func(n int, w http.ResponseWriter)) (*Client, func() []seen) {
	t.Helper()
	var mu sync.Mutex
	var asked []seen
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		asked = append(asked, seen{r.Method, r.URL.RequestURI(), string(body), r.Header})
		n := len(asked)
		mu.Unlock()
		answer(n, w)
	}))
	t.Cleanup(s.Close)
	c, err := New(Config{URL: s.URL + "/", Token: "t0ken"})
	if err != nil {
		t.Fatal(err)
	}
	return c, func() []seen {
		mu.Lock()
		defer mu.Unlock()
		return asked
	}
}

func say(t *testing.T, w http.ResponseWriter, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Error(err)
	}
}

func TestRequestsAreWhatTheDocumentSays(t *testing.T) {
	t.Parallel()
	c, asked := serve(t, func(_ int, w http.ResponseWriter) { say(t, w, `{"items": []}`) })
	ctx := t.Context()
	if _, err := c.GetSubscription(ctx, "a/b", "n", "x y", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SearchPackages(ctx, &SearchPackagesParams{Category: []string{"a,b", "c"}, Limit: 2}); err != nil {
		t.Fatal(err)
	}
	crds := &UninstallOperatorParams{Crds: []string{"a", "b"}}
	if _, err := c.UninstallOperatorDryRun(ctx, "c", "n", "o", crds); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PatchCatalog(ctx, "harbour", nil, map[string]any{"priority": nil}, IfMatch(`"3"`)); err != nil {
		t.Fatal(err)
	}
	some := &ListClustersParams{State: "Connected"}
	if _, err := c.ListClusters(ctx, some, Fields("name", "labels.example.com/site")); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"GET /api/v1/clusters/a%2Fb/namespaces/n/subscriptions/x%20y",
		"GET /api/v1/packages?category=a%2Cb&category=c&limit=2",
		"DELETE /api/v1/clusters/c/namespaces/n/operators/o?crds=a%2Cb&dryRun=true",
		"PATCH /api/v1/catalogs/harbour",
		"GET /api/v1/clusters?fields=name%2Clabels.example.com%2Fsite&state=Connected",
	}
	for i, r := range asked() {
		if got := r.method + " " + r.uri; got != want[i] || r.header.Get("Authorization") != "Bearer t0ken" {
			t.Errorf("asked %s with %v, want %s", got, r.header, want[i])
		}
	}
	patch := asked()[3]
	if patch.header.Get("Content-Type") != "application/merge-patch+json" || patch.header.Get("If-Match") != `"3"` ||
		patch.body != `{"priority":null}` {
		t.Errorf("the patch is %+v", patch)
	}
}

// TestOneIntentOneKey: a POST whose answer is lost is sent again with its key; one of the caller's own is kept.
func TestOneIntentOneKey(t *testing.T) {
	t.Parallel()
	c, asked := serve(t, func(n int, w http.ResponseWriter) {
		if n == 1 {
			panic(http.ErrAbortHandler) // breaks the connection
		}
		say(t, w, `{}`)
	})
	for _, opts := range [][]Option{nil, nil, {Key("mine")}, {Key("")}} {
		if _, err := c.AddToken(t.Context(), AddToken{Name: "portal"}, opts...); err != nil {
			t.Fatal(err)
		}
	}
	var keys []string
	for _, r := range asked() {
		keys = append(keys, r.header.Get("Idempotency-Key"))
	}
	if len(keys) != 5 || keys[0] == "" || keys[0] != keys[1] || keys[2] == keys[1] ||
		keys[3] != "mine" || keys[4] != "" {
		t.Errorf("keys %q, want the first twice, another, mine, and none", keys)
	}
}

// TestWaits says what is sent again, and after how long.
func TestWaits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	const later, passed = "Mon, 23 Nov 2026 12:00:07 GMT", "Mon, 23 Nov 2026 11:00:00 GMT"
	keyed := http.Header{headerKey: {"k"}}
	answer := func(status int, after string) outcome {
		h := http.Header{}
		if after != "" {
			h.Set("Retry-After", after)
		}
		return outcome{answer: &http.Response{StatusCode: status, Header: h}}
	}
	lost := outcome{err: errors.New("lost")}
	for name, c := range map[string]struct {
		attempt int
		method  string
		sent    http.Header
		outcome outcome
		want    time.Duration
		again   bool
	}{
		"success":                     {1, "GET", nil, answer(200, ""), 0, false},
		"a lost read":                 {1, "GET", nil, lost, firstWait, true},
		"a lost read, the third time": {3, "GET", nil, lost, 4 * firstWait, true},
		"the last attempt":            {5, "GET", nil, lost, 0, false},
		"a lost POST with its key":    {1, "POST", keyed, lost, firstWait, true},
		"a lost POST without one":     {1, "POST", nil, lost, 0, false},
		"a lost replacement":          {1, "PUT", nil, lost, 0, false},
		"a replacement, refused":      {1, "PUT", nil, answer(429, "2"), 2 * time.Second, true},
		"until a date":                {1, "GET", nil, answer(503, later), 7 * time.Second, true},
		"a date that has passed":      {1, "GET", nil, answer(503, passed), 0, true},
		"too long":                    {1, "GET", nil, answer(429, "31"), 31 * time.Second, false},
		"no number":                   {1, "GET", nil, answer(429, "soon"), firstWait, true},
		"the first is under way":      {1, "POST", keyed, answer(409, "1"), time.Second, true},
		"a conflict":                  {1, "POST", keyed, answer(409, ""), 0, false},
		"a gateway that is away":      {1, "GET", nil, answer(502, ""), firstWait, true},
		"a gateway's own fault":       {1, "GET", nil, answer(500, ""), 0, false},
	} {
		got, again := DefaultRetry().wait(c.attempt, c.method, c.sent, c.outcome, now, 0)
		if again != c.again || again && got != c.want {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, again, c.want, c.again)
		}
	}
	if got := backoff(1000, time.Minute, 1); got != time.Minute/2 {
		t.Errorf("after many attempts: %v, want half a minute", got)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, func(n int, w http.ResponseWriter) {
		if n == 1 {
			w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
			w.WriteHeader(http.StatusNotFound)
			say(t, w, `{"type": "https://x/not-found", "title": "Not Found", "status": 404, "detail": "no cluster a",
				"errors": [{"location": "path.cluster", "message": "no cluster a", "rule": "R-1"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusInternalServerError)
		say(t, w, "<h1>{}</h1>")
	})
	_, err := c.GetCluster(t.Context(), "a", nil)
	if p, ok := errors.AsType[*Problem](err); !ok || p.Type != "https://x/not-found" ||
		p.Error() != "no cluster a (at path.cluster, rule R-1)" || !IsStatus(err, http.StatusNotFound) {
		t.Errorf("GetCluster: %v", err)
	}
	_, err = c.GetCluster(t.Context(), "a", nil)
	if p, ok := errors.AsType[*Problem](err); !ok || p.Type != "about:blank" || p.Status != 500 {
		t.Errorf("what stands between: %v", err)
	}
}

// TestRedirectsAreNotFollowed: what is for Chandler is sent nowhere else.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s reached another host with %v", r.Method, r.URL, r.Header)
	}))
	t.Cleanup(elsewhere.Close)
	c, _ := serve(t, func(_ int, w http.ResponseWriter) {
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	_, err := c.WhoAmI(t.Context(), OnBehalfOf("person"))
	if !IsStatus(err, http.StatusTemporaryRedirect) || !strings.Contains(err.Error(), elsewhere.URL) {
		t.Errorf("the answer is %v", err)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	away := errors.New("the provider is away")
	asked := 0
	c, err := New(Config{URL: "http://127.0.0.1:1", TokenSource: func(context.Context) (string, error) {
		asked++
		return "", away
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.WhoAmI(t.Context()); !errors.Is(err, away) || asked != 1 {
		t.Errorf("WhoAmI: %v, with the source asked %d times; want its error, once", err, asked)
	}
	for _, token := range []string{"a b", "a\n", "ä"} {
		if _, err := New(Config{URL: "http://chandler.example", Token: token}); err == nil {
			t.Errorf("New takes the token %q", token)
		}
	}
	for _, url := range []string{"", "chandler.example", "ftp://chandler.example", "http://", "://x"} {
		if _, err := New(Config{URL: url}); err == nil || !strings.Contains(err.Error(), "want http") {
			t.Errorf("New(%q) = %v", url, err)
		}
	}
}

func TestPagesAndWhatIsNotModified(t *testing.T) {
	t.Parallel()
	c, asked := serve(t, func(n int, w http.ResponseWriter) {
		switch n {
		case 1:
			say(t, w, `{"items": [{"name": "a"}, {"name": "b"}], "next": "c&1"}`)
		case 2:
			say(t, w, `{"items": [{"name": "c"}]}`)
		default:
			w.WriteHeader(http.StatusNotModified)
		}
	})
	var names []string
	for cluster, err := range c.ListClustersAll(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, cluster.Name)
	}
	if got := strings.Join(names, ""); got != "abc" || asked()[1].uri != "/api/v1/clusters?cursor=c%261" {
		t.Errorf("clusters %s by %v", got, asked())
	}
	if _, err := c.ListClusters(t.Context(), nil, IfNoneMatch(`"x"`)); !errors.Is(err, ErrNotModified) {
		t.Errorf("what is not modified: %v", err)
	}
}

// TestFollowGoesOn: a stream that breaks off goes on behind the last event that was taken.
func TestFollowGoesOn(t *testing.T) {
	t.Parallel()
	c, asked := serve(t, func(n int, w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		say(t, w, fmt.Sprintf(": hello\nid: 1-%d\n\nid: 1-%d\nevent: x\n", n*2, n*2+1))
		say(t, w, fmt.Sprintf("data: {\"type\":\ndata: \"t%d\"}\n\n", n))
	})
	var types []string
	enough := errors.New("enough")
	breaks := 0
	err := c.Follow(t.Context(), StreamEventsParams{Type: []string{"t*"}}, func(e Event) error {
		types = append(types, e.Type)
		if len(types) == 3 {
			return enough
		}
		return nil
	}, func(error) { breaks++ })
	if !errors.Is(err, enough) || strings.Join(types, " ") != "t1 t2 t3" {
		t.Errorf("Follow: %v after %v", err, types)
	}
	for i, want := range []string{"", "1-3", "1-5"} {
		if got := asked()[i].header.Get("Last-Event-ID"); got != want {
			t.Errorf("connection %d goes on behind %q, want %q", i, got, want)
		}
	}
}
