// Command fleetsim runs a whole hub (PostgreSQL, NATS, the four services as processes) and, in its own process, the
// agents of as many clusters as it is told: real executors with a connection to NATS each, and a Kubernetes API in
// memory for each (kubesim). It says what the hub needs for it (issue 14, section 3; docs/scale.md has figures).
//
//	go run ./test/fleetsim -clusters 200 -operators 5
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/test/fleetsim/spokes"
	"github.com/chandler-fleet/chandler/test/stack"
)

// options are what the command line says.
type options struct {
	clusters, operators int
	dir, bin            string
	bound               time.Duration
	level               slog.Level // of what agents log
	statements          int
}

func main() {
	var o options
	flag.IntVar(&o.clusters, "clusters", 100, "simulated clusters, each with an agent")
	flag.IntVar(&o.operators, "operators", 3, "operators that each cluster gets")
	flag.StringVar(&o.dir, "dir", "", "directory for data and logs; a temporary one, removed at the end, without it")
	flag.StringVar(&o.bin, "bin", "", "directory with the programs; they are built without it")
	flag.DurationVar(&o.bound, "bound", 30*time.Minute, "how long each scene may take")
	flag.TextVar(&o.level, "agents-log", slog.LevelWarn, "level of what the agents write to agents.log in the directory")
	flag.IntVar(&o.statements, "statements", 0, "after each scene, show so many of the statements that took PostgreSQL "+
		"the longest (needs its module pg_stat_statements, and makes it a little slower)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fleetsim:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "fleetsim-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	}
	catalog := filepath.Join(o.dir, "catalog")
	if err := writeCatalog(catalog, o.operators); err != nil {
		return err
	}
	agents, err := os.Create(filepath.Join(o.dir, "agents.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, agents.Close()) }()
	only := &slog.HandlerOptions{Level: o.level}
	names := make([]string, o.clusters)
	for i := range names {
		names[i] = fmt.Sprintf("spoke-%04d", i)
	}
	fleet := spokes.New(names, slog.New(slog.NewTextHandler(agents, only)))
	fmt.Fprintf(out, "fleetsim: %d clusters, operators on each: %d\n", o.clusters, o.operators)
	hub, err := stack.Start(ctx, stack.Options{
		Dir: o.dir, Bin: o.bin, Durable: true, Operator: true, Settings: o.settings(),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fleet.Stop(), hub.Stop()) }()
	record, err := pgx.Connect(ctx, hub.Postgres().AdminURL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, record.Close(context.WithoutCancel(ctx))) }()
	if o.statements > 0 {
		if _, err := record.Exec(ctx, `create extension pg_stat_statements`); err != nil {
			return err
		}
	}
	p := &play{options: o, out: out, hub: hub, api: hub.Client(), record: record, fleet: fleet, catalog: catalog}
	return p.all(ctx)
}
