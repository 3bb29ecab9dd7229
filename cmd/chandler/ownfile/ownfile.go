// Package ownfile writes files that are for their user alone, and that several commands may change at once.
package ownfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// LockTimeout bounds the wait for another command, which has the lock for as long as a provider takes to answer.
const LockTimeout = 10 * time.Second

// Lock keeps other commands from changing the file, and makes its folder. The system gives the lock up for a command
// that is killed.
func Lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	type locked struct {
		unlock func()
		err    error
	}
	result := make(chan locked)
	late := make(chan struct{})
	go func() {
		unlock, err := lockedfile.MutexAt(path + ".lock").Lock()
		select {
		case result <- locked{unlock, err}:
		case <-late:
			if err == nil {
				unlock()
			}
		}
	}()
	select {
	case l := <-result:
		return l.unlock, l.err
	case <-time.After(LockTimeout):
		close(late)
		return nil, fmt.Errorf("another command holds %s.lock for more than %s", path, LockTimeout)
	}
}

// Write replaces the file in one step: who is killed leaves the old one or the new one.
func Write(path string, raw []byte) error {
	next, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // for the user alone
	if err != nil {
		return err
	}
	_, err = next.Write(raw)
	if err = errors.Join(err, next.Close()); err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return nil
}
