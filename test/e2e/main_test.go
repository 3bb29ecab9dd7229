package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/chandler-fleet/chandler/libs/pg/pglocal"
	"github.com/chandler-fleet/chandler/test/stack"
	"github.com/chandler-fleet/chandler/test/testcluster"
)

// bound is how long anything may take here: builds of other test packages run beside, and a killed part is found out
// about by leases that run out.
const bound = 3 * time.Minute

// What is made once for the package.
var (
	bin  string // the programs
	like string // the data of a migrated database that nobody has used
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chandler-e2e-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder that stays does no harm
	if err := stack.Build(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	bin = dir
	postgres := filepath.Join(dir, "postgres")
	defer func() { _ = pglocal.Remove(postgres) }() // what stays is removed by the next start on the machine
	if like, err = stack.MigratedPostgres(context.Background(), postgres); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return testcluster.Run(m)
}

// world is a running Chandler with one real cluster, which it knows as "spoke".
type world struct {
	*stack.Stack
	stack.Client
	t       *testing.T
	ctx     context.Context
	cluster *testcluster.Cluster
	record  *pgxpool.Pool // the database, where a test needs it
	empty   string        // name of a database without a schema, where a test needs it
}

const spoke = "spoke"

// newWorld starts everything, registers the cluster and waits until it is connected.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := newStack(t)
	w.register()
	return w
}

// newDurableWorld is one whose record survives a crash of PostgreSQL, as in production.
func newDurableWorld(t *testing.T) *world {
	t.Helper()
	w := startStack(t, stack.Options{Durable: true})
	w.register()
	return w
}

// register makes a cluster known, and waits until it is connected.
func (w *world) register() {
	w.t.Helper()
	w.borrowCluster()
	w.must(w.Post(w.ctx, "/api/v1/clusters", map[string]any{
		"name": spoke, "kubeconfig": string(w.cluster.Kubeconfig()),
	}, nil))
	w.eventually("the cluster is connected", func() (string, bool) {
		var c struct{ State, Message string }
		w.must(w.Get(w.ctx, "/api/v1/clusters/"+spoke, &c))
		return c.State + " " + c.Message, c.State == "Connected"
	})
}

// borrowCluster takes a cluster that a former test may have used.
func (w *world) borrowCluster() {
	w.t.Helper()
	// real operators ask for replicas on different nodes
	w.cluster = testcluster.Borrow(w.t, testcluster.Options{Nodes: 3})
}

// newStack starts Chandler without a cluster.
func newStack(t *testing.T) *world {
	t.Helper()
	return newStackWith(t, nil)
}

// newStackWith gives services more environment.
func newStackWith(t *testing.T, env func(service string) []string) *world {
	t.Helper()
	return startStack(t, stack.Options{Env: env})
}

func startStack(t *testing.T, opts stack.Options) *world {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	opts.Dir, opts.Bin, opts.Like = t.TempDir(), bin, like
	s, err := stack.Start(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Stack: s, Client: s.Client(), t: t, ctx: ctx}
	t.Cleanup(func() {
		if t.Failed() {
			w.keepLogs()
		}
		if err := s.Stop(); err != nil {
			t.Errorf("stop the stack: %v", err)
		}
	})
	return w
}

// keepLogs shows the end of every log of a failed test.
func (w *world) keepLogs() {
	for _, name := range append([]string{"nats-server"}, stack.Services...) {
		b, err := os.ReadFile(w.Log(name))
		if err != nil {
			continue
		}
		w.t.Logf("end of the log of %s:\n%s", name, b[max(0, len(b)-6000):])
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// How long eventually waits between two looks: a twentieth of the time that it has waited for, within these bounds. A
// look costs the gateway and its database some milliseconds.
const (
	lookSoonest = 50 * time.Millisecond
	lookLatest  = 250 * time.Millisecond
)

// eventually asks until done, and fails with what was seen last. The API answers from read models, so there is no
// signal to wait for that would not be part of what is tested.
func (w *world) eventually(what string, done func() (seen string, ok bool)) {
	w.t.Helper()
	began, deadline := time.Now(), time.After(bound)
	for {
		seen, ok := done()
		if ok {
			return
		}
		select {
		case <-deadline:
			w.t.Fatalf("not within %s: %s; last seen: %s", bound, what, seen)
		case <-time.After(min(max(time.Since(began)/20, lookSoonest), lookLatest)):
		}
	}
}

// repository is the root of the checkout.
func repository(t *testing.T) string {
	t.Helper()
	root, err := stack.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// example is the catalog that ships with Chandler.
func example(t *testing.T) string { return filepath.Join(repository(t), "examples", "catalog") }
