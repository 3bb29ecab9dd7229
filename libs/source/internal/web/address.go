package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/reach"
)

// addresses decides by the address that a name resolves to, when it is known, whom a transport contacts.
type addresses struct {
	o      Options
	dialer net.Dialer
	// lookup finds the addresses of a name.
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

	mu      sync.Mutex
	own     string          // host:port of the first request
	met     bool            // at holds
	at      reach.Reach     // where that one was found: the widest, if its name has several addresses
	proxies map[string]bool // whose addresses say nothing of the host behind
}

func newAddresses(o Options) *addresses {
	lookup := o.Lookup
	if lookup == nil {
		lookup = net.DefaultResolver.LookupNetIP
	}
	a := &addresses{
		o: o, lookup: lookup, proxies: map[string]bool{}, own: strings.ToLower(o.Host),
		dialer: net.Dialer{Timeout: Stall, KeepAlive: 30 * time.Second}, //nolint:mnd // as net/http has it
	}
	a.literally(o.Host)
	return a
}

// literally takes what a host says that is written as an address.
func (a *addresses) literally(host string) {
	if addr, err := netip.ParseAddr(Hostname(host)); err == nil {
		a.at, a.met = reach.Of(addr), true
	}
}

// first remembers the host of the first request where Options name none.
func (a *addresses) first(u *url.URL) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.own == "" {
		a.own = strings.ToLower(u.Host)
		a.literally(u.Host)
	}
}

// proxy is that of the environment.
func (a *addresses) proxy(req *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(req)
	if u != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.proxies[u.Hostname()] = true
	}
	return u, err
}

// dial connects to an address that may be contacted. A name is resolved here, once: a second
// lookup after the check could return another address.
func (a *addresses) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	proxied, own := a.proxies[host], sameHost(a.own, host, port)
	a.mu.Unlock()
	d := a.dialer
	if !proxied {
		d.ControlContext = func(ctx context.Context, _, found string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(found)
			if err != nil {
				return err
			}
			return a.allowed(ctx, host, own, reach.Of(ap.Addr()))
		}
	}
	return d.DialContext(ctx, network, address)
}

// sameHost compares a host of a URL, whose port may be left out, with one that is dialed.
func sameHost(own, host, port string) bool {
	own = strings.ToLower(own)
	host = strings.ToLower(host)
	if own == net.JoinHostPort(host, port) {
		return true
	}
	return (port == "443" || port == "80") && strings.Trim(own, "[]") == host
}

// allowed decides about one address.
func (a *addresses) allowed(ctx context.Context, host string, own bool, to reach.Reach) error {
	if own {
		a.mu.Lock()
		if !a.met || to < a.at {
			a.at, a.met = to, true
		}
		a.mu.Unlock()
		if !a.o.Content || to == reach.Public || a.beside(ctx, to) {
			return nil
		}
		return errs.New(errs.Invalid,
			"%s is %s; a catalog's content may not lead there, unless its source is there itself; add a mirror for "+
				"the image to the settings of the source if that is meant", host, to)
	}
	a.mu.Lock()
	from := a.at
	a.mu.Unlock()
	if to == reach.Public || to == from || to == reach.Site && from != reach.Public {
		return nil
	}
	return errs.New(errs.Invalid, "%s sends on to %s, %s; that is not followed", a.own, host, to)
}

// beside reports whether the source that the content came from lies as near as an address, or nearer.
//
// A name is whatever who has it says at the moment: for this machine and its link, where credentials are, only an
// address counts that an administrator has written, or the name of this machine. In a private network the name of the
// source counts, if each of its addresses lies there: one in the world says that it is of the world.
func (a *addresses) beside(ctx context.Context, to reach.Reach) bool {
	if a.o.Origin == "" {
		return to <= reach.Machine // it came from a disk of this machine
	}
	if addr, err := netip.ParseAddr(a.o.Origin); err == nil {
		from := reach.Of(addr)
		return from == to || to == reach.Site && from == reach.Machine
	}
	if strings.EqualFold(a.o.Origin, "localhost") {
		return to == reach.Machine || to == reach.Site
	}
	if to != reach.Site {
		return false
	}
	found, err := a.lookup(ctx, "ip", a.o.Origin)
	if err != nil || len(found) == 0 {
		return false
	}
	for _, addr := range found {
		if reach.Of(addr) == reach.Public {
			return false
		}
	}
	return true
}
