package testcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/test/internal/proc"
)

const (
	checkEvery     = 50 * time.Millisecond // a start takes a few seconds in about seven waits
	checkTimeout   = 5 * time.Second       // of one check: a server that is starting may accept and not answer
	listenAttempts = 3
)

// await checks a condition until it holds. It gives up early when one of the processes has ended, and at the end of ctx
// shows what all of them have logged.
func await(ctx context.Context, processes []*proc.Process, condition func(context.Context) error) error {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		err := check(ctx, condition)
		if err == nil {
			return nil
		}
		for _, process := range processes {
			if failure := process.Failure(); failure != nil {
				return failure
			}
		}
		select {
		case <-ctx.Done():
			return timeoutError(ctx, err, processes)
		case <-ticker.C:
		}
	}
}

func check(ctx context.Context, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return condition(ctx)
}

func timeoutError(ctx context.Context, last error, processes []*proc.Process) error {
	var logs strings.Builder
	for _, process := range processes {
		fmt.Fprintf(&logs, "\n%s: %s", process.Name(), proc.Tail(process.Log()))
	}
	return fmt.Errorf("%w; the last answer was: %w%s", context.Cause(ctx), last, logs.String())
}

// await checks a condition of the cluster. The process that was started last is the likeliest to have a reason.
func (p *plane) await(ctx context.Context, condition func(context.Context) error) error {
	processes := append([]*proc.Process{p.store.process}, p.processes...)
	slices.Reverse(processes)
	return await(ctx, processes, condition)
}

// listen finds a port for a server and starts it there. Between looking and listening another process may take the
// port; then the next one is tried.
func listen(ctx context.Context, start func(context.Context, int) (*proc.Process, error)) error {
	var errs []error
	for range listenAttempts {
		port, err := freePort()
		if err != nil {
			return err
		}
		process, err := start(ctx, port)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
		if process == nil || !addressInUse(process) {
			break
		}
	}
	return errors.Join(errs...)
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func addressInUse(process *proc.Process) bool {
	log, err := os.ReadFile(process.Log())
	return err == nil && strings.Contains(string(log), "address already in use")
}
