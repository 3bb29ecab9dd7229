package web_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/internal/web"
)

func get(t *testing.T, o web.Options, address string, header ...string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := web.Client(o).Do(req)
	if err != nil {
		return "", web.Explain(err)
	}
	b, err := io.ReadAll(resp.Body)
	return string(b), errors.Join(web.Explain(err), resp.Body.Close())
}

// TestTLS proves that only a source that says so is asked without TLS, also behind a redirect, and what is
// said of certificates.
func TestTLS(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = io.WriteString(w, "plain")
	}))
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(http.RedirectHandler(plain.URL, http.StatusFound))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not trust it
	secure.StartTLS()
	t.Cleanup(secure.Close)
	pool := x509.NewCertPool()
	pool.AddCert(secure.Certificate())
	for name, c := range map[string]struct {
		o    web.Options
		url  string
		kind errs.Kind
		says string
	}{
		"insecure":             {web.Options{Insecure: true}, plain.URL, "", ""},
		"in clear":             {web.Options{}, plain.URL, errs.Invalid, "without TLS"},
		"sent on in clear":     {web.Options{Pool: pool}, secure.URL, errs.Invalid, "without TLS"},
		"sent on, insecure":    {web.Options{Pool: pool, Insecure: true}, secure.URL, "", ""},
		"an unknown authority": {web.Options{}, secure.URL, errs.Invalid, "secret of kind ca"},
		"another host": {
			web.Options{Pool: pool},
			strings.Replace(secure.URL, "127.0.0.1", "localhost", 1),
			errs.Invalid, "another host",
		},
		"no TLS there": {
			web.Options{},
			strings.Replace(plain.URL, "http:", "https:", 1), errs.Invalid,
			"does not speak TLS",
		},
		"nobody there": {web.Options{}, "https://127.0.0.1:1/", errs.Unavailable, "connection refused"},
	} {
		body, err := get(t, c.o, c.url)
		if errs.KindOf(err) != c.kind || err != nil && !strings.Contains(err.Error(), c.says) || err == nil &&
			body != "plain" {
			t.Errorf("%s: %q, %v; want kind %q with %q", name, body, err, c.kind, c.says)
		}
	}
}

// TestCredentials proves that a credential goes to its host and no other (issue: hostile input).
func TestCredentials(t *testing.T) {
	t.Parallel()
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Authorization"), r.Header.Get("Cookie"))
	})
	other := httptest.NewServer(echo)
	t.Cleanup(other.Close)
	mux := http.NewServeMux()
	mux.Handle("/echo", echo)
	mux.Handle("/away", http.RedirectHandler(other.URL, http.StatusFound))
	own := httptest.NewServer(mux)
	t.Cleanup(own.Close)
	host := strings.TrimPrefix(own.URL, "http://")
	for name, c := range map[string]struct {
		token     bool
		url, auth string
		want      string
		kind      errs.Kind
	}{
		"its host":            {false, own.URL + "/echo", "Basic eDp5", "Basic eDp5", ""},
		"sent away":           {false, own.URL + "/away", "Bearer x", "", ""},
		"another host":        {false, other.URL, "Bearer x", "", ""},
		"a token service":     {true, other.URL, "Basic eDp5", "Basic eDp5", ""}, // the same address, another port
		"another's own token": {true, other.URL, "Bearer other", "Bearer other", ""},
		"another site": {
			true, strings.Replace(other.URL, "127.0.0.1", "localhost", 1), "Basic eDp5", "",
			errs.Forbidden,
		},
		"sent away by a registry": {true, own.URL + "/away", "Bearer x", "", ""},
	} {
		body, err := get(t, web.Options{Host: host, Insecure: true, TokenService: c.token}, c.url, "Authorization",
			c.auth)
		if errs.KindOf(err) != c.kind || body != c.want {
			t.Errorf("%s: the server saw %q, %v; want %q, kind %q", name, body, err, c.want, c.kind)
		}
	}
}

// TestSameSite proves what counts as one site.
func TestSameSite(t *testing.T) {
	t.Parallel()
	for pair, want := range map[string]bool{
		"registry.dock.test REGISTRY.dock.test": true,
		"registry.dock.test auth.dock.test":     true,
		"registry.dock.test AUTH.Dock.test":     true,
		"registry.dock.test dock.test":          true,
		"registry.dock.test registry.bay.test":  false,
		"registry.dock.test evildock.test":      false,
		"a.co.uk b.co.uk":                       false,
		"10.0.0.1 10.0.0.1":                     true,
		"10.0.0.1 9.0.0.1":                      false,
		"localhost LOCALHOST":                   true,
		"localhost otherhost":                   false,
		"test dock.test":                        false,
	} {
		a, b, _ := strings.Cut(pair, " ")
		if web.SameSite(a, b) != want || web.SameSite(b, a) != want {
			t.Errorf("SameSite(%s) is not %t", pair, want)
		}
	}
}

