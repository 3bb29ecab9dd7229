// Package web asks strangers over HTTP: with TLS unless a source says otherwise, with a bound on silence
// and on the size of answers, and with credentials for the host that they are meant for and no other.
package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/reach"
)

const (
	// Stall is how long a server may stay silent, before its answer and in the midst of it.
	Stall = 30 * time.Second
	// MaxRedirects is how often a server may send on: a registry does so once, to its storage.
	MaxRedirects = 5
	// maxRefusal bounds the text of an answer that refuses: real ones have some hundred bytes.
	maxRefusal = 1 << 20
)

// Options say what a transport allows.
type Options struct {
	// Host is the host[:port] that credentials belong to. Others are contacted because it says so: at no
	// address that fewer reach than it (metadata of a cloud, this machine, a private network).
	Host string
	// Content says that Host was named by the content of a catalog and not by an administrator: it may
	// then not be on this machine or its link, unless Origin is there too.
	Content bool
	// Origin is the host that the content came from, without a port; "" is a disk of this machine.
	Origin string
	// Lookup replaces the resolver of the system for Origin.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// TokenService allows a password to be sent to the token service of a registry, where that belongs
	// to the same site as Host.
	TokenService bool
	// Insecure allows answers without TLS.
	Insecure bool
	// Pool are the authorities to trust; nil means those of the system.
	Pool *x509.CertPool
	// Stall replaces the bound on silence.
	Stall time.Duration
	// Limit bounds the body of the answer to a request, wherever that is sent on to; 0 is no bound.
	Limit func(*http.Request) int64
}

// Client returns an HTTP client.
func Client(o Options) *http.Client {
	return &http.Client{Transport: Transport(o), CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > MaxRedirects {
			return errs.New(errs.Invalid, "%s sends on more than %d times", via[0].URL.Hostname(), MaxRedirects)
		}
		// Names are judged when they are looked up; behind a proxy only what is written here can be.
		if a, err := netip.ParseAddr(req.URL.Hostname()); err == nil && reach.Of(a) != reach.Public &&
			!literal(via[0].URL.Hostname()) {
			return errs.New(errs.Invalid, "%s sends on to %s, %s; that is not followed", via[0].URL.Hostname(),
				req.URL.Hostname(), reach.Of(a))
		}
		return nil
	}}
}

// literal reports whether a host is written as an address that is not public.
func literal(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && reach.Of(a) != reach.Public
}

// Transport returns the transport alone, for libraries with a client of their own.
func Transport(o Options) http.RoundTripper {
	inner := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // net/http's own, which nobody here replaces
	inner.TLSClientConfig = &tls.Config{RootCAs: o.Pool, MinVersion: tls.VersionTLS12}
	inner.DisableKeepAlives = false
	inner.MaxIdleConnsPerHost = 2
	inner.IdleConnTimeout = 10 * time.Second // transports live as long as one poll of a source
	if o.Stall == 0 {
		o.Stall = Stall
	}
	a := newAddresses(o)
	inner.DialContext, inner.Proxy = a.dial, a.proxy
	return &guard{o: o, inner: inner, addresses: a, sent: map[string]bool{}}
}

