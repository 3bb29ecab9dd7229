package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/chandler-fleet/chandler/test/internal/gotool"
	"github.com/chandler-fleet/chandler/test/testcluster/binaries"
)

// keeperPackage is the program that owns what keeps running.
const keeperPackage = "github.com/chandler-fleet/chandler/test/demo/keeper"

// workshop compiles what the demo runs, in the order in which it can be shown: the command line tool, the services, and
// beside both, with what they leave of the processors, the programs of the clusters.
type workshop struct {
	n     *narrator
	bin   string
	fleet bool // agents and simulated clusters, too

	mu       sync.Mutex
	clusters string // how far the programs of the clusters are; "" is done
	fail     context.CancelCauseFunc
	beside   sync.WaitGroup

	total atomic.Int64 // packages of the product, if they have been counted
}

// openWorkshop puts programs into the cache, so that they are compiled and linked once.
func openWorkshop(n *narrator, fail context.CancelCauseFunc, fleet bool) (*workshop, error) {
	cache, err := gotool.Cache()
	if err != nil {
		return nil, err
	}
	w := &workshop{n: n, bin: filepath.Join(cache, "demo", "bin"), fail: fail, fleet: fleet}
	n.bin, n.behind = w.bin, w.progress
	return w, nil
}

func (w *workshop) progress() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clusters
}

func (w *workshop) tell(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clusters = line
}

// open downloads what is missing, begins with the programs of the clusters, and returns when the command line tool is
// there.
func (w *workshop) open(ctx context.Context) error {
	built, err := binaries.Present()
	if err != nil {
		return err
	}
	ready := w.compiled()
	if !ready || !built {
		w.n.say("The first time on a machine everything is compiled from source, which takes some minutes;")
		w.n.say("what is ready is shown meanwhile. From then on it takes half a minute.")
	}
	if err := w.download(ctx, !ready, !built); err != nil {
		return err
	}
	if !built {
		w.beside.Go(func() { w.buildClusters(ctx) })
	}
	if ready {
		return w.build(ctx, "bringing everything up to date", append(w.services(), gotool.CLI)...)
	}
	return w.build(ctx, "compiling the CLI", gotool.CLI)
}

// compiled tells whether every program was compiled before; it may have to be brought up to date.
func (w *workshop) compiled() bool {
	programs := []string{"chandler", "keeper", "gateway"}
	if w.fleet {
		programs = append(programs, "chandler-agent", "simspokes")
	}
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(w.bin, program)); err != nil {
			return false
		}
	}
	return true
}

func (w *workshop) services() []string {
	all := append([]string{keeperPackage}, gotool.Services...)
	if w.fleet {
		all = append(all, gotool.Agent, gotool.SimulatedSpokes)
	}
	return all
}

// compileServices is the second part, after something was shown.
func (w *workshop) compileServices(ctx context.Context) error {
	w.total.Store(0) // nearly all of them are compiled
	return w.build(ctx, "compiling the services", w.services()...)
}

// download fetches the modules of the product and of the clusters' programs side by side.
func (w *workshop) download(ctx context.Context, product, clusters bool) error {
	if !product && !clusters {
		return nil
	}
	var fetched atomic.Int64
	count := func(string) { fetched.Add(1) }
	begin := w.n.now()
	err := w.n.during(func() string { return fmt.Sprintf("downloading Go modules: %d", fetched.Load()) }, func() error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		var all sync.WaitGroup
		fetch := func(module string, packages ...string) {
			all.Go(func() {
				packages, err := gotool.Download(ctx, module, packages, count)
				if err != nil {
					cancel(fmt.Errorf("download Go modules: %w", err))
				}
				if module == "" {
					w.total.Store(int64(packages))
				}
			})
		}
		if product {
			fetch("", append(w.services(), gotool.CLI)...)
		}
		if clusters {
			fetch(binaries.Module, ".")
		}
		all.Wait()
		return context.Cause(ctx)
	})
	if err == nil && fetched.Load() > 0 {
		w.n.say(fmt.Sprintf("%d Go modules downloaded in %s.", fetched.Load(), since(begin, w.n.now())))
	}
	return err
}

func (w *workshop) build(ctx context.Context, what string, packages ...string) error {
	var compiled atomic.Int64
	return w.n.during(func() string {
		switch n, total := compiled.Load(), w.total.Load(); {
		case n == 0:
			return what
		case total == 0:
			return fmt.Sprintf("%s, %d packages", what, n)
		default:
			return fmt.Sprintf("%s, %d of at most %d", what, n, total)
		}
	}, func() error {
		return gotool.Build(ctx, w.bin, packages, func(string) { compiled.Add(1) })
	})
}

// buildClusters ends the demo if it fails.
func (w *workshop) buildClusters(ctx context.Context) {
	if _, err := binaries.EnsureBeside(ctx, func(line string) { w.tell(beside(line)) }); err != nil {
		w.fail(err)
		return
	}
	w.tell("")
}

// beside shortens a line of progress, so that it fits behind another one: what goes on and how far it is.
func beside(line string) string {
	parts := strings.Split(line, ", ")
	if len(parts) == 1 {
		return line
	}
	parts[0] = "Kubernetes"
	return strings.TrimSuffix(strings.Join(parts[:len(parts)-1], ", "), " packages") // without the time
}

// close waits until nothing is compiled any more; whoever closes early has ended ctx.
func (w *workshop) close() { w.beside.Wait() }
