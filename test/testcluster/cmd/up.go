package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/chandler-fleet/chandler/test/internal/proc"
	"github.com/chandler-fleet/chandler/test/testcluster/binaries"
)

const (
	pollEvery   = 100 * time.Millisecond
	reportEvery = 5 * time.Second
)

// up starts the daemon and waits until its clusters work. If that fails or is interrupted, it leaves nothing.
func up(ctx context.Context, s settings, out io.Writer) error {
	if _, err := binaries.Ensure(ctx, os.Stderr); err != nil {
		return err
	}
	err := claim(s.dir, state{Owner: proc.Self(), Count: s.count})
	if errors.Is(err, errUp) {
		return upAlready(ctx, s, out)
	}
	if err != nil {
		return fmt.Errorf("up: %w", err)
	}
	daemon, err := startDaemon(s)
	if err != nil {
		return errors.Join(fmt.Errorf("start daemon: %w", err), remove(s.dir))
	}
	done, err := daemon.waitReady(ctx, s)
	if err != nil {
		return errors.Join(err, daemon.end(), remove(s.dir))
	}
	return show(out, done.Clusters, s.json)
}

// upAlready is for a directory in which there is a state: of running clusters, or of some whose daemon was killed.
func upAlready(ctx context.Context, s settings, out io.Writer) error {
	old, err := read(s.dir)
	if err != nil {
		return err
	}
	if old == nil || !old.Owner.Alive() {
		if err := down(ctx, s); err != nil {
			return err
		}
		return up(ctx, s, out)
	}
	if !old.Ready || old.Count != s.count {
		return fmt.Errorf("%d clusters are up or starting in %s; take them down first", old.Count, s.dir)
	}
	return show(out, old.Clusters, s.json)
}

// daemon is the background process as up sees it.
type daemon struct {
	cmd   *exec.Cmd
	ended chan error
}

// startDaemon runs this program again, detached: in a session of its own, so that no terminal ends it.
func startDaemon(s settings) (*daemon, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(s.dir, logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(self, daemonCommand, strconv.Itoa(s.count), "--dir", s.dir, "--nodes", strconv.Itoa(s.nodes))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &daemon{cmd: cmd, ended: make(chan error, 1)}
	go func() { d.ended <- cmd.Wait() }()
	return d, nil
}

// waitReady follows the state until all clusters work.
func (d *daemon) waitReady(ctx context.Context, s settings) (*state, error) {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	p := newProgress(s.count)
	for {
		now, err := read(s.dir)
		if err != nil {
			return nil, err
		}
		switch {
		case now != nil && now.Error != "":
			return nil, errors.New(now.Error)
		case now != nil && now.Ready:
			return now, nil
		case now != nil:
			p.report(len(now.Clusters))
		}
		select {
		case <-ctx.Done():
			return nil, errors.New("interrupted; nothing is left running")
		case err := <-d.ended:
			d.ended <- err
			return nil, fmt.Errorf("daemon ended: %w; %s", err, proc.Tail(filepath.Join(s.dir, logFile)))
		case <-poll.C:
		}
	}
}

// end asks the daemon to stop its clusters and waits until it has.
func (d *daemon) end() error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	var exit *exec.ExitError
	if err := <-d.ended; !errors.As(err, &exit) {
		return err
	}
	return nil // with which status it ended is of no interest: it was asked to
}

// progress prints how many clusters work, at every change and every few seconds.
type progress struct {
	start, last time.Time
	ready       int
	total       int
}

func newProgress(total int) *progress {
	now := time.Now()
	return &progress{start: now, last: now, ready: -1, total: total}
}

func (p *progress) report(ready int) {
	now := time.Now()
	if ready == p.ready && now.Sub(p.last) < reportEvery {
		return
	}
	p.ready, p.last = ready, now
	fmt.Fprintf(os.Stderr, "starting clusters: %d of %d ready, %s\n", ready, p.total,
		now.Sub(p.start).Round(time.Second))
}
