package executor_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/test/testcluster"
)

// bed is a cluster with a hub. The cluster is one that a former test of this package may have used.
type bed struct {
	*hub
	cluster *testcluster.Cluster
	kube    kubernetes.Interface
	trap    *trap
	begins  func(part string) // of a life; nil: nobody wants to know
}

func newBed(tb testing.TB) *bed {
	tb.Helper()
	c := testcluster.Borrow(tb)
	kube, err := kubernetes.NewForConfig(c.RESTConfig())
	must(tb, err)
	return &bed{hub: newHub(tb), cluster: c, kube: kube, trap: &trap{}}
}

// on is the same bed for a subtest: what it misses fails the subtest, and ends it alone.
func (b *bed) on(tb testing.TB) *bed {
	h := *b.hub
	h.Hub, h.t = b.For(tb), tb
	other := *b
	other.hub = &h
	return &other
}

func (b *bed) config(holder string) executor.Config {
	return b.Config(b.cluster.RESTConfig(), holder)
}

// running is an executor at work.
type running struct {
	cancel context.CancelFunc
	done   chan error
}

// launch runs an executor in the background; whoever launches ends it.
func (b *bed) launch(e *executor.Executor) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- e.Run(ctx) }()
	return r
}

// start runs an executor until the returned function or the test ends it.
func (b *bed) start(cfg executor.Config) (stop func()) {
	b.t.Helper()
	r := b.run(cfg)
	stop = sync.OnceFunc(func() {
		r.cancel()
		if err := <-r.done; err != nil {
			b.t.Errorf("executor: %v", err)
		}
	})
	b.t.Cleanup(stop)
	return stop
}

func wantNotFound(err error) error {
	switch {
	case err == nil:
		return errors.New("it is still there")
	case apierrors.IsNotFound(err):
		return nil
	}
	return err
}
