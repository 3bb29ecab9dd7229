package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/chandler-fleet/chandler/test/internal/gotool"
)

const usage = `usage: demo up [--catalog dir | --fleet [--spokes n]] [--record file.svg] [--dir d]
       demo down [--dir d]`

// settings are what the command line says.
type settings struct {
	dir     string // where state, logs and the copy of the catalog lie
	catalog string // "" takes the one that ships with Chandler
	record  string // file that takes a recording; "" is none
	fleet   bool   // three real clusters, simulated ones, and a rollout
	spokes  int    // how many are simulated
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	root, err := gotool.Root()
	if err != nil {
		return err
	}
	var s settings
	flags := flag.NewFlagSet("demo "+args[0], flag.ContinueOnError)
	flags.StringVar(&s.dir, "dir", filepath.Join(root, ".demo"), "where state and logs lie")
	flags.StringVar(&s.catalog, "catalog", "", "catalog directory; the one that ships with Chandler without it")
	flags.StringVar(&s.record, "record", "", "file that takes a recording of the scenes, as SVG")
	flags.BoolVar(&s.fleet, "fleet", false, "a rollout over three real clusters and simulated ones, with a version that stops it")
	flags.IntVar(&s.spokes, "spokes", defaultSpokes, "with --fleet: how many clusters are simulated")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return err
	}
	if s.fleet && s.catalog != "" {
		return errors.New("--fleet has a catalog of its own: leave --catalog out")
	}
	if s.spokes < 1 || s.spokes > mostSpokes {
		return fmt.Errorf("--spokes %d: want 1 to %d", s.spokes, mostSpokes)
	}
	if s.catalog != "" {
		if s.catalog, err = filepath.Abs(s.catalog); err != nil {
			return err
		}
		// Before anything is compiled or a demo that runs is ended.
		if info, err := os.Stat(s.catalog); err != nil {
			return fmt.Errorf("the catalog: %w", err)
		} else if !info.IsDir() {
			return fmt.Errorf("the catalog %s is no directory", s.catalog)
		}
	}
	switch args[0] {
	case "up":
		return up(ctx, s)
	case "down":
		return down(ctx, s.dir)
	default:
		return fmt.Errorf("unknown command %q\n%s", args[0], usage)
	}
}
