package httpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/httpserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStatusKnowsEveryKind(t *testing.T) {
	t.Parallel()
	for kind, want := range map[errs.Kind]int{
		errs.Invalid: 400, errs.Unauthenticated: 401, errs.Forbidden: 403, errs.NotFound: 404, errs.AlreadyExists: 409,
		errs.Conflict: 409, errs.TooLarge: 413, errs.Unprocessable: 422, errs.Internal: 500, errs.Unavailable: 503,
		"": 500,
	} {
		if got := httpserver.Status(kind); got != want {
			t.Errorf("Status(%q) = %d, want %d", kind, got, want)
		}
	}
}

func TestDetails(t *testing.T) {
	t.Parallel()
	one := errs.New(errs.Invalid, "want a DNS label").At("/name", "R-SUB-1")
	two := errs.New(errs.Invalid, "want a digest").At("/digest", "")
	p := httpserver.Details(fmt.Errorf("register: %w", errors.Join(one, two)))
	if p.Status != 400 || p.Kind != "invalid" || len(p.Errors) != 2 {
		t.Fatalf("Details = %+v", p)
	}
	if p.Errors[0] != (httpserver.ProblemItem{Location: "/name", Message: "want a DNS label", Rule: "R-SUB-1"}) {
		t.Errorf("first item %+v", p.Errors[0])
	}
	secret := httpserver.Details(errors.New("dial tcp 10.0.0.7:5432"))
	if secret.Status != 500 || strings.Contains(secret.Detail, "10.0.0.7") {
		t.Errorf("an internal error tells the caller %q", secret.Detail)
	}
}

// server answers with what the test's handler does, and keeps the log.
func server(t *testing.T, o httpserver.Options, h http.HandlerFunc) (*httptest.Server, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	o.Log = slog.New(slog.NewJSONHandler(&log, nil))
	r := httpserver.Router(o)
	r.Post("/things", h)
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	t.Cleanup(s.Client().CloseIdleConnections)
	return s, &log
}

func do(t *testing.T, s *httptest.Server, method, path, body string, header http.Header) (
	*http.Response, httpserver.ProblemDetails,
) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(req.Header, header)
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := res.Body.Close(); err != nil {
			t.Error(err)
		}
	}()
	var p httpserver.ProblemDetails
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.Header.Get("Content-Type") == httpserver.ProblemType {
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatalf("%s is not a problem: %v", raw, err)
		}
	}
	return res, p
}

func TestRouterAnswersWithProblems(t *testing.T) {
	t.Parallel()
	s, log := server(t, httpserver.Options{BodyLimit: 10}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			httpserver.Problem(w, r, errs.Wrap(errs.TooLarge, err, "read"))
			return
		}
		switch string(body) {
		case "panic":
			panic("boom")
		case "who":
			httpserver.Problem(w, r, errs.New(errs.Unauthenticated, "no token"))
		}
	})
	for name, c := range map[string]struct {
		method, path, body string
		want               int
	}{
		"served":       {http.MethodPost, "/things", "", 200},
		"unknown path": {http.MethodPost, "/nothing", "", 404},
		"other method": {http.MethodGet, "/things", "", 405},
		"panic":        {http.MethodPost, "/things", "panic", 500},
		"big body":     {http.MethodPost, "/things", "12345678901", 413},
		"no token":     {http.MethodPost, "/things", "who", 401},
	} {
		res, p := do(t, s, c.method, c.path, c.body, nil)
		if res.StatusCode != c.want || c.want >= 400 && p.Status != c.want {
			t.Errorf("%s: status %d and problem %+v, want %d", name, res.StatusCode, p, c.want)
		}
		if res.Header.Get(httpserver.HeaderRequestID) == "" {
			t.Errorf("%s: no request id", name)
		}
		if c.want == 401 && res.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no challenge", name)
		}
	}
	if !strings.Contains(log.String(), "boom") {
		t.Errorf("the log does not hold the panic:\n%s", log.String())
	}
}

