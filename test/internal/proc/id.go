package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ID names one process: a pid is given again after its process is gone, a pid together with its start time is not.
type ID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in clock ticks since boot
}

// pollEvery is how often a process that is not our child is looked at; the kernel does not tell us when it ends.
const pollEvery = 10 * time.Millisecond

// Self is the process we run in.
func Self() ID {
	id, err := Of(os.Getpid())
	if err != nil {
		panic(fmt.Sprintf("read own process: %v", err))
	}
	return id
}

// Of returns the ID of the process that has this pid now.
func Of(pid int) (ID, error) {
	start, _, err := stat(pid)
	if err != nil {
		return ID{}, err
	}
	return ID{PID: pid, Start: start}, nil
}

// Alive reports whether the process still runs. One that ended and that nobody has waited for counts as gone:
// where the first process of a container reaps nobody it stays a zombie for ever.
func (id ID) Alive() bool {
	start, zombie, err := stat(id.PID)
	return err == nil && start == id.Start && !zombie
}

// Signal sends sig if the process still runs; none is sent to a later process with the same pid.
func (id ID) Signal(sig syscall.Signal) error {
	handle, err := os.FindProcess(id.PID)
	if err != nil {
		return fmt.Errorf("find process %d: %w", id.PID, err)
	}
	defer func() { _ = handle.Release() }()
	if !id.Alive() { // asked after the handle is held: the handle cannot move on to another process
		return nil
	}
	if err := handle.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal process %d: %w", id.PID, err)
	}
	return nil
}

// Kill ends the process and waits until it is gone.
func (id ID) Kill(ctx context.Context) error {
	if err := id.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	return id.Wait(ctx)
}

// Terminate asks the process to end, and waits until it is gone.
func (id ID) Terminate(ctx context.Context) error {
	if err := id.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return id.Wait(ctx)
}

// Wait returns when the process is gone.
func (id ID) Wait(ctx context.Context) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for id.Alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d still runs: %w", id.PID, context.Cause(ctx))
		case <-ticker.C:
		}
	}
	return nil
}
