package httpserver

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/felixge/httpsnoop"
	"github.com/go-chi/chi/v5"
)

// Caller is who a request turned out to be from: opaque ids, no names.
type Caller struct {
	Tenant, Actor, Token, Role string
	Via                        string // service account through which the actor asked; "" for none
}

// Access says what became of one request.
type Access struct {
	Began  time.Time
	Took   time.Duration // of a stream, until its end
	Caller Caller        // zero where nobody was recognised
	// Address is that of the client, without a port, as far as trusted proxies tell it.
	Address string
	Method  string
	Path    string
	Route   string // pattern of the route, such as /api/v1/clusters/{cluster}; "" where there is none
	Status  int
	Bytes   int64 // of the answer
	Request string
}

const (
	// maxPath and maxMethod bound what a client may write into the access log; names of objects in a path are shorter.
	maxPath   = 1024
	maxMethod = 16
)

// NoteCaller gives the access log who a request is from.
func NoteCaller(ctx context.Context, c Caller) {
	if n, ok := ctx.Value(noteKey{}).(*note); ok {
		n.caller = c
	}
}

// accessLog writes one line for each request, and hands the same to o.Access.
func accessLog(o Options) func(http.Handler) http.Handler {
	log := o.Log.With("log", "access")
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			m := httpsnoop.CaptureMetrics(next, w, r)
			a := Access{
				Began: began.UTC(), Took: m.Duration, Address: ClientAddress(r, o.TrustedProxies),
				Method: cut(r.Method, maxMethod), Path: cut(r.URL.Path, maxPath), Status: m.Code, Bytes: m.Written,
				Request: RequestID(r.Context()),
			}
			if c := chi.RouteContext(r.Context()); c != nil {
				a.Route = c.RoutePattern()
			}
			n, _ := r.Context().Value(noteKey{}).(*note)
			if n == nil {
				n = &note{}
			}
			a.Caller = n.caller
			writeAccess(r.Context(), log, a, n.err)
			if o.Access != nil {
				o.Access(a)
			}
		})
	}
}

func cut(s string, limit int) string { return strings.ToValidUTF8(s[:min(len(s), limit)], "?") }

func writeAccess(ctx context.Context, log *slog.Logger, a Access, err error) {
	attrs := []slog.Attr{
		slog.String("method", a.Method), slog.String("path", a.Path), slog.String("route", a.Route),
		slog.Int("status", a.Status), slog.Int64("bytes", a.Bytes),
		slog.Duration("took", a.Took.Round(time.Microsecond)), slog.String("address", a.Address),
		slog.String("request", a.Request),
	}
	if a.Caller != (Caller{}) {
		attrs = append(attrs, slog.String("tenant", a.Caller.Tenant), slog.String("actor", a.Caller.Actor),
			slog.String("token", a.Caller.Token), slog.String("role", a.Caller.Role))
		if a.Caller.Via != "" {
			attrs = append(attrs, slog.String("via", a.Caller.Via))
		}
	}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	level := slog.LevelInfo
	if a.Status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	log.LogAttrs(ctx, level, "request", attrs...)
}

// maxForwarded bounds the addresses that are looked at in a chain of proxies: nobody has more of them.
const maxForwarded = 16

// ClientAddress is the address that a request came from, without the port. Where that is a trusted proxy it is the last
// address of X-Forwarded-For that is none; what stands before that anybody may have written.
func ClientAddress(r *http.Request, trusted []netip.Prefix) string {
	address := r.RemoteAddr
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	chain := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for range maxForwarded {
		ip, err := netip.ParseAddr(address)
		if err != nil || !contains(trusted, ip.Unmap()) || len(chain) == 0 {
			return address
		}
		before, err := netip.ParseAddr(strings.TrimSpace(chain[len(chain)-1]))
		if err != nil {
			return address
		}
		address, chain = before.Unmap().WithZone("").String(), chain[:len(chain)-1]
	}
	return address
}

func contains(list []netip.Prefix, ip netip.Addr) bool {
	for _, p := range list {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}
