// Package tunneltest puts a TCP proxy between a program and its server that can stop to forward without closing
// anything: what was sent is acknowledged and lost, as behind a load balancer whose server has gone.
package tunneltest

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Tunnel leads to one server.
type Tunnel struct {
	network, target string
	address         string

	mu   sync.Mutex
	hole chan struct{} // closed: nothing is forwarded by connections that were made with it
}

// New returns a tunnel that is there until the test ends. network and target are as for net.Dial.
func New(t *testing.T, network, target string) *Tunnel {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Tunnel{network: network, target: target, address: l.Addr().String(), hole: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var conns sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close() // ends Accept
		cancel()      // ends who still forwards
		conns.Wait()
	})
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { p.forward(ctx, c) })
		}
	})
	return p
}

// Database returns a tunnel to the server of a database, and the URL of that through it.
func Database(t *testing.T, database string) (p *Tunnel, through string) {
	t.Helper()
	cfg, err := pgconn.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	network, target := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	p = New(t, network, target)
	through = p.Through(t, database)
	return p, through
}

// Through is the URL of a database of the server that the tunnel leads to, through it.
func (p *Tunnel) Through(t *testing.T, database string) string {
	t.Helper()
	cfg, err := pgconn.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	through := url.URL{
		Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Host: p.address,
		Path: "/" + cfg.Database, RawQuery: "sslmode=disable",
	}
	return through.String()
}

// Address is where the tunnel begins, as host and port.
func (p *Tunnel) Address() string { return p.address }

// Swallow makes a black hole of all connections that there are, and of those to come until Heal.
func (p *Tunnel) Swallow() { close(p.current()) }

// Heal lets new connections through. Those that were swallowed stay lost.
func (p *Tunnel) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hole = make(chan struct{})
}

func (p *Tunnel) current() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hole
}

// forward passes on what both say until one of them ends, or the server cannot be reached.
func (p *Tunnel) forward(ctx context.Context, client net.Conn) {
	defer client.Close() //nolint:errcheck // it may be closed
	hole := p.current()
	server, err := (&net.Dialer{}).DialContext(ctx, p.network, p.target)
	if err != nil {
		return // the client sees its connection end
	}
	defer server.Close() //nolint:errcheck // it may be closed
	unwatch := context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
	defer unwatch()
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		defer func() { _ = to.SetReadDeadline(time.Now()) }() // ends the other direction
		_, _ = io.Copy(swallower{to, hole}, from)             // ends with either
	}
	both.Go(func() { pass(server, client) })
	both.Go(func() { pass(client, server) })
	both.Wait()
}

// swallower takes everything, and passes it on unless the hole is there.
type swallower struct {
	to   io.Writer
	hole <-chan struct{}
}

func (s swallower) Write(b []byte) (int, error) {
	select {
	case <-s.hole:
		return len(b), nil
	default:
		return s.to.Write(b)
	}
}
