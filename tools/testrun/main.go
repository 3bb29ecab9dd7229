// Command testrun runs go test and says at its end what took the time and how many tests passed.
//
//	testrun [-budget 38m] [-slowest 10] -- <arguments of go test>
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
		ctx, cancel = context.WithTimeoutCause(ctx, budget, fmt.Errorf("the tests took longer than their budget of %s", budget))
		defer cancel()
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = killAfter
	events, err := cmd.StdoutPipe()
	if err != nil {
		return fail(out, err)
	}
	if err := cmd.Start(); err != nil {
		return fail(out, err)
	}
	r := newReport(out)
	readErr := r.read(events)
	err = errors.Join(readErr, cmd.Wait())
	if cause := context.Cause(ctx); ctx.Err() != nil {
		err = errors.Join(cause, err)
	}
	r.close(slowest, time.Since(began))
	switch {
	case err != nil && r.failed == 0:
		return fail(out, err)
	case err != nil:
		return 1
	case r.passed == 0:
		return fail(out, errors.New("no test ran"))
	default:
		return 0
	}
}

func fail(out io.Writer, err error) int {
	// A terminal that is gone cannot be told.
	_, _ = fmt.Fprintln(out, "FAIL:", err)
	return 1
}
