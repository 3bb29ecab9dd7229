package executor_test

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// relay passes TCP connections on to an API server, and can make those that are open dead without ending them: what is
// sent on them is lost, as behind a firewall that has forgotten a connection. New ones work.
type relay struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	open     []*pair
}

// pair are the two ends of one connection.
type pair struct {
	client, server net.Conn
	dead           atomic.Bool
}

func newRelay(t *testing.T, config *rest.Config) *relay {
	t.Helper()
	u, err := url.Parse(config.Host)
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	r := &relay{listener: listener, target: u.Host}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.accept(t)
	}()
	t.Cleanup(func() {
		must(t, listener.Close())
		<-done
		for _, p := range r.open {
			p.close()
		}
	})
	return r
}

// config reaches the API server through the relay.
func (r *relay) config(c *rest.Config) *rest.Config {
	c.Host = "https://" + r.listener.Addr().String()
	return c
}

func (r *relay) accept(t *testing.T) {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial("tcp", r.target)
		if err != nil {
			t.Errorf("relay: %v", err)
			_ = client.Close() // nothing was sent
			continue
		}
		p := &pair{client: client, server: server}
		r.mu.Lock()
		r.open = append(r.open, p)
		r.mu.Unlock()
		go p.pump(client, server)
		go p.pump(server, client)
	}
}

// freeze makes the connections that are open now dead and returns how many are.
func (r *relay) freeze() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.open {
		p.dead.Store(true)
	}
	n := len(r.open)
	return n
}

// pump copies one direction. A dead pair swallows what it reads, and neither end hears of the other's.
func (p *pair) pump(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !p.dead.Load() {
			if err == nil {
				_, err = to.Write(buffer[:n])
			}
			if err != nil {
				p.close()
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *pair) close() {
	_ = p.client.Close() // a connection that has ended already
	_ = p.server.Close()
}