// What became of a request is one line of the log, and the same for who keeps it: with the caller who was recognised,
// and the route instead of what somebody put into a path.
func TestAccess(t *testing.T) {
	t.Parallel()
	var kept []httpserver.Access
	who := httpserver.Caller{Tenant: "default", Actor: "person-1", Token: "token-1", Role: "viewer"}
	o := httpserver.Options{
		Access:         func(a httpserver.Access) { kept = append(kept, a) },
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
	}
	s, log := server(t, o, func(w http.ResponseWriter, r *http.Request) {
		httpserver.NoteCaller(r.Context(), who)
		w.WriteHeader(http.StatusTeapot)
	})
	header := withID("portal-1")
	header.Set("X-Forwarded-For", "203.0.113.9")
	do(t, s, http.MethodPost, "/things", "", header)
	do(t, s, http.MethodGet, "/else", "", nil)
	s.Close() // both have been kept then
	if len(kept) != 2 {
		t.Fatalf("kept %+v", kept)
	}
	one, other := kept[0], kept[1]
	if one.Caller != who || one.Status != 418 || one.Route != "/things" || one.Method != http.MethodPost ||
		one.Address != "203.0.113.9" || one.Request != "portal-1" || one.Began.IsZero() || one.Took <= 0 {
		t.Errorf("kept %+v", one)
	}
	if other.Caller != (httpserver.Caller{}) || other.Status != 404 || other.Route != "" || other.Path != "/else" {
		t.Errorf("kept %+v", other)
	}
	line, _, _ := strings.Cut(log.String(), "\n")
	for _, want := range []string{
		`"log":"access"`, `"actor":"person-1"`, `"token":"token-1"`, `"role":"viewer"`, `"tenant":"default"`,
		`"address":"203.0.113.9"`, `"route":"/things"`, `"status":418`,
	} {
		if !strings.Contains(line, want) {
			t.Errorf("%s is not in %s", want, line)
		}
	}
}

// The address is the client's only as far as proxies that are trusted tell it.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, c := range map[string]struct {
		remote    string
		forwarded []string
		want      string
	}{
		"no proxy":                   {"203.0.113.9:1", nil, "203.0.113.9"},
		"who is no proxy writes one": {"203.0.113.9:1", []string{"198.51.100.1"}, "203.0.113.9"},
		"a proxy":                    {"10.0.0.1:1", []string{"203.0.113.9"}, "203.0.113.9"},
		"a client that wrote one":    {"10.0.0.1:1", []string{"198.51.100.1, 203.0.113.9"}, "203.0.113.9"},
		"two proxies, two headers":   {"[fd00::1]:1", []string{"198.51.100.1", "203.0.113.9,10.1.1.1"}, "203.0.113.9"},
		"a proxy that says nothing":  {"10.0.0.1:1", nil, "10.0.0.1"},
		"a proxy that says nonsense": {"10.0.0.1:1", []string{"unknown"}, "10.0.0.1"},
		"mapped addresses":           {"[::ffff:10.0.0.1]:1", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		"no port":                    {"@", nil, "@"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = c.remote
		for _, f := range c.forwarded {
			r.Header.Add("X-Forwarded-For", f)
		}
		if got := httpserver.ClientAddress(r, trusted); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func withID(id string) http.Header {
	h := http.Header{}
	h.Set(httpserver.HeaderRequestID, id)
	return h
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	var seen string
	s, log := server(t, httpserver.Options{},
		func(_ http.ResponseWriter, r *http.Request) { seen = httpserver.RequestID(r.Context()) })
	do(t, s, http.MethodPost, "/things", "", withID("portal-42"))
	if seen != "portal-42" || !strings.Contains(log.String(), "portal-42") {
		t.Errorf("the handler saw %q, the log is %s", seen, log.String())
	}
	res, _ := do(t, s, http.MethodPost, "/things", "", withID("a b\"c"))
	if got := res.Header.Get(httpserver.HeaderRequestID); got == "" || strings.ContainsAny(got, " \"") {
		t.Errorf("a malformed id was answered with %q", got)
	}
	if got := httpserver.RequestID(context.Background()); got != "" {
		t.Errorf("outside a request the id is %q", got)
	}
}

// A body without a length is cut at the limit while it is read.
func TestBodyLimitWithoutLength(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	s, _ := server(t, httpserver.Options{BodyLimit: 10}, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		failed <- err
		httpserver.Problem(w, r, errs.Wrap(errs.TooLarge, err, "read"))
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/things",
		io.MultiReader(strings.NewReader(strings.Repeat("x", 100))))
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	var tooBig *http.MaxBytesError
	if err := <-failed; !errors.As(err, &tooBig) || res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("error %v, status %d", err, res.StatusCode)
	}
}

func TestOps(t *testing.T) {
	t.Parallel()
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	h := httpserver.Ops(httpserver.OpsAccess{}, metrics, opsChecks()...)
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 418, "/else": 404} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
		if path == "/readyz" && (!strings.Contains(w.Body.String(), waiting) ||
			!strings.Contains(w.Body.String(), `"postgres":"ok"`)) {
			t.Errorf("readiness does not say what it waits for: %s", w.Body.String())
		}
	}
}
