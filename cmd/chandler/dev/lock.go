package dev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock takes the state folder for this process; the system gives it free when the process ends, in whatever way.
func lock(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("another chandler dev uses %s: stop it, or say --state with another folder",
				filepath.Dir(path))
		}
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}
