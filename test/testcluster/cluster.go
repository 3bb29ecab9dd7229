package testcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/test/internal/proc"
	"github.com/chandler-fleet/chandler/test/testcluster/binaries"
	"github.com/chandler-fleet/chandler/test/testcluster/internal/pool"
)

// startTimeout bounds a start once the programs are built: it takes five seconds on two idle cores, and several
// clusters may start at once beside a build.
const startTimeout = 2 * time.Minute

// ErrShared is returned by what would disturb the other users of a shared cluster.
var ErrShared = errors.New("the cluster is shared by other tests")

// Options say what to start. The zero value is one cluster with one node.
type Options struct {
	Name  string    // names the cluster in kubeconfig and messages; default "test"
	Nodes int       // number of nodes; default 1
	Dir   string    // where its files lie; must be empty or absent, and goes away with it; default: a temporary place
	Keep  bool      // leaves the files, above all the logs, in place after Stop
	Log   io.Writer // takes a line for each step; default: nothing

	member  *pool.Member // the place in the pool, if the caller has taken one
	outlive bool         // lets processes live on after us, to test who ends them then
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "test"
	}
	if o.Nodes == 0 {
		o.Nodes = 1
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o
}

// Cluster is a running control plane, seen by one of its users.
type Cluster struct {
	*access
	plane  *plane
	shared bool
}

// Start brings up a control plane and returns when it works: the API server is ready, the nodes are, and a Deployment
// has become Available. If the programs have to be built first, that is done now. ctx bounds the start, not the life of
// the cluster: that lasts until Stop or the end of this process.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	opts = opts.withDefaults()
	p := &plane{opts: opts, member: opts.member}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start cluster %s: %w", opts.Name, err), p.stop())
	}
	return &Cluster{access: p.admin, plane: p}, nil
}

// Name is the name from the options.
func (c *Cluster) Name() string { return c.plane.opts.Name }

// Dir holds the cluster's files; its logs are in logs/.
func (c *Cluster) Dir() string { return c.plane.member.Dir }

// Kubeconfig is complete in itself: certificate of the server and token of the user are embedded.
func (c *Cluster) Kubeconfig() []byte { return slices.Clone(c.kubeconfig) }

// KubeconfigPath is the file with the same content; it goes away with the cluster.
func (c *Cluster) KubeconfigPath() string { return c.path }

// RESTConfig returns a new configuration for client-go. It has no limit on the client's side: a test that waits for
// its own throttle measures nothing.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Stop ends the cluster and removes its files. It reports components that had ended by themselves. Further calls do
// nothing and return the same.
func (c *Cluster) Stop() error {
	if c.shared {
		return fmt.Errorf("stop cluster %s: %w", c.Name(), ErrShared)
	}
	return c.plane.stop()
}

// Pause makes the cluster unreachable as a lost one is: connections hang, and no request is answered or refused.
func (c *Cluster) Pause() error { return c.toAPIServer("pause", (*proc.Process).Suspend) }

// Resume ends a pause.
func (c *Cluster) Resume() error { return c.toAPIServer("resume", (*proc.Process).Continue) }

func (c *Cluster) toAPIServer(what string, do func(*proc.Process) error) error {
	if c.shared {
		return fmt.Errorf("%s cluster %s: %w", what, c.Name(), ErrShared)
	}
	c.plane.spoiled.Store(true)
	if err := do(c.plane.apiServer); err != nil {
		return fmt.Errorf("%s cluster %s: %w", what, c.Name(), err)
	}
	return nil
}

// plane is the control plane itself.
type plane struct {
	opts      Options
	programs  binaries.Set
	pool      pool.Pool
	member    *pool.Member
	store     *etcd
	secrets   *secrets
	port      int
	admin     *access
	apiServer *proc.Process
	processes []*proc.Process // in the order in which they were started
	works     bool            // the start has succeeded
	before    stored          // what was stored after the start, if it may be put back to that
	served    []byte          // what the API server said then that it serves
	resets    int             // how often it was
	spoiled   atomic.Bool     // it was paused or restarted

	stopOnce sync.Once
	stopErr  error
}

// stop undoes whatever of start was done.
func (p *plane) stop() error {
	p.stopOnce.Do(func() { p.stopErr = p.shutDown() })
	return p.stopErr
}

func (p *plane) shutDown() error {
	var errs []error
	for _, process := range slices.Backward(p.processes) {
		if p.works { // else the error of the start has told already
			errs = append(errs, process.Failure())
		}
		process.Kill()
	}
	if p.store != nil {
		errs = append(errs, p.store.release(p.prefix()))
	}
	if p.member != nil {
		errs = append(errs, p.member.Remove(p.opts.Keep))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop cluster %s: %w", p.opts.Name, err)
	}
	return nil
}

// prefix is the cluster's part of etcd.
func (p *plane) prefix() string { return "/" + p.member.ID }
