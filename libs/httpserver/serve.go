package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
)

const (
	// headerTimeout bounds the time a client may take for a request's headers (slow-loris).
	headerTimeout = 10 * time.Second
	// maxHeaderBytes bounds the request line and the headers together: the largest search has some kilobytes.
	maxHeaderBytes = 64 << 10
	// idleTimeout bounds how long a connection is kept for a next request.
	idleTimeout = 2 * time.Minute
	// writeTimeout bounds how long after its headers a request may still be answered: a client that does not read
	// what it asked for would hold its answer in memory for ever. 10 MB in this time are a line of 300 kbit/s. A
	// stream gives each of its writes a time of its own.
	writeTimeout = 5 * time.Minute
	// DefaultDrain bounds how long running requests may finish after the stop.
	DefaultDrain = 10 * time.Second
)

// timeouts are how long a client may take.
type timeouts struct{ header, write, idle time.Duration }

type drainKey struct{}

// Draining is closed when the server of ctx's request begins to stop; a stream that has no end of
// its own watches it. Outside such a request it is nil, which never becomes ready.
func Draining(ctx context.Context) <-chan struct{} {
	c, _ := ctx.Value(drainKey{}).(chan struct{})
	return c
}

// Listen listens on a TCP address; port 0 takes a free one.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "cannot listen on %s", addr)
	}
	return ln, nil
}

// Serve serves h on ln until ctx ends, then lets running requests finish within drain (DefaultDrain
// when zero) and closes what is left. It returns nil after an ordered stop.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, drain time.Duration) error {
	return serve(ctx, ln, h, drain, timeouts{header: headerTimeout, write: writeTimeout, idle: idleTimeout})
}

func serve(ctx context.Context, ln net.Listener, h http.Handler, drain time.Duration, within timeouts) error {
	if drain <= 0 {
		drain = DefaultDrain
	}
	draining := make(chan struct{})
	base := context.WithValue(context.WithoutCancel(ctx), drainKey{}, draining)
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: within.header, WriteTimeout: within.write, IdleTimeout: within.idle,
		MaxHeaderBytes: maxHeaderBytes,
		BaseContext:    func(net.Listener) context.Context { return base },
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	close(draining)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := srv.Shutdown(stop); err != nil {
		return errors.Join(fmt.Errorf("requests were cut off after %s: %w", drain, err), srv.Close())
	}
	return nil
}
