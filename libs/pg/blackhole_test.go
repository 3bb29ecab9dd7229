package pg_test

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

// tunnel is a TCP proxy that can stop to forward without closing anything: what was sent is acknowledged and lost, as
// behind a load balancer whose server has gone.
type tunnel struct {
	network, target string
	mu              sync.Mutex
	hole            chan struct{} // closed: nothing is forwarded by connections that were made with it
}

// newTunnel returns a tunnel to the server of a database, and the URL of that through it.
func newTunnel(t *testing.T, database string) (*tunnel, string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := pgconn.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	p := &tunnel{hole: make(chan struct{})}
	p.network, p.target = pgconn.NetworkAddress(cfg.Host, cfg.Port)
	var conns sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close() // ends Accept
		conns.Wait()
	})
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { p.forward(t, c) })
		}
	})
	through := url.URL{
		Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Host: l.Addr().String(),
		Path: "/" + cfg.Database, RawQuery: "sslmode=disable",
	}
	return p, through.String()
}

func (p *tunnel) current() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hole
}

// swallow makes a black hole of all connections that there are, and of those to come until heal.
func (p *tunnel) swallow() { close(p.current()) }

// heal lets new connections through.
func (p *tunnel) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hole = make(chan struct{})
}

func (p *tunnel) forward(t *testing.T, client net.Conn) {
	t.Helper()
	hole := p.current()
	server, err := (&net.Dialer{}).DialContext(context.WithoutCancel(t.Context()), p.network, p.target)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _, _ = client.Close(), server.Close() }() // either may be closed
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		defer func() { _ = to.SetReadDeadline(time.Now()) }() // ends the other direction
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			select {
			case <-hole:
				continue
			default:
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
	both.Go(func() { pass(server, client) })
	both.Go(func() { pass(client, server) })
	both.Wait()
}

// DESIGN D1, fail-over: a server that answers no more, without a closed connection and with everything acknowledged,
// costs the time limit of one statement; after that the pool works again by itself.
func TestBlackHoleCostsSeconds(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	p, through := newTunnel(t, pgtest.DB(t).URL("gateway"))
	pool, err := pg.Open(t.Context(), through, pg.WithAnswerLimit(limit), pg.WithMaxConns(2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	ask := func() error {
		_, err := pool.Exec(t.Context(), "select 1")
		return pg.Err(err)
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	p.swallow()
	start := time.Now()
	if err := ask(); !errs.Is(err, errs.Unavailable) {
		t.Errorf("in the black hole: %v (%s)", err, errs.KindOf(err))
	}
	p.heal()
	for err := ask(); err != nil && time.Since(start) < 30*time.Second; {
		err = ask()
	}
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("the pool works again after %s", took)
	}
}
