package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/chandler-fleet/chandler/test/internal/proc"
	"github.com/chandler-fleet/chandler/test/testcluster"
)

// daemonCommand is how up runs this program in the background.
const daemonCommand = "daemon"

// server holds the clusters of a daemon.
type server struct {
	settings

	mu       sync.Mutex
	state    state
	clusters []*testcluster.Cluster
}

// serve starts the clusters, tells so, and stops them when it is asked to end.
func serve(ctx context.Context, s settings) error {
	d := &server{settings: s, state: state{Owner: proc.Self(), Count: s.count, Clusters: []cluster{}}}
	if err := d.tell(nil); err != nil {
		return err
	}
	if err := d.start(ctx); err != nil {
		// The state stays for up to read; up removes it.
		return errors.Join(err, d.stop(), d.tell(func(s *state) { s.Error = err.Error() }))
	}
	if err := d.tell(func(s *state) { s.Ready = true }); err != nil {
		return errors.Join(err, d.stop())
	}
	<-ctx.Done()
	return errors.Join(d.stop(), remove(d.dir))
}

// start starts all clusters side by side: a start mostly waits.
func (d *server) start(ctx context.Context) error {
	errs := make([]error, d.count)
	var all sync.WaitGroup
	for i := range d.count {
		all.Go(func() { errs[i] = d.startOne(ctx, fmt.Sprintf("cluster-%d", i+1)) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (d *server) startOne(ctx context.Context, name string) error {
	c, err := testcluster.Start(ctx, testcluster.Options{
		Name: name, Nodes: d.nodes, Dir: filepath.Join(d.dir, name), Log: os.Stderr,
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.clusters = append(d.clusters, c)
	d.mu.Unlock()
	return d.tell(func(s *state) {
		s.Clusters = append(s.Clusters, cluster{
			Name: name, Server: c.RESTConfig().Host, Kubeconfig: c.KubeconfigPath(), State: "ready",
		})
		slices.SortFunc(s.Clusters, func(a, b cluster) int { return strings.Compare(a.Name, b.Name) })
	})
}

func (d *server) stop() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, c := range d.clusters {
		errs = append(errs, c.Stop())
	}
	return errors.Join(errs...)
}

// tell changes the state and lets the others see it.
func (d *server) tell(change func(*state)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if change != nil {
		change(&d.state)
	}
	return write(d.dir, d.state)
}
