package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chandler-fleet/chandler/test/demo/internal/handover"
	"github.com/chandler-fleet/chandler/test/internal/proc"
	"github.com/chandler-fleet/chandler/test/stack"
	"github.com/chandler-fleet/chandler/test/testcluster"
	"github.com/chandler-fleet/chandler/test/testcluster/binaries"
)

// keeper is what is held.
type keeper struct {
	dir, bin string
	names    []string  // of the clusters
	out      io.Writer // the progress file
	fleet    bool      // agents join, and there are simulated clusters
	spokes   int       // how many

	mu        sync.Mutex
	stack     *stack.Stack
	clusters  []*testcluster.Cluster
	simulated *proc.Process // plays the simulated clusters
}

// keep starts everything, says so, and holds it until ctx ends.
func keep(ctx context.Context, k *keeper) (err error) {
	k.out = os.Stdout
	defer func() { err = errors.Join(err, k.stop()) }()
	group, starting := errgroup.WithContext(ctx)
	group.Go(func() error { return k.startStack(starting) })
	group.Go(func() error { return k.startClusters(starting) })
	if err := group.Wait(); err != nil {
		if ctx.Err() != nil { // we were asked to end
			return nil
		}
		return err
	}
	if k.fleet {
		return k.serveAgents(ctx)
	}
	<-ctx.Done()
	return nil
}

func (k *keeper) startStack(ctx context.Context) error {
	s, err := stack.Start(ctx, stack.Options{
		Dir: filepath.Join(k.dir, "stack"), Bin: k.bin, Durable: true, Operator: k.fleet,
		Tell: func(line string) { fmt.Fprintln(k.out, line) },
	})
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.stack = s
	k.mu.Unlock()
	if k.fleet {
		if err := k.startSpokes(s); err != nil {
			return err
		}
	}
	return handover.Write(k.dir, handover.StackFile, handover.Stack{URL: s.URL(), Token: s.Token()})
}

// startClusters starts all at once, as soon as somebody has built the programs.
func (k *keeper) startClusters(ctx context.Context) error {
	if err := awaitPrograms(ctx); err != nil {
		return err
	}
	var group errgroup.Group
	for _, name := range k.names {
		group.Go(func() error {
			c, err := testcluster.Start(ctx, testcluster.Options{
				Name: name, Dir: filepath.Join(k.dir, "clusters", name), Log: milestones{k.out},
			})
			if err != nil {
				return err
			}
			k.mu.Lock()
			k.clusters = append(k.clusters, c)
			k.mu.Unlock()
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	kubeconfigs := handover.Clusters{}
	for _, c := range k.clusters {
		kubeconfigs[c.Name()] = c.KubeconfigPath()
	}
	return handover.Write(k.dir, handover.ClustersFile, kubeconfigs)
}

// lookEvery is how often the programs are looked for.
const lookEvery = 200 * time.Millisecond

// awaitPrograms waits for the demo, which builds the programs of the clusters beside everything else and tells how far
// it is.
func awaitPrograms(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		there, err := binaries.Present()
		if there || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func (k *keeper) stop() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	if k.simulated != nil {
		k.simulated.Kill()
	}
	for _, c := range k.clusters {
		errs = append(errs, c.Stop())
	}
	if k.stack != nil {
		errs = append(errs, k.stack.Stop())
	}
	return errors.Join(errs...)
}

// milestones passes on what a person wants to know of a starting cluster: that its API server answers, and that it
// works.
type milestones struct{ out io.Writer }

func (m milestones) Write(p []byte) (int, error) {
	for _, milestone := range []string{": API server done", ": first deployment done"} {
		if bytes.Contains(p, []byte(milestone)) {
			return m.out.Write(p)
		}
	}
	return len(p), nil
}
