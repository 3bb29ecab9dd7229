package api_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/api"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

type administrator struct{}

func (administrator) Claims(authn.Request) (subject string, signed bool) { return "", false }

func (administrator) Caller(context.Context, authn.Request) (model.Caller, events.Position, error) {
	return model.Caller{Tenant: "default", Role: model.RoleAdmin}, events.Position{}, nil
}

func (administrator) Serves() error { return nil }

func (administrator) Policy(context.Context, string, events.Position) (*access.Policy, error) {
	return access.NewPolicy(access.State{}, nil), nil
}

// formServer has nothing behind its form: a request that is carried out ends in a panic, and so in 500.
func formServer() http.Handler {
	return api.New(api.Deps{
		Callers: administrator{}, Policies: administrator{}, Log: slog.New(slog.DiscardHandler),
		// Each parameter of each operation is tried, by one caller: more than the burst of a class.
		Limits: api.Limits{RequestRate: 100_000},
	})
}

type route struct {
	method, path string
	query        []parameter
	headers      []string
	body         bool
}

type parameter struct {
	name         string
	kind         string
	list, repeat bool
	empty        bool
}

// routes are all operations of the document, with names in their paths.
func routes(t *testing.T, h http.Handler) []route {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request("GET", "/api/v1/openapi.json", ""))
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In string
				Explode  bool
				Empty    bool `json:"allowEmptyValue"`
				Schema   struct{ Type any }
			}
			RequestBody any
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("{cluster}", "a", "{namespace}", "a", "{name}", "a", "{catalog}", "a", "{package}", "a",
		"{id}", "00000000-0000-0000-0000-000000000000")
	all := []route{{method: "GET", path: "/api/v1/openapi.json"}, {method: "GET", path: "/api/v1/openapi.yaml"}}
	for path, item := range doc.Paths {
		for method, op := range item {
			r := route{
				method: strings.ToUpper(method), path: "/api/v1" + fill.Replace(path), body: op.RequestBody != nil,
			}
			for _, p := range op.Parameters {
				if p.In == "header" {
					r.headers = append(r.headers, p.Name)
				}
				if p.In != "query" {
					continue
				}
				kind, isText := p.Schema.Type.(string)
				r.query = append(r.query, parameter{
					name: p.Name, kind: kind, list: !isText, repeat: !isText && p.Explode, empty: p.Empty,
				})
			}
			all = append(all, r)
		}
	}
	return all
}

func request(method, target, body string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer t")
	return r
}

type finding struct{ Location, Message, Rule string }

// refused wants a problem with a status, a place and a rule.
func refused(t *testing.T, h http.Handler, r *http.Request, status int, location, rule string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var p struct {
		Type, Title, Detail string
		Status              int
		Errors              []finding
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != status || p.Status != status ||
		p.Title == "" || p.Detail == "" || p.Type == "" {
		t.Errorf("%s %s: %d %s, want %d", r.Method, r.URL, w.Code, w.Body, status)
		return
	}
	if !slices.ContainsFunc(p.Errors, func(e finding) bool { return e.Location == location && e.Rule == rule }) {
		t.Errorf("%s %s: %v, want %s at %s", r.Method, r.URL, p.Errors, rule, location)
	}
}

// TestNothingOfAQueryIsDropped sends every operation of the document each way to get a query wrong. Before, what could
// not be read was dropped and the rest carried out, so that a dry run wrote and a filter was none.
func TestNothingOfAQueryIsDropped(t *testing.T) {
	t.Parallel()
	h := formServer()
	all := routes(t, h)
	if len(all) < 60 {
		t.Fatalf("the document has only %d operations", len(all))
	}
	for _, r := range all {
		refuse := func(query, location, rule string) {
			t.Helper()
			refused(t, h, request(r.method, r.path+"?"+query, ""), http.StatusBadRequest, location, rule)
		}
		refuse("colour=red", "query.colour", "unknown-parameter")
		refuse("DryRun=true", "query.DryRun", "unknown-parameter")
		refuse("colour", "query.colour", "unknown-parameter")
		refuse("%zz=1", "query", "percent-encoding")
		refuse("%ff=1", "query", "percent-encoding")
		refuse("=1", "query.", "unknown-parameter")
		for _, p := range r.query {
			name, at := p.name, "query."+p.name
			refuse(name+"=true%", at, "percent-encoding")
			refuse(name+"=%zz", at, "percent-encoding")
			refuse(name+"=true;x=y", at, "percent-encoding")
			refuse(name+"=%ff", at, "text")
			refuse(name+"=a%00b", at, "text")
			refuse(name, at, "has-value")
			refuse("colour=%zz&"+name+"=%", at, "percent-encoding")
			if !p.empty {
				refuse(name+"=", at, "has-value")
			}
			if p.list && !p.repeat {
				refuse(name+"=a,,b", at, "has-value")
			}
			if !p.repeat {
				refuse(name+"=false&"+name+"=true", at, "given-once")
				refuse(name+"=1&"+strings.ReplaceAll(name, "r", "%72")+"=1", at, "given-once")
			}
			switch p.kind {
			case "boolean", "integer":
				refuse(name+"=true+1", at, "type")
				refuse(name+"=+", at, "type")
			}
		}
	}
}

// TestNothingElseIsDropped: bodies that nobody would read, other content types, and headers that make a request
// conditional.
func TestNothingElseIsDropped(t *testing.T) {
	t.Parallel()
	h := formServer()
	for _, r := range routes(t, h) {
		hook := strings.Contains(r.path, "/hooks/")
		for _, header := range []string{"If-Match", "If-Unmodified-Since", "Idempotency-Key"} {
			if slices.Contains(r.headers, header) {
				continue // taken
			}
			in := request(r.method, r.path, "")
			in.Header.Set(header, "1")
			refused(t, h, in, http.StatusBadRequest, "header."+header, "unsupported-header")
		}
		switch {
		case hook:
		case r.body:
			in := request(r.method, r.path, "a: 1")
			in.Header.Set("Content-Type", "text/yaml")
			refused(t, h, in, http.StatusUnsupportedMediaType, "header.Content-Type", "content-type")
			in = request(r.method, r.path, "{}")
			in.Header.Set("Content-Type", "application/json; charset=latin1")
			refused(t, h, in, http.StatusUnsupportedMediaType, "header.Content-Type", "content-type")
			in = request(r.method, r.path, "{}")
			in.Header.Set("Content-Encoding", "gzip")
			refused(t, h, in, http.StatusUnsupportedMediaType, "header.Content-Encoding", "content-type")
			in = request(r.method, r.path, "{}")
			in.Header["Content-Type"] = []string{"application/json", "text/yaml"}
			refused(t, h, in, http.StatusBadRequest, "header.Content-Type", "given-once")
			refused(t, h, request(r.method, r.path, `{"a": [{"b": 1, "b": 1}]}`), http.StatusBadRequest, "body.a[0].b",
				"given-once")
			refused(t, h, request(r.method, r.path, `{"a": 1} {"b": 2}`), http.StatusBadRequest, "body", "syntax")
			refused(t, h, request(r.method, r.path, "{\"a\": \"\xff\"}"), http.StatusBadRequest, "body", "text")
			refused(t, h, request(r.method, r.path, `{"a": "\u0000"}`), http.StatusBadRequest, "body.a", "text")
		default:
			refused(t, h, request(r.method, r.path, `{"dryRun": true}`), http.StatusBadRequest, "body", "no-body")
		}
	}
	twice := request("GET", "/api/v1/clusters", "")
	twice.Header["Authorization"] = []string{"Bearer a", "Bearer b"}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, twice)
	if w.Code != http.StatusUnauthorized {
		t.Errorf("two tokens: %d", w.Code)
	}
	path := request("GET", "/api/v1/catalogs/a/packages/a%00b", "")
	refused(t, h, path, http.StatusBadRequest, "path.package", "text")
}

