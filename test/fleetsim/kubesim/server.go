package kubesim

import (
	"context"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// suffix ends the host name by which a cluster is asked for. It is resolved nowhere: connections stay in the process.
const suffix = ".cluster.invalid"

// headTime bounds how long a client may take for the head of a request.
const headTime = 30 * time.Second

// Server serves clusters over HTTP to clients in the same process.
type Server struct {
	http    *http.Server
	from    *listener
	mu      sync.RWMutex
	byName  map[string]*Cluster
	counted counter
}

// Start returns a server without clusters. Close ends it.
func Start() *Server {
	s := &Server{
		from: newListener(), byName: map[string]*Cluster{}, counted: counter{byVerb: map[string]int{}},
	}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: headTime}
	go func() { _ = s.http.Serve(s.from) }() // it ends with Close
	return s
}

// Add returns a new cluster of a name, a DNS label.
func (s *Server) Add(name string) *Cluster {
	c := newCluster()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName[name] = c
	return c
}

// Requests are how many were answered so far, by verb.
func (s *Server) Requests() map[string]int { return s.counted.read() }

// REST is how clients reach a cluster.
func (s *Server) REST(name string) *rest.Config {
	return &rest.Config{Host: "http://" + name + suffix, Dial: s.from.dial}
}

// Close ends all connections.
func (s *Server) Close() error { return s.http.Close() }

// listener hands connections over within the process.
type listener struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newListener() *listener {
	return &listener{accept: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.accept <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (*listener) Addr() net.Addr { return &net.UnixAddr{Name: "kubesim", Net: "unix"} }

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.RLock()
	c := s.byName[strings.TrimSuffix(r.Host, suffix)]
	s.mu.RUnlock()
	if c == nil {
		http.Error(w, "there is no cluster "+r.Host, http.StatusBadGateway)
		return
	}
	s.counted.add(r.Method)
	c.ServeHTTP(w, r)
}

// counter counts requests.
type counter struct {
	mu     sync.Mutex
	byVerb map[string]int
}

func (c *counter) add(verb string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byVerb[verb]++
}

func (c *counter) read() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.byVerb)
}
