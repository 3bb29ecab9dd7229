// Command testrun runs go test and says at its end what took the time and how many tests passed.
//
//	testrun [-budget 38m] [-slowest 10] -- <arguments of go test> [-- <arguments of go test> ...]
//
// Each list of arguments is a run of go test of its own; all of them run at once and are told as one. A list after
// --then instead of -- begins when the one before it has ended, however it has. A run with -race has cgo, which the
// detector needs; the others are compiled without, as the programs that ship.
//
// It prints one line per package as it ends, the whole output of what failed, the names of tests
// that were skipped with their reasons, the slowest packages and tests, and closes with
// "N passed, N failed, N skipped". Its status is go test's, and never 0 when no test ran.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

// killAfter is how long go test may take to stop its test binaries after the budget is used up.
const killAfter = 20 * time.Second

func main() {
	budget := flag.Duration("budget", 0, "longest time that all tests may take; 0 is without bound")
	slowest := flag.Int("slowest", 10, "how many of the slowest packages to name")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Stdout, *budget, *slowest, flag.Args())
	stop()
	os.Exit(status)
}

func run(ctx context.Context, out io.Writer, budget time.Duration, slowest int, args []string) int {
	began := time.Now()
	if budget > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, budget,
			fmt.Errorf("the tests took longer than their budget of %s", budget))
		defer cancel()
	}
	all := newReport(&oneAtATime{out: out})
	err := runAll(ctx, all, split(args))
	if cause := context.Cause(ctx); ctx.Err() != nil {
		err = errors.Join(cause, err)
	}
	all.close(slowest, time.Since(began))
	switch {
	case err != nil && all.failed == 0:
		return fail(out, err)
	case err != nil:
		return 1
	case all.passed == 0:
		return fail(out, errors.New("no test ran"))
	default:
		return 0
	}
}

// chain is what runs one after the other: lists of arguments of go test.
type chain [][]string

// split takes the lists of arguments apart.
func split(args []string) []chain {
	chains := []chain{{}}
	for from := 0; ; {
		end := from
		for end < len(args) && args[end] != "--" && args[end] != "--then" {
			end++
		}
		last := len(chains) - 1
		chains[last] = append(chains[last], args[from:end])
		if end == len(args) {
			return chains
		}
		if args[end] == "--" {
			chains = append(chains, chain{})
		}
		from = end + 1
	}
}

// runAll runs all chains at once, and adds to the report what each of them had to tell.
func runAll(ctx context.Context, all *report, chains []chain) error {
	reports, errs := make([]*report, len(chains)), make([]error, len(chains))
	var wg sync.WaitGroup
	for i, lists := range chains {
		reports[i] = newReport(all.out)
		wg.Go(func() {
			for _, args := range lists {
				if ctx.Err() == nil {
					errs[i] = errors.Join(errs[i], goTest(ctx, reports[i], args))
				}
			}
		})
	}
	wg.Wait()
	for _, r := range reports {
		all.add(r)
	}
	return errors.Join(errs...)
}

func goTest(ctx context.Context, r *report, args []string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cgo := "CGO_ENABLED=0"
	if slices.Contains(args, "-race") {
		cgo = "CGO_ENABLED=1"
	}
	cmd.Env = append(os.Environ(), cgo)
	cmd.Stderr = r.out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = killAfter
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := r.read(events)
	return errors.Join(readErr, cmd.Wait())
}

// oneAtATime keeps what several runs print apart.
type oneAtATime struct {
	mu  sync.Mutex
	out io.Writer
}

func (o *oneAtATime) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out.Write(p)
}

func fail(out io.Writer, err error) int {
	// A terminal that is gone cannot be told.
	_, _ = fmt.Fprintln(out, "FAIL:", err)
	return 1
}
