package service

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/chandler-fleet/chandler/libs/telemetry"
)

// Exit statuses of Main.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Main loads the configuration of the service called name, starts telemetry, and runs it until it
// fails or SIGTERM or SIGINT comes; a second signal ends the process at once. It returns the exit
// status: 0 after an ordered stop, 2 for a wrong configuration, 1 for any other failure. The argument --version prints
// the name and the version.
func Main(name string, cfg Configurable, run func(ctx context.Context, tel *telemetry.Telemetry) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // from now on a signal has its usual, immediate effect
	return runMain(ctx, process{args: os.Args[1:], env: os.LookupEnv, out: os.Stdout, errOut: os.Stderr}, name, cfg,
		run)
}

// process is what Main takes from the operating system.
type process struct {
	args        []string
	env         LookupEnv
	out, errOut io.Writer
}

func runMain(ctx context.Context, p process, name string, cfg Configurable,
	run func(ctx context.Context, tel *telemetry.Telemetry) error,
) int {
	if slices.Equal(p.args, []string{"--version"}) {
		_, err := fmt.Fprintln(p.out, name, Version())
		return report(p.errOut, err, exitOK)
	}
	s := NewSettings(name)
	cfg.Settings(s)
	if err := s.Load(p.args, p.env); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return report(p.errOut, s.Usage(p.errOut), exitOK)
		}
		return report(p.errOut, err, exitUsage)
	}
	base := cfg.Base()
	tel, err := telemetry.Start(ctx, telemetry.Options{
		Service: name, Version: Version(), LogLevel: base.LogLevel, LogFormat: base.LogFormat,
		OTLPEndpoint: base.OTLPEndpoint, LogTo: p.errOut,
	})
	if err != nil {
		return report(p.errOut, err, exitUsage)
	}
	err = run(ctx, tel)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), base.Drain)
	defer cancel()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil
	}
	return report(p.errOut, errors.Join(err, tel.Shutdown(stopping)), exitOK)
}

// report writes err, if any, and returns the exit status: ok without an error, and never ok with one.
func report(w io.Writer, err error, status int) int {
	if err == nil {
		return status
	}
	// Nothing can be done about a standard error that cannot be written; the status still tells.
	_, _ = fmt.Fprintln(w, "error:", err)
	if status == exitOK {
		return exitFailed
	}
	return status
}