// TestBounds proves the bounds on silence and size.
func TestBounds(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-gone:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/begun", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "x")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-gone:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = io.WriteString(w, strings.Repeat("x", 100))
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(
			w, r, "/loop", http.StatusFound)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(gone) })
	o := web.Options{Insecure: true, Stall: 50 * time.Millisecond}
	for _, path := range []string{"/silent", "/begun"} {
		if _, err := get(t, o, s.URL+path); !errs.Is(err, errs.Unavailable) ||
			!strings.Contains(err.Error(), "silent for 50ms") {
			t.Errorf("%s: %v", path, err)
		}
	}
	o.Stall = time.Minute
	for limit, want := range map[int64]errs.Kind{0: "", 100: "", 99: errs.TooLarge} {
		o.Limit = func(*http.Request) int64 { return limit }
		if _, err := get(t, o, s.URL+"/big"); errs.KindOf(err) != want {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	if _, err := get(t, o, s.URL+"/loop"); !errs.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "more than 5 times") {
		t.Errorf("a loop: %v", err)
	}
}

// TestPrivate proves that a server of the world cannot send on to an address of the inner network.
func TestPrivate(t *testing.T) {
	t.Parallel()
	check := web.Client(web.Options{}).CheckRedirect
	for pair, refused := range map[string]bool{
		"https://registry.dock.test http://169.254.169.254/latest": true,
		"https://registry.dock.test https://10.0.0.1/x":            true,
		"https://registry.dock.test https://[::1]/x":               true,
		"https://10.0.0.1 https://10.0.0.2/x":                      false,
		"https://registry.dock.test https://cdn.dock.test/x":       false,
	} {
		from, to, _ := strings.Cut(pair, " ")
		a, err := http.NewRequestWithContext(t.Context(), http.MethodGet, from, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		b, err := http.NewRequestWithContext(t.Context(), http.MethodGet, to, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(b, []*http.Request{a}); (err != nil) != refused {
			t.Errorf("%s: %v", pair, err)
		}
	}
}

// TestExplain proves that errors of the network have a kind, and a text without addresses.
func TestExplain(t *testing.T) {
	t.Parallel()
	dial := func(err error) error {
		return &url.Error{
			Op: "Get", URL: "https://x:1/secret",
			Err: &net.OpError{
				Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 4567},
				Err: err,
			},
		}
	}
	for _, c := range []struct {
		err  error
		kind errs.Kind
		says string
	}{
		{nil, "", ""},
		{dial(syscall.ECONNRESET), errs.Unavailable, "connection reset by peer"},
		{dial(&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}), errs.Unavailable, "not known"},
		{dial(context.DeadlineExceeded), errs.Unavailable, "no answer in time"},
		{dial(errors.New("strange")), errs.Unavailable, "strange"},
		{&url.Error{Op: "Get", URL: "https://x", Err: context.Canceled}, errs.Unavailable, "ended"},
		{io.ErrUnexpectedEOF, errs.Unavailable, "in the midst"},
		{
			&url.Error{Op: "Get", URL: "https://x", Err: x509.CertificateInvalidError{Reason: x509.Expired}},
			errs.Invalid, "not valid",
		},
		{tls.AlertError(40), errs.Invalid, "refuses TLS"},
		{fmt.Errorf("get: %w", errs.New(errs.Forbidden, "no")), errs.Forbidden, "no"},
	} {
		err := web.Explain(c.err)
		if errs.KindOf(err) != c.kind || err != nil &&
			(!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "4567") ||
				strings.Contains(err.Error(), "secret")) {
			t.Errorf("Explain(%v) = %v, want kind %q with %q", c.err, err, c.kind, c.says)
		}
	}
	if err := web.Explain(context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("a look that was ended is not told as such: %v", err)
	}
	for code, want := range map[int]errs.Kind{
		200: "", 301: "", 401: errs.Forbidden, 403: errs.Forbidden,
		404: errs.NotFound, 408: errs.Unavailable, 429: errs.Unavailable, 500: errs.Unavailable, 400: errs.Invalid,
	} {
		if got := web.Status(code); got != want {
			t.Errorf("Status(%d) = %q, want %q", code, got, want)
		}
	}
	inner := errs.New(errs.TooLarge, "x").At("entry", "rule")
	about := web.About(errors.Join(fmt.Errorf("y: %w", inner), nil), "archive %s", "z")
	if e, ok := errors.AsType[*errs.Error](about); !ok || e.Kind != errs.TooLarge || e.Rule != "rule" ||
		e.Field != "entry" || !strings.HasPrefix(about.Error(), "archive z: ") {
		t.Errorf("About = %v (%+v)", about, e)
	}
	if web.About(nil, "x") != nil {
		t.Error("About of nothing is something")
	}
}
