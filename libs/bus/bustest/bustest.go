// Package bustest gives a test a NATS server of its own, inside the process, and connections to it. The server asks who
// somebody is and lets each user do what libs/natsauth says, as in production.
package bustest

import (
	"context"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/natslocal"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/natsjwt"
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

	// Of a server in operator mode; nil otherwise.
	Authority *natsjwt.Authority
	Agents    string // Authority, as the installer's setting has it
	pusher    *natsjwt.Pusher
	creds     map[string]string // content of creds files, by user
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

// StartOperator is Start with a server in operator mode: users are JWTs, and agents come and go while it runs.
func StartOperator(t testing.TB) *Env {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startIn)
	defer cancel()
	made, err := natsjwt.MakeKeys()
	if err != nil {
		t.Fatal(err)
	}
	if made.Users[Test], err = natsconn.NewSeed(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	written, err := made.Installation(filepath.Join(dir, "accounts"),
		natsauth.User{Name: Test, Permissions: natsauth.Everything()})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := natslocal.Start(ctx, natslocal.Options{Dir: dir, Config: written.Config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	e := &Env{Server: srv, creds: written.Creds, Agents: written.Authority}
	if e.Authority, err = natsjwt.ParseAuthority(written.Authority); err != nil {
		t.Fatal(err)
	}
	if e.pusher, err = e.Authority.Connect(natsconn.Settings{URL: srv.URL()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.pusher.Close)
	e.Bus = e.Connect(t)
	return e
}

// Push gives a server in operator mode the accounts of an agent.
func (e *Env) Push(t testing.TB, who natsjwt.Agent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startIn)
	defer cancel()
	accounts, err := e.Authority.Accounts(who)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.pusher.Push(ctx, accounts); err != nil {
		t.Fatal(err)
	}
}

// Let lets an agent in, with a key that is made here and a JWT that is good for a while, and returns it.
func (e *Env) Let(t testing.TB, tenant, clusterID string, life time.Duration) natsjwt.Agent {
	t.Helper()
	seed, err := natsconn.NewSeed()
	if err != nil {
		t.Fatal(err)
	}
	who := natsjwt.Agent{Tenant: tenant, ClusterID: clusterID}
	if who.Key, err = natsconn.PublicKey(seed); err != nil {
		t.Fatal(err)
	}
	e.Push(t, who)
	token, err := e.Authority.AgentJWT(who, life)
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.creds[natsauth.AgentName(clusterID)], err = natsjwt.Creds(token, seed); err != nil {
		t.Fatal(err)
	}
	return who
}

// lifeOfAgents is longer than any test.
const lifeOfAgents = time.Hour

// AddAgent adds the agent of a cluster to the users, as an operator does: the server reads its configuration again.
func (e *Env) AddAgent(t testing.TB, tenant, clusterID string) {
	t.Helper()
	if e.Authority != nil {
		e.Let(t, tenant, clusterID, lifeOfAgents)
		return
	}
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
func (e *Env) Access(user string) natsconn.Settings {
	if e.Authority == nil {
		return natsconn.Settings{URL: e.URL(user)}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return natsconn.Settings{URL: e.Server.URL(), Credentials: e.creds[user]}
}

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
