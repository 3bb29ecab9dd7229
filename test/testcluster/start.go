package testcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chandler-fleet/chandler/test/internal/proc"
	"github.com/chandler-fleet/chandler/test/testcluster/binaries"
	"github.com/chandler-fleet/chandler/test/testcluster/internal/pool"
)

// step is one part of a start.
type step struct {
	name string
	do   func(context.Context) error
}

// start runs the steps in order; each finds in p what the ones before it left there.
func (p *plane) start(ctx context.Context) error {
	var err error
	if p.programs, err = binaries.Ensure(ctx, p.opts.Log); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not done within %s", startTimeout))
	defer cancel()
	begin := time.Now()
	for _, s := range p.steps() {
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(p.opts.Log, "cluster %s: %s done after %.1fs\n", p.opts.Name, s.name, time.Since(begin).Seconds())
	}
	p.works = true
	return nil
}

func (p *plane) steps() []step {
	return []step{
		{"place", p.takePlace},
		{"etcd", p.startStore},
		{"certificates", p.makeSecrets},
		{"API server", p.startAPIServer},
		{"controllers", p.startControllers},
		{"nodes", p.bringUpNodes},
		{"first deployment", p.proveFlow},
	}
}

// takePlace enters the cluster into the pool and makes its directories.
func (p *plane) takePlace(ctx context.Context) error {
	if err := requireEmpty(p.opts.Dir); err != nil {
		return err
	}
	var err error
	if p.pool, err = pool.Open(); err != nil {
		return err
	}
	if p.member == nil {
		if p.member, err = p.pool.Add(ctx, pool.Cluster, p.opts.Name, p.opts.Dir); err != nil {
			return err
		}
	}
	return os.MkdirAll(p.file("logs"), 0o700)
}

// requireEmpty keeps Stop from removing what was there before.
func requireEmpty(dir string) error {
	if dir == "" {
		return nil
	}
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("directory %s must be absolute", dir)
	}
	files, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if len(files) > 0 {
		return fmt.Errorf("directory %s is not empty", dir)
	}
	return nil
}

func (p *plane) startStore(ctx context.Context) (err error) {
	p.store, err = acquireEtcd(ctx, p.pool, p.programs, p.opts.outlive)
	return err
}

// startAPIServer needs a port of its own, known in advance since clients have to be told.
func (p *plane) startAPIServer(ctx context.Context) error {
	return listen(ctx, func(ctx context.Context, port int) (*proc.Process, error) {
		p.port = port
		if err := p.writeAccess(); err != nil {
			return nil, err
		}
		process, err := p.run(binaries.APIServer, p.apiServerArgs())
		if err != nil {
			return nil, err
		}
		if err := p.await(ctx, p.apiServerReady); err != nil {
			process.Kill()
			p.processes = nil // it is the first one, and may be replaced
			return process, err
		}
		p.apiServer = process
		return process, nil
	})
}

// startControllers starts everything that is a client of the API server.
func (p *plane) startControllers(context.Context) error {
	for _, c := range []struct {
		program string
		args    []string
	}{
		{binaries.ControllerManager, p.controllerManagerArgs()},
		{binaries.Scheduler, p.schedulerArgs()},
		{binaries.Kwok, p.kwokArgs()},
	} {
		if _, err := p.run(c.program, c.args); err != nil {
			return err
		}
	}
	return nil
}

// run starts one component and enters it everywhere it has to be known to be ended.
func (p *plane) run(program string, args []string) (*proc.Process, error) {
	process, err := proc.Start(proc.Spec{
		Name:    program,
		Path:    p.programs.Path(program),
		Args:    args,
		Env:     componentEnv(p.member.Dir),
		Dir:     p.member.Dir,
		Log:     p.file("logs", program+".log"),
		Outlive: p.opts.outlive,
	})
	if err != nil {
		return nil, err
	}
	p.processes = append(p.processes, process)
	return process, p.member.Record(program, process.ID())
}

// file names a file of the cluster.
func (p *plane) file(elements ...string) string {
	return filepath.Join(append([]string{p.member.Dir}, elements...)...)
}
