package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/chandler-fleet/chandler/test/internal/filelock"
)

// The programs of a set.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
)

// stagesFile holds kwok's own description of how nodes and pods come up; kwok has none built in.
const stagesFile = "kwok-stages.yaml"

// Set is a directory with all programs.
type Set struct{ dir string }

// Path is where a program lies.
func (s Set) Path(program string) string { return filepath.Join(s.dir, program) }

// Stages is the configuration that kwok needs.
func (s Set) Stages() string { return filepath.Join(s.dir, stagesFile) }

// Dir holds the programs, as envtest wants to know it.
func (s Set) Dir() string { return s.dir }

// Ensure returns the set for this repository and builds it if it is not there yet, telling progress to log.
// The repository is the one that the working directory lies in.
func Ensure(ctx context.Context, log io.Writer) (Set, error) { return ensure(ctx, logTo(log), false) }

// EnsureBeside is Ensure at the lowest priority, for somebody who has other things to compile and to show meanwhile.
func EnsureBeside(ctx context.Context, tell func(line string)) (Set, error) {
	return ensure(ctx, tell, true)
}

// Present tells whether the set is there, so that nothing has to be built.
func Present() (bool, error) {
	src, err := findSource()
	return err == nil && exists(src.set().dir), err
}

func ensure(ctx context.Context, tell func(string), beside bool) (Set, error) {
	src, err := findSource()
	if err != nil {
		return Set{}, err
	}
	set := src.set()
	if exists(set.dir) {
		return set, nil
	}
	// One of this process asks the others and reports; the rest wait in silence.
	select {
	case asking <- struct{}{}:
		defer func() { <-asking }()
	case <-ctx.Done():
		return Set{}, fmt.Errorf("wait for the Kubernetes programs: %w", context.Cause(ctx))
	}
	if err := buildOnce(ctx, src, set.dir, tell, beside); err != nil {
		return Set{}, fmt.Errorf("build Kubernetes %s: %w", src.version, err)
	}
	return set, nil
}

// asking holds the one of this process that builds, or waits for another process to build.
var asking = make(chan struct{}, 1)

// buildOnce builds the set unless somebody else did so while we waited.
func buildOnce(ctx context.Context, src source, dir string, tell func(string), beside bool) error {
	if exists(dir) {
		return nil
	}
	home := filepath.Dir(dir)
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	const waiting = "waiting for another process that builds the Kubernetes programs"
	wait := startProgress(tell, waiting, waitEvery)
	unlock, err := filelock.LockTelling(ctx, filepath.Join(home, "lock"), func() { tell(waiting) })
	wait.stop()
	if err != nil {
		return err
	}
	defer unlock()
	if exists(dir) {
		return nil
	}
	return buildInto(ctx, builder{source: src, tell: tell, beside: beside}, dir)
}

// buildInto builds beside dir and renames at the end, so that dir is complete whenever it is there.
func buildInto(ctx context.Context, b builder, dir string) error {
	b.out = dir + ".unfinished"
	if err := os.RemoveAll(b.out); err != nil { // of a build that was killed
		return err
	}
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	if err := b.all(ctx); err != nil {
		return errors.Join(err, os.RemoveAll(b.out))
	}
	return os.Rename(b.out, dir)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
