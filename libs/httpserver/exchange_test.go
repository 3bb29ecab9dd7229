package httpserver_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/httpserver"
)

// exchanges serves a document, and a stream that flushes.
func exchanges(origins ...string) http.Handler {
	r := httpserver.Router(httpserver.Options{Origins: origins, Log: slog.New(slog.DiscardHandler)})
	long := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"7"`)
		_, _ = io.WriteString(w, strings.Repeat("long ", 1000)) // a recorder takes everything
	}
	r.Get("/things", long)
	r.Post("/things", long)
	r.Delete("/things/{thing}", long)
	r.Get("/stream", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: x\n\n") // as above
		if err := http.NewResponseController(w).Flush(); err != nil {
			panic(err)
		}
		_, _ = io.WriteString(w, strings.Repeat("data: long\n\n", 1000))
	})
	return r
}

func exchange(t testing.TB, h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Every path that is there answers OPTIONS with its methods, and HEAD as GET; a method that it lacks is told with them.
func TestEveryMethod(t *testing.T) {
	t.Parallel()
	h := exchanges()
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"OPTIONS", "/things", 204, "GET, HEAD, POST, OPTIONS"},
		{"OPTIONS", "/things/1", 204, "DELETE, OPTIONS"},
		{"OPTIONS", "/else", 404, ""},
		{"HEAD", "/things", 200, ""},
		{"HEAD", "/things/1", 405, "DELETE, OPTIONS"},
		{"HEAD", "/else", 404, ""},
		{"PUT", "/things", 405, "GET, HEAD, POST, OPTIONS"},
		{"TRACE", "/things", 405, "GET, HEAD, POST, OPTIONS"},
		{"BREW", "/things", 405, "GET, HEAD, POST, OPTIONS"},
	} {
		w := exchange(t, h, c.method, c.path)
		if w.Code != c.status || w.Header().Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow: %s", c.method, c.path, w.Code, w.Header().Get("Allow"))
		}
		problem := w.Header().Get("Content-Type") == httpserver.ProblemType
		if problem != (c.status >= 400) {
			t.Errorf("%s %s: %s", c.method, c.path, w.Header().Get("Content-Type"))
		}
	}
}

// Answers to reads are compressed as the client accepts; a stream is not, nor an answer to a write.
func TestPacked(t *testing.T) {
	t.Parallel()
	h := exchanges()
	plain := exchange(t, h, "GET", "/things")
	for accepts, want := range map[string]string{
		"": "", "gzip": "gzip", "zstd": "zstd", "gzip, zstd": "zstd", "gzip;q=1.0, zstd;q=0.5": "gzip", "br": "",
		"gzip;q=0": "", "identity": "",
	} {
		w := exchange(t, h, "GET", "/things", "Accept-Encoding", accepts)
		if got := w.Header().Get("Content-Encoding"); got != want || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q is answered as %q, Vary: %s", accepts, got, w.Header().Get("Vary"))
		}
		if got := unpack(t, w.Body.Bytes(), want); !bytes.Equal(got, plain.Body.Bytes()) {
			t.Errorf("%q is answered with %d other bytes", accepts, len(got))
		}
		tag := strings.Trim(w.Header().Get("ETag"), `"`)
		if (httpserver.UnpackedTag(tag) == tag) != (want == "") || !strings.HasPrefix(tag, "7-") {
			t.Errorf("%q has the tag %s", accepts, tag)
		}
	}
	for target, method := range map[string]string{"/stream": "GET", "/things": "POST"} {
		w := exchange(t, h, method, target, "Accept-Encoding", "gzip, zstd")
		if w.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s %s is compressed with %s", method, target, w.Header().Get("Content-Encoding"))
		}
	}
	if w := exchange(t, h, "GET", "/stream", "Accept-Encoding", "gzip"); !w.Flushed ||
		!strings.HasPrefix(w.Body.String(), "data: x\n\ndata: long") {
		t.Errorf("the stream is %.40s", w.Body)
	}
}

func unpack(t *testing.T, body []byte, coding string) []byte {
	t.Helper()
	var r io.Reader = bytes.NewReader(body)
	switch coding {
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		r = z
	case "zstd":
		z, err := zstd.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		r = z
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Pages of other origins read answers where the setting names them, and never with credentials of the browser.
func TestCORS(t *testing.T) {
	t.Parallel()
	const portal = "https://portal.example"
	ask := []string{
		"Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "authorization,content-type,if-match",
	}
	for _, c := range []struct {
		origins []string
		from    string
		want    string
	}{
		{nil, portal, ""},
		{[]string{portal}, portal, portal},
		{[]string{portal}, "https://other.example", ""},
		{[]string{portal}, "http://portal.example", ""},
		{[]string{portal}, "null", ""},
		{[]string{"*"}, "https://other.example", "*"},
	} {
		h := exchanges(c.origins...)
		w := exchange(t, h, "GET", "/things", "Origin", c.from)
		if got := w.Header().Get("Access-Control-Allow-Origin"); w.Code != 200 || got != c.want ||
			w.Header().Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%v, from %s: %d, %v", c.origins, c.from, w.Code, w.Header())
		}
		if c.want == portal && (!strings.Contains(strings.Join(w.Header().Values("Vary"), ","), "Origin") ||
			!strings.Contains(w.Header().Get("Access-Control-Expose-Headers"), "Etag")) {
			t.Errorf("a page reads %v", w.Header())
		}
		w = exchange(t, h, "OPTIONS", "/things", append([]string{"Origin", c.from}, ask...)...)
		if got := w.Header().Get("Access-Control-Allow-Origin"); w.Code != 204 || got != c.want ||
			w.Header().Get("Access-Control-Allow-Credentials") != "" ||
			(c.want != "") != (w.Header().Get("Access-Control-Allow-Methods") == "PUT") {
			t.Errorf("%v, a preflight from %s: %d, %v", c.origins, c.from, w.Code, w.Header())
		}
	}
}

// A setting that names no origin is refused at the start.
func TestParseOrigins(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]int{
		"": 0, "*": 1, "https://portal.example": 1, "https://a.example, http://localhost:3000": 2,
	} {
		if got, err := httpserver.ParseOrigins(given); err != nil || len(got) != want {
			t.Errorf("%q is read as %v, %v", given, got, err)
		}
	}
	for _, given := range []string{
		"portal.example", "https://portal.example/", "https://*.example", "*,https://a.example", "null", "file://x",
		"https://", "https://u@portal.example", "https://portal.example?x",
	} {
		if got, err := httpserver.ParseOrigins(given); err == nil {
			t.Errorf("%q is read as %v", given, got)
		}
	}
}
