package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/internal/api"
)

// TestProblemsHaveOneForm: whoever refuses a request, the router, the edge or huma, says it in the same way.
func TestProblemsHaveOneForm(t *testing.T) {
	t.Parallel()
	h := formServer()
	types := map[string]bool{}
	for _, one := range httpserver.ProblemTypes() {
		types[one.URI()] = true
	}
	for _, c := range []struct {
		name   string
		status int
		req    func() *http.Request
		header [2]string
	}{
		{"no token", 401, func() *http.Request {
			r := request("GET", "/api/v1/clusters", "")
			r.Header.Del("Authorization")
			return r
		}, [2]string{"WWW-Authenticate", "Bearer"}},
		{"no such path", 404, func() *http.Request { return request("GET", "/api/v1/nothing", "") }, [2]string{}},
		{"outside the API", 404, func() *http.Request { return request("GET", "/", "") }, [2]string{}},
		{
			"no such method", 405, func() *http.Request { return request("PATCH", "/api/v1/clusters", "") },
			[2]string{"Allow", "GET"},
		},
		{"another form", 406, func() *http.Request {
			r := request("GET", "/api/v1/clusters", "")
			r.Header.Set("Accept", "text/html, application/json;q=0")
			return r
		}, [2]string{}},
		{
			"too large", 413, func() *http.Request {
				return request("POST", "/api/v1/clusters", strings.Repeat("a", 2<<20))
			}, [2]string{},
		},
		{"no JSON", 415, func() *http.Request {
			r := request("POST", "/api/v1/clusters", "a: 1")
			r.Header.Set("Content-Type", "text/yaml")
			return r
		}, [2]string{}},
		{
			"schema", 400, func() *http.Request { return request("POST", "/api/v1/clusters", `{"name": 5}`) },
			[2]string{},
		},
		{"fault", 500, func() *http.Request { return request("GET", "/api/v1/clusters", "") }, [2]string{}},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, c.req())
		var p struct {
			Type, Title, Detail, Instance string
			Status                        int
		}
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Errorf("%s: %s", c.name, w.Body)
			continue
		}
		if w.Code != c.status || p.Status != c.status || !types[p.Type] || p.Title == "" || p.Detail == "" ||
			!strings.HasPrefix(p.Instance, "urn:chandler:request:") ||
			w.Header().Get("Content-Type") != httpserver.ProblemType {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
		if got := w.Header().Get(c.header[0]); c.header[0] != "" && !strings.HasPrefix(got, c.header[1]) {
			t.Errorf("%s: %s is %q", c.name, c.header[0], got)
		}
	}
	for _, accept := range []string{
		"*/*", "application/*", "text/html, application/json;q=0.1", "text/html,*/*;q=0.8",
	} {
		r := request("GET", "/api/v1/clusters", "")
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusNotAcceptable {
			t.Errorf("Accept: %s is not served", accept)
		}
	}
}

// TestDocumentSaysWhatIsAnswered: the list of packages has its items, and an icon is an image.
func TestDocumentSaysWhatIsAnswered(t *testing.T) {
	t.Parallel()
	doc := document(t)
	found := doc.Components.Schemas.Map()["FoundList"]
	if found == nil || found.Properties["items"] == nil || found.Properties["next"] == nil {
		t.Errorf("a page of packages is %+v", found)
	}
	icon := doc.Paths["/catalogs/{catalog}/packages/{package}/icon"].Get.Responses["200"].Content
	if icon["image/png"] == nil || icon["application/json"] != nil {
		t.Errorf("an icon is %v", icon)
	}
}

func document(t *testing.T) *huma.OpenAPI {
	t.Helper()
	return api.New(api.Deps{}).Document()
}