type guard struct {
	o         Options
	inner     *http.Transport
	addresses *addresses

	mu   sync.Mutex
	sent map[string]bool // credentials that Host was shown
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && (req.URL.Scheme != "http" || !g.o.Insecure) {
		if g.o.Content {
			return nil, errs.New(errs.Invalid, "%s is asked without TLS (%s), which insecure in the settings of the source allows for its own host and its mirrors alone; add a mirror for the image if that is meant", req.URL.Hostname(), req.URL.Scheme)
		}
		return nil, errs.New(errs.Invalid, "%s is asked without TLS (%s), which insecure in the settings of the source would allow", req.URL.Hostname(), req.URL.Scheme)
	}
	g.addresses.first(req.URL)
	req, err := g.credentials(req)
	if err != nil {
		return nil, err
	}
	stalled := errs.New(errs.Unavailable, "%s was silent for %s", req.URL.Hostname(), g.o.Stall)
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(g.o.Stall, func() { cancel(stalled) })
	end := func() {
		timer.Stop()
		cancel(nil)
	}
	resp, err := g.inner.RoundTrip(req.WithContext(ctx))
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		end()
		return nil, err
	}
	timer.Reset(g.o.Stall)
	b := &body{ReadCloser: resp.Body, ctx: ctx, timer: timer, stall: g.o.Stall, end: end, host: req.URL.Hostname()}
	if g.o.Limit != nil {
		b.limit = g.o.Limit(asked(req))
	}
	if resp.StatusCode >= http.StatusBadRequest && (b.limit == 0 || b.limit > maxRefusal) {
		b.limit = maxRefusal
	}
	resp.Body = b
	return resp, nil
}

// asked is the request with which a chain of redirects began: what was wanted does not change on the way.
func asked(req *http.Request) *http.Request {
	for req.Response != nil && req.Response.Request != nil {
		req = req.Response.Request
	}
	return req
}

// CloseIdleConnections ends all connections of a poll; http.Client calls it.
func (g *guard) CloseIdleConnections() { g.inner.CloseIdleConnections() }

// credentials takes away what a host must not see. A password that is on its way to a foreign token
// service is an error: without it the service would refuse, and nobody would know why.
func (g *guard) credentials(req *http.Request) (*http.Request, error) {
	auth := req.Header.Get("Authorization")
	if strings.EqualFold(req.URL.Host, g.o.Host) {
		if auth != "" {
			g.mu.Lock()
			g.sent[auth] = true
			g.mu.Unlock()
		}
		return req, nil
	}
	secret := req.Method == http.MethodPost || strings.HasPrefix(strings.ToLower(auth), "basic ")
	if g.o.TokenService && secret {
		if SameSite(req.URL.Hostname(), Hostname(g.o.Host)) {
			return req, nil
		}
		return nil, errs.New(errs.Forbidden, "registry %s asks to show its credential to %s, which is of another site; it was not shown", g.o.Host, req.URL.Hostname())
	}
	g.mu.Lock()
	known := g.sent[auth]
	g.mu.Unlock()
	if auth == "" && req.Header.Get("Cookie") == "" || g.o.TokenService && !known {
		return req, nil // what another host gave for itself
	}
	out := req.Clone(req.Context())
	out.Header.Del("Authorization")
	out.Header.Del("Cookie")
	return out, nil
}

// Hostname is a host without its port.
func Hostname(hostport string) string {
	if i := strings.LastIndexByte(hostport, ':'); i >= 0 && !strings.HasSuffix(hostport, "]") {
		hostport = hostport[:i]
	}
	return strings.Trim(hostport, "[]")
}

// SameSite reports whether two hosts are one, or belong to one registered domain.
func SameSite(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	x, err := publicsuffix.EffectiveTLDPlusOne(strings.ToLower(a))
	if err != nil {
		return false
	}
	y, err := publicsuffix.EffectiveTLDPlusOne(strings.ToLower(b))
	return err == nil && x == y && strings.Trim(x, "0123456789.") != ""
}

// body bounds silence and size of an answer.
type body struct {
	io.ReadCloser

	ctx   context.Context
	timer *time.Timer
	stall time.Duration
	end   func()
	host  string
	limit int64
	n     int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	if n > 0 {
		b.timer.Reset(b.stall)
	}
	if b.limit > 0 && b.n > b.limit {
		return 0, errs.New(errs.TooLarge, "%s answers with more than %d bytes", b.host, b.limit)
	}
	if err != nil && err != io.EOF { //nolint:errorlint // io.EOF is compared as readers do
		if cause := context.Cause(b.ctx); cause != nil {
			err = cause
		}
	}
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}
