// Package bustest gives a test a NATS server of its own, inside the process, and a connection to it.
package bustest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/natslocal"
)

// startIn bounds the start on a busy machine.
const startIn = 30 * time.Second

// Env is a server and one connection.
type Env struct {
	Server *natslocal.Server
	Bus    *bus.Bus
}

// Start starts a server that ends with the test, and connects to it.
func Start(t testing.TB) *Env {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startIn)
	defer cancel()
	srv, err := natslocal.Start(ctx, natslocal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	e := &Env{Server: srv}
	e.Bus = e.Connect(t)
	return e
}

// Connect opens one more connection, closed with the test.
func (e *Env) Connect(t testing.TB) *bus.Bus {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startIn)
	defer cancel()
	b, err := bus.Connect(ctx, e.Server.URL(), bus.WithName(t.Name()), bus.WithLog(Log(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// Log writes to the test's log.
func Log(t testing.TB) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(testWriter{t}, nil))
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	// A goroutine that outlives the test by a moment must not panic in Log.
	if w.t.Context().Err() == nil {
		w.t.Log(string(p))
	}
	return len(p), nil
}
