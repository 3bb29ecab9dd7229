package testcluster

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/chandler-fleet/chandler/test/testcluster/binaries"
	"github.com/chandler-fleet/chandler/test/testcluster/internal/pool"
)

// MaxHolders is how many tests on this machine may hold clusters of their own at a time; a further one waits. Three: a
// test with a cluster also waits, for controllers, leases and faults, and two cores have something to do for others
// meanwhile. Not more, since an API server with fifty operators takes 1.6 GB and a core while they are
// installed, and a server that gets too little makes tests fail for no reason of theirs. A test that holds a cluster
// gets its next ones without waiting, and so do its subtests.
const MaxHolders = 3

// keepVariable leaves the files of clusters in place, to look at logs after a failure.
const keepVariable = "CHANDLER_TESTCLUSTER_KEEP"

// New starts a cluster for one test, and stops it at its end. It takes at most one Options.
func New(t testing.TB, opts ...Options) *Cluster {
	t.Helper()
	c, err := newForTest(t, opts)
	if err != nil {
		t.Fatalf("testcluster: %v", err)
	}
	t.Cleanup(func() { stopForTest(t, c) })
	return c
}

func newForTest(t testing.TB, all []Options) (*Cluster, error) {
	opts, err := prepareForTest(t, all)
	if err != nil {
		return nil, err
	}
	return Start(t.Context(), opts)
}

// prepareForTest returns the options of a test's cluster, with its place in the pool, when it is its turn.
func prepareForTest(t testing.TB, all []Options) (Options, error) {
	opts, err := testOptions(t, all)
	if err != nil {
		return opts, err
	}
	// Before the turn, so that nobody waits while we build; and to standard error, so that it is seen while it happens.
	if _, err := binaries.Ensure(t.Context(), os.Stderr); err != nil {
		return opts, err
	}
	opts.member, err = takeTurn(t, opts)
	return opts, err
}

func testOptions(t testing.TB, all []Options) (Options, error) {
	var opts Options
	switch len(all) {
	case 0:
	case 1:
		opts = all[0]
	default:
		return opts, errors.New("more than one Options given")
	}
	if opts.Log == nil {
		opts.Log = t.Output()
	}
	opts.Keep = opts.Keep || os.Getenv(keepVariable) != ""
	return opts.withDefaults(), nil
}

func takeTurn(t testing.TB, opts Options) (*pool.Member, error) {
	if err := requireEmpty(opts.Dir); err != nil {
		return nil, err
	}
	p, err := pool.Open()
	if err != nil {
		return nil, err
	}
	return p.Take(t.Context(), pool.Turn{
		Name:   opts.Name,
		Dir:    opts.Dir,
		Holder: fmt.Sprintf("process %d/%s", os.Getpid(), t.Name()),
		Limit:  MaxHolders,
		Log:    os.Stderr,
	})
}

// Main runs the tests of a package that uses Shared or Borrow, and stops after them what they left running. Without it
// a shared cluster ends with the process all the same, only its files stay until the next start, and none is lent
// twice.
//
//	func TestMain(m *testing.M) { testcluster.Main(m) }
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for a package that has more to do after its tests. It returns the status for os.Exit.
func Run(m *testing.M) int {
	theIdle.start()
	code := m.Run()
	if err := errors.Join(theIdle.stop(), theShared.stop()); err != nil {
		fmt.Fprintln(os.Stderr, "testcluster:", err)
		code = max(code, 1)
	}
	return code
}
