// Command cmd keeps Kubernetes control planes running in the background, for a person or for the demo.
//
//	go run ./test/testcluster/cmd up 3      start three clusters and print where their kubeconfigs are
//	go run ./test/testcluster/cmd status    show what runs
//	go run ./test/testcluster/cmd down      stop all and leave nothing
//	go run ./test/testcluster/cmd build     only build the programs (the first up does it too)
//
// The clusters belong to one background process, the daemon. When it ends, in whatever way, the clusters end.
// up, status and down of one set of clusters meet in a directory (--dir).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/chandler-fleet/chandler/test/testcluster/binaries"
	"github.com/chandler-fleet/chandler/test/testcluster/internal/pool"
)

const usage = `usage: cmd build
       cmd up [n] [--dir d] [--nodes n] [--json]
       cmd status [--dir d] [--json]
       cmd down   [--dir d]`

// settings are what the command line says.
type settings struct {
	command string
	count   int
	nodes   int
	dir     string
	json    bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	switch s.command {
	case "build":
		set, err := binaries.Ensure(ctx, os.Stderr)
		if err == nil {
			fmt.Fprintln(out, set.Dir())
		}
		return err
	case "up":
		return up(ctx, s, out)
	case "status":
		return status(ctx, s, out)
	case "down":
		return down(ctx, s)
	case daemonCommand:
		return serve(ctx, s)
	default:
		return fmt.Errorf("unknown command %q\n%s", s.command, usage)
	}
}

// parse takes options before, between and after the other arguments.
func parse(args []string) (settings, error) {
	s := settings{count: 1}
	flags := flag.NewFlagSet("cmd", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.dir, "dir", "", "directory of the clusters")
	flags.IntVar(&s.nodes, "nodes", 1, "nodes of each cluster")
	flags.BoolVar(&s.json, "json", false, "print JSON")
	var words []string
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return s, fmt.Errorf("%w\n%s", err, usage)
		}
		if args = flags.Args(); len(args) > 0 {
			words, args = append(words, args[0]), args[1:]
		}
	}
	err := s.take(words)
	return s, err
}

func (s *settings) take(words []string) (err error) {
	if len(words) == 0 || len(words) > 2 {
		return errors.New(usage)
	}
	s.command = words[0]
	if len(words) == 2 {
		if s.count, err = strconv.Atoi(words[1]); err != nil || s.count < 1 {
			return fmt.Errorf("%q is not a number of clusters\n%s", words[1], usage)
		}
	}
	s.dir, err = clustersDir(s.dir)
	return err
}

// clustersDir is the same for all commands of a user, wherever they are typed.
func clustersDir(dir string) (string, error) {
	if dir != "" {
		return filepath.Abs(dir)
	}
	p, err := pool.Open()
	return filepath.Join(p.Dir(), "up"), err
}
