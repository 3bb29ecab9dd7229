package web

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/reach"
)

// TestSentOnByName proves that a server of the world cannot send on to a name that stands for an address of
// few, whatever the name (issue: hostile input).
func TestSentOnByName(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for from, followed := range map[reach.Reach]bool{
		reach.Public: false, reach.Site: false, reach.Link: false, reach.Machine: true,
	} {
		a := newAddresses(Options{Host: "registry.dock.test"})
		if err := a.allowed(t.Context(), "registry.dock.test", true, from); err != nil {
			t.Errorf("what an administrator configured is refused on %s: %v", from, err)
		}
		conn, err := a.dial(t.Context(), "tcp", net.JoinHostPort("localhost", port))
		if err == nil {
			err = conn.Close()
		} else if err = Explain(err); !errs.Is(err, errs.Invalid) ||
			!strings.Contains(err.Error(), "registry.dock.test sends on to localhost, an address of this machine") {
			t.Errorf("from %s: %v", from, err)
		}
		if (err == nil) != followed {
			t.Errorf("from %s: followed is %t, want %t", from, err == nil, followed)
		}
	}
	// A name that stands for an address of the world and one of this machine is of the world.
	a := newAddresses(Options{Host: "registry.dock.test"})
	for _, r := range []reach.Reach{reach.Public, reach.Machine} {
		if err := a.allowed(t.Context(), "registry.dock.test", true, r); err != nil {
			t.Error(err)
		}
	}
	for r, followed := range map[reach.Reach]bool{
		reach.Public: true, reach.Site: false, reach.Machine: false, reach.Link: false,
	} {
		if err := a.allowed(t.Context(), "other.bay.test", false, r); (err == nil) != followed {
			t.Errorf("to %s: %v", r, err)
		}
	}
}

// TestNamedByContent proves that a host that a catalog names is not contacted on this machine or its link,
// unless the catalog came from there.
func TestNamedByContent(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	lookup := func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if host == "near.dock.test" {
			return []netip.Addr{netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("127.0.0.1")}, nil
		}
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	for origin, allowed := range map[string]bool{
		"": true, "127.0.0.2": true, "localhost": true,
		"near.dock.test": false, // it says so itself: whoever has the name of a catalog could send the indexer anywhere
		"203.0.113.7":    false, "10.0.0.1": false, "169.254.0.1": false, "far.dock.test": false,
	} {
		for _, at := range []string{s.URL, strings.Replace(s.URL, "127.0.0.1", "localhost", 1)} {
			o := Options{
				Host: strings.TrimPrefix(at, "http://"), Content: true, Origin: origin, Lookup: lookup,
				Insecure: true,
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			c := Client(o)
			resp, err := c.Do(req)
			if err == nil {
				err = resp.Body.Close()
			}
			c.CloseIdleConnections()
			if err = Explain(err); (err == nil) != allowed || err != nil &&
				(!errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "an address of this machine")) {
				t.Errorf("from %q to %s: %v, want allowed %t", origin, at, err, allowed)
			}
		}
	}
	a := newAddresses(Options{Host: "registry.dock.test", Content: true})
	for r, ok := range map[reach.Reach]bool{
		reach.Public: true, reach.Site: true, reach.Machine: true, reach.Link: false,
	} {
		if err := a.allowed(t.Context(), "registry.dock.test", true, r); (err == nil) != ok {
			t.Errorf("from a disk to %s: %v", r, err)
		}
	}
}

// TestLimitOfWhatWasAsked proves that a redirect changes no limit, and that the text of a refusal is small.
func TestLimitOfWhatWasAsked(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle("/small", http.RedirectHandler("/hop", http.StatusFound))
	mux.Handle("/hop", http.RedirectHandler("/big", http.StatusFound))
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 100)) })
	mux.HandleFunc("/no", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write(make([]byte, maxRefusal+1))
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	limit := func(r *http.Request) int64 {
		if r.URL.Path == "/small" {
			return 10
		}
		return maxRefusal * 2
	}
	for path, ok := range map[string]bool{"/big": true, "/small": false, "/no": false} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		c := Client(Options{Insecure: true, Limit: limit})
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for buf := make([]byte, 32<<10); err == nil; {
			var k int
			k, err = resp.Body.Read(buf)
			n += k
		}
		_ = resp.Body.Close() // it was only read
		c.CloseIdleConnections()
		if errs.Is(err, errs.TooLarge) == ok {
			t.Errorf("%s: %d bytes, then %v; want all of it: %t", path, n, err, ok)
		}
	}
}

// What a catalog names may lie in a private network only where its source lies there, by all of its addresses; where
// credentials are, and on this machine, no name of the source's own counts. It is decided by the address that is
// dialed.
func TestContentStaysWhereItsSourceIs(t *testing.T) {
	t.Parallel()
	names := map[string][]string{
		"world": {"203.0.113.7"}, "both": {"203.0.113.7", "10.0.0.1"}, "inside": {"10.0.0.1", "fd12::1"},
		"link": {"169.254.169.254"}, "loop": {"127.0.0.1"},
	}
	lookup := func(_ context.Context, _, host string) ([]netip.Addr, error) {
		var out []netip.Addr
		for _, text := range names[host] {
			out = append(out, netip.MustParseAddr(text))
		}
		return out, nil
	}
	world := []reach.Reach{reach.Public}
	network := append(slices.Clone(world), reach.Site)
	here := append(slices.Clone(network), reach.Machine)
	for origin, allowed := range map[string][]reach.Reach{
		"world": world, "both": world, "nowhere": world, "203.0.113.7": world,
		"inside": network, "10.0.0.9": network, "link": network, "loop": network,
		"127.0.0.1": here, "localhost": here, "": here,
		"169.254.0.1": {reach.Public, reach.Link},
	} {
		for _, to := range []reach.Reach{reach.Public, reach.Site, reach.Machine, reach.Link} {
			a := newAddresses(Options{Host: "images.dock.test", Content: true, Origin: origin, Lookup: lookup})
			err := a.allowed(t.Context(), "images.dock.test", true, to)
			if (err == nil) != slices.Contains(allowed, to) {
				t.Errorf("a catalog of %q leads to %s: %v", origin, to, err)
			}
		}
	}
}
