package httpserver_test

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/httpserver"
)

// update rewrites the pages: go test ./libs/httpserver -run TestProblemPages -update
var update = flag.Bool("update", false, "rewrite docs/problems")

const pages = "../../docs/problems"

func page(t httpserver.TypeOfProblem) string {
	return fmt.Sprintf("# %s\n\nStatus %d, %s. Type: <%s>\n\n%s\n\n**What to do:** %s\n", t.Name, t.Status, t.Title,
		t.URI(), t.Means, t.Do)
}

func list() string {
	var b strings.Builder
	b.WriteString("# Problems\n\nEvery error of the API is a problem document (RFC 9457, `application/problem+json`): " +
		"`type` leads to one of these pages,\n`title` says it in short, `detail` what happened, `instance` names the " +
		"occurrence as the log does. `kind` and `errors` are for programs.\n\n" +
		"| type | status | |\n|---|---|---|\n")
	for _, t := range httpserver.ProblemTypes() {
		fmt.Fprintf(&b, "| [%s](%s.md) | %d | %s |\n", t.Name, t.Name, t.Status, t.Means)
	}
	return b.String()
}

// TestProblemPages: every type has its page, as the code says, and no page is of a type that is no more.
func TestProblemPages(t *testing.T) {
	t.Parallel()
	want := map[string]string{"README.md": list()}
	for _, one := range httpserver.ProblemTypes() {
		want[one.Name+".md"] = page(one)
	}
	if *update {
		if err := os.RemoveAll(pages); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(pages, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(pages, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	there, err := os.ReadDir(pages)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range there {
		got, err := os.ReadFile(filepath.Join(pages, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want[f.Name()] {
			t.Errorf("docs/problems/%s is not what the code says; run this test with -update", f.Name())
		}
		delete(want, f.Name())
	}
	for name := range want {
		t.Errorf("docs/problems/%s is missing; run this test with -update", name)
	}
}

// TestEveryProblemHasAType: each kind of error and each status leads to a type that has a page.
func TestEveryProblemHasAType(t *testing.T) {
	t.Parallel()
	known := map[string]httpserver.TypeOfProblem{}
	for _, one := range httpserver.ProblemTypes() {
		known[one.URI()] = one
	}
	for _, kind := range []errs.Kind{
		errs.Internal, errs.Invalid, errs.Unprocessable, errs.TooLarge, errs.Unauthenticated, errs.Forbidden,
		errs.NotFound, errs.AlreadyExists, errs.Conflict, errs.Unavailable,
	} {
		p := httpserver.Details(errs.New(kind, "x"))
		if one, ok := known[p.Type]; !ok || one.Status != p.Status || p.Title == "" {
			t.Errorf("kind %s has type %q with status %d", kind, p.Type, p.Status)
		}
	}
	for status := 400; status < 600; status++ {
		p := httpserver.ProblemDetails{}
		p.SetStatus(status)
		if _, ok := known[p.Type]; !ok || p.Status != status {
			t.Errorf("status %d has type %q and becomes %d", status, p.Type, p.Status)
		}
	}
}

// TestMethodsThatThereAre: who uses a method that is not offered learns which are.
func TestMethodsThatThereAre(t *testing.T) {
	t.Parallel()
	r := httpserver.Router(httpserver.Options{})
	none := func(http.ResponseWriter, *http.Request) {}
	r.Get("/a/{b}", none)
	r.Delete("/a/{b}", none)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/a/x", http.NoBody))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD, DELETE, OPTIONS" ||
		!strings.Contains(w.Body.String(), `"instance":"urn:chandler:request:`) ||
		!strings.Contains(w.Body.String(), "docs/problems/method-not-allowed.md") {
		t.Errorf("%d, Allow %q: %s", w.Code, w.Header().Get("Allow"), w.Body)
	}
}
