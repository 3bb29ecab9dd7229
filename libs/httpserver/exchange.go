package httpserver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/klauspost/compress/gzhttp"
	"github.com/rs/cors"

	"github.com/chandler-fleet/chandler/libs/errs"
)

const (
	// minPacked is the length in bytes from which an answer is compressed: below it headers are most of it.
	minPacked = 1 << 10
	// preflightAge is how long a browser may go by an answer about CORS: Chromium keeps none for longer than two hours,
	// and a setting that was changed should count within minutes.
	preflightAge = 10 * time.Minute
	// anyOrigin lets pages of every origin read.
	anyOrigin = "*"
)

// methods are those that routes have, in the order in which they are told.
var methods = []string{
	http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
}

// Allowed are the methods that the router of a request offers at its path; none where nothing is there.
func Allowed(r *http.Request) []string {
	route := chi.RouteContext(r.Context())
	if route == nil || route.Routes == nil {
		return nil
	}
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	var allowed []string
	for _, m := range methods {
		if !route.Routes.Match(chi.NewRouteContext(), m, path) {
			continue
		}
		if allowed = append(allowed, m); m == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	if len(allowed) > 0 {
		allowed = append(allowed, http.MethodOptions)
	}
	return allowed
}

// everyMethod answers OPTIONS at every path that is there, and has HEAD served as GET: net/http leaves the body away.
// OPTIONS asks nobody for a token, since browsers send none before they may; what it tells is in the API's document.
func everyMethod(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodOptions:
			if allowed := Allowed(r); len(allowed) > 0 {
				w.Header().Set("Allow", strings.Join(allowed, ", "))
				w.WriteHeader(http.StatusNoContent)
				return
			}
		case http.MethodHead:
			if route := chi.RouteContext(r.Context()); route != nil {
				route.RouteMethod = http.MethodGet
			}
		}
		next.ServeHTTP(w, r)
	})
}

// RouteMethod is the method of the route that answers a request: GET, where it is HEAD.
func RouteMethod(r *http.Request) string {
	if r.Method == http.MethodHead {
		return http.MethodGet
	}
	return r.Method
}

// packed compresses answers to reads as the client accepts, with zstd or gzip. Answers to writes are left as they are:
// new tokens and secrets of hooks stand in them, beside names that somebody else may have chosen, and the length of a
// compressed answer would tell about the one what is tried as the other (BREACH).
func packed(next http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(minPacked), gzhttp.ContentTypeFilter(packs),
		gzhttp.SuffixETag(packedTag))
	if err != nil { // these options are constants
		panic(err)
	}
	wrapped := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if RouteMethod(r) != http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		wrapped.ServeHTTP(w, r)
	})
}

// packedTag begins what tells the entity tag of a compressed answer from that of the same answer as it is.
const packedTag = "~"

// UnpackedTag is the text of an entity tag without what compression added.
func UnpackedTag(tag string) string {
	tag, _, _ = strings.Cut(tag, packedTag)
	return tag
}

// packs says whether answers of a content type become shorter. Streams are sent event by event.
func packs(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.TrimSpace(kind)
	return slices.Contains([]string{"application/yaml", "image/svg+xml"}, kind) || strings.HasSuffix(kind, "json") ||
		strings.HasPrefix(kind, "text/") && kind != "text/event-stream"
}

// ParseOrigins reads origins, with commas, whose pages may read answers; "*" is all of them.
func ParseOrigins(setting string) ([]string, error) {
	var list []string
	for origin := range strings.SplitSeq(setting, ",") {
		if origin = strings.TrimSpace(origin); origin == "" {
			continue
		}
		u, err := url.Parse(origin)
		if origin != anyOrigin && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" ||
			origin != u.Scheme+"://"+u.Host || strings.Contains(u.Host, "*")) {
			return nil, errs.New(errs.Invalid, "%q is no origin: want the form https://portal.example, without a path, or *",
				origin)
		}
		list = append(list, origin)
	}
	if len(list) > 1 && slices.Contains(list, anyOrigin) {
		return nil, errs.New(errs.Invalid, "* stands for every origin: give it alone")
	}
	return list, nil
}

// shared lets pages of other origins read answers. Credentials are never allowed: who asks brings a bearer token, which
// a page has to have, and no cookie, which a browser adds by itself.
func shared(origins []string) func(http.Handler) http.Handler {
	if len(origins) == 0 {
		return func(next http.Handler) http.Handler { return next }
	}
	return cors.New(cors.Options{
		AllowedOrigins: origins, AllowedMethods: append([]string{http.MethodHead}, methods...),
		AllowedHeaders: []string{
			"Accept", "Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID",
			"Prefer", HeaderRequestID, "Traceparent", "Tracestate",
		},
		ExposedHeaders: []string{
			"Allow", "Chandler-Position", "ETag", "Idempotent-Replayed", "Location", "Preference-Applied",
			headerLimit, headerPolicy, headerRemaining, headerReset, "Retry-After", HeaderRequestID,
		},
		MaxAge: int(preflightAge.Seconds()), OptionsSuccessStatus: http.StatusNoContent,
	}).Handler
}
