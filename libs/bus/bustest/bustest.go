// Package bustest gives a test a NATS server of its own, inside the process, and connections to it. The server asks who
// somebody is and lets each user do what libs/natsauth says, as in production.
package bustest

import (
	"context"
	"log/slog"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/natslocal"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/servicekeys"
)

// startIn bounds the start on a busy machine.
const startIn = 30 * time.Second

// Test is a user that may do everything: the test itself.
const Test = "test"

// Installation is that of every database of pgtest.
const Installation = pgtest.Installation

// password is that of every user: a URL has to be enough for a test.
const password = "bustest"

// Env is a server and one connection.
type Env struct {
	Server *natslocal.Server
	Bus    *bus.Bus // of the user Test; it shapes streams

	mu    sync.Mutex
	users []natsauth.User
}

// Start starts a server that ends with the test, and connects to it.
func Start(t testing.TB) *Env {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startIn)
	defer cancel()
	users := append(natsauth.ServiceUsers(), natsauth.User{Name: Test, Permissions: natsauth.Everything()})
	for i := range users {
		users[i].Password = password
	}
	srv, err := natslocal.Start(ctx, natslocal.Options{Dir: t.TempDir(), Config: natsauth.Config(users)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	e := &Env{Server: srv, users: users}
	e.Bus = e.Connect(t)
	return e
}

// AddAgent adds the agent of a cluster to the users, as an operator does: the server reads its configuration again.
func (e *Env) AddAgent(t testing.TB, tenant, clusterID string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	agent := natsauth.AgentUser(tenant, clusterID)
	agent.Password = password
	e.users = append(e.users, agent)
	if err := e.Server.Reload(natsauth.Config(e.users)); err != nil {
		t.Fatal(err)
	}
}

// Access is what a user connects with.
func (e *Env) Access(user string) natsconn.Settings { return natsconn.Settings{URL: e.URL(user)} }

// AccessAs is what a user connects with to the server of other settings of this package.
func AccessAs(user string, other natsconn.Settings) (natsconn.Settings, error) {
	u, err := url.Parse(other.URL)
	if err != nil {
		return other, err
	}
	u.User = url.UserPassword(user, password)
	other.URL = u.String()
	return other, nil
}

// URL is where the server is, with the user in it.
func (e *Env) URL(user string) string {
	u, err := url.Parse(e.Server.URL())
	if err != nil {
		panic(err) // the server made it
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

// Connect opens one more connection of the user Test, closed with the test.
func (e *Env) Connect(t testing.TB, opts ...bus.Option) *bus.Bus {
	t.Helper()
	return e.As(t, Test, append([]bus.Option{bus.WithStreams(bus.StreamSettings{})}, opts...)...)
}

// As opens a connection of a user, closed with the test.
func (e *Env) As(t testing.TB, user string, opts ...bus.Option) *bus.Bus {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startIn)
	defer cancel()
	b, err := bus.Connect(ctx, e.Access(user), append([]bus.Option{
		bus.WithName(user), bus.WithLog(Log(t)), bus.WithInstallation(Installation),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// Speaking lets a connection ask and answer in the name of a service, by a role of the test's database.
func Speaking(t testing.TB, db *pgtest.Database, service string) bus.Option {
	t.Helper()
	ring, err := servicekeys.Open(t.Context(), db.Pool(t, service), service, Log(t))
	if err != nil {
		t.Fatal(err)
	}
	return bus.WithIdentity(ring)
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