// TestFieldsAreComparedToTheLetter: "NAME" is not name, and its value would go unchecked.
func TestFieldsAreComparedToTheLetter(t *testing.T) {
	t.Parallel()
	const groups = "/api/v1/clusters/a/namespaces/a/operatorgroups"
	refused(t, formServer(), request("POST", groups, `{"name": "a", "NAME": "../b"}`), http.StatusBadRequest,
		"body.NAME", "unknown-field")
	if !huma.ValidateStrictCasing {
		t.Error("huma takes fields of another case")
	}
}

// Every route of the document answers OPTIONS without a token, tells its methods, and HEAD where it has GET; what it
// lacks is 405 in the form of every problem.
func TestMethodsOfEveryRoute(t *testing.T) {
	t.Parallel()
	h := formServer()
	ask := func(method, path, bearer string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, r := range routes(t, h) {
		w := ask(http.MethodOptions, r.path, "")
		allow := strings.Split(w.Header().Get("Allow"), ", ")
		if w.Code != http.StatusNoContent || !slices.Contains(allow, r.method) ||
			slices.Contains(allow, http.MethodHead) != slices.Contains(allow, http.MethodGet) {
			t.Errorf("OPTIONS %s: %d, %v", r.path, w.Code, allow)
		}
		if w := ask("BREW", r.path, "t"); w.Code != http.StatusMethodNotAllowed ||
			w.Header().Get("Allow") != strings.Join(allow, ", ") ||
			w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("BREW %s: %d, %v", r.path, w.Code, w.Header())
		}
		if r.method == http.MethodGet {
			want := http.StatusUnauthorized
			if r.path == "/api/v1/auth/config" { // for those who have no token
				want = http.StatusOK
			}
			if w := ask(http.MethodHead, r.path, ""); w.Code != want {
				t.Errorf("HEAD %s without a token: %d", r.path, w.Code)
			}
			if w := ask(http.MethodHead, r.path+"?nothing=1", "t"); w.Code != http.StatusBadRequest {
				t.Errorf("HEAD %s is not held to the form of GET: %d", r.path, w.Code)
			}
		}
	}
	for _, path := range []string{"/api/v1/openapi.json", "/api/v1/openapi.yaml", "/api/v1/rules"} {
		get, head := ask(http.MethodGet, path, "t"), ask(http.MethodHead, path, "t")
		if head.Code != http.StatusOK || head.Header().Get("Content-Type") != get.Header().Get("Content-Type") {
			t.Errorf("HEAD %s: %d, %v", path, head.Code, head.Header())
		}
	}
}

// TestMisspeltIsAskedFor: the names that come near a parameter or a value that is not taken are in the message.
func TestMisspeltIsAskedFor(t *testing.T) {
	t.Parallel()
	h := formServer()
	for query, want := range map[string]string{
		"clustr=east":              "did you mean cluster?",
		"state=resolutionfailed":   "did you mean ResolutionFailed?",
		"state=Gone&cluster=east":  "expected value to be one of",
		"entirelydifferent=things": "unknown query parameter: this operation takes",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request("GET", "/api/v1/subscriptions?"+query, ""))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", query, w.Code, w.Body, want)
		}
	}
}
