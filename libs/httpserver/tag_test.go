package httpserver_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/httpserver"
)

// An answer that the client has is not sent again, whatever was compressed; another answer has another tag, behind the
// version that a handler gives.
func TestTags(t *testing.T) {
	t.Parallel()
	body, version, status := "a"+strings.Repeat(" long", 1000), `"1.7"`, http.StatusOK
	r := httpserver.Router(httpserver.Options{Log: slog.New(slog.DiscardHandler)})
	answer := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if version != "" {
			w.Header().Set("ETag", version)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body[:1]) // a recorder takes everything
		_, _ = io.WriteString(w, body[1:])
	}
	r.Get("/thing", answer)
	r.Post("/thing", answer)
	first := exchange(t, r, "GET", "/thing")
	tag := first.Header().Get("ETag")
	if first.Body.String() != body || !strings.HasPrefix(tag, `"1.7-`) || strings.HasPrefix(tag, "W/") ||
		first.Header().Get("Cache-Control") != "private, no-cache" {
		t.Fatalf("%d bytes, %v", first.Body.Len(), first.Header())
	}
	packed := exchange(t, r, "GET", "/thing", "Accept-Encoding", "gzip").Header().Get("ETag")
	if packed == tag {
		t.Error("two codings have one tag")
	}
	for _, c := range []struct {
		method, wanted, coding string
		want                   int
	}{
		{"GET", tag, "", 304},
		{"GET", tag, "gzip", 304},
		{"GET", packed, "gzip", 304},
		{"GET", packed, "zstd", 304},
		{"HEAD", tag, "", 304},
		{"GET", "W/" + tag, "", 304},
		{"GET", `"other", ` + tag, "", 304},
		{"GET", "*", "", 304},
		{"GET", `"other"`, "", 200},
		{"GET", strings.Trim(tag, `"`), "", 200},
		{"GET", `"1.7"`, "", 200},
		{"HEAD", `"other"`, "", 200},
		{"POST", tag, "", 200},
	} {
		w := exchange(t, r, c.method, "/thing", "If-None-Match", c.wanted, "Accept-Encoding", c.coding)
		if w.Code != c.want || c.want == 304 && (w.Body.Len() > 0 || w.Header().Get("Content-Type") != "" ||
			httpserver.UnpackedTag(w.Header().Get("ETag")) != httpserver.UnpackedTag(tag)) {
			t.Errorf("%s, If-None-Match: %s: %d, %d bytes, %v", c.method, c.wanted, w.Code, w.Body.Len(), w.Header())
		}
	}
	body += "."
	if got := exchange(t, r, "GET", "/thing").Header().Get("ETag"); got == tag || !strings.HasPrefix(got, `"1.7-`) {
		t.Errorf("another answer has the tag %s", got)
	}
	version = ""
	if got := exchange(t, r, "GET", "/thing").Header().Get("ETag"); len(got) != 34 {
		t.Errorf("what has no version has the tag %s", got)
	}
	status = http.StatusNotFound
	if w := exchange(t, r, "GET", "/thing", "If-None-Match", "*"); w.Code != 404 || w.Body.String() != body ||
		w.Header().Get("ETag") != "" {
		t.Errorf("what is no success: %d, %v", w.Code, w.Header())
	}
}

func BenchmarkTags(b *testing.B) {
	body := []byte(strings.Repeat("3 KiB of an object, as JSON ", 110))
	r := httpserver.Router(httpserver.Options{Log: slog.New(slog.DiscardHandler)})
	r.Get("/thing", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(body) // a recorder takes everything
	})
	for b.Loop() {
		exchange(b, r, "GET", "/thing")
	}
}
