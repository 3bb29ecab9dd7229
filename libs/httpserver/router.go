package httpserver

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/netip"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/go-chi/chi/v5"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// DefaultBodyLimit bounds a request's body. The largest that people send is a kubeconfig or a
// subscription's configuration, a few kilobytes.
const DefaultBodyLimit = 1 << 20

// HeaderRequestID carries the id of a request, from the caller if it has the right form.
const HeaderRequestID = "X-Request-ID"

// Options of a router.
type Options struct {
	Log       *slog.Logger // slog.Default when nil
	BodyLimit int64        // bytes; DefaultBodyLimit when zero
	// Access takes what became of each request, beside the line in the log; nil where nobody wants it. Requests wait
	// for it.
	Access func(Access)
	// TrustedProxies are networks of proxies whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// Origins are those whose pages may read answers (ParseOrigins).
	Origins []string
}

// Router returns a router with tracing, request id, access log, recovery, a body limit, CORS and compression, which
// answers HEAD, OPTIONS and If-None-Match at every route, and whose answers to unknown paths and methods are problem
// documents.
func Router(o Options) *chi.Mux {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.BodyLimit == 0 {
		o.BodyLimit = DefaultBodyLimit
	}
	r := chi.NewRouter()
	r.Use(trace, requestID, accessLog(o), recoverer(o.Log), limitBody(o.BodyLimit), shared(o.Origins),
		everyMethod, packed, tagged)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		Problem(w, r, errs.New(errs.NotFound, "there is nothing at %s", r.URL.Path))
	})
	r.MethodNotAllowed(methodNotAllowed)
	return r
}

// methodNotAllowed says which methods there are. It has no kind of its own: no service can mean it.
func methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", strings.Join(Allowed(r), ", "))
	err := errs.New(errs.Invalid, "%s is not offered at %s", r.Method, r.URL.Path)
	p := Details(err)
	p.typed(http.StatusMethodNotAllowed)
	write(w, r, err, p)
}

func trace(next http.Handler) http.Handler {
	return otelhttp.NewHandler(next, "http", otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string {
		return r.Method + " " + r.URL.Path
	}))
}

// note is what later middleware and handlers add to the access log.
type note struct {
	id     string
	err    error
	caller Caller
}

type noteKey struct{}

var wantID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func requestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(HeaderRequestID)
		if !wantID.MatchString(id) {
			id = rand.Text()
		}
		w.Header().Set(HeaderRequestID, id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), noteKey{}, &note{id: id})))
	})
}

// RequestID is the id of the request of ctx, "" outside one.
func RequestID(ctx context.Context) string {
	if n, ok := ctx.Value(noteKey{}).(*note); ok {
		return n.id
	}
	return ""
}

func noteError(ctx context.Context, err error) {
	if n, ok := ctx.Value(noteKey{}).(*note); ok {
		n.err = err
	}
}

// NoteError gives the access log the error behind a response that Problem did not write.
func NoteError(ctx context.Context, err error) { noteError(ctx, err) }

func recoverer(log *slog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				v := recover()
				if v == nil {
					return
				}
				if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares this sentinel by identity, too
					panic(v)
				}
				log.ErrorContext(r.Context(), "panic in a handler", "panic", v, "path", r.URL.Path, "stack",
					string(debug.Stack()))
				Problem(w, r, errs.New(errs.Internal, "panic: %v", v))
			}()
			next.ServeHTTP(w, r)
		})
	}
}

func limitBody(limit int64) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength > limit {
				Problem(w, r, errs.New(errs.TooLarge, "the body has %d bytes, the limit is %d", r.ContentLength, limit))
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, limit)
			next.ServeHTTP(w, r)
		})
	}
}
