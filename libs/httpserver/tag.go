package httpserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// tagBytes is how much of a digest tells two answers apart.
const tagBytes = 16

// tagged gives answers to reads an entity tag, and answers 304 to who has the answer already. The tag ends with a
// digest of the body, since answers hold what stands outside of read models, such as messages and bodies that may be
// erased, and what the caller may see: no position of the log would tell. What a handler set as the tag, the version of
// an object, comes first.
func tagged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if RouteMethod(r) != http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		t := &tagWriter{ResponseWriter: w, wanted: r.Header.Values("If-None-Match")}
		next.ServeHTTP(t, r)
		t.finish()
	})
}

// tagWriter holds an answer back until all of it is there. What is flushed before, a stream, has no tag.
type tagWriter struct {
	http.ResponseWriter

	wanted []string
	status int
	body   bytes.Buffer
	passes bool // nothing is held back any more
}

// WriteHeader implements http.ResponseWriter.
func (t *tagWriter) WriteHeader(status int) {
	if t.passes || status < http.StatusOK {
		t.ResponseWriter.WriteHeader(status)
		return
	}
	if t.status == 0 {
		t.status = status
	}
	if status != http.StatusOK {
		t.pass()
	}
}

// Write implements http.ResponseWriter.
func (t *tagWriter) Write(b []byte) (int, error) {
	if t.passes {
		return t.ResponseWriter.Write(b)
	}
	t.WriteHeader(http.StatusOK)
	return t.body.Write(b)
}

// FlushError passes on what was held back.
func (t *tagWriter) FlushError() error {
	t.pass()
	return http.NewResponseController(t.ResponseWriter).Flush()
}

// Unwrap gives the deadlines of the connection to who sets them.
func (t *tagWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *tagWriter) pass() {
	if t.passes {
		return
	}
	t.passes = true
	if t.status != 0 {
		t.ResponseWriter.WriteHeader(t.status)
	}
	if t.body.Len() > 0 {
		// The caller may have gone; the access log has what was answered.
		_, _ = t.ResponseWriter.Write(t.body.Bytes())
	}
}

func (t *tagWriter) finish() {
	if t.passes || t.status == 0 {
		return
	}
	h := t.Header()
	digest := sha256.Sum256(t.body.Bytes())
	tag := hex.EncodeToString(digest[:tagBytes])
	if version := strings.Trim(h.Get("ETag"), `"`); version != "" {
		tag = version + "-" + tag
	}
	h.Set("ETag", `"`+tag+`"`)
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "private, no-cache") // it is the caller's, and may change at once
	}
	if known(t.wanted, tag) {
		h.Del("Content-Type")
		t.status = http.StatusNotModified
		t.body.Reset()
	}
	t.pass()
}

// known says whether a header If-None-Match names a tag. What compression adds to one does not count: the content is
// the same.
func known(wanted []string, tag string) bool {
	for one := range strings.SplitSeq(strings.Join(wanted, ","), ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
		if one == "*" || strings.HasPrefix(one, `"`) && UnpackedTag(strings.Trim(one, `"`)) == tag {
			return true
		}
	}
	return false
}
