//go:build unix

// Package filelock holds a lock between processes: a file lock, which the kernel gives back when its holder dies.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// retryEvery is short beside everything that is done under these locks.
const retryEvery = 20 * time.Millisecond

// Lock waits until the lock at path is free, holds it and returns the function that gives it back.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	return LockTelling(ctx, path, func() {})
}

// LockTelling is Lock that calls waits once if the lock is not free.
func LockTelling(ctx context.Context, path string, waits func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := acquire(ctx, file, waits); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}

// acquire asks again and again instead of blocking in the kernel, so that ctx can end the wait.
func acquire(ctx context.Context, file *os.File, waits func()) error {
	waits = sync.OnceFunc(waits)
	ticker := time.NewTicker(retryEvery)
	defer ticker.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err
		}
		waits()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
